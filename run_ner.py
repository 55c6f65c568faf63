r"""Fine-tunes BERT to label words: entities, parts of speech, chunks.

Files are in CoNLL format: a word and its label on each line, an empty line
after each sentence. Named entity recognition on WNUT-17:
    python run_ner.py --do_train=true --do_eval=true --do_predict=true \
        --train_file=wnut17train.conll --dev_file=emerging.dev.conll \
        --test_file=emerging.test.annotated \
        --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --bert_config_file=$BERT_BASE_DIR/bert_config.json \
        --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
        --max_seq_length=128 --train_batch_size=32 --learning_rate=5e-5 \
        --num_train_epochs=3.0 --output_dir=/tmp/wnut_output/

Each word's label is predicted at its first token (paper, section 5.3). Texts
longer than --max_seq_length are read in windows that overlap by half, and each
word's label comes from the window with the most context on both sides of it.

Files in output_dir: eval_results.txt and eval_report.txt (with a line for each
type). With --do_predict also test_predictions.conll (the test file with a
column of predictions), test_entities.jsonl (with the character offsets of
entities), test_results.txt and test_report.txt.

To resume a run after a crash or a kill, run the same command again. It ends
with the same weights as an uninterrupted run.
"""

from bert_tf.errors import InputError, counted, listed, quoted
from bert_tf.flags import (
    command_line,
    distillation_flags,
    fine_tuning_flags,
    flag_sections,
    optimization_flags,
    run_flags,
    shared_flags,
)
from bert_tf.tasks.tagging import conll, schemes

from absl import flags

flags.adopt_module_key_flags(run_flags)
flags.adopt_module_key_flags(fine_tuning_flags)
flags.adopt_module_key_flags(optimization_flags)
flags.adopt_module_key_flags(distillation_flags)

# ---- Flags ------------------------------------------------------------------

_DATA = flag_sections.Section("Data")
_FILES = flag_sections.Section(
    "Data", only_with=("do_train", "do_eval", "do_predict")
)

_TRAIN_FILE = shared_flags.train_file(_DATA, "Training file.")
_DEV_FILE = shared_flags.dev_file(_DATA, "Dev file, for evaluation.")
_TEST_FILE = shared_flags.test_file(_DATA, "Test file, for prediction.")
_TEST_HAS_LABELS = _DATA.boolean(
    "test_has_labels",
    True,
    "Whether the test file has labels, against which predictions are scored.",
    only_with="do_predict",
    harmless=True,
)
_TOKEN_COLUMN = _FILES.integer(
    "token_column", 0, "Column of the words, from 0; -1 is the last."
)
_LABEL_COLUMN = _FILES.integer(
    "label_column", -1, "Column of the labels, from 0; -1 is the last."
)
_SEPARATOR = _FILES.choice(
    "separator",
    None,
    conll.SEPARATORS,
    "Separator of columns. By default, tab if the first line with a word "
    "contains one, otherwise space.",
)
_SCHEME = _DATA.choice(
    "scheme",
    None,
    (*schemes.SCHEMES, schemes.NO_SCHEME),
    "How labels mark entities; none if each word has an independent label. By "
    "default, the scheme of the run in output_dir, or else detected from the "
    "labels; IOB1 is never detected.",
)
_LABELS = _DATA.words(
    "labels",
    None,
    "All labels, comma separated. By default the sorted labels of "
    "--train_file, or the labels of the model in output_dir or "
    "init_checkpoint.",
)
_CONTEXT = _FILES.choice(
    "context",
    "sentence",
    conll.CONTEXTS,
    "Text that the model reads at a time. Documents start at -DOCSTART- lines.",
)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Tokens per window.", min=4
)

command_line.start(__name__)

from bert_tf import heads
from bert_tf.checkpoints import tf1_files, trained_models
from bert_tf.setup import fine_tune, run_setup, trained_setup
from bert_tf.storage import input_files
from bert_tf.tasks.tagging import (
    tagging_model,
    tagging_records,
    tagging_results,
    tagging_splits,
    tagging_words,
)
from bert_tf.training import distillation, fine_tuning

import numpy as np
import tensorflow as tf
from absl import logging


def word_weights(batch):
    """Returns 1 at the first token of each word, otherwise 0, [B, S]."""
    return batch["label_weights"] * batch["row_weights"][:, tf.newaxis]


# ---- Labels -----------------------------------------------------------------


def find_scheme():
    """Returns the specified scheme, or else the scheme of training."""
    given = _SCHEME.value
    trained = trained_setup.said().get(_SCHEME.name)
    if given and trained and given != trained:
        raise InputError(
            f"The model of {trained_setup.folder()} was trained "
            f"with --scheme={trained}: give the same, or leave it out. "
            f"Received: scheme={given}"
        )
    return given or trained


def check_labels(source, labels, do_train):
    """Raises InputError if the model to start from has other labels."""
    folder = run_flags.OUTPUT_DIR.value
    # A training that ended before its first checkpoint left no model.
    if not do_train or tf1_files.latest(folder):
        trained_models.check_labels(folder, labels)
    shape = source.shapes.get("cls/tagging/output_bias") if source else None
    if shape is None:
        return
    trained = source.labels or ()
    if trained != labels and (trained or shape != (len(labels),)):
        raise InputError(
            f"{source.path} was trained with {shape[0]} labels"
            f"{': ' * bool(trained)}{', '.join(map(quoted, trained))}. Give "
            "the same by "
            "--labels, in this order, or start from a model without a tagging "
            "head. "
            f"Received: labels={listed(labels, ',')}"
        )


