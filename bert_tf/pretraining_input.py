"""The records that a model is pre-trained on, checked before any work."""

import collections
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from bert_tf import (
    configuration,
    input_pipeline,
    manifests,
    masking,
    paths,
    records,
)

import tensorflow as tf
from absl import logging


@dataclasses.dataclass(frozen=True)
class Data:
    """The records, checked."""

    files: list[str]
    counts: list[int]  # records in each file
    record_type: records.RecordType
    lengths: dict[str, int]
    objective: str  # what is learnt of two segments: "nsp", "sop" or "none"
    masking: masking.Masking | None  # if words are masked while reading

    def batches(
        self,
        strategy: tf.distribute.Strategy,
        dataset: tf.data.Dataset,
        seed: int,
        first_step: int = 0,
    ) -> tf.distribute.DistributedDataset:
        """Gives each replica its share of batches of records, masked."""
        masks = None
        if self.masking is not None:
            masks = input_pipeline.DynamicMasks(self.masking, seed, first_step)
        return input_pipeline.distribute(
            strategy, dataset, self.record_type, self.lengths, masks=masks
        )


def check_no_masking(*data: Data) -> None:
    """Raises ValueError where words are masked while they are read.

    That is done by NumPy, which only the hosts have that run the script.
    """
    for each in data:
        if each.masking is not None:
            raise ValueError(
                "Records that are masked while they are read can't be trained "
                "on from a TPU elsewhere. Run the script on the TPU's own "
                "host, or make them without --dynamic_masking. Received: "
                f"records={each.files[0]}"
            )


def check_alike(files: Sequence[str], eval_files: Sequence[str]) -> None:
    """Compares what is evaluated on with what is trained on, by manifests.

    Raises:
        ValueError: They were made with other pieces or for another task.
    """
    ours, theirs = manifests.find(files), manifests.find(eval_files)
    if ours is None or theirs is None:
        return
    for name in ("vocab_sha256", "do_lower_case", "objective"):
        expected, received = getattr(ours, name), getattr(theirs, name)
        if expected != received:
            raise ValueError(
                "--eval_file must hold records made as those of --input_file, "
                f"with {name}={expected}. Received: {eval_files[0]} with "
                f"{name}={received}. Make them with the same vocabulary and "
                "flags."
            )


# Seconds in which a sample of the records is looked at, or all of them.
_LOOKING = 2.0
_LOOKED_AT_TOGETHER = 256
_RECORDS = "records"
# Features that are from 0 to 1.
_SHARES = (
    *("input_mask", "next_sentence_labels"),
    *("masked_lm_weights", "next_sentence_weights"),
)
_OF_THE_MODEL = ("input_ids", "masked_lm_ids", "segment_ids", "position_ids")


def check_values(
    files: Sequence[str],
    record_type: records.RecordType,
    lengths: Mapping[str, int],
    config: configuration.BertConfig,
    counts: Sequence[int] | None = None,
) -> None:
    """Looks for numbers that the model has no room for.

    It reads the files side by side, for two seconds at most: small data whole.

    Args:
        files: To read.
        record_type: What they hold.
        lengths: Of that.
        config: Of the model.
        counts: How many records each is to hold, if it is known.

    Raises:
        ValueError: A record has one, or a file has another number of records.
            Names the file.
    """
    mosts = {
        "input_ids": config.vocab_size - 1,
        "masked_lm_ids": config.vocab_size - 1,
        "segment_ids": config.type_vocab_size - 1,
        "position_ids": config.max_position_embeddings - 1,
        "masked_lm_positions": lengths["S"] - 1,
        "cls_positions": lengths["S"] - 1,
        **dict.fromkeys(_SHARES, 1),
    }
    own = {feature.name for feature in record_type.features}
    mosts = {name: most for name, most in mosts.items() if name in own}

    def read(file: tf.Tensor) -> tf.data.Dataset:
        batches = tf.data.TFRecordDataset(file).batch(_LOOKED_AT_TOGETHER)
        return batches.map(lambda serialized: (file, ends(serialized)))

    def ends(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = record_type.parse(serialized, lengths, as_stored=True)
        return {
            name: tf.stack(
                [tf.reduce_min(batch[name]), tf.reduce_max(batch[name])]
            )
            for name in mosts
        } | {_RECORDS: tf.size(serialized)}

    found = tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        read, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE
    )
    stop = time.monotonic() + _LOOKING
    seen: collections.Counter[str] = collections.Counter()
    with input_pipeline.explained(files), record_type.explained(files, lengths):
        for file, values in found.as_numpy_iterator():
            seen[file.decode()] += values.pop(_RECORDS)
            for name, (least, most) in values.items():
                if not 0 <= least <= most <= mosts[name]:
                    wrong = least if least < 0 else most
                    _refuse(file.decode(), name, wrong, mosts[name])
            if time.monotonic() > stop:
                return
    for file, count in zip(files, counts or (), strict=False):
        if seen[file] != count:
            raise ValueError(
                f"{file} holds {seen[file]} records, its manifest says "
                f"{count}. Make the data again, or copy the file again."
            )


