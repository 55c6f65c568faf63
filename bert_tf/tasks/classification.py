"""Classification and regression: what a task is, and how one is read.

A `Task` says where its texts and labels stand; two functions read all of
them: `read` from files, `read_tfds` from TensorFlow Datasets. glue.py lists
the published tasks; `custom` describes a user's own files.
"""

import dataclasses
import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence

from bert_tf.tasks import common

from absl import logging
from etils import epath

# The name of tasks in files of the user's own.
CUSTOM = "custom"


@dataclasses.dataclass(frozen=True)
class Split:
    """One file of a task.

    Attributes:
        file: Path below the data folder.
        text_a: Column of the first text, by name or by number from 0.
        text_b: Column of the second text, if there is one.
        label: Column of the label, if the file has it.
        has_header: Whether the first row names the columns.
        file_format: One of common.FORMATS.
        where: A column and the value it has in the rows to keep.
        rows: Numbers from 0 of the rows to keep; None for all.
    """

    file: str
    text_a: str | int
    text_b: str | int | None = None
    label: str | int | None = None
    has_header: bool = True
    file_format: str = "tsv"
    where: tuple[str, str] | None = None
    rows: frozenset[int] | None = None


@dataclasses.dataclass(frozen=True)
class Tfds:
    """The same task in TensorFlow Datasets.

    Attributes:
        name: Dataset and configuration.
        text_a: Feature of the first text.
        text_b: Feature of the second text, if there is one.
        labels: Our labels in the order of its class numbers.
        splits: Our split -> its split.
    """

    name: str
    text_a: str
    text_b: str | None
    labels: tuple[str, ...]
    splits: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: As in the paper.
        labels: Classes in the original's order; None for a score.
        metrics: Names of metrics.NAMES. The first is the one that the paper
            reports, and picks the best checkpoint.
        splits: "train", "dev", "test", and for MNLI "dev_mismatched" and
            "test_mismatched".
        server_files: Split -> name of the file that the GLUE server expects.
        tfds: The same task in TensorFlow Datasets.
        aliases: Spelling of a label in some file -> label.
        skips_short_rows: Whether the released files have broken rows.
    """

    name: str
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    splits: Mapping[str, Split]
    server_files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tfds: Tfds | None = None
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skips_short_rows: bool = False

    @property
    def takes_pairs(self) -> bool:
        """Whether its examples have a second text."""
        return any(split.text_b is not None for split in self.splits.values())


# ---- Tasks of the user's own ------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Columns:
    """How the user's own files are laid out; attributes as in Split."""

    text_a: str | int
    text_b: str | int | None
    label: str | int
    has_header: bool = True
    file_format: str | None = None  # None: by the file's name.

    def split(self, file: str, with_label: bool) -> Split:
        """The row of the table for one file."""
        return Split(
            file,
            self.text_a,
            self.text_b,
            self.label if with_label else None,
            self.has_header,
            self.file_format or common.format_of(file),
        )


def custom(
    columns: Columns,
    files: Mapping[str, str],
    labels: Sequence[str] | None,
    is_regression: bool,
) -> Task:
    """Describes a task in files of the user's own.

    Args:
        columns: How the files are laid out.
        files: Split ("train", "dev", "test") -> path.
        labels: The classes; None learns them from the training file, in
            sorted order.
        is_regression: Whether the label is a score.

    Raises:
        ValueError: Fewer than two labels, or no way to know them.
    """
    splits = {
        split: columns.split(file, with_label=split != "test")
        for split, file in files.items()
    }
    if is_regression:
        return Task(CUSTOM, None, ("spearman", "pearson"), splits)
    if labels is None:
        if "train" not in splits:
            raise ValueError(
                "The labels are not known. Give --labels, or --train_file to "
                "learn them from."
            )
        labels = _learned_labels(splits["train"])
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(
            "Expected at least two labels, each once. "
            f"Received: labels={','.join(labels)}"
        )
    # They become the lines of labels.txt.
    if not all(label.strip() and "\n" not in label for label in labels):
        raise ValueError(
            "A label must not be empty or hold a line end. "
            f"Received: labels={list(labels)}"
        )
    return Task(CUSTOM, tuple(labels), ("accuracy", "macro_f1"), splits)


def hold_out(task: Task, fraction: float, seed: int) -> Task:
    """Splits the training file of a custom task into training and dev rows.

    The dev rows are `random.Random(seed).sample(range(n), round(n * fraction))`
    of the n rows, counted from 0.

    Raises:
        ValueError: The fraction leaves one side without rows.
    """
    train = task.splits["train"]
    number = sum(1 for _ in _columns(train.file, train, False))
    size = round(number * fraction)
    if not 0 < size < number:
        raise ValueError(
            f"The dev fraction must leave rows on both sides of {train.file}. "
            f"Received: dev_fraction={fraction}, {number} rows"
        )
    logging.info(
        "Holding out %d of the %d rows of %s.", size, number, train.file
    )
    dev = frozenset(random.Random(seed).sample(range(number), size))
    parts = {"train": frozenset(range(number)) - dev, "dev": dev}
    return dataclasses.replace(
        task,
        splits={
            **task.splits,
            **{
                split: dataclasses.replace(train, rows=rows)
                for split, rows in parts.items()
            },
        },
    )


