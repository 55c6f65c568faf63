"""Caches a teacher's logits for the training examples.

Every epoch reads the same examples, and a teacher has no dropout, so its logits
never change. They are stored with each record, and a step costs as much as
without a teacher.
"""

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from bert_tf.records import record_types, tfrecord
from bert_tf.training import fine_tuning, loop

import numpy as np
import tensorflow as tf

# The feature of the records with the logits, [B, C].
LOGITS = "teacher_logits"


def write(
    run: fine_tuning.Run,
    teacher: Callable[[loop.Batch], tf.Tensor],
    batch_size: int,
) -> record_types.RecordFile:
    """Copies the training records and adds the teacher's logits.

    Args:
        run: The run of the teacher's model, with the records to copy.
        teacher: A batch of the records -> its logits [B, C].
        batch_size: Rows of a batch, over all replicas.
    """
    data = run.data["train"]

    def outputs(batch):
        return {LOGITS: teacher(batch)}

    parts = fine_tuning.predict(run, "train", outputs, batch_size)
    first = next(parts)
    said = record_types.RecordType(
        "teacher",
        (record_types.Feature(LOGITS, first[LOGITS].shape[1], tf.float32),),
    )
    stem, ending = os.path.splitext(data.path)
    path = f"{stem}_with_logits{ending}"
    with tfrecord.Writer(path) as writer:
        parts = itertools.chain([first], parts)
        writer.write_all(_with_logits(data.path, said, parts))
    whole = record_types.RecordType(
        f"{data.record_type.name} with a teacher's logits",
        (*data.record_type.features, *said.features),
    )
    return dataclasses.replace(data, path=path, record_type=whole, source=data)


def _with_logits(
    path: str,
    said: record_types.RecordType,
    parts: Iterable[Mapping[str, np.ndarray]],
) -> Iterator[bytes]:
    """Yields each record with its logits appended.

    Protobuf merges two concatenated messages into one with the features of
    both.
    """
    records = tf.data.TFRecordDataset(path).as_numpy_iterator()
    for part in parts:
        for logits in said.encode_batch(part):
            yield next(records) + logits
