"""Converts texts to TFRecords of token ids, tokenizing batches in a graph.

Shapes: B batch, S sequence length, W windows of all texts of a batch.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from bert_tf import phases
from bert_tf.errors import counted
from bert_tf.records import record_types, shuffled_writer
from bert_tf.tasks import label_column, tables, text_batches
from bert_tf.text import graph_rows, long_documents

import numpy as np
import tensorflow as tf
from absl import logging

_BATCH_SIZE = 1024


class Encoder:
    """Writes examples with the features of the original's run_classifier."""

    def __init__(
        self,
        tokenizer: graph_rows.Tokenizer,
        max_seq_length: int,
        documents: long_documents.LongDocuments | None = None,
    ):
        """Traces its graph once, for all files.

        `documents` specifies how texts are cut to S; by default, they are
        truncated.
        """
        self._max_seq_length = max_seq_length
        self._documents = documents or long_documents.LongDocuments()
        template = tokenizer.vocabulary.template
        room = max_seq_length - template.special(1)
        self._documents.check(room)

        # No Python control flow depends on tensors here, so AutoGraph would
        # only cost time.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string)] * 2,
            autograph=False,
        )
        def pack(texts_a, texts_b):
            """Maps [B], [B] to ids [W, S], text indices [W] and cut texts."""
            first, second = tokenizer.tokenize_columns(texts_a, texts_b)
            pieces = first.row_lengths() + second.row_lengths()
            is_pair = tf.cast(second.row_lengths() > 0, pieces.dtype)
            is_cut = pieces + len(template.between) * is_pair > room
            rows, owners = self._documents.cut(first, room)
            if not self._documents.keeps_rows:
                second = None
            ids = tokenizer.pack(rows, second, max_seq_length, pad_to_max=True)
            return ids, owners, tf.math.count_nonzero(is_cut)

        self._pack = pack

    def write(
        self,
        path: str,
        examples: Iterable[tables.Example],
        labels: Sequence[str] | None,
        is_multi_label: bool = False,
        seed: int | None = None,
    ) -> record_types.RecordFile:
        """Writes one file.

        Examples without a label get label 0, as in the original; `labels` is
        None for scores. Records are in the examples' order unless a seed
        shuffles them.
        """
        record_type = self._record_type(labels, is_multi_label)
        label_ids = {label: i for i, label in enumerate(labels or ())}
        number = cut = 0
        phase = phases.Phase("Tokenizing", "examples")
        with shuffled_writer.writer(path, seed) as writer:
            for batch in text_batches.of_texts(
                examples, characters, _BATCH_SIZE
            ):
                packed, owners, batch_cut = self._pack(
                    [example.text_a for example in batch],
                    [example.text_b for example in batch],
                )
                cut += int(batch_cut)
                columns = {name: x.numpy() for name, x in packed.items()}
                values = [
                    label_value(e.label, label_ids, is_multi_label)
                    for e in batch
                ]
                columns |= self._columns(
                    np.array(values), owners.numpy(), number
                )
                writer.write_all(record_type.encode_batch(columns))
                number += len(batch)
                phase.add(len(batch))
        phase.close()
        logging.info(
            "Read %s for %s; %d were longer than %d tokens and were %s.",
            counted(number, "example"),
            os.path.basename(path),
            cut,
            self._max_seq_length,
            f"read in windows, {writer.records} in all"
            if self._documents.in_windows
            else "cut",
        )
        return record_types.RecordFile(
            path, writer.records, record_type, self._max_seq_length
        )

    def _record_type(
        self, labels: Sequence[str] | None, is_multi_label: bool
    ) -> record_types.RecordType:
        record_type = (
            record_types.CLASSIFICATION if labels else record_types.REGRESSION
        )
        if labels and is_multi_label:
            record_type = record_types.multi_label(len(labels))
        if self._documents.in_windows:
            record_type = record_types.in_windows(record_type)
        return record_type

    def _columns(
        self, values: np.ndarray, owners: np.ndarray, number: int
    ) -> Mapping[str, np.ndarray]:
        """Returns the features of records besides their ids.

        `values` are labels [B] or [B, C], `owners` the text index of each
        window [W], and `number` is the number of texts before this batch.
        """
        columns = {
            "label_ids": values[owners],
            "is_real_example": np.ones(len(owners), np.int64),
        }
        if self._documents.in_windows:
            columns["document_ids"] = number + owners.astype(np.int64)
            columns["window_weights"] = 1 / np.bincount(owners)[owners]
        return columns


def characters(example: tables.Example) -> int:
    """Returns the number of characters in the texts of an example."""
    return len(example.text_a) + len(example.text_b)


def label_value(
    label: label_column.Label, label_ids: dict[str, int], is_multi_label: bool
) -> float | list[int]:
    """Returns a label as in records: 0 or 1 for each of several labels."""
    if is_multi_label:
        own = label if isinstance(label, tuple) else ()
        return [int(name in own) for name in label_ids]
    if isinstance(label, str):
        return label_ids[label]
    return label if isinstance(label, float) else 0
