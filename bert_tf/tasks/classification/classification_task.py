"""Classification and regression tasks, and readers of their examples.

A `Task` specifies where its texts and labels are; `read` and `read_tfds` read
all tasks. glue.py has the published tasks, own_files.py the user's own.
"""

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping

from bert_tf import extras, terminals
from bert_tf.errors import InputError, repeated, shortened
from bert_tf.storage import data_sets, input_files
from bert_tf.tasks import label_column, left_out_rows, tables

from absl import logging
from etils import epath

# Max fraction of bad rows in a file; beyond it, the format is wrong.
_MAX_LEFT_OUT = 0.1
# The name of tasks in the user's own files.
CUSTOM = "custom"


@dataclasses.dataclass(frozen=True)
class Split:
    """One file of a task; columns are names, or numbers from 0.

    Attributes:
        file: Path in the data folder.
        text_b: Column of the second text, if any.
        key: Column of the texts' ids, if any.
        file_format: One of table_formats.FORMATS.
        where: A column and the value that rows to keep have in it.
        rows: Indices of the rows to keep, from 0; None for all.
        excluded: Indices of the rows to leave out.
        gold: Column of labels in a test file, which are not scored.
        strict: Whether a bad row is an error; otherwise a few are skipped.
        is_own: Whether it is the user's own file, not a published task's.
    """

    file: str
    text_a: str | int
    text_b: str | int | None = None
    label: str | int | None = None
    key: str | int | None = None
    has_header: bool = True
    file_format: str = "tsv"
    where: tuple[str, str] | None = None
    rows: frozenset[int] | None = None
    excluded: frozenset[int] = frozenset()
    gold: str | int | None = None
    strict: bool = True
    is_own: bool = False


@dataclasses.dataclass(frozen=True)
class Tfds:
    """The same task in TensorFlow Datasets: dataset, configuration, columns.

    `labels` are our labels in the order of TFDS' class indices; `splits` maps
    our split names to its names.
    """

    name: str
    text_a: str
    text_b: str | None
    labels: tuple[str, ...]
    splits: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Task:
    """A classification or regression task.

    Attributes:
        labels: Classes in the original's order; None for a score.
        score_range: The lowest and the highest score, if they are known.
        metrics: From classification_metrics.NAMES. The first is the one that
            the paper reports, and selects the best checkpoint.
        splits: "train", "dev", "test", and for MNLI "dev_mismatched" and
            "test_mismatched".
        server_files: Split -> name of the file that the GLUE server expects.
        tfds: The same task in TensorFlow Datasets.
        aliases: Spelling of a label in some file -> label.
        skips_short_rows: Whether broken rows of labelled files are skipped. A
            test file must be intact, as predictions are matched by position.
        label_separator: Separator of the labels of a text in multi-label tasks.
        is_symmetric: Whether a label does not depend on the order of the texts.
    """

    name: str
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    splits: Mapping[str, Split]
    server_files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tfds: Tfds | None = None
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skips_short_rows: bool = False
    label_separator: str | None = None
    is_symmetric: bool = False
    score_range: tuple[float, float] | None = None

    @property
    def is_multi_label(self) -> bool:
        """Whether a text may have several labels, or none."""
        return self.label_separator is not None

    @functools.cached_property
    def label_set(self) -> Mapping[str, None]:
        """The labels in their order, for lookups in constant time."""
        return dict.fromkeys(self.labels or ())

    @property
    def takes_pairs(self) -> bool:
        """Whether examples have a second text."""
        return any(split.text_b is not None for split in self.splits.values())


# ---- Reading ----------------------------------------------------------------


def read_split(
    task: Task,
    data_dir: str | None,
    split: str,
    with_gold: bool = False,
) -> Iterator[tables.Example]:
    """Reads one split, from files or from TensorFlow Datasets.

    With `with_gold`, also reads the labels of a test file, unvalidated.
    """
    if data_dir or task.name == CUSTOM:
        return read(task, data_dir or "", split, with_gold)
    return read_tfds(task, split)


