"""Every record is written once, at a uniformly random position."""

from bert_tf.records import shuffled_writer

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats


def written(path, numbers, seed, part_bytes):
    """Returns the numbers in the order of the file."""
    with shuffled_writer.Writer(path, seed, part_bytes) as writer:
        writer.write_all([b"%08d" % number for number in numbers[:-1]])
        writer.write(b"%08d" % numbers[-1])
    assert writer.records == len(numbers)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return [int(x) for x in tf.data.TFRecordDataset(path).as_numpy_iterator()]


@pytest.mark.slow
@pytest.mark.parametrize("part_bytes", [8, 24, 80, 1000])
def test_all_records_once_in_another_order(tmp_path, part_bytes):
    numbers = list(range(10))
    found = written(tmp_path / "a", numbers, 1, part_bytes)
    assert found != numbers
    assert sorted(found) == numbers
    assert found == written(tmp_path / "a", numbers, 1, part_bytes)
    assert found != written(tmp_path / "a", numbers, 2, part_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("part_bytes", [8 * 600, 8 * 5000])
def test_every_record_may_come_anywhere(tmp_path, part_bytes):
    found = written(tmp_path / "a", range(4000), 1, part_bytes)
    # Tenths of the position before and after shuffling.
    table = np.zeros([10, 10])
    np.add.at(table, (np.array(found) // 400, np.arange(4000) // 400), 1)
    assert stats.chisquare(table.ravel(), ddof=18).pvalue > 1e-3
    rises = int((np.diff(found) > 0).sum())
    # Each has probability 1/2; the variance is (n + 1) / 12.
    assert abs(rises - 3999 / 2) < 4 * (4001 / 12) ** 0.5


def test_nothing_is_left_of_what_failed(tmp_path):
    def records():
        yield from (b"12345678",) * 5
        raise KeyError("broken")

    with (
        pytest.raises(KeyError, match="broken"),
        shuffled_writer.Writer(tmp_path / "a", 1, 16) as writer,
    ):
        writer.write_all(records())
    assert not list(tmp_path.iterdir())


def test_a_part_is_lost(tmp_path):
    with (
        pytest.raises(OSError, match=r"a\.part1; No such file"),
        shuffled_writer.Writer(tmp_path / "a", 1, 16) as writer,
    ):
        writer.write_all([b"12345678"] * 5)
        (tmp_path / "a.part1").unlink()
    assert not list(tmp_path.iterdir())


def test_without_a_seed_the_order_stays(tmp_path):
    path = str(tmp_path / "a")
    with shuffled_writer.writer(path, None) as writer:
        writer.write_all([b"b", b"a", b"c"])
    rows = np.array(list(tf.data.TFRecordDataset(path).as_numpy_iterator()))
    assert rows.tolist() == [b"b", b"a", b"c"]
