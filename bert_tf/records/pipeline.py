"""tf.data pipelines: seeded and resumable for training, ordered for evaluation.

`train` and `evaluate` return global batches of serialized records; `distribute`
gives each replica its rows, parsed. So the records of a step only depend on the
seed and the step, not on the number of replicas or hosts. Every host reads all
records (a few hundred thousand per second) and parses only its own.

Nothing here needs AutoGraph, which would add a second to each start.

Shapes: B global batch, S sequence length, P predictions per row.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.records import dynamic_masks, manifests, reading, record_types

import tensorflow as tf
from absl import logging

# Records that are shuffled together. Data creation shuffles globally; this
# shuffle makes epochs differ. With 1.5 kB per record a block takes 12 MB.
BLOCK = 8192
# Number of batches whose records are sorted by length together, if requested.
_WINDOW = 50
# Lengths are trimmed to a multiple of this: kernels prefer it, and there are
# fewer distinct shapes.
FINELY = 8
# Rows that are masked in one call.
_MASKED_TOGETHER = 512


def train(
    files: Sequence[str],
    counts: Sequence[int],
    batch_size: int,
    seed: int,
    start: int = 0,
    group_by_length: bool = False,
) -> tf.data.Dataset:
    """Returns endless shuffled batches of serialized records.

    Epoch e reads the files in an order drawn from (seed, e), in blocks, and
    shuffles block i by (seed, e, i). The next epoch completes the last batch of
    an epoch. To start after `start` records, whole files are skipped by their
    `counts`, then records. With `group_by_length` the records of a batch have
    similar lengths.

    Returns:
        A dataset of (serialized [B] string, row weights [B] float32, all 1).
    """
    total = sum(counts)
    if len(files) != len(counts) or not total:
        raise InputError(
            "Training needs records, and a count for each file. "
            f"Received: files={len(files)}, counts={len(counts)}, "
            f"records={total}"
        )
    names = tf.constant(list(files))
    sizes = tf.constant(list(counts), tf.int64)

    @tf.autograph.experimental.do_not_convert
    def epoch(number):
        used = tf.constant(start % total, tf.int64)
        used = tf.where(number == start // total, used, 0)

        def group(index, rows, key):
            if not group_by_length:
                return rows
            # Batches may cross the borders of blocks and epochs.
            lead = -(number * total + index * BLOCK) % batch_size
            return _group_by_length(rows, lead, batch_size, key)

        return _epoch(names, sizes, seed, number, used, group)

    dataset = tf.data.Dataset.range(start // total, tf.int64.max)
    dataset = dataset.flat_map(epoch).rebatch(batch_size, drop_remainder=True)
    # Otherwise the strategies look for its end at every step, and the number of
    # rows in a batch is unknown.
    endless = tf.data.experimental.assert_cardinality(
        tf.data.INFINITE_CARDINALITY
    )
    dataset = dataset.apply(endless)

    @tf.autograph.experimental.do_not_convert
    def weighted(batch):
        return batch, tf.ones([batch_size])

    return dataset.map(weighted)


def _epoch(
    files: tf.Tensor,
    counts: tf.Tensor,
    seed: int,
    epoch: tf.Tensor,
    start: tf.Tensor,
    group: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.data.Dataset:
    """Returns shuffled blocks of an epoch's records, from record `start` on."""
    order = tf.range(tf.size(files))
    order = tf.random.experimental.stateless_shuffle(order, [seed, epoch])
    files, counts = tf.gather(files, order), tf.gather(counts, order)
    block = start // BLOCK
    # The first file with records of this block, and how many to skip.
    ends = tf.cumsum(counts)
    first = tf.searchsorted(ends, [block * BLOCK], side="right")[0]
    first = tf.minimum(first, tf.size(files) - 1)
    skip = block * BLOCK - (ends[first] - counts[first])
    left = files[first:], counts[first:]
    dataset = tf.data.Dataset.from_tensor_slices(left).flat_map(_counted)
    dataset = dataset.skip(skip)
    dataset = dataset.batch(BLOCK).enumerate(block)

    def shuffle(index, rows):
        key = tf.random.fold_in(tf.stack([seed, epoch]), index)
        rows = tf.random.experimental.stateless_shuffle(rows, key)
        rows = group(index, rows, tf.random.fold_in(key, 1))
        return tf.cond(
            index == block, lambda: rows[start - block * BLOCK :], lambda: rows
        )

    return dataset.map(shuffle)


