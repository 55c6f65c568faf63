"""Classification and regression tasks in the user's own files."""

import dataclasses
import math
import random
from collections.abc import Collection, Mapping, Sequence

from bert_tf.errors import InputError, shortened
from bert_tf.storage import file_systems
from bert_tf.tasks import label_column, table_formats, tables
from bert_tf.tasks.classification import classification_task

from absl import logging

_METRICS = ("accuracy", "macro_f1")
_MULTI_LABEL_METRICS = ("micro_f1", "macro_f1", "subset_accuracy")
# Up to this number, every row of a small file may have its own label.
_MANY_LABELS = 20


@dataclasses.dataclass(frozen=True)
class Columns:
    """The layout of the user's own files; attributes as in Split."""

    text_a: str | int
    text_b: str | int | None
    label: str | int
    key: str | int | None = None
    has_header: bool = True
    file_format: str | None = None  # None: by the file's extension.
    strict: bool = False

    def check(self) -> None:
        """Raises InputError if text and label columns are not distinct."""
        names = {
            "text_a_column": str(self.text_a),
            "text_b_column": str(self.text_b),
            "label_column": str(self.label),
        }
        if len(set(names.values())) < len(names):
            texts = (f"{name}={column}" for name, column in names.items())
            raise InputError(
                "--text_a_column, --text_b_column and --label_column must name "
                f"columns apart. Received: {', '.join(texts)}"
            )

    def split(self, file: str, with_label: bool) -> classification_task.Split:
        """Returns the `Split` of one file."""
        return classification_task.Split(
            file,
            self.text_a,
            self.text_b,
            self.label if with_label else None,
            self.key,
            self.has_header,
            self.file_format or table_formats.find(file, self.has_header),
            gold=None if with_label else self.label,
            # Predictions are matched to rows by position.
            strict=self.strict or not with_label,
            is_own=True,
        )


def custom(
    columns: Columns,
    files: Mapping[str, str],
    labels: Sequence[str] | None,
    is_regression: bool,
    label_separator: str | None = None,
    known: Sequence[str] | None = None,
) -> classification_task.Task:
    """Describes a task in the user's own files.

    `files` are paths by split ("train", "dev", "test"). If `labels` is None,
    the classes are collected from the training file. They keep the order of
    `known`, the classes of the resumed run; without it, `label_column.ordered`
    sorts them. `label_separator` separates the labels of a text in multi-label
    tasks.

    Raises:
        InputError: Fewer than two labels, or no file to collect them from.
    """
    columns.check()
    splits = {
        split: columns.split(file, with_label=split != "test")
        for split, file in files.items()
    }
    if is_regression:
        if label_separator is not None:
            raise InputError(
                "A score is one number. Leave out --label_separator or "
                f"--regression. Received: label_separator={label_separator!r}"
            )
        for split in splits.values():
            _check_header(split, None)
        return classification_task.Task(
            classification_task.CUSTOM, None, ("spearman", "pearson"), splits
        )
    if label_separator == "":
        raise InputError("--label_separator must not be empty, such as ','.")
    if labels is None:
        if "train" not in splits:
            raise InputError(
                "The labels are not known. Give --labels, --train_file to "
                "learn them from, or --regression if the label is a score."
            )
        learned = _learned_labels(splits["train"], label_separator)
        labels = label_column.ordered(learned, known)
    label_column.check(labels)
    for split in splits.values():
        _check_header(split, labels, label_separator)
    return classification_task.Task(
        classification_task.CUSTOM,
        tuple(labels),
        _METRICS if label_separator is None else _MULTI_LABEL_METRICS,
        splits,
        label_separator=label_separator,
    )


def _check_header(
    split: classification_task.Split,
    labels: Sequence[str] | None,
    separator: str | None = None,
) -> None:
    """Raises InputError if the header row is an example.

    Args:
        split: The file. A missing one is reported when it is read.
        labels: All labels; None for scores.
        separator: Separator of the labels of a text, if there are several.
    """
    column = str(split.gold if split.label is None else split.label)
    if not split.has_header or split.file_format == "jsonl":
        return
    system = file_systems.find_backend(split.file)
    if not column.isdecimal() or not system.exists(split.file):
        return
    header = tables.read_header(split.file, split.file_format)
    cell = dict(enumerate(header)).get(int(column), "")
    are_names = {str(split.text_a), column} <= set(header)
    if not are_names and _is_label(cell, labels, separator):
        raise InputError(
            f"{split.file}: the first line looks like a row, not a header: it "
            f"has {'a score' if labels is None else 'one of the labels'}. Give "
            "--has_header=false, or the names of columns. Received: "
            f"label={shortened(repr(cell))}, label_column={column}"
        )


def _is_label(
    cell: str, labels: Sequence[str] | None, separator: str | None
) -> bool:
    """Whether a cell has a score, or only known labels."""
    if labels is None:
        try:
            return math.isfinite(float(cell))
        except ValueError:
            return False
    parts: Collection[str] = {cell}
    if separator is not None:
        try:
            parts = label_column.split(cell, separator, "")
        except InputError:
            return False
    return bool(parts) and set(labels).issuperset(parts)


def hold_out(
    task: classification_task.Task, fraction: float, seed: int
) -> classification_task.Task:
    """Splits the training file of a custom task into training and dev rows.

    The dev rows are `random.Random(seed).sample(range(n), round(n * fraction))`
    of the n rows, counted from 0. Raises InputError if either side is empty.
    """
    train = task.splits["train"]
    rows = classification_task.read_columns(
        train.file, train, False, task.is_multi_label
    )
    number = sum(1 for _ in rows)
    size = round(number * fraction)
    if not 0 < size < number:
        raise InputError(
            f"The dev fraction must leave rows on both sides of {train.file}. "
            f"Received: dev_fraction={fraction}, {number} rows"
        )
    logging.info(
        "Holding out %d of the %d rows of %s.", size, number, train.file
    )
    dev = frozenset(random.Random(seed).sample(range(number), size))
    # One set only: a set of the training rows would take 100 bytes a row.
    return dataclasses.replace(
        task,
        splits={
            **task.splits,
            "train": dataclasses.replace(train, excluded=dev),
            "dev": dataclasses.replace(train, rows=dev),
        },
    )


def _learned_labels(
    split: classification_task.Split, separator: str | None
) -> set[str]:
    rows = classification_task.read_columns(
        split.file, split, False, separator is not None
    )
    found: set[str] = set()
    first: set[str] | None = None  # Labels that only row 1 has.
    number = 0
    for line, columns in rows:
        number += 1
        where = f"{split.file}, line {line}"
        labels: tuple[str, ...] = (columns["label"],)
        if separator is not None:
            labels = label_column.split(columns["label"], separator, where)
        for label in labels:
            label_column.check_one(label, where)
        if first is None:
            first = set(labels)
        elif not first.isdisjoint(labels):
            first = set()
        found.update(labels)
    if first and not split.has_header and split.file_format != "jsonl":
        raise InputError(
            f"{split.file}: the first line looks like a header: no other has "
            "its label. Give --has_header=true, or name all labels by "
            "--labels. Received: "
            f"label={shortened(repr(', '.join(sorted(first))))}"
        )
    if separator is None and len(found) > max(_MANY_LABELS, number / 2):
        logging.warning(
            "%s has %d different labels in %d rows, and each becomes a class. "
            "Use --regression if they are scores.",
            *(split.file, len(found), number),
        )
    label_column.warn_of_similar(split.file, found)
    label_column.warn_of_missing(split.file, found)
    return found
