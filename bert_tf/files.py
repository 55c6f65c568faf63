"""Writes files and folders atomically: completely or not at all.

PATH is written as PATH.tmp, which is renamed at the end and removed after an
error. If a killed process leaves such a file, the next run of the same command
replaces it. On a disk, a second process that writes the same file is rejected.
A full disk is an OSError that names the file that could not be written.
"""

import contextlib
import errno
import fnmatch
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from bert_tf.errors import InputError
from bert_tf.storage import file_systems, run_lock, writer_lock

_BLOCK = 1 << 20
# Quotas and limits of the file system are handled like a full disk.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


# ---- Files ------------------------------------------------------------------


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a binary file that appears under its name when it is complete.

    Raises InputError if another process writes the file, and OSError if it
    can't be written.
    """
    path = os.fspath(path)
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(replacing(path))
        opened: Any
        if file_systems.is_remote(path):
            system = file_systems.find_backend(path)
            opened = stack.enter_context(system.open(temporary, "wb"))
        else:
            opened = stack.enter_context(io.FileIO(temporary, "w"))
        output = _Output(opened, path)
        file = io.BufferedWriter(output, _BLOCK)
        try:
            yield file
        except BaseException:
            output.close()  # First, to discard the data in memory.
            raise
        file.close()


class _Output(io.RawIOBase):
    """A file whose errors name its final path.

    It has no `fileno`, so that NumPy can't bypass it, with errors that don't
    mention a full disk. In a bucket it is only written sequentially.
    """

    def __init__(self, file: Any, path: str):
        self._file, self._path = file, path
        self._size = 0

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return not file_systems.is_remote(self._path) and self._file.seekable()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if self.seekable():
            return self._file.seek(offset, whence)
        if (offset, whence) != (0, os.SEEK_CUR):
            raise io.UnsupportedOperation(f"{self._path} is written once")
        return self._size

    def write(self, data: Any, /) -> int:
        try:
            if file_systems.is_remote(self._path):
                data = bytes(data)
            # TensorFlow's files write all data and don't return the size.
            count = self._file.write(data)
        except OSError as error:
            raise _explained(error, self._path) from error
        count = len(data) if count is None else count
        self._size += count
        return count

    def close(self) -> None:
        super().close()
        try:
            self._file.close()
        except OSError as error:
            raise _explained(error, self._path) from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yields the path to write to, which becomes `path` at the end.

    For libraries that open files themselves, such as TensorFlow. Raises the
    same errors as `new_file`.
    """
    path = os.fspath(path)
    if file_systems.is_special(path):
        yield path
        return
    folder, name = os.path.split(path)
    with contextlib.ExitStack() as stack:
        there = path
        if run_lock.handle_path(folder) != folder:
            # This process locked the folder, and writes to no other one.
            locked = stack.enter_context(locked_folder(folder))
            there = os.path.join(locked, name)
        temporary = there + writer_lock.ENDING
        with naming(path, temporary), writer_lock.hold(path, temporary):
            try:
                yield temporary
                file_systems.find_backend(there).replace(temporary, there)
            except BaseException:
                _remove(temporary)
                raise


def _remove(temporary: str) -> None:
    """Removes a half-written file; errors here would hide the first error."""
    with contextlib.suppress(Exception):
        file_systems.find_backend(temporary).remove(temporary)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file atomically."""
    with new_file(path) as file:
        file.write(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text atomically."""
    write_bytes(path, text.encode())


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Writes lines in UTF-8 as an iterator yields them, atomically."""
    with new_file(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def write_json(path: str | os.PathLike[str], values: Any) -> None:
    """Writes JSON that people can read, atomically."""
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def sha256(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file in hexadecimal, in bounded memory."""
    path = os.fspath(path)
    digest = hashlib.sha256()
    with file_systems.find_backend(path).open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


# ---- Folders ----------------------------------------------------------------


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """Yields a local folder that is removed at the end.

    Errors of TensorFlow that name a file in it become OSErrors, as it may be on
    a full disk.
    """
    with tempfile.TemporaryDirectory() as folder, naming(folder, folder):
        yield folder


@contextlib.contextmanager
def new_folder(
    path: str | os.PathLike[str], overwrite: bool = False, size: int = 0
) -> Iterator[str]:
    """Yields a local folder that becomes `path` when it is complete.

    `path` is a new or empty folder, local or in a bucket; with `overwrite`, a
    folder with files is replaced at the end. There must be room for `size`
    bytes. Raises InputError if there are files, or another process writes the
    folder, and OSError if it can't be written.
    """
    path = os.fspath(path).rstrip("/")
    if path and not file_systems.is_remote(path):
        # If it is a link, its target becomes the folder; this also resolves
        # `..` in folders that do not exist yet.
        path = os.path.realpath(path)
    temporary = path + writer_lock.ENDING
    parent, name = os.path.split(path)
    system = file_systems.find_backend(path)
    with (
        run_lock.hold(parent or ".", f"{name}.lock", "writes", of=path),
        naming(path, temporary),
    ):
        if not overwrite or not name:  # Without a name: the root.
            _check_free(path)
        check_not_mounted(path)
        _remove_folder(temporary)
        try:
            with _local(temporary) as folder:
                _check_room(path, folder, size)
                yield folder
            if system.exists(path):
                system.rmtree(path)
            system.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):
                _remove_folder(temporary)
            raise