@tf.autograph.experimental.do_not_convert
def _counted(file: tf.Tensor, count: tf.Tensor) -> tf.data.Dataset:
    """Returns the records of a file, and fails if their number is not `count`.

    A file that is truncated between two records looks complete, and all later
    positions would be wrong.
    """
    dataset = tf.data.TFRecordDataset(file, buffer_size=8 << 20)
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def _group_by_length(
    rows: tf.Tensor, lead: tf.Tensor, batch_size: int, key: tf.Tensor
) -> tf.Tensor:
    """Orders shuffled rows so that the rows of a batch have similar lengths.

    Rows are sorted within windows, so that batches still differ between epochs.
    The first `lead` rows complete the previous batch, and keep their positions.
    """
    lead = tf.cast(lead, tf.int32)
    full = (tf.size(rows) - lead) // batch_size * batch_size
    lead, full = tf.cond(full > 0, lambda: (lead, full), lambda: (0, 0))
    grouped = rows[lead : lead + full]
    window = tf.range(full) // (_WINDOW * batch_size)
    # In a record padding takes one byte, nearly every other token two or more.
    # So bytes approximate the number of tokens, without parsing.
    lengths = tf.strings.length(grouped)
    order = tf.argsort(
        tf.cast(window, tf.int64) * 2**32 + tf.cast(lengths, tf.int64),
        stable=True,
    )
    batches = tf.reshape(tf.gather(grouped, order), [-1, batch_size])
    batches = tf.random.experimental.stateless_shuffle(batches, key)
    return tf.concat(
        [rows[:lead], tf.reshape(batches, [-1]), rows[lead + full :]], axis=0
    )


def evaluate(
    files: Sequence[str],
    batch_size: int,
    max_batches: int | None = None,
    counts: Sequence[int] | None = None,
) -> tf.data.Dataset:
    """Returns all records once, in order; padding rows have weight 0.

    The dataset is of (serialized [B] string, row weights [B] float32). Reading
    fails if the numbers of records are not the `counts`.
    """

    @tf.autograph.experimental.do_not_convert
    def fill(batch):
        missing = batch_size - tf.size(batch)
        weights = tf.pad(tf.ones(tf.shape(batch)), [[0, missing]])
        filling = tf.repeat(batch[:1], missing)
        batch = tf.concat([batch, filling], axis=0)
        return tf.ensure_shape(batch, [batch_size]), weights

    rows = tf.data.TFRecordDataset(list(files))
    if counts is not None:
        expected = list(files), tf.constant(list(counts), tf.int64)
        rows = tf.data.Dataset.from_tensor_slices(expected).flat_map(_counted)
    dataset = rows.batch(batch_size).map(fill)
    return dataset if max_batches is None else dataset.take(max_batches)


