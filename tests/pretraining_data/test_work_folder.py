"""The folder of a data creation in progress."""

from bert_tf.pretraining_data import pretraining_sequences, stages, work_folder
from bert_tf.storage import file_systems
from tests import held_locks

import numpy as np
import pytest


class TestWorkFolder:
    @pytest.fixture(params=[1000, 1 << 15, (1 << 15) + 1, 119547])
    def vocab_size(self, request):
        return request.param

    @pytest.fixture
    def work(self, tmp_path, vocab_size):
        work = work_folder.WorkFolder(tmp_path / "work", vocab_size)
        work.begin({})
        return work

    def test_documents(self, work, vocab_size):
        documents = pretraining_sequences.Corpus(
            tokens=np.array([0, vocab_size - 1, 5], np.int32),
            word_starts=np.array([True, False, True]),
            sentences=np.array([0, 2, 3]),
            documents=np.array([0, 2]),
            keys=np.array([2**64 - 1], np.uint64),
        )
        work.save_documents((3, 1), documents)
        assert_same(work.load_documents((3, 1)), documents)

    def test_slices_of_sequences(self, work, vocab_size):
        rng = np.random.default_rng(0)
        lengths = rng.integers(1, 9, size=100)
        starts = np.append(0, np.cumsum(lengths))
        sequences = pretraining_sequences.Sequences(
            tokens=rng.integers(vocab_size, size=starts[-1], dtype=np.int32),
            word_starts=rng.random(starts[-1]) < 0.5,
            starts=starts,
            middles=rng.integers(1, lengths + 1).astype(np.int32),
            labels=rng.integers(2, size=100, dtype=np.int8),
        )
        keys = np.sort(rng.integers(2**64, size=100, dtype=np.uint64))
        borders = stages.Layout(3, 2).borders(keys)
        assert not work.has_sequences((0, 0), 2)
        work.save_sequences((0, 0), 2, keys, sequences, borders)
        assert work.has_sequences((0, 0), 2)
        for number in range(6):
            indices = np.arange(borders[number], borders[number + 1])
            got_keys, got = work.load_slice((0, 0), 2, number)
            assert got_keys.tolist() == keys[indices].tolist()
            assert_same(got, sequences.take(indices))


@pytest.fixture
def work(tmp_path):
    work = work_folder.WorkFolder(tmp_path / "work", 1000)
    work.begin({})
    return work


class TestRemove:
    """Only the run's own files are removed, wherever the folder is."""

    def test_leaves_the_files_of_others(self, tmp_path):
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious" / "file").write_text("x")
        (tmp_path / "file").write_text("x")
        work = work_folder.WorkFolder(tmp_path, 1000)
        work.begin({})
        work.save_counts("shard-0", {})
        work.remove()
        left = sorted(path.name for path in tmp_path.rglob("*"))
        assert left == ["file", "file", "precious"]
        # A folder that is not a run's is not removed either.
        (tmp_path / "counts").mkdir()
        (tmp_path / "counts" / "file").write_text("x")
        work_folder.WorkFolder(tmp_path, 1000).remove()
        assert (tmp_path / "counts" / "file").exists()

    def test_goes_on_where_it_was_stopped(self, tmp_path, work):
        (tmp_path / "work" / "counts").rmdir()
        work.begin({})
        work.save_counts("shard-0", {})
        (tmp_path / "work" / "tokens").rmdir()
        work.remove()
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("path", ["", ".", "./", "..", "/", "a/.."])
    def test_name_is_needed(self, path):
        with pytest.raises(ValueError, match="must have a name of its own"):
            work_folder.WorkFolder(path, 1000)


class TestClear:
    """Files left by a run that was killed at its end."""

    @pytest.mark.parametrize("killed_at", ["counts", "lock", "folder"])
    def test_killed(self, killed_at, tmp_path):
        path = tmp_path / "work"
        work = work_folder.WorkFolder(path, 1000)
        path.mkdir()
        if killed_at != "folder":
            held_locks.leave(path, held_locks.gone())
        if killed_at == "counts":
            work.begin({})
            work.save_counts("shard-0", {})
        work.clear()
        assert not list(tmp_path.iterdir())

    @pytest.mark.slow
    def test_leaves_it_to_one_that_works(self, tmp_path, work):
        descriptor = file_systems.lock(str(tmp_path / "work" / "lock"))
        assert descriptor is not None
        work.clear()
        assert (tmp_path / "work" / "run.json").exists()
        file_systems.unlock(descriptor)
        work.clear()
        assert not list(tmp_path.iterdir())

    def test_makes_nothing_and_leaves_a_file_of_others(self, tmp_path):
        work = work_folder.WorkFolder(tmp_path / "work", 1000)
        work.clear()
        assert not list(tmp_path.iterdir())
        (tmp_path / "work").write_text("x")
        work.clear()
        assert (tmp_path / "work").read_text() == "x"


def assert_same(ours, expected):
    for name, array in vars(expected).items():
        np.testing.assert_array_equal(getattr(ours, name), array, name)
        assert getattr(ours, name).dtype == array.dtype, name
