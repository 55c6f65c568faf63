"""Texts -> TFRecords of token ids, tokenized in batches in the graph.

Shapes: B batch, S sequence length.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from bert_tf import records, text_ops
from bert_tf.tasks import common

import tensorflow as tf
from absl import logging

_BATCH_SIZE = 1024


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

    def __init__(self, tokenizer: text_ops.BertTokenizer, max_seq_length: int):
        """Traces its graph once, for all files.

        Args:
            tokenizer: Makes the ids.
            max_seq_length: S; what is longer is cut.
        """
        self._max_seq_length = max_seq_length

        # No Python control flow hangs on tensors here: AutoGraph would only
        # take time.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string)] * 2,
            autograph=False,
        )
        def pack(texts_a, texts_b):  # [B], [B] -> ids [B, S], number cut
            first = tokenizer.tokenize(texts_a)
            second = tokenizer.tokenize(texts_b)
            pieces = first.row_lengths() + second.row_lengths()
            special = 2 + tf.cast(second.row_lengths() > 0, pieces.dtype)
            is_cut = pieces + special > max_seq_length
            ids = tokenizer.pack(first, second, max_seq_length, pad_to_max=True)
            return ids, tf.math.count_nonzero(is_cut)

        self._pack = pack

    def write(
        self,
        path: str,
        examples: Iterable[common.Example],
        labels: Sequence[str] | None,
    ) -> TextRecords:
        """Writes one file.

        Args:
            path: Of the TFRecord file.
            examples: Those without a label get label 0, as in the original.
            labels: The classes; None if labels are scores.
        """
        record_type = records.CLASSIFICATION if labels else records.REGRESSION
        label_ids = {label: i for i, label in enumerate(labels or ())}
        cut = 0
        remaining = iter(examples)
        with records.Writer(path) as writer:
            while batch := list(itertools.islice(remaining, _BATCH_SIZE)):
                packed, number = self._pack(
                    [example.text_a for example in batch],
                    [example.text_b for example in batch],
                )
                cut += int(number)
                columns = {name: x.numpy() for name, x in packed.items()}
                for i, example in enumerate(batch):
                    row = {name: column[i] for name, column in columns.items()}
                    row["label_ids"] = _label(example.label, label_ids)
                    row["is_real_example"] = 1
                    writer.write(record_type.encode(row))
        logging.info(
            "Wrote %d examples to %s; %d were longer than %d tokens and were "
            "cut.",
            writer.records,
            path,
            cut,
            self._max_seq_length,
        )
        return TextRecords(
            path, writer.records, record_type, self._max_seq_length
        )


def _label(label: str | float | None, label_ids: dict[str, int]) -> float:
    if label is None:
        return 0
    return label_ids[label] if isinstance(label, str) else label