def read(
    task: Task, data_dir: str, split: str, with_gold: bool = False
) -> Iterator[tables.Example]:
    """Reads the examples of one split from files; flags as for `read_split`.

    Warnings are logged once, as files are read several times.

    Raises:
        FileNotFoundError: There is no such file.
        InputError: The task has no such split, a row lacks a column or has an
            unknown label, or no rows remain.
    """
    check_split(task, split)
    row = task.splits[split]
    path = os.path.join(data_dir, row.file)
    if data_dir and not epath.Path(path).exists():
        names = ", ".join(split.file for split in task.splits.values())
        raise FileNotFoundError(
            f"There is no such file. Received: {path}. Is that the folder of "
            f"{task.name}'s files? They are {names}."
        )
    found = False
    empty: list[int] = []
    keys: list[str] = []
    seen: set[label_column.Label] = set()
    skip = task.skips_short_rows and row.label is not None
    left_out = _left_out(path, row)
    number = -1
    for number, (line, columns) in enumerate(
        read_columns(path, row, skip, task.is_multi_label, with_gold, left_out)
    ):
        if number in row.excluded:
            continue
        if row.rows is not None and number not in row.rows:
            continue
        if row.where and columns["where"] != row.where[1]:
            continue
        found = True
        label = _label_of_row(task, columns, f"{path}, line {line}")
        if row.label is not None:
            seen.update(label if isinstance(label, tuple) else [label])
        texts = [columns[x] for x in ("text_a", "text_b") if x in columns]
        if not all(text.strip() for text in texts):
            empty.append(line)
        if "key" in columns and split.startswith("test"):
            keys.append(columns["key"])
        yield tables.Example(
            columns.get("key", f"{split}-{line}"),
            columns["text_a"],
            columns.get("text_b", ""),
            label,
        )
    left_out.warn(number + 1, "rows")
    _warn_of_rows(path, empty, keys)
    if split == "train" and task.labels:
        label_column.warn_of_unseen(path, task.labels, seen)
    if not found:
        column, value = row.where or ("", "")
        raise InputError(f"{path} has no rows whose {column} is {value!r}.")


def _label_of_row(
    task: Task, columns: Mapping[str, str], where: str
) -> label_column.Label:
    """Returns a row's label or None; a gold label is not validated."""
    if "label" in columns:
        return _label(task, columns["label"], where)
    if "gold" in columns:
        return _as_it_stands(task, columns["gold"])
    return None


def _warn_of_rows(path: str, empty: list[int], keys: list[str]) -> None:
    """Warns of lines with empty texts, and of repeated IDs."""
    if empty:
        terminals.warn_once(
            f"{path}: empty texts: {len(empty)}, the first at line {empty[0]}."
        )
    if twice := repeated(keys):
        terminals.warn_once(
            f"{path}: IDs that several rows have: {len(twice)}, such as "
            f"{shortened(repr(twice[0]))}. Their predictions can be told apart "
            "by their order only."
        )


def _left_out(path: str, split: Split) -> left_out_rows.LeftOut:
    return left_out_rows.LeftOut(path, split.strict, max_share=_MAX_LEFT_OUT)


def in_both_orders(
    examples: Iterable[tables.Example],
) -> Iterator[tables.Example]:
    """Yields each pair twice, the second time with its texts swapped."""
    for example in examples:
        yield example
        yield dataclasses.replace(
            example, text_a=example.text_b, text_b=example.text_a
        )


def read_tfds(
    task: Task, split: str, data_dir: str | None = None
) -> Iterator[tables.Example]:
    """Reads the examples of one split of a GLUE task from TensorFlow Datasets.

    Test examples are in the order of their `idx`, which the GLUE server
    expects. `data_dir` is the folder of prepared data sets, by default TFDS'
    own. Raises InputError if TFDS does not have the task or the split.
    """
    if task.tfds is None:
        raise InputError(
            f"{task.name} is not in TensorFlow Datasets. Give --data_dir, the "
            "folder of its files."
        )
    check_split(task, split)
    extras.check(
        "tensorflow_datasets", "tfds", "Runs of GLUE without --data_dir"
    )
    # Slow to import, and only used here.
    import tensorflow_datasets as tfds

    names = task.tfds
    with data_sets.quietly():
        builder = tfds.builder(names.name, data_dir=data_dir)
    data_sets.prepare(
        builder,
        "Give --data_dir, the folder of the task's files, or prepare the data "
        "set in $TFDS_DATA_DIR where there is a network.",
    )
    with data_sets.quietly():
        rows = tfds.as_numpy(builder.as_dataset(split=names.splits[split]))
    if split.startswith("test"):
        rows = sorted(rows, key=lambda row: row["idx"])
    for row in rows:
        text_b = row[names.text_b].decode() if names.text_b else ""
        label = None
        if task.splits[split].label is not None:
            value = row["label"]
            label = names.labels[value] if names.labels else float(value)
        yield tables.Example(
            f"{split}-{row['idx']}", row[names.text_a].decode(), text_b, label
        )


