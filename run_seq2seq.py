r"""Trains encoder-decoders to write a text for a text: translations, summaries.

Files are tables with a column `source` and a column `target` (TSV, CSV or JSON
lines), or two text files with a text on each line. To translate with a BERT as
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

Written to output_dir are eval_results.txt (loss, BLEU, chrF and ROUGE) and
eval_predictions.txt, a text on each line; of --do_predict
test_predictions.txt and, if the test file has targets, test_results.txt.

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.flags import (
    command_line,
    fine_tuning_flags,
    flag_sections,
    optimization_flags,
    run_flags,
    shared_flags,
)

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)

# ---- Flags ------------------------------------------------------------------

_DATA = flag_sections.Section("Data")
_NEW_MODEL = flag_sections.Section("Model", only_with="do_train")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
_GENERATION = flag_sections.Section(
    "Generation", only_with=("do_eval", "do_predict", "do_export")
)
_SCORES = flag_sections.Section(
    "Evaluation", only_with=("do_eval", "do_predict")
)


def _target_file(split: str, action: str) -> flag_sections.Holder:
    """Defines the file of a split's targets."""
    name = f"{split}_file"
    return _DATA.input_path(
        f"{split}_target_file",
        f"Text file with the target of each line of --{name}, which is then a "
        "text file, too.",
        only_with=action,
        harmless=True,
    )


