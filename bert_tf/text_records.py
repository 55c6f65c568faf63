"""Texts -> TFRecords of token ids, tokenized in batches in the graph.

Shapes: B batch, S sequence length, W rows: windows of all texts of a batch.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from bert_tf import (
    long_documents,
    phases,
    records,
    shuffled_records,
    text_ops,
)
from bert_tf.tasks import common
from bert_tf.tasks import labels as label_column

import numpy as np
import tensorflow as tf
from absl import logging

_BATCH_SIZE = 1024
# Whole books are tokenized a few at a time: a character takes 100 bytes.
_BATCH_CHARACTERS = 4_000_000
Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True)
class TextRecords:
    """A file of records of fixed length, and how many there are."""

    path: str
    count: int
    record_type: records.RecordType
    max_seq_length: int

    @property
    def lengths(self) -> dict[str, int]:
        """The value of each symbolic length."""
        return {"S": self.max_seq_length}


class Encoder:
    """Writes examples in the features of the original's run_classifier."""

    def __init__(
        self,
        tokenizer: text_ops.BertTokenizer,
        max_seq_length: int,
        documents: long_documents.LongDocuments | None = None,
    ):
        """Traces its graph once, for all files.

        Args:
            tokenizer: Makes the ids.
            max_seq_length: S; what is longer is cut.
            documents: How it is cut; by default only its head is kept.
        """
        self._max_seq_length = max_seq_length
        self._documents = documents or long_documents.LongDocuments()
        self._documents.check(max_seq_length - 2)

        # No Python control flow hangs on tensors here: AutoGraph would only
        # take time.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string)] * 2,
            autograph=False,
        )
        def pack(texts_a, texts_b):
            """[B], [B] -> ids [W, S], the text of each row [W], number cut."""
            first = tokenizer.tokenize(texts_a)
            second = tokenizer.tokenize(texts_b)
            pieces = first.row_lengths() + second.row_lengths()
            special = 2 + tf.cast(second.row_lengths() > 0, pieces.dtype)
            is_cut = pieces + special > max_seq_length
            rows, owners = self._documents.cut(first, max_seq_length - 2)
            if not self._documents.keeps_rows:
                second = None
            ids = tokenizer.pack(rows, second, max_seq_length, pad_to_max=True)
            return ids, owners, tf.math.count_nonzero(is_cut)

        self._pack = pack

    def write(
        self,
        path: str,
        examples: Iterable[common.Example],
        labels: Sequence[str] | None,
        is_multi_label: bool = False,
        seed: int | None = None,
    ) -> TextRecords:
        """Writes one file.

        Args:
            path: Of the TFRecord file.
            examples: Those without a label get label 0, as in the original.
            labels: The classes; None if labels are scores.
            is_multi_label: Whether an example may have several of them.
            seed: Of the order of the records; None keeps the examples'.
        """
        record_type = self._record_type(labels, is_multi_label)
        label_ids = {label: i for i, label in enumerate(labels or ())}
        number = cut = 0
        phase = phases.Phase("Tokenizing", "examples")
        with shuffled_records.writer(path, seed) as writer:
            for batch in batches(examples, _characters, _BATCH_SIZE):
                packed, owners, batch_cut = self._pack(
                    [example.text_a for example in batch],
                    [example.text_b for example in batch],
                )
                cut += int(batch_cut)
                columns = {name: x.numpy() for name, x in packed.items()}
                values = [
                    _value(e.label, label_ids, is_multi_label) for e in batch
                ]
                columns |= self._columns(
                    np.array(values), owners.numpy(), number
                )
                writer.write_all(record_type.encode_batch(columns))
                number += len(batch)
                phase.add(len(batch))
        logging.info(
            "Wrote %d examples to %s; %d were longer than %d tokens and were "
            "%s.",
            number,
            os.path.basename(path),
            cut,
            self._max_seq_length,
            f"read in windows, {writer.records} in all"
            if self._documents.in_windows
            else "cut",
        )
        return TextRecords(
            path, writer.records, record_type, self._max_seq_length
        )

    def _record_type(
        self, labels: Sequence[str] | None, is_multi_label: bool
    ) -> records.RecordType:
        record_type = records.CLASSIFICATION if labels else records.REGRESSION
        if labels and is_multi_label:
            record_type = records.multi_label(len(labels))
        if self._documents.in_windows:
            record_type = records.in_windows(record_type)
        return record_type

    def _columns(
        self, values: np.ndarray, owners: np.ndarray, number: int
    ) -> Mapping[str, np.ndarray]:
        """Returns what records have beside their ids.

        Args:
            values: Of the labels: [B] or [B, C].
            owners: Which text of the batch each row is of, [W].
            number: Of texts before this batch.
        """
        columns = {
            "label_ids": values[owners],
            "is_real_example": np.ones(len(owners), np.int64),
        }
        if self._documents.in_windows:
            columns["document_ids"] = number + owners.astype(np.int64)
            columns["window_weights"] = 1 / np.bincount(owners)[owners]
        return columns


def batches(
    items: Iterable[Item], characters: Callable[[Item], int], most: int
) -> Iterator[list[Item]]:
    """Cuts a stream into lists whose texts fit into memory as pieces.

    Args:
        items: The stream.
        characters: Counts those of an item's texts.
        most: Items of a list; fewer where their texts are long.
    """
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += characters(item)
        if len(batch) == most or total >= _BATCH_CHARACTERS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _characters(example: common.Example) -> int:
    return len(example.text_a) + len(example.text_b)


def _value(
    label: label_column.Label, label_ids: dict[str, int], is_multi_label: bool
) -> float | list[int]:
    if is_multi_label:
        own = label if isinstance(label, tuple) else ()
        return [int(name in own) for name in label_ids]
    if isinstance(label, str):
        return label_ids[label]
    return label if isinstance(label, float) else 0