def check_not_mounted(path: str, name: str = "path") -> None:
    """Raises InputError if an output folder, `name` in errors, is a mount."""
    if file_systems.is_remote(path):
        return
    if os.path.ismount(os.path.realpath(path)):
        raise InputError(
            "A mounted folder can't be replaced: name a new folder inside "
            f"it. Received: {name}={path}"
        )


def _check_free(path: str) -> None:
    system = file_systems.find_backend(path)
    if not system.exists(path):
        return
    if not system.isdir(path) or system.listdir(path):
        raise InputError(
            "A new folder or an empty one is needed. Remove what is there or "
            f"choose another. Received: path={path}"
        )


def _check_room(path: str, folder: str, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        needed = f"{size / 1e6:,.1f} MB are needed, {free / 1e6:,.1f} MB free"
        raise file_systems.with_text(
            OSError(errno.ENOSPC, needed),
            f"Cannot write {path}: No space left on device ({needed})",
        )


def _remove_folder(path: str) -> None:
    system = file_systems.find_backend(path)
    if system.exists(path):
        system.rmtree(path)


@contextlib.contextmanager
def _local(path: str) -> Iterator[str]:
    """Yields the folder itself, or a local one that is copied to a bucket."""
    if not file_systems.is_remote(path):
        os.makedirs(path)
        yield path
        return
    folder = tempfile.mkdtemp()
    try:
        yield folder
        system = file_systems.find_backend(path)
        for parent, _, names in os.walk(folder):
            there = path + parent.removeprefix(folder)
            system.makedirs(there, exist_ok=True)
            for name in names:
                system.copy(
                    os.path.join(parent, name),
                    os.path.join(there, name),
                    overwrite=True,
                )
    finally:
        shutil.rmtree(folder)


# ---- Leftovers of killed processes -------------------------------------------

_LEFTOVER = re.compile(r"(.+?)(?:\.part\d+)?(?:\.tmp\d*)?")


def remove_leftovers(
    folder: str | os.PathLike[str], names: Iterable[str]
) -> None:
    """Removes half-written files of killed processes from a run's folder.

    It only removes files with the names that this program uses until a file is
    complete: NAME.tmp, NAME.tmp123 (earlier versions), and NAME.part0 (shuffled
    records). Names may contain * and ? as in a shell. Files that other
    processes are writing stay.
    """
    folder, patterns = os.fspath(folder), list(names)
    system = file_systems.find_backend(folder)
    if not system.isdir(folder):
        return
    for name in system.listdir(folder):
        path = os.path.join(folder, name)
        found = _LEFTOVER.fullmatch(name)
        if not found or name == found[1] or system.isdir(path):
            continue
        if any(fnmatch.fnmatchcase(found[1], pattern) for pattern in patterns):
            _remove_unless_locked(path)


def _remove_unless_locked(path: str) -> None:
    if file_systems.is_remote(path):
        _remove(path)
        return
    try:
        descriptor = file_systems.lock(path)
    except file_systems.NoLocksError:
        _remove(path)
        return
    if descriptor is not None:
        _remove(path)
        file_systems.unlock(descriptor)


# ---- Errors -----------------------------------------------------------------


@contextlib.contextmanager
def locked_folder(folder: str) -> Iterator[str]:
    """Yields a path by which to write into a folder that this process locked.

    If the folder is removed, moved or replaced meanwhile, nothing is written
    into the new folder, and the process ends. Errors name the folder.
    """
    run_lock.check_held()
    path = run_lock.handle_path(folder)
    try:
        yield path
    except (OSError, InputError, *_tensorflows_errors()) as error:
        run_lock.check_held()
        text = str(getattr(error, "message", error))
        if path == folder or path not in text:
            raise
        text = text.replace(path, folder)
        if isinstance(error, InputError):
            raise type(error)(text) from error
        if isinstance(error, OSError):
            raise file_systems.with_text(error, text) from error
        raise OSError(text) from error


@contextlib.contextmanager
def naming(path: str, temporary: str) -> Iterator[None]:
    """Makes errors that name a temporary file name its final path.

    TensorFlow's errors become OSErrors as well.
    """
    try:
        yield
    except OSError as error:
        name = str(error.filename or "")
        if name.startswith(temporary):
            there = path + name.removeprefix(temporary)
            raise _explained(error, there) from error
        # Libraries don't report which file: it is one of those passed to them.
        if error.strerror and not name and error.errno in FULL:
            raise _explained(error, path) from error
        text = str(error)
        if temporary not in text:
            raise
        text = text.replace(temporary, path)
        raise file_systems.with_text(error, text) from error
    except _tensorflows_errors() as error:
        # Remove the names of functions in the call chain.
        reason = re.sub(r"\{\{.*?\}\} | \[Op:\w+\].*", "", error.message)
        # Errors for file:// don't contain the scheme.
        names = [x.removeprefix("file://") for x in (path, temporary)]
        if not any(name in reason for name in names):
            raise
        if temporary.removeprefix("file://") in reason:
            reason = reason.rpartition("; ")[2].replace(temporary, path)
        raise OSError(f"Cannot write {path}: {reason}") from error


def _explained(error: OSError, path: str) -> OSError:
    text = f"Cannot write {path}: {error.strerror or error}"
    return file_systems.with_text(error, text)


def _tensorflows_errors() -> tuple[Any, ...]:
    tensorflow = sys.modules.get("tensorflow")
    return () if tensorflow is None else (tensorflow.errors.OpError,)
