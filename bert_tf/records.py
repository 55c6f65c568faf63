"""TFRecord files: one table per record type, their writer and reader.

The features, their lengths and dtypes are those of the original BERT, so that
either can read the other's files.

Shapes:
- B: batch       S: sequence length     P: predictions per sequence
- K: sequences that a record holds: at most, where they are packed; choices
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from bert_tf import files, input_files, phases, wire_format

import numpy as np
import tensorflow as tf

# For error messages: what each symbolic length says, and the way out.
_LENGTHS = {
    "S": ("sequences of {} tokens", "give --max_seq_length={}"),
    "P": ("{} predictions per sequence", "give --max_predictions_per_seq={}"),
    "K": (
        "up to {} sequences per record",
        "copy the manifest that belongs to the records",
    ),
}
_FILES_AT_A_TIME = 8
_KINDS = {tf.int64: "int64_list", tf.float32: "float_list"}


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of a record type.

    Args:
        name: The feature's name in the `tf.train.Example`.
        length: "S", "P" or "K" (given by the caller), several of them, a
            number, or None for a scalar.
        dtype: tf.int64 or tf.float32, as stored.
    """

    name: str
    length: str | tuple[str, ...] | int | None
    dtype: tf.DType

    def shape(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the feature in one record."""
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
    """The features of one kind of record."""

    name: str
    features: tuple[Feature, ...]

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """Serializes one record; equal values give equal bytes."""
        self._check_names(values)
        example = tf.train.Example()
        stored = example.features.feature
        for feature in self.features:
            values_list = getattr(stored[feature.name], _KINDS[feature.dtype])
            # Twice as fast as handing protobuf the array itself.
            array = np.asarray(values[feature.name])
            values_list.value.extend(array.ravel().tolist())
        return example.SerializeToString(deterministic=True)

    def encode_batch(self, values: Mapping[str, np.ndarray]) -> list[bytes]:
        """Serializes a batch, eight times as fast as `encode`.

        Args:
            values: Feature name -> [B, length] or [B].

        Returns:
            [B], the same bytes as `encode` makes of each row.
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
            raise ValueError(
                f"A {self.name} record has the features {expected}. "
                f"Received: values={sorted(values)}"
            )

    def parse(
        self,
        serialized: tf.Tensor,
        lengths: Mapping[str, int],
        as_stored: bool = False,
    ) -> dict[str, tf.Tensor]:
        """Parses a batch of records.

        Args:
            serialized: [B] string.
            lengths: The value of each symbolic length, such as {"S": 128}.
            as_stored: Whether int64 stays, to be looked at.

        Returns:
            Feature name -> [B, length] or [B]; int32 or float32.
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
            # TPUs have no int64 worth using.
            name: tf.cast(x, tf.int32) if x.dtype == tf.int64 else x
            for name, x in parsed.items()
        }

    def check(
        self,
        paths: Sequence[str],
        lengths: Mapping[str, int],
        is_by_manifest: bool = False,
    ) -> None:
        """Compares the first record of every file with what is expected.

        Args:
            paths: Of the files.
            lengths: What is expected.
            is_by_manifest: Whether a manifest says so, not flags.

        Raises:
            ValueError: A feature is missing, or of another length or dtype; or
                a file cannot be read as TFRecords. Names the file.
        """

        def first(file: tf.Tensor) -> tf.data.Dataset:
            dataset = tf.data.TFRecordDataset(file).take(1)
            return dataset.map(lambda record: (file, record))

        # In parallel, since opening a remote file takes tens of milliseconds.
        dataset = tf.data.Dataset.from_tensor_slices(list(paths)).interleave(
            first, cycle_length=16, num_parallel_calls=16, deterministic=True
        )
        try:
            for file, record in dataset.as_numpy_iterator():
                self._check_record(
                    file.decode(), 1, record, lengths, is_by_manifest
                )
        except tf.errors.DataLossError as error:
            raise ValueError(diagnose(paths) or error.message) from error

    @contextlib.contextmanager
    def explained(
        self, paths: Sequence[str], lengths: Mapping[str, int]
    ) -> Iterator[None]:
        """Names file and record where one of them can't be parsed."""
        try:
            yield
        # The message of TensorFlow has the bytes of a record, which need not
        # be text.
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
            for file in paths:
                rows = tf.data.TFRecordDataset(file).as_numpy_iterator()
                for number, record in enumerate(rows, start=1):
                    self._check_record(file, number, record, lengths)
            raise

    def _check_record(
        self,
        file: str,
        number: int,
        record: bytes,
        lengths: Mapping[str, int],
        is_by_manifest: bool = False,
    ) -> None:
        stored = decode(file, record, number).features.feature
        for feature in self.features:
            if feature.name not in stored:
                raise ValueError(
                    f"{file} does not hold {self.name} records: the feature "
                    f"{feature.name} is missing. "
                    f"Received: features={sorted(stored)}"
                )
            kind = stored[feature.name].WhichOneof("kind")
            if kind != _KINDS[feature.dtype]:
                raise ValueError(
                    f"{file}, record {number}: the feature {feature.name} "
                    f"must be of kind {_KINDS[feature.dtype]}. Make the data "
                    f"again. Received: {kind}"
                )
            expected = int(np.prod(feature.shape(lengths)))
            received = len(getattr(stored[feature.name], kind).value)
            if received != expected:
                where = file if number == 1 else f"{file}, record {number},"
                problem = _wrong_length(where, feature, received, expected)
                # Of the first record the flags may be wrong, or the manifest.
                if is_by_manifest or number > 1:
                    problem, _, _ = problem.partition(": give --")
                    problem += (
                        f"{' as its manifest says' * is_by_manifest}. Copy the "
                        "manifest that belongs to it, or make the data again"
                    )
                raise ValueError(problem)


def _wrong_length(
    file: str, feature: Feature, received: int, expected: int
) -> str:
    if not isinstance(feature.length, str):
        return (
            f"{file}: the feature {feature.name} must hold {expected} values "
            f"per record. Received: {received}"
        )
    what, way_out = _LENGTHS[feature.length]
    return (
        f"{file} holds {what.format(received)} (feature {feature.name}), "
        f"expected {expected}: {way_out.format(received)} or make the data "
        "again"
    )


def decode(file: str, record: bytes, number: int = 1) -> tf.train.Example:
    """Parses one record; file and number are for the error message."""
    try:
        return tf.train.Example.FromString(record)
    # protobuf's DecodeError, without an import of protobuf of our own.
    except Exception as error:
        raise ValueError(
            f"{file}, record {number}: not a tf.train.Example, as BERT's "
            f"records are ({error}). Make the data again."
        ) from error


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
# 1 where a token begins a word: what a reader needs to choose words.
_WORDS = (Feature("word_starts", "S", tf.int64),)
_NEXT_SENTENCE = (Feature("next_sentence_labels", 1, tf.int64),)
_PACKED = (
    # Which sequence of the record a token belongs to, from 1; 0 for padding.
    Feature("sequence_ids", "S", tf.int64),
    # They start anew in every sequence.
    Feature("position_ids", "S", tf.int64),
    Feature("cls_positions", "K", tf.int64),
    Feature("next_sentence_labels", "K", tf.int64),
    Feature("next_sentence_weights", "K", tf.float32),
)
PRETRAINING = RecordType(
    "pretraining", (*_SEQUENCE, *_PREDICTIONS, *_NEXT_SENTENCE)
)
# All that pre-training reads: masked or to be masked by the reader, one
# sequence in a record or several.
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
    """Returns records of texts that may have several of so many labels."""
    label_ids = Feature("label_ids", number, tf.int64)  # 1 where it has it
    is_real_example = CLASSIFICATION.features[-1]
    return RecordType("multi-label", (*_SEQUENCE, label_ids, is_real_example))


def in_windows(record_type: RecordType) -> RecordType:
    """Returns the records of documents that may take several of them."""
    return RecordType(
        f"{record_type.name} in windows",
        (
            *record_type.features,
            Feature("document_ids", None, tf.int64),
            # One over the number of the document's windows.
            Feature("window_weights", None, tf.float32),
        ),
    )


TAGGING = RecordType(
    "tagging",
    (
        *_SEQUENCE,
        Feature("label_ids", "S", tf.int64),
        # 1 at the first piece of each word, in one of its windows.
        Feature("label_weights", "S", tf.float32),
    ),
)
# K choices of a prompt, each a sequence.
MULTIPLE_CHOICE = RecordType(
    "multiple choice",
    (
        Feature("input_ids", ("K", "S"), tf.int64),
        Feature("input_mask", ("K", "S"), tf.int64),
        Feature("segment_ids", ("K", "S"), tf.int64),
        Feature("label_ids", None, tf.int64),
    ),
)
# SQuAD's windows, to train on and to predict.
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


# ---- Files -----------------------------------------------------------------


class Writer:
    """Writes a TFRecord file that appears only when it is complete.

    A context manager: leaving it normally renames the temporary file, leaving
    it by an exception removes it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        self.records = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            temporary = stack.enter_context(files.replacing(self.path))
            self._writer = tf.io.TFRecordWriter(temporary)
            stack.callback(self._writer.close)
            self._stack = stack.pop_all()
        return self

    def write(self, record: bytes) -> None:
        """Appends one serialized record."""
        self._writer.write(record)
        self.records += 1

    def write_all(self, serialized: Iterable[bytes]) -> None:
        """Appends many serialized records, each faster than by `write`."""
        for record in serialized:
            self._writer.write(record)
            self.records += 1

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self._stack.__exit__(error_type, error, traceback)


def count(paths: Sequence[str]) -> list[int]:
    """Counts the records of each file by reading it.

    Raises:
        ValueError: A file is truncated or corrupt. Names file and record.
    """
    # A stream of a bucket, or of one disk of many, is not all that it gives.
    with concurrent.futures.ThreadPoolExecutor(_FILES_AT_A_TIME) as pool:
        counts = pool.map(_count, paths)
        return list(
            phases.tracked(counts, "Counting records", "files", len(paths))
        )


def _count(file: str) -> int:
    dataset = tf.data.TFRecordDataset(file)
    zero = np.int64(0)

    def add(sums: Any, record: tf.Tensor) -> Any:
        number, size = sums
        length = tf.strings.length(record) + _AROUND_A_RECORD
        return number + 1, size + tf.cast(length, tf.int64)

    try:
        number, size = map(int, dataset.reduce((zero, zero), add))
    except tf.errors.DataLossError as error:
        raise ValueError(diagnose([file]) or error.message) from error
    # TensorFlow takes a header that was cut off for the end of the file.
    if size != tf.io.gfile.stat(file).length:
        raise ValueError(
            _of_bad_file(file, number + 1, "its header is cut off")
        )
    return number


# The length, and two checksums.
_AROUND_A_RECORD = 8 + 4 + 4


def diagnose(paths: Sequence[str]) -> str | None:
    """Says where the first truncated or corrupt file breaks; None if none."""
    for file in paths:
        records = tf.data.TFRecordDataset(file).as_numpy_iterator()
        number = 0
        try:
            for _ in records:
                number += 1
        except tf.errors.DataLossError as error:
            return _of_bad_file(file, number + 1, reason(error))
    return None


def _of_bad_file(file: str, number: int, said: str) -> str:
    problem = ""
    if number == 1:
        with tf.io.gfile.GFile(file, "rb") as opened:
            problem = input_files.explain_text(opened.read(64))
    if problem:
        return f"{file} is no TFRecord file: {problem}."
    return (
        f"{file}, record {number}: truncated, corrupt or not a TFRecord file "
        f"({said}). Copy or download it again, or make it again."
    )


def reason(error: tf.errors.OpError) -> str:
    """What TensorFlow says of bad data, in short."""
    # The first clause, without the name of the op that read it.
    text = str(error.message).partition("[")[0].split("}}")[-1]
    return text.partition("' failed with")[0].strip(" ;\n")
