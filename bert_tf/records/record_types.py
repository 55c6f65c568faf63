"""The types of records: a table of features for each.

Features, lengths and dtypes are the same as in the original BERT, so that
either program can read the other's files.

Shapes: B batch, S sequence length, P predictions per sequence, K sequences of a
record (choices, or the max number of packed ones).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.records import wire_format

import numpy as np
import tensorflow as tf

# protobuf's name of the list of values for each dtype.
KINDS = {tf.int64: "int64_list", tf.float32: "float_list"}


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of a record type.

    Attributes:
        length: "S", "P" or "K" (passed by the caller), several of them, a
            number, or None for a scalar.
        dtype: tf.int64 or tf.float32, as stored.
    """

    name: str
    length: str | tuple[str, ...] | int | None
    dtype: tf.DType

    def shape(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the shape of the feature in a single record."""
        if self.length is None:
            return ()
        if isinstance(self.length, int):
            return (self.length,)
        return tuple(lengths[letter] for letter in self.length)

    @property
    def is_per_token(self) -> bool:
        """Whether its last axis is S."""
        return isinstance(self.length, str | tuple) and self.length[-1] == "S"


@dataclasses.dataclass(frozen=True)
class RecordType:
    """The features of a type of records."""

    name: str
    features: tuple[Feature, ...]

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """Serializes one record; equal values give equal bytes."""
        self._check_names(values)
        example = tf.train.Example()
        stored = example.features.feature
        for feature in self.features:
            values_list = getattr(stored[feature.name], KINDS[feature.dtype])
            # Twice as fast as passing the array to protobuf.
            array = np.asarray(values[feature.name])
            values_list.value.extend(array.ravel().tolist())
        return example.SerializeToString(deterministic=True)

    def encode_batch(self, values: Mapping[str, np.ndarray]) -> list[bytes]:
        """Serializes arrays [B, length] or [B], 8 times as fast as `encode`.

        Each row has the same bytes as with `encode`.
        """
        self._check_names(values)
        columns = {}
        for feature in self.features:
            array = np.asarray(values[feature.name])
            if feature.dtype == tf.float32:
                array = array.astype(np.float32)
            columns[feature.name] = array.reshape(len(array), -1)
        return wire_format.encode(columns)

    def _check_names(self, values: Mapping[str, Any]) -> None:
        if values.keys() != {feature.name for feature in self.features}:
            expected = ", ".join(feature.name for feature in self.features)
            raise InputError(
                f"A {self.name} record has the features {expected}. "
                f"Received: values={sorted(values)}"
            )

    def parse(
        self,
        serialized: tf.Tensor,
        lengths: Mapping[str, int],
        as_stored: bool = False,
    ) -> dict[str, tf.Tensor]:
        """Parses serialized records [B] into features [B, length] or [B].

        `lengths` has the value of each symbolic length, such as {"S": 128}.
        Integers become int32 unless `as_stored`, which is for inspection.
        """
        spec = {
            feature.name: tf.io.FixedLenFeature(
                feature.shape(lengths), feature.dtype
            )
            for feature in self.features
        }
        parsed = tf.io.parse_example(serialized, spec)
        if as_stored:
            return parsed
        return {
            # int64 is slow on TPUs.
            name: tf.cast(x, tf.int32) if x.dtype == tf.int64 else x
            for name, x in parsed.items()
        }


_SEQUENCE = (
    Feature("input_ids", "S", tf.int64),
    Feature("input_mask", "S", tf.int64),
    Feature("segment_ids", "S", tf.int64),
)
_PREDICTIONS = (
    Feature("masked_lm_positions", "P", tf.int64),
    Feature("masked_lm_ids", "P", tf.int64),
    Feature("masked_lm_weights", "P", tf.float32),
)
# 1 where a token begins a word, for masking whole words in the reader.
_WORDS = (Feature("word_starts", "S", tf.int64),)
_NEXT_SENTENCE = (Feature("next_sentence_labels", 1, tf.int64),)
_PACKED = (
    # The number of a token's sequence in the record, from 1; 0 for padding.
    Feature("sequence_ids", "S", tf.int64),
    # Positions restart in every sequence.
    Feature("position_ids", "S", tf.int64),
    Feature("cls_positions", "K", tf.int64),
    Feature("next_sentence_labels", "K", tf.int64),
    Feature("next_sentence_weights", "K", tf.float32),
)
PRETRAINING = RecordType(
    "pretraining", (*_SEQUENCE, *_PREDICTIONS, *_NEXT_SENTENCE)
)
# All types for pre-training: masked or not, with one sequence per record or
# several.
PRETRAINING_TYPES = {
    record_type.name: record_type
    for record_type in (
        PRETRAINING,
        RecordType(
            "pretraining_unmasked", (*_SEQUENCE, *_WORDS, *_NEXT_SENTENCE)
        ),
        RecordType("pretraining_packed", (*_SEQUENCE, *_PREDICTIONS, *_PACKED)),
        RecordType(
            "pretraining_packed_unmasked", (*_SEQUENCE, *_WORDS, *_PACKED)
        ),
    )
}
CLASSIFICATION = RecordType(
    "classification",
    (
        *_SEQUENCE,
        Feature("label_ids", None, tf.int64),
        Feature("is_real_example", None, tf.int64),
    ),
)
REGRESSION = RecordType(
    "regression",
    (
        *_SEQUENCE,
        Feature("label_ids", None, tf.float32),
        Feature("is_real_example", None, tf.int64),
    ),
)


def multi_label(number: int) -> RecordType:
    """Returns the type for texts that may have several of `number` labels."""
    label_ids = Feature("label_ids", number, tf.int64)  # 1 for its labels
    is_real_example = CLASSIFICATION.features[-1]
    return RecordType("multi-label", (*_SEQUENCE, label_ids, is_real_example))


def in_windows(record_type: RecordType) -> RecordType:
    """Returns the type for documents that may have several records each."""
    return RecordType(
        f"{record_type.name} in windows",
        (
            *record_type.features,
            Feature("document_ids", None, tf.int64),
            # The inverse of the number of the document's windows.
            Feature("window_weights", None, tf.float32),
        ),
    )


TAGGING = RecordType(
    "tagging",
    (
        *_SEQUENCE,
        Feature("label_ids", "S", tf.int64),
        # 1 at the first token of each word, in one of its windows.
        Feature("label_weights", "S", tf.float32),
    ),
)
# K choices for a prompt, each a sequence.
MULTIPLE_CHOICE = RecordType(
    "multiple choice",
    (
        Feature("input_ids", ("K", "S"), tf.int64),
        Feature("input_mask", ("K", "S"), tf.int64),
        Feature("segment_ids", ("K", "S"), tf.int64),
        Feature("label_ids", None, tf.int64),
    ),
)
# Windows of SQuAD, for training and for prediction.
SPAN = RecordType(
    "span",
    (
        Feature("unique_ids", None, tf.int64),
        *_SEQUENCE,
        Feature("start_positions", None, tf.int64),
        Feature("end_positions", None, tf.int64),
        Feature("is_impossible", None, tf.int64),
    ),
)
SPAN_QUESTION = RecordType(
    "span question", (Feature("unique_ids", None, tf.int64), *_SEQUENCE)
)


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """A file of records of fixed length, and the number of records.

    Attributes:
        source: The original records, if this file has added features.
    """

    path: str
    count: int
    record_type: RecordType
    max_seq_length: int
    source: "RecordFile | None" = dataclasses.field(default=None, kw_only=True)

    @property
    def lengths(self) -> dict[str, int]:
        """The value of each symbolic length."""
        return {"S": self.max_seq_length}
