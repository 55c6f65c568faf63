"""Reads TFRecord files to check, count and diagnose them.

Unlike TensorFlow's, the errors name the file and the record.
"""

import concurrent.futures
import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import phases
from bert_tf.errors import InputError
from bert_tf.records import record_types, tfrecord
from bert_tf.storage import input_files

import numpy as np
import tensorflow as tf
from absl import logging

# For error messages: the meaning of each symbolic length, and the way out.
_LENGTHS = {
    "S": ("sequences of {} tokens", "give --max_seq_length={}"),
    "P": ("{} predictions per sequence", "give --max_predictions_per_seq={}"),
    "K": (
        "up to {} sequences per record",
        "copy the manifest that belongs to the records",
    ),
}
_FILES_AT_A_TIME = 8
# The op whose error message says that a record can't be parsed.
_PARSER = "ParseExample"
# TensorFlow's message contains the bytes of a record, which may not be text.
_UNPARSED = (tf.errors.InvalidArgumentError, UnicodeDecodeError)
# Bytes around each record: the length, and two checksums.
_AROUND_A_RECORD = 8 + 4 + 4
_READ_TOGETHER = 256


# ---- Contents of records ----------------------------------------------------


def check(
    record_type: record_types.RecordType,
    paths: Sequence[str],
    lengths: Mapping[str, int],
    is_by_manifest: bool = False,
) -> list[list[bytes]]:
    """Compares the first record of every file with the expected features.

    `is_by_manifest` means that `lengths` are from a manifest, not from flags.
    Returns the result of `first` for every file. Raises InputError if a feature
    is missing or has another length or dtype, or if a file cannot be read as
    TFRecords.
    """
    # In parallel, since opening a remote file takes tens of milliseconds.
    with concurrent.futures.ThreadPoolExecutor(_FILES_AT_A_TIME) as pool:
        list(pool.map(lambda path: check_lengths(path, 1), paths))
        try:
            found = list(pool.map(first, paths))
        except tf.errors.DataLossError as error:
            raise InputError(diagnose(paths) or error.message) from error
    for path, records in zip(paths, found, strict=True):
        for record in records:
            _check_record(record_type, path, 1, record, lengths, is_by_manifest)
    return found


def first(path: str) -> list[bytes]:
    """Returns the first record of a file, or nothing if it is empty."""
    dataset = tf.data.TFRecordDataset(path).take(1)
    return list(dataset.as_numpy_iterator())


def original_objective(file: str, record: bytes, number: int = 1) -> str:
    """Returns the sentence task of a record that has no manifest.

    Only ALBERT's script writes the feature `token_boundary`.
    """
    stored = decode(file, record, number).features.feature
    return "sop" if "token_boundary" in stored else "nsp"


@contextlib.contextmanager
def explained(
    record_type: record_types.RecordType,
    paths: Sequence[str],
    lengths: Mapping[str, int],
    is_by_manifest: bool = False,
) -> Iterator[None]:
    """Names the file and the record if parsing fails; arguments of `check`.

    First only looks at the first record of each file.
    """
    try:
        yield
    except _UNPARSED as error:
        how = (lengths, is_by_manifest)
        check(record_type, paths, *how)
        if _PARSER in getattr(error, "message", _PARSER):
            logging.info("A record can't be parsed. Looking for it...")
            for file in paths:
                _check_records(record_type, file, *how)
        raise


def _check_records(
    record_type: record_types.RecordType,
    file: str,
    lengths: Mapping[str, int],
    is_by_manifest: bool,
) -> None:
    """Raises InputError for the first record that can't be parsed."""
    number = 1
    batches = tf.data.TFRecordDataset(file).batch(_READ_TOGETHER)
    for batch in batches:
        try:
            record_type.parse(batch, lengths)
        except _UNPARSED:
            for i, record in enumerate(batch.numpy()):
                _check_record(
                    *(record_type, file, number + i, record),
                    *(lengths, is_by_manifest),
                )
        number += len(batch)


