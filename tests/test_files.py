"""Files are written completely or not at all, tested with real processes."""

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import sys
import threading

from bert_tf import files
from bert_tf.storage import run_lock
from tests import processes

import numpy as np
import pytest


@pytest.fixture(params=["", "file://"], ids=["path", "address"])
def folder(request, tmp_path):
    """Returns a folder as a path, and as an address like a bucket's."""
    return f"{request.param}{tmp_path}"


class TestNewFile:
    def test_appears_when_it_is_complete(self, folder, tmp_path):
        with files.new_file(f"{folder}/a") as file:
            file.write(b"x" * 3_000_000)
            assert not (tmp_path / "a").exists()
        assert (tmp_path / "a").read_bytes() == b"x" * 3_000_000
        assert os.listdir(tmp_path) == ["a"]

    @pytest.mark.parametrize("before", [None, b"old"])
    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
    def test_error_leaves_what_was_there(self, folder, tmp_path, before, error):
        if before:
            (tmp_path / "a").write_bytes(before)
        with pytest.raises(error), files.new_file(f"{folder}/a") as file:
            file.write(b"new")
            raise error
        left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert left == ({"a": before} if before else {})

    def test_is_as_any_file(self, tmp_path):
        with files.new_file(tmp_path / "a") as file:
            file.write(b"....abc")
            file.seek(0)
            file.write(b"head")
            assert file.tell() == 4
        assert (tmp_path / "a").read_bytes() == b"headabc"
        (tmp_path / "b").write_text("")
        modes = [(tmp_path / name).stat().st_mode for name in "ab"]
        assert modes[0] == modes[1]

    def test_an_address_is_written_once(self, tmp_path):
        with files.new_file(f"file://{tmp_path}/a") as file:
            file.writelines([b"a\n", b"b\n"])
            assert file.tell() == 4
            with pytest.raises(io.UnsupportedOperation):
                file.seek(0)
        assert (tmp_path / "a").read_bytes() == b"a\nb\n"

    def test_a_pipe_gets_all_and_stays(self, tmp_path):
        pipe, got = tmp_path / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
        reader.start()
        files.write_lines(pipe, ["a", "b"])
        reader.join()
        assert got == [b"a\nb\n"]
        assert stat.S_ISFIFO(pipe.stat().st_mode)

    def test_without_locks_of_files(self, tmp_path, monkeypatch):
        def flock(*_):
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "flock", flock)
        files.write_text(tmp_path / "a", "a")
        with pytest.raises(KeyError), files.new_file(tmp_path / "a"):
            raise KeyError
        assert (tmp_path / "a").read_text() == "a"
        assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="needs paths of descriptors"
)
@pytest.mark.parametrize("way", ["removed", "moved"])
def test_a_run_writes_no_file_into_the_folder_of_the_next(
    tmp_path, monkeypatch, way
):
    folder, moved = tmp_path / "run", tmp_path / "moved"
    monkeypatch.setattr(os, "_exit", sys.exit)
    ends: contextlib.AbstractContextManager = contextlib.nullcontext()
    if way == "removed":
        ends = pytest.raises(SystemExit, match="1")
    with run_lock.hold(folder), ends, files.new_file(folder / "a") as file:
        # After the folder was checked.
        if way == "moved":
            folder.rename(moved)
        else:
            shutil.rmtree(folder)
        folder.mkdir()
        file.write(b"x")
    assert not list(folder.iterdir())
    if way == "moved":
        assert (moved / "a").read_bytes() == b"x"


def test_a_file_that_another_process_writes_into_a_run(tmp_path):
    """The error names it, and not the descriptor of its folder."""
    with run_lock.hold(tmp_path / "run"):
        path = tmp_path / "run" / "a"
        with (
            files.new_file(path),
            pytest.raises(ValueError, match=f"^Another process writes {path}:"),
        ):
            files.write_text(path, "")


