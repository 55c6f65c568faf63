"""The environment of a command: other processes, disks, variables, stdio."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping

from bert_tf.storage import file_systems, lock_file
from tests import held_locks, small_disks
from tests.bad_inputs import matrix

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# A script must log the ones that it does not use, and continue.
_ODD = {
    "KERAS_BACKEND": "torch",
    "MPLBACKEND": "of_no_such_name",
    "LC_ALL": "C",
}


@contextlib.contextmanager
def held(
    folder: pathlib.Path,
    name: str = "lock",
    what: str = "trains",
    of: pathlib.Path | None = None,
) -> Iterator[None]:
    """Simulates another process on this machine that uses a folder.

    The lock belongs to this process, under the name of one that outlives all
    tests.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / name)
    descriptor = file_systems.lock(path)
    assert descriptor is not None, of or folder
    holder = lock_file.Holder.here(what)
    holder = dataclasses.replace(holder, process=1, started=None)
    lock_file.write(path, holder.encode(0))
    try:
        yield
    finally:
        lock_file.remove(path)
        file_systems.unlock(descriptor)


@contextlib.contextmanager
def held_elsewhere(folder: pathlib.Path) -> Iterator[None]:
    """Simulates a process on another machine that uses a folder."""
    folder.mkdir(parents=True)
    path = folder / "lock"
    path.write_bytes(held_locks.elsewhere(process=12).encode(0))
    with held_locks.renewing(path, 0.3):
        yield


def check_other_writer(
    script: matrix.Script, name: str, data: pathlib.Path, folder: pathlib.Path
) -> None:
    """Asserts that an output being written by another process is kept.

    The script must not work before it says so.
    """
    (folder / "out").mkdir()
    descriptor = file_systems.lock(str(folder / "out" / f"{name}.tmp"))
    assert descriptor is not None
    line = f"Another process writes {{out}}/{name}: process {os.getpid()}"
    try:
        matrix.check(script, matrix.Case({}, line), data, folder)
        assert (folder / "log" / "stderr").read_text().count("\n") == 1
    finally:
        file_systems.unlock(descriptor)


def check_full_disk(
    script: matrix.Script,
    flags: Mapping[str, str],
    name: str,
    data: pathlib.Path,
    folder: pathlib.Path,
) -> None:
    """Asserts that nothing is left on a disk too small for an --output_file."""
    with small_disks.mounted(folder / "disk", 4) as disk:
        case = matrix.Case(
            {**flags, "output_file": f"{disk}/{name}"},
            f"Cannot write {disk}/{name}: No space left on device",
        )
        matrix.check(script, case, data, folder)
        assert not list(disk.iterdir())


def check_odd_shell(
    script: matrix.Script, data: pathlib.Path, folder: pathlib.Path
) -> None:
    """Asserts that the valid command works in an unusual environment.

    With unusual variables, non-ASCII names, and neither input nor output.
    """
    case = matrix.Case({"output_dir": "{out}/ä 水"}, "")
    command = matrix.command(script, case, data, folder / "out")
    log = folder / "stderr"
    with log.open("wb") as file:
        done = subprocess.run(
            [
                *("sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable),
                str(_ROOT / f"{script.name}.py"),
                *command,
            ],
            env={**os.environ, **_ODD},
            stderr=file,
            check=False,
        )
    said = log.read_text()
    assert not done.returncode, said
    assert "KERAS_BACKEND=torch is not used" in said
    assert list((folder / "out" / "ä 水").glob("model.ckpt-*.index"))
