"""Pairs of a source and a target: from files, and to records.

Shapes: B batch, S length of sources, T length of targets.
"""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bert_tf import phases
from bert_tf.errors import InputError, counted
from bert_tf.records import record_types, shuffled_writer
from bert_tf.storage import input_files
from bert_tf.tasks import table_formats, tables, text_batches
from bert_tf.text import graph_rows

import tensorflow as tf
from absl import logging

_BATCH_SIZE = 1024
# One text a line, without columns.
TEXT = "text"
RECORD = record_types.RecordType(
    "text pair",
    (
        record_types.Feature("input_ids", "S", tf.int64),
        record_types.Feature("input_mask", "S", tf.int64),
        record_types.Feature("target_ids", "T", tf.int64),
        record_types.Feature("target_mask", "T", tf.int64),
    ),
)

# ---- Reading -----------------------------------------------------------------


class Pair(NamedTuple):
    """A source, and its target if there is one."""

    source: str
    target: str | None


@dataclasses.dataclass(frozen=True)
class Source:
    """Where pairs come from: a table, or one or two parallel text files.

    Attributes:
        path: A table, or a text file of sources.
        target_path: A text file of their targets, if these are not in `path`.
        source_column: Name in the header or JSON key, or number from 0.
        target_column: Likewise.
        file_format: One of options.TEXT_PAIR_FORMATS; by default found in
            `path`, or text if there is a `target_path`.
        has_header: Whether the first row of a table names the columns.
    """

    path: str
    target_path: str | None = None
    source_column: str = "source"
    target_column: str = "target"
    file_format: str | None = None
    has_header: bool = True

    def pairs(self, needs_targets: bool = True) -> Iterator[Pair]:
        """Yields all pairs; InputError if one is bad, or lacks a target.

        Without `needs_targets`, a blank target is none.
        """
        for pair in self._pairs(needs_targets):
            is_none = not needs_targets and not (pair.target or "").strip()
            yield Pair(pair.source, None) if is_none else pair

    def _pairs(self, needs_targets: bool) -> Iterator[Pair]:
        if not self._is_text:
            yield from self._rows(needs_targets)
        elif self.target_path:
            yield from self._parallel(self.target_path)
        elif needs_targets:
            raise InputError(
                "A text file of sources needs another file with a target on "
                "each line. Give it, or a table of both. "
                f"Received: file_format={TEXT}, {self.path}"
            )
        else:
            yield from (Pair(text, None) for text in _lines(self.path))

    @property
    def _is_text(self) -> bool:
        if self.target_path and self.file_format not in (None, TEXT):
            raise InputError(
                "Targets in a file of their own are lines of text, and so are "
                f"sources: use file_format={TEXT}. "
                f"Received: file_format={self.file_format}, {self.target_path}"
            )
        return self.file_format == TEXT or bool(self.target_path)

    def _rows(self, needs_targets: bool) -> Iterator[Pair]:
        columns = {"source": self.source_column, "target": self.target_column}
        form = self.file_format
        for _, texts in tables.read_columns(
            self.path,
            columns,
            file_format=form or table_formats.find(self.path, self.has_header),
            has_header=self.has_header,
            optional=() if needs_targets else ("target",),
            is_own=True,
        ):
            yield Pair(texts["source"], texts.get("target"))

    def _parallel(self, target_path: str) -> Iterator[Pair]:
        both = itertools.zip_longest(_lines(self.path), _lines(target_path))
        for number, (source, target) in enumerate(both, start=1):
            if source is None or target is None:
                shorter = self.path if source is None else target_path
                longer = target_path if source is None else self.path
                raise InputError(
                    "Parallel files must have the same number of lines. "
                    f"Received: {shorter} ends before line {number} of {longer}"
                )
            yield Pair(source, target)


def _lines(path: str) -> Iterator[str]:
    """Yields the lines of a text file; InputError if there are none."""
    input_files.check_can_be_read_again(path)
    is_empty = True
    for _, line in tables.lines(path):
        is_empty = False
        yield line.removesuffix("\n").removesuffix("\r")
    if is_empty:
        raise InputError(
            f"{path}: the file has no lines. Expected a text on each."
        )


# ---- Writing -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PairRecords(record_types.RecordFile):
    """A file of records of pairs."""

    max_target_length: int

    @property
    def lengths(self) -> dict[str, int]:
        """The value of each symbolic length."""
        return {"S": self.max_seq_length, "T": self.max_target_length}


class Encoder:
    """Writes pairs as records of token IDs, tokenizing in a graph."""

    def __init__(
        self,
        tokenizer: graph_rows.Tokenizer,
        max_seq_length: int,
        max_target_length: int,
    ):
        """Traces its graph once, for all files; longer texts are truncated."""
        self._lengths = max_seq_length, max_target_length
        special = tokenizer.vocabulary.template.special(1)

        def pack(texts, length):
            tokens = tokenizer.tokenize(texts)
            is_cut = tokens.row_lengths() > length - special
            rows = tokenizer.pack(tokens, None, length, pad_to_max=True)
            return rows, tf.math.count_nonzero(is_cut)

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string)] * 2,
            autograph=False,
        )
        def pack_both(sources, targets):
            return pack(sources, max_seq_length), pack(
                targets, max_target_length
            )

        self._pack = pack_both

    def write(
        self, path: str, pairs: Iterable[Pair], seed: int | None = None
    ) -> PairRecords:
        """Writes one file, in the pairs' order unless a seed shuffles it.

        A missing target is written as an empty text. Empty texts are logged.
        """
        number, cut = 0, [0, 0]
        empty: list[int] = []
        phase = phases.Phase("Tokenizing", "pairs")
        with shuffled_writer.writer(path, seed) as writer:
            for batch in text_batches.of_texts(pairs, _characters, _BATCH_SIZE):
                both = self._pack(
                    [pair.source for pair in batch],
                    [pair.target or "" for pair in batch],
                )
                columns = {}
                for i, name in enumerate(("input", "target")):
                    rows, is_cut = both[i]
                    cut[i] += int(is_cut)
                    columns[f"{name}_ids"] = rows["input_ids"].numpy()
                    columns[f"{name}_mask"] = rows["input_mask"].numpy()
                writer.write_all(RECORD.encode_batch(columns))
                empty += [
                    row
                    for row, pair in enumerate(batch, number + 1)
                    if not all(x.strip() for x in pair if x is not None)
                ]
                number += len(batch)
                phase.add(len(batch))
        phase.close()
        if empty:
            logging.warning(
                "%s: empty texts: %d, the first in pair %d.",
                *(os.path.basename(path), len(empty), empty[0]),
            )
        logging.info(
            "Read %s for %s; %d sources were longer than %d tokens and "
            "%d targets longer than %d, and were truncated.",
            *(counted(number, "pair"), os.path.basename(path)),
            *(cut[0], self._lengths[0], cut[1], self._lengths[1]),
        )
        return PairRecords(path, writer.records, RECORD, *self._lengths)


def _characters(pair: Pair) -> int:
    return len(pair.source) + len(pair.target or "")
