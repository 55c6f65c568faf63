"""Makes a task of the flags of `task_flags`.

Called from the `main` of run_classifier.py only.
"""

from collections.abc import Iterable, Sequence

from bert_tf import common_flags, long_documents, task_flags
from bert_tf.tasks import (
    class_weights,
    classification,
    common,
    glue,
    own_files,
)
from bert_tf.tasks import labels as label_column

from absl import logging


def find_task(known_labels: Sequence[str] | None) -> classification.Task:
    """Returns the task that the flags describe, published or the user's.

    Args:
        known_labels: Labels of the user's files where neither --labels nor a
            training file tells them.
    """
    files = {
        split: flag.value
        for split, flag in (
            ("train", task_flags.TRAIN_FILE),
            ("dev", task_flags.DEV_FILE),
            ("test", task_flags.TEST_FILE),
        )
        if flag.value
    }
    name, labels = task_flags.TASK_NAME.value, task_flags.LABELS.value
    if bool(name) == bool(files):
        raise ValueError(
            "Give either --task_name or files of your own (--train_file, "
            f"--dev_file, --test_file). Received: task_name={name}, "
            f"files={', '.join(files.values()) or None}"
        )
    if name:
        return glue.find(name, task_flags.XNLI_LANGUAGE.value)
    if labels and task_flags.REGRESSION.value:
        raise ValueError(
            "A score has no labels: leave out --labels or --regression. "
            f"Received: labels={label_column.listed(labels, ',')}, "
            "regression=true"
        )
    if not labels and "train" not in files:
        labels = known_labels
    columns = own_files.Columns(
        task_flags.TEXT_A_COLUMN.value,
        task_flags.TEXT_B_COLUMN.value,
        task_flags.LABEL_COLUMN.value,
        task_flags.ID_COLUMN.value,
        task_flags.HAS_HEADER.value,
        task_flags.FILE_FORMAT.value,
    )
    task = own_files.custom(
        columns,
        files,
        labels,
        task_flags.REGRESSION.value,
        task_flags.LABEL_SEPARATOR.value,
    )
    if not task_flags.DEV_FRACTION.value:
        return task
    if "dev" in files or "train" not in files:
        raise ValueError(
            "--dev_fraction splits --train_file where there is no --dev_file. "
            f"Received: files={', '.join(files.values())}"
        )
    return own_files.hold_out(
        task, task_flags.DEV_FRACTION.value, common_flags.SEED.value
    )


def find_long_documents(
    task: classification.Task,
) -> long_documents.LongDocuments:
    """Returns how texts are cut that are too long."""
    documents = long_documents.LongDocuments(
        task_flags.LONG_DOCUMENTS.value, task_flags.WINDOW_STRIDE.value
    )
    if task.takes_pairs and not documents.keeps_rows:
        raise ValueError(
            "--long_documents is for single texts; of pairs the longer text "
            "is cut at its end, as in the original. "
            f"Received: long_documents={task_flags.LONG_DOCUMENTS.value}"
        )
    return documents


def find_class_weights(
    task: classification.Task, examples: Iterable[common.Example]
) -> tuple[float, ...] | None:
    """Returns how much each class counts; None if all count the same.

    Args:
        task: What is learned.
        examples: To train on; read if the weights hang on them.
    """
    given = task_flags.CLASS_WEIGHTS.value
    if not given:
        return None
    if task.labels is None:
        raise ValueError(
            "--class_weights is for classes; a score has none. "
            f"Received: class_weights={','.join(given)}"
        )
    if given == [class_weights.BALANCED]:
        weights = class_weights.balanced(examples, task.labels)
    else:
        weights = class_weights.parse(given, task.labels)
    texts = (f"{x} {w:.4g}" for x, w in zip(task.labels, weights, strict=True))
    logging.info("Weights of the classes: %s.", ", ".join(texts))
    return weights