_FILES = {
    "train": (
        shared_flags.train_file(_DATA, "To train on."),
        _target_file("train", "do_train"),
    ),
    "dev": (
        shared_flags.dev_file(_DATA, "To evaluate on."),
        _target_file("dev", "do_eval"),
    ),
    "test": (
        shared_flags.test_file(_DATA, "To predict. Targets are optional."),
        _target_file("test", "do_predict"),
    ),
}
_SOURCE_COLUMN = _DATA.string(
    "source_column",
    "source",
    "Column of the texts to read: name, or number from 0.",
    kind="COLUMN",
)
_TARGET_COLUMN = _DATA.string(
    "target_column",
    "target",
    "Column of the texts to write: name, or number from 0.",
    kind="COLUMN",
)
_FILE_FORMAT = _DATA.choice(
    "file_format",
    None,
    options.TEXT_PAIR_FORMATS,
    "Format of the files; text is a text on each line. By default text with "
    "target files, or else found by the name and first line.",
)
_HAS_HEADER = shared_flags.has_header(_DATA)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Max tokens of a source; longer ones are truncated.", least=3
)
_MAX_TARGET_LENGTH = _DATA.integer(
    "max_target_length",
    64,
    "Max tokens of a target; longer ones are truncated, and no longer ones are "
    "written.",
    least=3,
)
_SHARE_WEIGHTS = _NEW_MODEL.choice(
    "share_weights",
    None,
    options.SHARED_WEIGHTS,
    "Weights that encoder and decoder share: none, embeddings, or all but the "
    "cross-attention. By default as the config file or the checkpoint says, "
    "and none for a model that starts from an encoder.",
)
_LABEL_SMOOTHING = _TRAINING.number(
    "label_smoothing",
    0.1,
    "Share of the probability that the loss spreads over all tokens.",
    least=0,
    most=0.99,
)
_BEAM_SIZE = _GENERATION.integer(
    "beam_size",
    4,
    "Hypotheses kept at each token; 1 takes the most likely token.",
    least=1,
)
_LENGTH_PENALTY = _GENERATION.number(
    "length_penalty",
    0.6,
    "Exponent of GNMT's length penalty: 0 for none, larger for longer texts.",
    least=0,
)
_METRIC = _SCORES.choice(
    "metric",
    "bleu",
    options.TEXT_METRICS,
    "Result of the dev set that selects the best checkpoint. With loss, no "
    "texts are written during training, which takes less time.",
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
from bert_tf.encoders import families
from bert_tf.seq2seq import (
    decoder,
    predicting,
    seq2seq_model,
    seq2seq_objective,
    seq2seq_scores,
    text_pairs,
    warm_start,
)
from bert_tf.setup import (
    fine_tuning_setup,
    model_files_setup,
    run_setup,
    trained_setup,
)
from bert_tf.text import detokenizer, text_graph
from bert_tf.training import (
    distribution,
    fine_tuning,
    memory_use,
    progress,
    scoring,
)

from absl import logging

# Flags of reading and writing texts: as in training, unless set.
_READING = (
    "max_seq_length",
    "max_target_length",
    "beam_size",
    "length_penalty",
)
# What a run in progress can't change.
_IDENTITY = (
    "train_file",
    "train_target_file",
    "source_column",
    "target_column",
    "file_format",
    "has_header",
    "share_weights",
    "label_smoothing",
    "do_lower_case",
    "max_seq_length",
    "max_target_length",
    "train_batch_size",
    "group_by_length",
    "seed",
)


# ---- Model and data ----------------------------------------------------------


def load_files(trains):
    """Reads config and vocabulary; InputError if they contradict each other."""
    source = run_setup.find_source()
    trained = source.config if source else None
    if source:
        path = run_flags.BERT_CONFIG_FILE.value
        source = warm_start.with_encoders_config(source, path)
    found = model_files_setup.load(source, trains)
    config = warm_start.find_config(
        found.config, trained, _SHARE_WEIGHTS.value
    )
    memory_use.check_room_for_weights(config)
    for flag in (_MAX_SEQ_LENGTH, _MAX_TARGET_LENGTH):
        if flag.value > config.max_position_embeddings:
            raise InputError(
                f"--{flag.name} must be at most the number of positions of the "
                f"model, {config.max_position_embeddings}. "
                f"Received: {flag.name}={flag.value}"
            )
    return dataclasses.replace(found, config=config)


def find_sources(work):
    """Returns where the pairs of each split come from that the run needs."""
    wanted = {"train": work.train, "dev": work.evaluate, "test": work.predict}
    sources = {}
    for split, (flag, target_flag) in _FILES.items():
        if not wanted[split]:
            continue
        if not flag.value:
            raise InputError(f"Give --{flag.name}, the {split} set.")
        sources[split] = text_pairs.Source(
            flag.value,
            target_flag.value,
            _SOURCE_COLUMN.value,
            _TARGET_COLUMN.value,
            _FILE_FORMAT.value,
            _HAS_HEADER.value,
        )
    return sources


def write_records(folder, sources, encoder, seed):
    """Writes the records of each split: all data is checked before training.

    Those to train on are shuffled by `seed`.
    """
    return {
        split: encoder.write(
            os.path.join(folder, f"{split}.tf_record"),
            source.pairs(needs_targets=split != "test"),
            seed if split == "train" else None,
        )
        for split, source in sources.items()
    }


# ---- Train ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run(fine_tuning.Run):
    """What every part of the run needs."""

    sources: Mapping[str, text_pairs.Source]


def train(run, plan, batch_size):
    """Trains; with a dev set, evaluates each epoch and keeps the best."""
    evaluation = None
    if "dev" in run.data:
        metric = _METRIC.value
        evaluation = scoring.Evaluation(
            f"eval_{metric}",
            lambda: evaluate(run, "dev", batch_size, metric != "loss")[0],
            lowest=metric == "loss",
        )
    config = run.files.config
    fine_tuning.train(
        run,
        plan,
        seq2seq_objective.make_objective(_LABEL_SMOOTHING.value),
        functools.partial(
            fine_tuning_setup.restore,
            run.files,
            select=lambda source: warm_start.with_decoder(source, config),
        ),
        evaluation,
    )


# ---- Evaluate and predict ---------------------------------------------------


def evaluate(run, split, batch_size, writes=True):
    """Returns the results on one split, and the texts if it `writes` them."""
    targets = [x.target for x in run.sources[split].pairs(split != "test")]
    has_targets = None not in targets
    function = predicting.outputs(run.model, has_targets, writes)
    parts = fine_tuning.predict(run, split, function, batch_size)
    join = detokenizer.Detokenizer(run.files.vocabulary)
    loss, texts = predicting.collect(parts, join)
    if not has_targets:
        return {}, texts
    results = {"eval_loss": loss}
    if writes:
        scores = seq2seq_scores.compute(
            texts,
            targets,
            run.files.vocabulary.settings.get("do_lower_case", False),
            _BLEU_TOKENIZER.value,
        )
        results |= {f"eval_{name}": x for name, x in scores.items()}
    return results, texts


def write_results(run, split, name, batch_size, step):
    """Writes the texts of a split, one a line, and the results if it has any.

    The files are NAME_predictions.txt and NAME_results.txt.
    """
    results, texts = evaluate(run, split, batch_size)
    if not run.is_chief:
        return
    path = os.path.join(run.folder, f"{name}_predictions.txt")
    files.write_lines(path, [" ".join(text.splitlines()) for text in texts])
    logging.info("Wrote %d texts to %s.", len(texts), path)
    if results:
        results |= {"loss": results["eval_loss"], "global_step": step}
        path = os.path.join(run.folder, f"{name}_results.txt")
        progress.write_results(path, results)


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole run as an outline."""
    work = fine_tuning_setup.work()
    trained_setup.take_flags(_READING)
    if work.evaluate:
        seq2seq_scores.check_packages()
    model_files = load_files(work.train)
    length = _MAX_SEQ_LENGTH.value
    sources = find_sources(work)
    if not work.train:
        trained_setup.check("seq2seq", (*_READING, "do_lower_case"))

    strategy = fine_tuning_setup.set_up_distribution()
    if distribution.is_tpu(strategy) and (work.evaluate or work.predict):
        raise InputError(
            "Texts are written on CPUs and GPUs: on a TPU only train, and "
            "leave out --do_eval and --do_predict."
        )
    plan = fine_tuning_setup.plan(strategy)
    with strategy.scope():
        model = decoder.Seq2Seq(families.make(model_files.config))
    model.search = seq2seq_model.make_search(
        model_files.vocabulary,
        _MAX_TARGET_LENGTH.value,
        _BEAM_SIZE.value,
        _LENGTH_PENALTY.value,
    )
    records_folder = fine_tuning_setup.make_folder(strategy, _IDENTITY)
    tokenizer = text_graph.make_tokenizer(model_files.vocabulary)
    encoder = text_pairs.Encoder(tokenizer, length, _MAX_TARGET_LENGTH.value)
    seed = run_flags.SEED.value
    data = write_records(records_folder, sources, encoder, seed)
    folder = run_flags.OUTPUT_DIR.value
    run = Run(folder, strategy, model, model_files, None, data, sources)
    if work.train:
        train(run, plan, fine_tuning_flags.EVAL_BATCH_SIZE.value)
    if plan.check_only:
        fine_tuning_setup.report_check(run, "seq2seq", length)
        return
    if not (work.evaluate or work.predict or work.export):
        return
    step = trained_setup.restore(run, "seq2seq")
    if work.evaluate:
        batch_size = fine_tuning_flags.EVAL_BATCH_SIZE.value
        write_results(run, "dev", "eval", batch_size, step)
    if work.predict:
        batch_size = fine_tuning_flags.PREDICT_BATCH_SIZE.value
        write_results(run, "test", "test", batch_size, step)
    if work.export and run.is_chief:
        made = seq2seq_model.writer(model, model_files.vocabulary, length)
        fine_tuning.write_export(run, made)


if __name__ == "__main__":
    command_line.run(main)