def test_contents(folder, tmp_path):
    files.write_bytes(f"{folder}/bytes", b"\0\xff")
    files.write_text(f"{folder}/text", "für\r\n")
    files.write_lines(f"{folder}/lines", (x for x in ("für", "", "dich")))
    value = {"für": [1, 2.5, None]}
    files.write_json(f"{folder}/json", value)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "bytes": b"\0\xff",
        "text": "für\r\n".encode(),
        "lines": "für\n\ndich\n".encode(),
        "json": f"{text}\n".encode(),
    }


@pytest.mark.parametrize("size", [0, 3, 1 << 20, (1 << 20) + 7])
def test_sha256(folder, tmp_path, size):
    data = np.random.default_rng(0).bytes(size)
    (tmp_path / "a").write_bytes(data)
    assert files.sha256(f"{folder}/a") == hashlib.sha256(data).hexdigest()


_WRITER = """
    import sys, time
    from bert_tf import files
    with files.new_file(sys.argv[1]) as file:
        file.write(b"half" * 1_000_000)
        print("writes", flush=True)
        time.sleep(60)
"""


class TestOtherProcesses:
    def test_a_second_one_is_refused(self, tmp_path):
        writer = processes.start(_WRITER, tmp_path / "a")
        assert writer.stdout.readline() == "writes\n"
        message = (
            rf"^Another process writes {tmp_path}/a: process {writer.pid} on "
            r"host \S+\. Wait for its end, or choose another name\.$"
        )
        with pytest.raises(ValueError, match=message):
            files.write_text(tmp_path / "a", "ours")
        files.remove_leftovers(tmp_path, ["a"])
        assert os.listdir(tmp_path) == ["a.tmp"]
        writer.kill()
        writer.communicate()
        assert os.listdir(tmp_path) == ["a.tmp"]
        (tmp_path / "copy").mkdir()
        shutil.copy(tmp_path / "a.tmp", tmp_path / "copy")
        files.remove_leftovers(tmp_path, ["a"])
        assert os.listdir(tmp_path) == ["copy"]
        # Files left by a killed process are replaced.
        files.write_text(tmp_path / "copy" / "a", "whole")
        assert os.listdir(tmp_path / "copy") == ["a"]
        assert (tmp_path / "copy" / "a").read_text() == "whole"

    def test_two_at_once_never_mix(self, tmp_path):
        text = """
            import os, sys
            from bert_tf import files
            from tests import processes
            path = sys.argv[1] + "/a"

            def write(number):
                try:
                    with files.new_file(path) as file:
                        for _ in range(10):
                            file.write(b"ab"[number : number + 1] * 300_000)
                except ValueError as error:
                    assert "Another process writes" in str(error)
                    return False
                return True

            def check():
                data = open(path, "rb").read()
                assert data in (b"a" * 3_000_000, b"b" * 3_000_000)
                assert os.listdir(sys.argv[1]) == ["a"]
            processes.race(20, 1 / 50, write, check)
        """
        code, output, errors = processes.run(text, tmp_path)
        assert code == 0, output + errors


