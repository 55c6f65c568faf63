"""TFRecords written without TensorFlow equal those that it writes."""

from bert_tf.records import tfrecord

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def serialized():
    rng = np.random.default_rng(0)
    return [rng.bytes(size) for size in (0, 1, 700, 700, 70_000, 3)]


def test_writes_what_tensorflow_writes(serialized, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with tfrecord.Writer(ours) as writer:
        writer.write_all(serialized[:2])
        writer.write_all([])
        writer.write_all(serialized[2:])
    assert writer.records == len(serialized)
    with tf.io.TFRecordWriter(str(theirs)) as other:
        for record in serialized:
            other.write(record)
    assert ours.read_bytes() == theirs.read_bytes()
    assert sorted(tmp_path.iterdir()) == [ours, theirs]


def test_takes_a_stream_of_records(tmp_path):
    path = str(tmp_path / "x")
    stream = (str(number).encode() for number in range(3000))
    with tfrecord.Writer(path) as writer:
        writer.write_all(stream)
        writer.write(b"one")
    assert writer.records == 3001
    records = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    assert records == [*(b"%d" % n for n in range(3000)), b"one"]


def test_error_leaves_nothing(serialized, tmp_path):
    with pytest.raises(KeyError), tfrecord.Writer(tmp_path / "x") as writer:
        writer.write_all(serialized)
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_writer_names_a_file_that_it_cannot_write(tmp_path):
    (tmp_path / "file").write_text("x")
    path = tmp_path / "file" / "a"
    with (
        pytest.raises(OSError, match=f"Cannot write {path}: .*directory"),
        tfrecord.Writer(path),
    ):
        pass