def _check_record(
    record_type: record_types.RecordType,
    file: str,
    number: int,
    record: bytes,
    lengths: Mapping[str, int],
    is_by_manifest: bool = False,
) -> None:
    stored = decode(file, record, number).features.feature
    for feature in record_type.features:
        if feature.name not in stored:
            raise InputError(
                f"{file} does not hold {record_type.name} records: the feature "
                f"{feature.name} is missing. "
                f"Received: features={sorted(stored)}"
            )
        kind = stored[feature.name].WhichOneof("kind")
        if kind != record_types.KINDS[feature.dtype]:
            raise InputError(
                f"{file}, record {number}: the feature {feature.name} "
                f"must be of kind {record_types.KINDS[feature.dtype]}. Make "
                f"the data again. Received: {kind}"
            )
        expected = int(np.prod(feature.shape(lengths)))
        received = len(getattr(stored[feature.name], kind).value)
        if received != expected:
            where = file if number == 1 else f"{file}, record {number},"
            problem = _wrong_length(where, feature, received, expected)
            # For the first record, the flags may be wrong, or the manifest.
            if is_by_manifest or number > 1:
                problem, _, _ = problem.partition(": give --")
                problem += (
                    f"{' as its manifest says' * is_by_manifest}. Copy the "
                    "manifest that belongs to it, or make the data again"
                )
            raise InputError(problem)


def _wrong_length(
    file: str, feature: record_types.Feature, received: int, expected: int
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
    # This is protobuf's DecodeError; naming it would need an import of
    # protobuf.
    except Exception as error:
        raise InputError(
            f"{file}, record {number}: not a tf.train.Example, as BERT's "
            f"records are ({error}). Make the data again."
        ) from error


# ---- Whole files ------------------------------------------------------------


def count(paths: Sequence[str]) -> list[int]:
    """Counts the records of each file; InputError if one is broken."""
    # A single stream does not use the full bandwidth of a bucket or disk array.
    with concurrent.futures.ThreadPoolExecutor(_FILES_AT_A_TIME) as pool:
        counts = pool.map(_count, paths)
        return list(
            phases.tracked(counts, "Counting records", "files", len(paths))
        )


def check_lengths(file: str, most: int | None = None) -> None:
    """Raises InputError if a record's stated length is impossible.

    Only looks at the first `most` records; see `tfrecord.impossible_length`.
    """
    input_files.check_can_be_read_again(file)
    try:
        found = tfrecord.impossible_length(file, most)
    except OSError:
        # TensorFlow reports the error, and can read files that can't be mapped.
        return
    if found:
        number, length = found
        said = f"it says that it is {length:,} bytes long, more than the file"
        raise InputError(_of_bad_file(file, number, said))


# Tracing it takes longer than reading a small file.
@functools.cache
def _counter() -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Returns a function: file -> its number of records, and their bytes."""

    @tf.autograph.experimental.do_not_convert
    def add(sums: Any, records: tf.Tensor) -> Any:
        number, size = sums
        lengths = tf.cast(tf.strings.length(records), tf.int64)
        number += tf.size(records, tf.int64)
        return number, size + tf.reduce_sum(lengths + _AROUND_A_RECORD)

    @tf.function(autograph=False)
    def total(file: tf.Tensor) -> Any:
        dataset = tf.data.TFRecordDataset(file).batch(_READ_TOGETHER)
        zero = tf.constant(0, tf.int64)
        return dataset.reduce((zero, zero), add)

    # It is traced even where functions run eagerly.
    return total.get_concrete_function(tf.TensorSpec([], tf.string))


def _count(file: str) -> int:
    check_lengths(file)
    try:
        number, size = map(int, _counter()(tf.constant(file)))
    except tf.errors.DataLossError as error:
        raise InputError(_broken(file) or error.message) from error
    # TensorFlow takes a truncated header for the end of the file.
    if size != tf.io.gfile.stat(file).length:
        raise InputError(
            _of_bad_file(file, number + 1, "its header is cut off")
        )
    return number


def diagnose(paths: Sequence[str]) -> str | None:
    """Describes where the first truncated or corrupt file breaks, or None."""
    try:
        count(paths)
    except InputError as error:
        return str(error)
    return None


def _broken(file: str) -> str | None:
    number = 0
    try:
        for _ in tf.data.TFRecordDataset(file).as_numpy_iterator():
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
    """Shortens TensorFlow's message about bad data."""
    # The first clause, without the name of the op that read it.
    text = str(error.message).partition("[")[0].split("}}")[-1]
    return text.partition("' failed with")[0].strip(" ;\n")