class TestNewFolder:
    @pytest.mark.slow
    def test_appears_when_it_is_complete(self, folder, tmp_path):
        with files.new_folder(f"{folder}/a/b/") as new:
            files.write_text(f"{new}/x", "x")
            os.makedirs(f"{new}/deep/er")
            files.write_text(f"{new}/deep/er/y", "y")
            assert not (tmp_path / "a" / "b").exists()
        assert os.listdir(tmp_path / "a") == ["b"]
        made = tmp_path / "a" / "b"
        assert (made / "x").read_text() == "x"
        assert (made / "deep" / "er" / "y").read_text() == "y"
        assert not pathlib.Path(new).exists()

    @pytest.mark.slow
    def test_error_leaves_nothing(self, folder, tmp_path):
        with pytest.raises(KeyError), files.new_folder(f"{folder}/a") as new:
            files.write_text(f"{new}/x", "x")
            raise KeyError
        assert not list(tmp_path.iterdir())
        assert not pathlib.Path(new).exists()

    def test_a_mount_can_not_be_replaced(self, tmp_path, monkeypatch):
        there = tmp_path / "a"
        there.mkdir()
        monkeypatch.setattr(os.path, "ismount", lambda path: path == str(there))
        (there / "mine").touch()
        new = files.new_folder(str(there), overwrite=True)
        with pytest.raises(ValueError, match="a new folder inside it"), new:
            pass
        assert (there / "mine").exists()

    def test_what_is_there_stays(self, tmp_path):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "mine").touch()
        new = files.new_folder(f"{tmp_path}/a")
        message = "(?i)a new folder or an empty one.*Received: path="
        with pytest.raises(ValueError, match=message), new:
            pass
        new = files.new_folder(f"{tmp_path}/a", overwrite=True)
        with pytest.raises(KeyError), new:
            raise KeyError
        assert [path.name for path in tmp_path.rglob("*")] == ["a", "mine"]
        # With `overwrite` it is replaced.
        with files.new_folder(f"{tmp_path}/a", overwrite=True) as made:
            files.write_text(f"{made}/x", "x")
            assert (tmp_path / "a" / "mine").exists()
        assert [path.name for path in tmp_path.rglob("*")] == ["a", "x"]

    def test_an_empty_one_is_as_none(self, tmp_path, monkeypatch):
        (tmp_path / "a").mkdir()
        with files.new_folder(f"{tmp_path}/a") as new:
            files.write_text(f"{new}/x", "x")
        assert [path.name for path in tmp_path.rglob("*")] == ["a", "x"]
        # In the current folder.
        monkeypatch.chdir(tmp_path / "a")
        with files.new_folder("b") as new:
            files.write_text(f"{new}/y", "y")
        assert sorted(os.listdir()) == ["b", "x"]

    def test_there_must_be_room(self, tmp_path):
        message = rf"^Cannot write {tmp_path}/a: No space left on device \(1,00"
        with (
            pytest.raises(OSError, match=message) as error,
            files.new_folder(tmp_path / "a", size=10**15),
        ):
            pass
        assert error.value.errno == errno.ENOSPC
        assert not list(tmp_path.iterdir())

    def test_what_a_killed_process_left_goes(self, tmp_path):
        writer = processes.start(
            """
            import pathlib, sys, time
            from bert_tf import files
            with files.new_folder(sys.argv[1]) as folder:
                pathlib.Path(folder, "half").touch()
                print("writes", flush=True)
                time.sleep(60)
            """,
            tmp_path / "a",
        )
        assert writer.stdout.readline() == "writes\n"
        message = (
            f"{tmp_path}/a is in use: process {writer.pid} on host .* writ"
        )
        with (
            pytest.raises(run_lock.HeldError, match=message),
            files.new_folder(tmp_path / "a"),
        ):
            pass
        writer.kill()
        writer.communicate()
        assert sorted(os.listdir(tmp_path)) == ["a.lock", "a.tmp"]
        with files.new_folder(tmp_path / "a") as new:
            assert not os.listdir(new)
        assert os.listdir(tmp_path) == ["a"]


def test_leftovers_are_only_ours(folder, tmp_path):
    ours = [
        *("a.json.tmp", "a.json.tmp123", "b-1.txt.tmp", "b-22.txt.tmp7"),
        *("r.part0", "r.part12", "r.part3.tmp", "r.part3.tmp99", "r.tmp"),
    ]
    users = [
        *("a.json", "a.json.tmp.gz", "a.json.tmpx", "x.tmp", "xa.json.tmp"),
        *("b-.tmp", "r", "r.part", "r.partial", "a.json.part0.txt", ".tmp"),
        *("a.json.tmp-mine", "my.r.tmp"),
    ]
    for name in (*ours, *users):
        (tmp_path / name).touch()
    (tmp_path / "r.tmp1").mkdir()
    files.remove_leftovers(folder, ["a.json", "b-*.txt", "r"])
    assert sorted(os.listdir(tmp_path)) == sorted([*users, "r.tmp1"])
    files.remove_leftovers(f"{folder}/none", ["a"])
