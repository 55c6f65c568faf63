"""Checks that the numbers in records are in the model's range.

It also finds out whether padding is at the end of the rows.
"""

import collections
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from bert_tf import configuration
from bert_tf.errors import InputError
from bert_tf.records import pipeline, reading, record_types

import tensorflow as tf
from absl import logging

# Seconds for checking records: all of them, or a sample.
_LOOKING = 2.0
_LOOKED_AT_TOGETHER = 256
# With this number of records, all with one label: 1 in 2^31 by chance.
_FEW = 32
_LABELS = "next_sentence_labels"
# Features with values from 0 to 1.
_SHARES = (
    "input_mask",
    _LABELS,
    "masked_lm_weights",
    "next_sentence_weights",
)
_OF_THE_MODEL = ("input_ids", "masked_lm_ids", "segment_ids", "position_ids")


def check(
    files: Sequence[str],
    record_type: record_types.RecordType,
    lengths: Mapping[str, int],
    config: configuration.BertConfig,
    counts: Sequence[int] | None = None,
    is_complete: bool = False,
) -> str:
    """Raises InputError for numbers outside the model's range.

    Returns a file that has padding before a token in a row, or "".

    Reads the files in parallel, for at most two seconds unless `is_complete`,
    which covers small data completely. `counts` are the expected numbers of
    records of each file, if a manifest says them. Error messages name the file.
    """
    mosts = _mosts(record_type, lengths, config)
    found = _batches(files, record_type, lengths)
    stop = time.monotonic() + _LOOKING
    seen: collections.Counter[str] = collections.Counter()
    labels: set[int] = set()
    padded_inside = ""
    is_whole = True
    with (
        pipeline.explained(files),
        reading.explained(record_type, files, lengths),
    ):
        for path, batch in found.as_numpy_iterator():
            file = path.decode()
            mask = batch["input_mask"]
            seen[file] += len(mask)
            if (mask[:, 1:] > mask[:, :-1]).any():
                padded_inside = file
            if _LABELS in batch:
                labels.update(batch[_LABELS].flat)
            for name, most in mosts.items():
                least, largest = batch[name].min(), batch[name].max()
                if not 0 <= least <= largest <= most:
                    wrong = least if least < 0 else largest
                    _refuse(file, name, wrong, most)
            is_whole = is_complete or time.monotonic() <= stop
            if not is_whole:
                break
    if counts is None and config.pretraining_head == "pretraining":
        _warn_of_one_label(files[0], seen.total(), labels)
    if not is_whole:
        return padded_inside
    times = collections.Counter(files)  # A file may be repeated.
    for file, count in zip(files, counts or (), strict=False):
        if seen[file] != times[file] * count:
            raise InputError(
                f"{file} holds {seen[file] // times[file]} records, its "
                f"manifest says {count}. Make the data again, or copy the file "
                "again."
            )
    return padded_inside


def _warn_of_one_label(file: str, number: int, labels: Collection[int]) -> None:
    """Warns of records without a task of two segments, as of RoBERTa."""
    if number >= _FEW and len(labels) == 1:
        logging.warning(
            "All %d records that were checked have %d as %s, the first in %s, "
            "so the sentence task teaches nothing. To train on masked words "
            "only, create the records again by create_pretraining_data.py "
            "--objective=none.",
            *(number, *labels, _LABELS, file),
        )


def _mosts(
    record_type: record_types.RecordType,
    lengths: Mapping[str, int],
    config: configuration.BertConfig,
) -> dict[str, int]:
    """Returns the largest number allowed in each feature."""
    mosts = {
        "input_ids": config.vocab_size - 1,
        "masked_lm_ids": config.vocab_size - 1,
        "segment_ids": config.type_vocab_size - 1,
        "position_ids": config.max_position_embeddings - 1,
        "masked_lm_positions": lengths["S"] - 1,
        "cls_positions": lengths["S"] - 1,
        **dict.fromkeys(_SHARES, 1),
    }
    if not config.type_vocab_size:
        # A model without token types does not look them up.
        del mosts["segment_ids"]
    own = {feature.name for feature in record_type.features}
    return {name: most for name, most in mosts.items() if name in own}


def _batches(
    files: Sequence[str],
    record_type: record_types.RecordType,
    lengths: Mapping[str, int],
) -> tf.data.Dataset:
    """Yields a file and the features of some of its records.

    It only parses: tracing the checks would take longer than the checks.
    """

    @tf.autograph.experimental.do_not_convert
    def read(file: tf.Tensor) -> tf.data.Dataset:
        batches = tf.data.TFRecordDataset(file).batch(_LOOKED_AT_TOGETHER)
        return batches.map(
            lambda serialized: (
                file,
                record_type.parse(serialized, lengths, as_stored=True),
            )
        )

    return tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        read, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE
    )


def _refuse(file: str, name: str, value: float, most: int) -> NoReturn:
    """Raises InputError for a number outside its range."""
    received = f"{file} holds a record with {name}={value}"
    if name in _OF_THE_MODEL:
        raise InputError(
            f"{received}, and the model has room for 0 to {most}. Use the "
            "bert_config.json that belongs to the vocabulary of the data."
        )
    raise InputError(
        f"{received}, and it may be 0 to {most}. Make the data again."
    )
