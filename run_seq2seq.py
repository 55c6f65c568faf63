r"""Trains encoder-decoders for translation, summarization or replies.

Files are tables with a column `source` and a column `target` (TSV, CSV or JSON
lines), or two text files with one text per line. To translate with a BERT as
encoder and as decoder:
    python run_seq2seq.py --do_train=true --do_eval=true --do_predict=true \
        --train_file=train.en --train_target_file=train.de \
        --dev_file=val.en --dev_target_file=val.de \
        --test_file=test_2016_flickr.en \
        --test_target_file=test_2016_flickr.de \
        --init_checkpoint=$MULTILINGUAL_BERT_DIR \
        --max_seq_length=64 --max_target_length=64 --train_batch_size=32 \
        --learning_rate=5e-5 --num_train_epochs=3.0 --output_dir=/tmp/multi30k/

For a Transformer without pre-training, pass --bert_config_file=
configs/models/transformer_small.json and --vocab_file, and leave out
--init_checkpoint.

Files in output_dir: eval_results.txt (loss, BLEU, chrF and ROUGE) and
eval_predictions.txt, one text per line. With --do_predict also
test_predictions.txt and, if the test file has targets, test_results.txt.

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses

from bert_tf import options
from bert_tf.errors import InputError, counted
from bert_tf.flags import (
    command_line,
    fine_tuning_flags,
    flag_sections,
    optimization_flags,
    run_flags,
    shared_flags,
)
from bert_tf.seq2seq import seq2seq_options

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)

# ---- Flags ------------------------------------------------------------------

_OPTIONS = seq2seq_options.Generation
_DATA = flag_sections.Section("Data")
_NEW_MODEL = flag_sections.Section("Model", only_with="do_train")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
_GENERATION = flag_sections.Section(
    "Generation", only_with=("do_eval", "do_predict", "do_export")
)
_SCORES = flag_sections.Section(
    "Evaluation", only_with=("do_eval", "do_predict")
)


_FILES = {
    split: (
        shared_flags.split_file(split, _DATA, text),
        shared_flags.split_file(
            split,
            _DATA,
            f"Text file with the target of each line of --{split}_file, which "
            "must also be a text file.",
            "target_file",
        ),
    )
    for split, text in (
        ("train", "Training file."),
        ("dev", "Dev file, for evaluation."),
        ("test", "Test file, for prediction. Targets are optional."),
    )
}
_DATA.string(
    "source_column",
    "source",
    "Column of the source texts: name, or number from 0.",
    kind="COLUMN",
)
_DATA.string(
    "target_column",
    "target",
    "Column of the target texts: name, or number from 0.",
    kind="COLUMN",
)
_DATA.choice(
    "file_format",
    None,
    options.TEXT_PAIR_FORMATS,
    "Format of the files; text has one text per line. By default text if there "
    "are target files, otherwise detected from the name and first line.",
)
shared_flags.has_header(_DATA)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Max tokens of a source; longer ones are truncated.", min=3
)
_DATA.define(_OPTIONS, "max_target_length")
_SHARE_WEIGHTS = _NEW_MODEL.choice(
    "share_weights",
    None,
    options.SHARED_WEIGHTS,
    "Weights that encoder and decoder share: none, embeddings, or all except "
    "the cross-attention. By default as in the config file or the checkpoint, "
    "and none if the model starts from an encoder.",
)
_LABEL_SMOOTHING = _TRAINING.number(
    "label_smoothing",
    0.1,
    "Share of the probability that the loss spreads over all tokens.",
    min=0,
    max=0.99,
)
_GENERATION.define(_OPTIONS, "beam_size", "length_penalty")
_METRIC = _SCORES.choice(
    "metric",
    "bleu",
    options.TEXT_METRICS,
    "Metric on the dev set that selects the best checkpoint. With loss, "
    "evaluation during training generates no texts, which saves time.",
    only_with="do_eval",
)
_BLEU_TOKENIZER = _SCORES.choice(
    "bleu_tokenizer",
    "13a",
    options.BLEU_TOKENIZERS,
    "How BLEU splits texts into words: zh for Chinese, char for characters.",
)

command_line.start(__name__)

from bert_tf import files
from bert_tf.seq2seq import (
    decoder,
    generated_texts,
    seq2seq_model,
    seq2seq_objective,
    text_pairs,
    warm_start,
)
from bert_tf.setup import fine_tune, model_files_setup, run_setup, trained_setup
from bert_tf.text import detokenizer, text_graph
from bert_tf.training import fine_tuning, memory_use

from absl import logging

# Flags of reading and writing texts: as in training, unless set.
_READING = ("max_seq_length", *options.names(_OPTIONS))


class Seq2Seq(fine_tune.Task):
    """Generates a target text from a source text."""

    head = "seq2seq"
    identity = (
        "train_target_file",
        "source_column",
        "target_column",
        "file_format",
        "has_header",
        "share_weights",
        "label_smoothing",
        "max_target_length",
    )
    reading = _READING
    takes_pairs = False

    # ---- Model and data -----------------------------------------------------

    def prepare(self):
        """Takes the flags of training, and checks what it does not support."""
        self.generation = flag_sections.read(_OPTIONS)
        self.metric = f"eval_{_METRIC.value}"
        self.prefers_lower = _METRIC.value == "loss"
        self.chosen_on += ("dev_target_file", _METRIC.name)
        if not self.prefers_lower:
            self.chosen_on += ("beam_size", "length_penalty")
            self.chosen_on += (_BLEU_TOKENIZER.name,)
        self.objective = seq2seq_objective.make_objective(
            _LABEL_SMOOTHING.value
        )
        if self.work.evaluate:
            generated_texts.check_score_packages()
        if run_setup.on_tpu() and (self.work.evaluate or self.work.predict):
            raise InputError(
                "Texts are generated on CPUs and GPUs only: on a TPU, leave "
                "out --do_eval and --do_predict."
            )

    def load_files(self):
        """Reads config and vocabulary; the config may be an encoder's."""
        source = trained_setup.find_source(self.work.train)
        trained = source.config if source else None
        if source:
            path = run_flags.BERT_CONFIG_FILE.value
            source = warm_start.with_encoders_config(source, path)
        found = model_files_setup.load(source, self.work.train)
        config = warm_start.find_config(
            found.config, trained, _SHARE_WEIGHTS.value
        )
        memory_use.check_room_for_weights(config)
        longest = self.generation.max_target_length
        if longest > config.max_position_embeddings:
            raise InputError(
                "--max_target_length must be at most the number of positions "
                f"of the model, {config.max_position_embeddings}. "
                f"Received: max_target_length={longest}"
            )
        return dataclasses.replace(found, config=config)

    def read(self):
        self.splits = {}
        paths = (flag for flag, _ in _FILES.values())
        for split, path in self.files_of_splits(*paths):
            self.splits[split] = flag_sections.read(
                text_pairs.Source,
                path=path,
                target_path=_FILES[split][1].value,
            )

    def make_model(self, encoder):
        model = decoder.Seq2Seq(encoder)
        model.search = seq2seq_model.make_search(
            self.files.vocabulary, self.generation
        )
        return model

    def writer(self):
        encoder = text_pairs.Encoder(
            text_graph.make_tokenizer(self.files.vocabulary),
            self.length,
            self.generation.max_target_length,
        )
        return lambda split, path, seed: encoder.write(
            path, self._pairs(split), seed
        )

    def _pairs(self, split):
        return self.splits[split].pairs(needs_targets=split != "test")

    # ---- Train --------------------------------------------------------------

    def select(self, source):
        return warm_start.with_decoder(source, self.files.config)

    # ---- Evaluate and predict -----------------------------------------------

    def evaluate(self, run, batch_size):
        return self._results(run, "dev", batch_size, not self.prefers_lower)[0]

    def _results(self, run, split, batch_size, writes=True):
        """Returns the results on a split, and the texts if it `writes` them."""
        targets = [pair.target for pair in self._pairs(split)]
        missing = targets.count(None)
        has_targets = not missing
        if 0 < missing < len(targets):
            logging.warning(
                "No scores of --%s_file: %d of its %d rows have no target.",
                *(split, missing, len(targets)),
            )
        if has_targets and writes:
            generated_texts.check_score_packages()
        function = generated_texts.outputs(run.model, has_targets, writes)
        parts = fine_tuning.predict(run, split, function, batch_size)
        join = detokenizer.Detokenizer(self.files.vocabulary)
        loss, texts = generated_texts.collect(parts, join)
        if not has_targets:
            return {}, texts
        results = {"eval_loss": loss}
        if writes:
            scores = generated_texts.scores(
                texts,
                targets,
                self.files.vocabulary.settings.get("do_lower_case", False),
                _BLEU_TOKENIZER.value,
            )
            results |= {f"eval_{name}": x for name, x in scores.items()}
        return results, texts

    def write_evaluation(self, run, batch_size, step):
        """Writes eval_results.txt and eval_predictions.txt."""
        self._write(run, "dev", "eval", batch_size, step)

    def write_predictions(self, run, batch_size, step):
        """Writes test_predictions.txt and, with targets, test_results.txt."""
        self._write(run, "test", "test", batch_size, step)

    def _write(self, run, split, name, batch_size, step):
        results, texts = self._results(run, split, batch_size)
        if not run.is_chief:
            return
        path = run.path(f"{name}_predictions.txt")
        files.write_lines(path, [" ".join(x.splitlines()) for x in texts])
        logging.info("Wrote %s to %s.", counted(len(texts), "text"), path)
        if results:
            path = run.path(f"{name}_results.txt")
            fine_tune.write_results(path, results, step)

    def export(self, run):
        return seq2seq_model.writer(
            run.model, self.files.vocabulary, self.length
        )


def main(_):
    """Runs the task."""
    fine_tune.run_task(Seq2Seq())


if __name__ == "__main__":
    command_line.run(main)