def _learned_labels(split: Split) -> tuple[str, ...]:
    rows = _columns(split.file, split, skip_short_rows=False)
    return tuple(sorted({columns["label"] for _, columns in rows}))


# ---- Reading ----------------------------------------------------------------


def read(task: Task, data_dir: str, split: str) -> Iterator[common.Example]:
    """Reads the examples of one split from files.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The task has no such split, a row lacks a column or has an
            unknown label, or nothing is left. Names file and line.
    """
    check_split(task, split)
    row = task.splits[split]
    path = os.path.join(data_dir, row.file)
    found = False
    for number, (line, columns) in enumerate(
        _columns(path, row, task.skips_short_rows)
    ):
        if row.rows is not None and number not in row.rows:
            continue
        if row.where and columns["where"] != row.where[1]:
            continue
        found = True
        label = None
        if row.label is not None:
            label = _label(task, columns["label"], f"{path}, line {line}")
        yield common.Example(
            f"{split}-{line}",
            columns["text_a"],
            columns.get("text_b", ""),
            label,
        )
    if not found:
        column, value = row.where or ("", "")
        raise ValueError(f"{path} has no rows whose {column} is {value!r}.")


def read_tfds(
    task: Task, split: str, data_dir: str | None = None
) -> Iterator[common.Example]:
    """Reads the examples of one split from TensorFlow Datasets.

    Test examples come in the order of their `idx`, which the GLUE server
    expects.

    Args:
        task: One of glue.py.
        split: As in the table.
        data_dir: Folder of prepared data sets; TFDS' own default if None.

    Raises:
        ValueError: The task is not in TFDS, or has no such split.
    """
    if task.tfds is None:
        raise ValueError(
            f"{task.name} is not in TensorFlow Datasets. Give --data_dir, the "
            "folder of its files."
        )
    check_split(task, split)
    # Slow to import, and needed by this function alone.
    import tensorflow_datasets as tfds

    names = task.tfds
    try:
        dataset = tfds.load(
            names.name, split=names.splits[split], data_dir=data_dir
        )
    except OSError as error:
        raise OSError(
            f"{names.name} could not be had from TensorFlow Datasets. Give "
            "--data_dir, the folder of the task's files, or prepare the data "
            f"set in $TFDS_DATA_DIR where there is a network. {error}"
        ) from error
    rows = tfds.as_numpy(dataset)
    if split.startswith("test"):
        rows = sorted(rows, key=lambda row: row["idx"])
    for row in rows:
        text_b = row[names.text_b].decode() if names.text_b else ""
        label = None
        if task.splits[split].label is not None:
            value = row["label"]
            label = names.labels[value] if names.labels else float(value)
        yield common.Example(
            f"{split}-{row['idx']}", row[names.text_a].decode(), text_b, label
        )


def with_mismatched(task: Task, data_dir: str | None, split: str) -> list[str]:
    """Returns the split, and its mismatched fellow where there is one.

    As in the original, MNLI's mismatched files may be left out.
    """
    check_split(task, split)
    other = task.splits.get(f"{split}_mismatched")
    if other is None:
        return [split]
    if data_dir and not epath.Path(data_dir, other.file).exists():
        logging.info("%s has no %s; going on without.", data_dir, other.file)
        return [split]
    return [split, f"{split}_mismatched"]


def check_split(task: Task, split: str) -> None:
    """Raises ValueError if the task has no such split."""
    if split in task.splits:
        return
    way_out = ""
    if task.name == CUSTOM:
        way_out = (
            f" Give --{split}_file{' or --dev_fraction' * (split == 'dev')}."
        )
    if task.name == "AX":
        way_out = (
            " AX takes a model fine-tuned on MNLI: --do_predict with that "
            "model as --init_checkpoint."
        )
    raise ValueError(
        f"The task {task.name} has no {split} split. "
        f"Expected one of {', '.join(task.splits)}.{way_out}"
    )


def _columns(
    path: str, split: Split, skip_short_rows: bool
) -> Iterator[tuple[int, dict[str, str]]]:
    wanted = {
        "text_a": split.text_a,
        "text_b": split.text_b,
        "label": split.label,
        "where": split.where[0] if split.where else None,
    }
    return common.read_columns(
        path,
        {name: at for name, at in wanted.items() if at is not None},
        file_format=split.file_format,
        has_header=split.has_header,
        skip_short_rows=skip_short_rows,
    )


def _label(task: Task, text: str, where: str) -> str | float:
    if task.labels is not None:
        label = task.aliases.get(text, text)
        if label not in task.labels:
            raise ValueError(
                f"{where}: unknown label. Expected one of "
                f"{', '.join(task.labels)}. Received: label={text!r}"
            )
        return label
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(
            f"{where}: the score is not a number. Received: label={text!r}"
        )
    return score