def _refuse(file: str, name: str, value: float, most: int) -> NoReturn:
    """Raises ValueError for a number that is beyond what it may be."""
    received = f"{file} holds a record with {name}={value}"
    if name in _OF_THE_MODEL:
        raise ValueError(
            f"{received}, and the model has room for 0 to {most}. Use the "
            "bert_config.json that belongs to the vocabulary of the data."
        )
    raise ValueError(
        f"{received}, and it may be 0 to {most}. Make the data again."
    )


def find(
    patterns: Sequence[str],
    config: configuration.BertConfig,
    max_seq_length: int | None,
    max_predictions_per_seq: int | None,
) -> Data:
    """Finds the records, and compares them with the flags and the model.

    Args:
        patterns: Of the files.
        config: Of the model.
        max_seq_length: What the flag says, if it says anything.
        max_predictions_per_seq: Likewise.

    Raises:
        ValueError: They contradict each other, or the files are no records.
    """
    files = paths.expand(patterns)
    manifest = manifests.find(files)
    if manifest is None:
        # As the original made them, which had no manifest.
        lengths = {
            "S": max_seq_length or 128,
            "P": max_predictions_per_seq or 20,
        }
        # First: nobody may have given the lengths.
        records.PRETRAINING.check(files, lengths)
        config.check_sequence_length(lengths["S"])
        check_values(files, records.PRETRAINING, lengths, config)
        logging.info("The records have no manifest; counting them.")
        counts = records.count(files)
        if not sum(counts):
            raise ValueError(f"{files[0]} holds no records.")
        return Data(files, counts, records.PRETRAINING, lengths, "nsp", None)
    if manifest.record_type not in records.PRETRAINING_TYPES:
        raise ValueError(
            f"{files[0]} does not hold pre-training records: its manifest "
            f"says record_type={manifest.record_type}. Make them with "
            "create_pretraining_data.py"
        )
    for name, value in (
        ("max_seq_length", max_seq_length),
        ("max_predictions_per_seq", max_predictions_per_seq),
    ):
        said = getattr(manifest, name)
        if value is not None and value != said:
            raise ValueError(
                f"--{name}={value} contradicts the manifest of {files[0]}, "
                f"which says {name}={said}. Leave the flag out, or make the "
                "data again"
            )
    config.check_vocab_size(manifest.vocab_size, "The vocabulary of the data")
    lengths = {
        "S": manifest.max_seq_length,
        "P": manifest.max_predictions_per_seq,
        "K": manifest.sequences_per_row,
    }
    config.check_sequence_length(lengths["S"])
    record_type = records.PRETRAINING_TYPES[manifest.record_type]
    record_type.check(files, lengths, is_by_manifest=True)
    counts = [shard.records for shard in manifest.shards]
    check_values(files, record_type, lengths, config, counts)
    masks = None
    if manifest.dynamic_masking:
        masks = masking.Masking.of_manifest(manifest.masking, files[0])
    return Data(
        files,
        counts,
        record_type,
        lengths,
        manifest.objective,
        masks,
    )
