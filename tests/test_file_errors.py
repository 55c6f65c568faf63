"""Errors about disks and folders that can't be written to."""

import errno
import os
import pickle
import resource
import tempfile

from bert_tf import files
from bert_tf.exporting import litert, numbers
from bert_tf.storage import file_systems
from tests import small_disks

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(params=["", "file://"], ids=["path", "address"])
def folder(request, tmp_path):
    """Returns a folder as a path, and as an address like a bucket's."""
    return f"{request.param}{tmp_path}"


class TestFullDisk:
    @pytest.mark.parametrize("prefix", ["", "file://"])
    @pytest.mark.parametrize("before", [None, b"old"])
    def test_files(self, tmp_path, prefix, before):
        with small_disks.mounted(tmp_path / "disk", 64) as disk:
            if before:
                (disk / "a").write_bytes(before)
            with pytest.raises(OSError) as error:
                files.write_bytes(f"{prefix}{disk}/a", b"x" * 200_000)
            expected = f"Cannot write {prefix}{disk}/a: No space left on device"
            assert str(error.value) == expected
            if not prefix:
                assert error.value.errno == errno.ENOSPC
            left = {path.name: path.read_bytes() for path in disk.iterdir()}
            assert left == ({"a": before} if before else {})

    @pytest.mark.parametrize("size", [100, 10_000, 3_000_000])
    def test_numpy_says_it_too(self, tmp_path, size):
        # Into a file of its own its error has no number.
        with small_disks.mounted(tmp_path / "disk", 8) as disk:
            (disk / "more").write_bytes(b"x" * 4096)
            with (
                pytest.raises(OSError, match="a: No space left") as error,
                files.new_file(disk / "a") as file,
            ):
                file.write(b"x" * 4000)
                np.save(file, np.zeros(size))
            assert error.value.errno == errno.ENOSPC
            assert os.listdir(disk) == ["more"]

    def test_a_limit_of_the_size(self, tmp_path):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        try:
            with pytest.raises(OSError) as error:
                files.write_text(tmp_path / "a", "x" * 65)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert str(error.value) == f"Cannot write {tmp_path}/a: File too large"
        assert error.value.errno == errno.EFBIG
        assert not list(tmp_path.iterdir())

    def test_errors_of_others_keep_their_words(self, tmp_path):
        with (
            pytest.raises(OSError, match=r"^\[Errno 5\] elsewhere$"),
            files.new_file(tmp_path / "a"),
        ):
            raise OSError(errno.EIO, "elsewhere")
        with pytest.raises(FileNotFoundError, match="'input'"):
            files.write_lines(tmp_path / "a", open("input"))  # noqa: SIM115
        assert not list(tmp_path.iterdir())

    @pytest.mark.slow
    @pytest.mark.parametrize("prefix", ["", "file://"])
    def test_folders(self, tmp_path, prefix):
        with small_disks.mounted(tmp_path / "disk", 64) as disk:
            path = f"{prefix}{disk}/a"
            with (
                pytest.raises(OSError, match="No space left") as error,
                files.new_folder(path) as new,
            ):
                files.write_text(f"{new}/small", "x")
                files.write_bytes(f"{new}/large", b"x" * 200_000)
            assert ".tmp" not in str(error.value)
            assert path in str(error.value)
            assert not list(disk.iterdir())

    def test_conversion_for_litert(self, tmp_path, monkeypatch):
        weights = tf.Variable(tf.zeros([1 << 14]))
        spec = tf.TensorSpec([None], tf.int32)
        function = tf.function(lambda ids: {"x": weights}, [spec])
        found = numbers.Numbers(function, {"ids": spec}, {})
        with small_disks.limited(tmp_path / "disk", 4) as disk:
            monkeypatch.setattr(tempfile, "tempdir", str(disk))
            with pytest.raises(
                OSError, match=f"^Cannot write {disk}/.*: File too large$"
            ):
                litert.convert(found, is_int8=False)
            # AutoGraph has files there until Python exits, also compiled ones.
            folders = {path.name for path in disk.iterdir() if path.is_dir()}
            assert folders <= {"__pycache__"}


class TestPlaces:
    def test_no_such_folder_and_a_folder(self, folder, tmp_path):
        message = f"^Cannot write {tmp_path}/none/a: No such file or directory$"
        with pytest.raises(FileNotFoundError, match=message):
            files.write_text(tmp_path / "none" / "a", "")
        (tmp_path / "a").mkdir()
        with pytest.raises((IsADirectoryError, OSError), match="a"):
            files.write_text(f"{folder}/a", "")
        assert os.listdir(tmp_path) == ["a"]

    def test_read_only_disk(self, tmp_path):
        with small_disks.mounted(tmp_path / "disk", 8, read_only=True) as disk:
            message = f"^Cannot write {disk}/a: Read-only file system$"
            with pytest.raises(OSError, match=message):
                files.write_text(disk / "a", "")

    def test_no_permission(self, tmp_path):
        tmp_path.chmod(0o500)
        if os.access(tmp_path, os.W_OK):
            pytest.skip("root may write everywhere")
        message = f"^Cannot write {tmp_path}/a: Permission denied$"
        with pytest.raises(PermissionError, match=message):
            files.write_text(tmp_path / "a", "")
        tmp_path.chmod(0o700)


def test_an_errors_kind_and_number_stay():
    error = file_systems.with_text(OSError(errno.EACCES, "x", "file"), "text")
    assert type(error) is PermissionError
    assert (str(error), error.errno) == ("text", errno.EACCES)
    # As from a worker process.
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.errno) == ("text", errno.EACCES)
    error = file_systems.with_text(OSError("x"), "text")
    assert (type(error), str(error), error.errno) == (OSError, "text", None)


def test_errors_of_tensorflow_that_name_no_file_of_ours_stay(tmp_path):
    error = tf.errors.InvalidArgumentError(None, None, "shapes differ")
    with (
        pytest.raises(tf.errors.InvalidArgumentError),
        files.naming(f"{tmp_path}/a", f"{tmp_path}/a.tmp"),
    ):
        raise error