# ---- The task ---------------------------------------------------------------


class Tagging(fine_tune.Task):
    """Labels words."""

    head = "tagging"
    identity = (
        *("token_column", "label_column", "separator"),
        *("scheme", "labels", "context"),
    )
    reading = ("context", "max_seq_length")
    takes_pairs = False
    labels: tuple[str, ...]
    objective = fine_tuning.classification_objective("label", word_weights)
    comparison = distillation.Comparison.from_loss("label", word_weights)

    def read(self):
        """Reads the sentences of each split, and finds the labels."""
        source = run_setup.open_init_checkpoint()
        if _LABELS.value:
            check_labels(source, tuple(_LABELS.value), self.work.train)
        self.splits = {}
        paths = (_TRAIN_FILE, _DEV_FILE, _TEST_FILE)
        for name, path in self.files_of_splits(*paths):
            if name == "test":
                # It is read again when a column of predictions is added.
                input_files.check_can_be_read_again(path)
            has_labels = name != "test" or _TEST_HAS_LABELS.value
            columns = conll.Columns(
                _TOKEN_COLUMN.value,
                _LABEL_COLUMN.value if has_labels else None,
                _SEPARATOR.value,
            )
            self.splits[name] = tagging_splits.read(name, path, columns)
        known = trained_setup.labels()
        self.labels, self.scheme = tagging_splits.find_labels(
            _LABELS.value, find_scheme(), self.splits, known
        )
        check_labels(source, self.labels, self.work.train)
        if source and not self.work.train:
            trained_models.warn_of_order(source, self.labels)
        self.metric = tagging_results.metric(self.scheme)
        if "train" in self.splits:
            sentences = self.splits["train"].sentences
            splits_cjk = tagging_words.splits_cjk(sentences)
            self.files = self.files.with_head(splits_cjk=splits_cjk)

    def make_model(self, encoder):
        return heads.BertTagger(encoder, len(self.labels))

    def writer(self):
        word_pieces = tagging_words.WordPieces(self.files.vocabulary)
        encoder = tagging_records.Encoder(word_pieces, self.length)

        def write(split, path, seed):
            sentences = self.splits[split].sentences
            texts = tagging_words.group(sentences, _CONTEXT.value)
            return encoder.write(path, texts, self.labels, seed)

        return write

    def predict(self, run, split, batch_size):
        """Labels the words of one split.

        Returns:
            The label of each word, in the order of the file, and the mean loss.
        """
        length = run.data[split].max_seq_length
        outputs = tagging_results.best_labels(
            run.model, len(self.labels), length
        )
        parts = list(fine_tuning.predict(run, split, outputs, batch_size))
        labels = np.concatenate([part["labels"] for part in parts])
        labels = labels[labels >= 0]
        total = sum(part["losses"].sum(dtype=np.float64) for part in parts)
        return [self.labels[i] for i in labels], float(total / len(labels))

    def score(self, run, split, batch_size):
        """Returns the results on one split, and the label of each word."""
        predicted, loss = self.predict(run, split, batch_size)
        sentences = self.splits[split].sentences
        if self.splits[split].columns.label is None:
            return {}, predicted
        results = tagging_results.results(sentences, predicted, self.scheme)
        return results | {"eval_loss": loss}, predicted

    def evaluate(self, run, batch_size):
        return self.score(run, "dev", batch_size)[0]

    def write_results(self, run, split, name, results, predicted, step):
        """Writes the results of one split, and the report of its types."""
        fine_tune.write_results(run.path(f"{name}_results.txt"), results, step)
        sentences = self.splits[split].sentences
        tagging_results.write_report(
            run.path(f"{name}_report.txt"), sentences, predicted, self.scheme
        )

    def write_evaluation(self, run, batch_size, step):
        """Writes eval_results.txt and eval_report.txt."""
        results, predicted = self.score(run, "dev", batch_size)
        if run.is_chief:
            self.write_results(run, "dev", "eval", results, predicted, step)

    def write_predictions(self, run, batch_size, step):
        """Writes the labels of the test set, and scores them if it can."""
        results, predicted = self.score(run, "test", batch_size)
        if not run.is_chief:
            return
        split = self.splits["test"]
        path = run.path("test_predictions.conll")
        tagging_results.write_columns(
            path, split.path, split.columns, split.sentences, predicted
        )
        number = counted(len(predicted), "prediction")
        logging.info("Wrote %s to %s.", number, path)
        path = run.path("test_entities.jsonl")
        tagging_results.write_entities(
            path, split.sentences, predicted, self.scheme
        )
        if results:
            self.write_results(run, "test", "test", results, predicted, step)

    def export(self, run):
        return tagging_model.tagger(
            run.model,
            run.files.config,
            run.files.vocabulary,
            run.labels,
            self.scheme,
            self.length,
        )


def main(_):
    """Runs the task."""
    fine_tune.run_task(Tagging())


if __name__ == "__main__":
    command_line.run(main)