def distribute(
    strategy: tf.distribute.Strategy,
    make: Callable[[], tf.data.Dataset],
    record_type: record_types.RecordType,
    lengths: Mapping[str, int],
    trim: int = 0,
    masks: dynamic_masks.DynamicMasks | None = None,
) -> tf.distribute.DistributedDataset:
    """Parses batches of `train` or `evaluate`; each replica gets its rows.

    `make` makes these batches. It is called for each host, whose device is the
    default during the call: TensorFlow can't send datasets to other hosts.
    `lengths` has the value of each symbolic length, such as {"S": 128}. `trim`
    removes the padding beyond the longest sequence of a batch, down to a
    multiple of `trim` tokens (0: no trimming, as on TPUs, which need one
    shape). `masks` masks words in unmasked records.

    Returns:
        Dicts of the features of `record_type`, or of masked records, and of
        `row_weights` float32 [B / replicas], 0 for padding rows.
    """
    replicas = strategy.num_replicas_in_sync

    def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        dataset = make()
        batch_size = dataset.element_spec[0].shape[0]
        if batch_size is None or batch_size % replicas:
            raise InputError(
                "The batch size must be a multiple of the number of replicas. "
                f"Received: batch_size={batch_size}, replicas={replicas}"
            )
        share = batch_size // context.num_input_pipelines
        first = share * context.input_pipeline_id
        local = replicas // context.num_input_pipelines
        # NumPy is called for several batches at once: for a small batch, the
        # calls take longer than the work.
        together = 1 if masks is None else max(1, _MASKED_TOGETHER // share)

        @tf.autograph.experimental.do_not_convert
        def parse(numbers, data):  # [A], ([A, B], [A, B])
            serialized, weights = (
                tf.reshape(x[:, first : first + share], [-1]) for x in data
            )  # [A * share]
            batch = record_type.parse(serialized, lengths)
            if trim:
                batch = _trim(batch, record_type, trim)
            if masks is not None:
                batch = masks.apply(batch, numbers, first)
            batch["row_weights"] = weights
            # Unknown dimensions are the length of trimmed sequences, or the
            # number of batches, because the last call may have fewer.
            parts = local if masks is None else -1
            return _split(batch, parts, share // local)

        numbered = tf.data.Dataset.zip(tf.data.Dataset.counter(), dataset)
        numbered = numbered.batch(together)
        parsed = numbered.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        parsed = parsed.unbatch().prefetch(tf.data.AUTOTUNE)
        # The tuner sleeps for up to a minute, and the end of an iterator, as
        # after each evaluation, may wait for it. Without the tuner, parsing
        # uses all cores, and prefetching still chooses its own buffer.
        options = tf.data.Options()
        options.autotune.enabled = False
        return parsed.with_options(options)

    return strategy.distribute_datasets_from_function(pipeline)


def _split(
    batch: dict[str, tf.Tensor], parts: int, rows: int
) -> dict[str, tf.Tensor]:
    """Splits the rows into `parts` (-1 for as many as there are) of `rows`."""
    return {
        name: tf.reshape(x, [parts, rows, *(d or -1 for d in x.shape[1:])])
        for name, x in batch.items()
    }


def _trim(
    batch: dict[str, tf.Tensor], record_type: record_types.RecordType, by: int
) -> dict[str, tf.Tensor]:
    mask = batch["input_mask"]  # [..., S]
    longest = tf.reduce_max(tf.reduce_sum(mask, axis=-1))
    length = -(-tf.maximum(longest, 1) // by) * by
    length = tf.minimum(length, tf.shape(mask)[-1])
    per_token = [f.name for f in record_type.features if f.is_per_token]
    return batch | {name: batch[name][..., :length] for name in per_token}


@contextlib.contextmanager
def explained(files: Sequence[str]) -> Iterator[None]:
    """Converts TensorFlow's errors for bad data to errors that name the record.

    TensorFlow names neither file nor record, so the files are read again.
    """
    try:
        yield
    except tf.errors.DataLossError as error:
        logging.error("%s. Looking for the file...", reading.reason(error))
        raise InputError(reading.diagnose(files) or error.message) from error
    except tf.errors.FailedPreconditionError as error:
        if "Input dataset was expected" not in error.message:
            raise
        raise InputError(_miscounted(files)) from error
    except tf.errors.InvalidArgumentError as error:
        match = _OUT_OF_RANGE.search(error.message)
        if not match:
            raise
        raise InputError(
            f"A record of {_some(files)} holds the number {match[1]} "
            f"where the model has room for 0 to {int(match[2]) - 1}. Use the "
            "bert_config.json that belongs to the vocabulary of the data."
        ) from error


# Messages of gather and cross entropy for a bad index; only on CPUs without
# XLA.
_OUT_OF_RANGE = re.compile(
    r"(?: = |value of )(-?\d+) (?:is not in|which is outside the valid range "
    r"of) \[0, (\d+)\)"
)


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - 3} others" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more


def _miscounted(files: Sequence[str]) -> str:
    """Lists the files whose number of records is not the expected one."""
    manifest = manifests.find(files)
    if manifest is None:
        return f"Files changed while they were read: {_some(files)}"
    counts = zip(files, manifest.shards, reading.count(files), strict=True)
    wrong = [
        f"{file} holds {count} records, its manifest says {shard.records}"
        for file, shard, count in counts
        if count != shard.records
    ]
    return f"{'; '.join(wrong)}. Copy the files again, or make them again."
