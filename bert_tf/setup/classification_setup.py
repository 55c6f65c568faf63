"""Builds a classification task from the flags of `flags.classification_flags`.

Called from the `main` of run_classifier.py and shrink_model.py only.
"""

import typing
from collections.abc import Iterable, Mapping, Sequence

from bert_tf.checkpoints import trained_models, word_vectors
from bert_tf.errors import InputError, listed
from bert_tf.flags import classification_flags
from bert_tf.tasks import tables
from bert_tf.tasks.classification import (
    classification_task,
    glue,
    objective,
    own_files,
)
from bert_tf.text import graph_rows, long_documents

from absl import logging

if typing.TYPE_CHECKING:
    from bert_tf.tasks.classification import baselines


def find_task(
    known_labels: Sequence[str] | None, seed: int
) -> classification_task.Task:
    """Returns the task that the flags describe, published or the user's.

    Args:
        known_labels: Labels of the user's files if neither --labels nor a
            training file defines them.
        seed: Seed for drawing the rows that --dev_fraction holds out.
    """
    files = {
        split: flag.value
        for split, flag in (
            ("train", classification_flags.TRAIN_FILE),
            ("dev", classification_flags.DEV_FILE),
            ("test", classification_flags.TEST_FILE),
        )
        if flag.value
    }
    name, labels = (
        classification_flags.TASK_NAME.value,
        classification_flags.LABELS.value,
    )
    if bool(name) == bool(files):
        raise InputError(
            "Give either --task_name or files of your own (--train_file, "
            f"--dev_file, --test_file). Received: task_name={name}, "
            f"files={', '.join(files.values()) or None}"
        )
    if name:
        return glue.find(name, classification_flags.XNLI_LANGUAGE.value)
    if labels and classification_flags.REGRESSION.value:
        raise InputError(
            "A score has no labels: leave out --labels or --regression. "
            f"Received: labels={listed(labels, ',')}, "
            "regression=true"
        )
    if not labels and "train" not in files:
        labels = known_labels
    return _own_task(files, labels, known_labels, seed)


def _own_task(
    files: Mapping[str, str],
    labels: Sequence[str] | None,
    known_labels: Sequence[str] | None,
    seed: int,
) -> classification_task.Task:
    """Returns the task of the user's files, given by split."""
    columns = own_files.Columns(
        classification_flags.TEXT_A_COLUMN.value,
        classification_flags.TEXT_B_COLUMN.value,
        classification_flags.LABEL_COLUMN.value,
        classification_flags.ID_COLUMN.value,
        classification_flags.HAS_HEADER.value,
        classification_flags.FILE_FORMAT.value,
        classification_flags.STRICT.value,
    )
    task = own_files.custom(
        columns,
        files,
        labels,
        classification_flags.REGRESSION.value,
        classification_flags.LABEL_SEPARATOR.value,
        known_labels,
    )
    if not classification_flags.DEV_FRACTION.value:
        return task
    if "dev" in files or "train" not in files:
        raise InputError(
            "--dev_fraction splits --train_file where there is no --dev_file. "
            f"Received: files={', '.join(files.values())}"
        )
    return own_files.hold_out(
        task, classification_flags.DEV_FRACTION.value, seed
    )


def find_long_documents(
    task: classification_task.Task,
) -> long_documents.LongDocuments:
    """Returns the settings for texts that are too long."""
    documents = long_documents.LongDocuments(
        classification_flags.LONG_DOCUMENTS.value,
        classification_flags.WINDOW_STRIDE.value,
    )
    if task.takes_pairs and not documents.keeps_rows:
        raise InputError(
            "--long_documents is for single texts; of pairs the longer text "
            "is cut at its end, as in the original. "
            "Received: long_documents="
            f"{classification_flags.LONG_DOCUMENTS.value}"
        )
    return documents


def find_class_weights(
    task: classification_task.Task, examples: Iterable[tables.Example]
) -> tuple[float, ...] | None:
    """Returns the class weights, or None for equal weights.

    Args:
        task: The task.
        examples: Training examples; read only if the weights depend on them.
    """
    given = classification_flags.CLASS_WEIGHTS.value
    if not given:
        return None
    if task.labels is None:
        raise InputError(
            "--class_weights is for classes; a score has none. "
            f"Received: class_weights={','.join(given)}"
        )
    if given == [objective.BALANCED]:
        weights = objective.balanced_class_weights(examples, task.labels)
    else:
        weights = objective.parse_class_weights(given, task.labels)
    texts = [f"{x} {w:.4g}" for x, w in zip(task.labels, weights, strict=True)]
    logging.info("Weights of the classes: %s.", listed(texts))
    return weights


def check_baselines(
    task: classification_task.Task, data_dir: str | None, trains: bool
) -> None:
    """Raises InputError or FileNotFoundError if there is no training data."""
    if "train" not in task.splits:
        raise InputError(
            "--baselines needs the training data, also without --do_train: "
            "give --train_file, or leave out --baselines. "
            "Received: train_file=None"
        )
    if not trains:
        next(classification_task.read_split(task, data_dir, "train"))


def find_average(
    path: str | None,
    files: trained_models.ModelFiles,
    tokenizer: graph_rows.Tokenizer,
) -> "baselines.Featurize | None":
    """Returns a function that averages the vectors of a file, if any."""
    if not path:
        return None
    # Slow to import, and only used here.
    from bert_tf.tasks.classification import baselines

    vectors = word_vectors.read(path, files.vocab, files.vocabulary)
    return baselines.averages(tokenizer, vectors)
