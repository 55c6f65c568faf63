"""Two processes that would write the same file."""

import os
import shutil

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, writer_lock
from tests import processes

import pytest

_WRITE = """
    import sys
    from bert_tf import files
    files.write_text(sys.argv[1], "theirs")
"""


def test_a_reserved_file_is_written_by_this_process_alone(tmp_path):
    path = str(tmp_path / "new" / "folder" / "a")
    with writer_lock.reserve(path):
        code, _, errors = processes.run(_WRITE, path)
        assert code == 1
        assert f"Another process writes {path}: process {os.getpid()}" in errors
        # The same file by another name.
        files.write_text(f"{tmp_path}/new/../new/folder/a", "ours")
        assert os.listdir(os.path.dirname(path)) == ["a"]
    with open(path, encoding="utf-8") as file:
        assert file.read() == "ours"


def test_what_is_reserved_but_not_written_leaves_nothing(tmp_path):
    with writer_lock.reserve(str(tmp_path / "new" / "a")):
        assert file_systems.is_locked(str(tmp_path / "new" / "a.tmp"))
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_without_standard_input(tmp_path):
    reserve = """
        import os, sys
        from bert_tf.storage import writer_lock
        os.close(0)
        with writer_lock.reserve(sys.argv[1]):
            pass
    """
    code, _, errors = processes.run(reserve, str(tmp_path / "a"))
    assert code == 0, errors
    assert not list(tmp_path.iterdir())


def test_the_file_of_the_next_process_stays(tmp_path):
    path = str(tmp_path / "a")
    with writer_lock.reserve(path):
        files.write_text(path, "ours")
        descriptor = file_systems.lock(f"{path}.tmp")
    assert descriptor is not None
    assert os.path.exists(f"{path}.tmp")
    with pytest.raises(InputError), writer_lock.reserve(path):
        pass
    file_systems.unlock(descriptor)


@pytest.mark.parametrize("way", ["removed", "moved"])
def test_nothing_is_written_into_a_new_folder(tmp_path, way):
    folder = tmp_path / "run"
    path = str(folder / "a")
    with writer_lock.reserve(path):
        if way == "moved":
            folder.rename(tmp_path / "moved")
        else:
            shutil.rmtree(folder)
        folder.mkdir()
        with pytest.raises(InputError, match="was removed, moved or replaced"):
            files.write_text(path, "ours")
        assert not list(folder.iterdir())
    assert folder.is_dir()


def test_pipes_and_addresses_are_not_reserved(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (f"{tmp_path}/pipe", f"file://{tmp_path}/a"):
        with writer_lock.reserve(path):
            assert os.listdir(tmp_path) == ["pipe"]