def with_mismatched(task: Task, data_dir: str | None, split: str) -> list[str]:
    """Returns the split and, for MNLI, the mismatched one if it exists."""
    check_split(task, split)
    other = task.splits.get(f"{split}_mismatched")
    if other is None:
        return [split]
    if data_dir and not epath.Path(data_dir, other.file).exists():
        logging.info(
            "%s has no %s; continuing without it.",
            data_dir,
            other.file,
        )
        return [split]
    return [split, f"{split}_mismatched"]


def check_split(task: Task, split: str) -> None:
    """Raises InputError if the task has no such split."""
    if split in task.splits:
        return
    if task.name == CUSTOM:
        raise InputError(
            f"There is no {split} file. Give --{split}_file"
            f"{' or --dev_fraction' * (split == 'dev')}. "
            f"Received: files for {', '.join(task.splits)}"
        )
    way_out = ""
    if task.name == "AX":
        way_out = (
            " AX takes a model fine-tuned on MNLI: --do_predict with that "
            "model as --init_checkpoint."
        )
    raise InputError(
        f"The task {task.name} has no {split} split. "
        f"Expected one of {', '.join(task.splits)}.{way_out}"
    )


def read_columns(
    path: str,
    split: Split,
    skip_short_rows: bool,
    is_multi_label: bool,
    with_gold: bool = False,
    left_out: left_out_rows.LeftOut | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields the line and the columns of each row, by their names in Split.

    `left_out` counts bad rows.
    """
    left_out = left_out or _left_out(path, split)
    input_files.check_can_be_read_again(path)
    wanted = {
        "text_a": split.text_a,
        "text_b": split.text_b,
        "label": split.label,
        "key": split.key,
        "where": split.where[0] if split.where else None,
        "gold": split.gold if with_gold else None,
    }
    used = 0
    for line, row in tables.read_columns(
        path,
        {name: at for name, at in wanted.items() if at is not None},
        file_format=split.file_format,
        has_header=split.has_header,
        skip_short_rows=skip_short_rows,
        lists=("label", "gold") if is_multi_label else (),
        # Only predictions have IDs.
        optional=("gold",) if split.label is None else ("gold", "key"),
        left_out=left_out,
        is_own=split.is_own,
    ):
        can_be_empty = left_out.strict or is_multi_label
        if not can_be_empty and not row["label"].strip():
            left_out.add(
                InputError(
                    f"{path}, line {line}: the label is empty. Write it, or "
                    "remove the row."
                )
            )
            continue
        used += 1
        yield line, row
    left_out.check(used)


def _label(task: Task, text: str, where: str) -> label_column.Label:
    if task.labels is None:
        return label_column.score(text, where, task.score_range)
    way_out = "Correct it, or remove the row"
    if task.name == CUSTOM:
        way_out += "; or name all labels by --labels"
    if task.label_separator is None:
        label = task.aliases.get(text, text)
        return label_column.known(label, task.label_set, where, way_out)
    return tuple(
        label_column.known(label, task.label_set, where, way_out)
        for label in label_column.split(text, task.label_separator, where)
    )


def _as_it_stands(task: Task, text: str) -> label_column.Label:
    """Parses a label of the task's kind without validation; None for "".

    It is only displayed: a test file may have new classes, or -1 for hidden
    labels.
    """
    if task.label_separator is not None:
        try:
            return label_column.split(text, task.label_separator, "")
        except InputError:
            return (text,)
    if not text:
        return None
    if task.labels is not None:
        return task.aliases.get(text, text)
    try:
        return label_column.score(text, "")
    except ValueError:
        return text
