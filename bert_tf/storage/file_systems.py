"""Operations on file systems, and locks of files.

A lock (flock) ends with the last process that has the file open, however that
process ends. Buckets have no locks.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence

from etils.epath import backend

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)


class NoLocksError(OSError):
    """The file system does not support locks."""


def is_remote(path: str) -> bool:
    """Returns whether a path is an address, such as gs://bucket/folder."""
    return "://" in path


def find_backend(path: str) -> backend.Backend:
    """Returns the backend for opening, listing, renaming and removing files.

    Addresses use TensorFlow's, which imports it: it supports hdfs:// as well.
    """
    return backend.tf_backend if is_remote(path) else backend.os_backend


def is_special(path: str) -> bool:
    """Returns whether a path is a pipe or a device, which have no content."""
    if is_remote(path) or not os.path.exists(path):
        return False
    mode = os.stat(path).st_mode
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def with_text(error: OSError, text: str) -> OSError:
    """Returns an error of the same class with another message."""
    # OSError itself chooses the class by the errno.
    said = type(OSError(error.errno, text))(text)
    # Pickle keeps what is in __dict__, and sets it as an attribute: workers
    # raise errors in another process.
    vars(said)["errno"] = said.errno = error.errno
    return said


def check_working_folder() -> None:
    """Raises FileNotFoundError if the working folder was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise with_text(
            error,
            "The working folder was deleted: change to a folder that exists, "
            "with cd.",
        ) from None


# ---- Globs ------------------------------------------------------------------


def glob_escape(path: str) -> str:
    """Makes a path match itself in the globs of Python and of TensorFlow."""
    # TensorFlow takes a single backslash, in brackets as well, for an escape.
    return re.sub(r"[*?[]|(\\)", r"[\g<0>\1]", path)


@contextlib.contextmanager
def not_as_glob(path: str, files: Sequence[str]) -> Iterator[str]:
    """Yields a path by which TensorFlow finds files that begin with `path`.

    TensorFlow looks for a checkpoint, and for the variables of a SavedModel, by
    a glob. A local path with "[" or a backslash, which do not match themselves,
    is replaced by the path of links to the files in a temporary folder.
    """
    if is_remote(path) or not {"[", "\\"} & set(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        links = os.path.join(folder, "links")
        for file in files:
            os.symlink(os.path.abspath(file), links + file.removeprefix(path))
        yield links


def text_files(folder: str) -> list[str]:
    """Returns the *.txt files of a folder and of its subfolders.

    Names with numbers, as in RACE, are in numeric order: 2.txt, 10.txt.
    """
    system = find_backend(folder)
    escaped = glob_escape(folder)
    found = [
        file
        for pattern in ("*.txt", "*/*.txt")
        for file in system.glob(os.path.join(escaped, pattern))
    ]

    def order(file: str) -> tuple[str, int, str]:
        parent, name = os.path.split(file)
        return parent, len(name), name

    return sorted(found, key=order)


# ---- Locks ------------------------------------------------------------------


def lock(path: str) -> int | None:
    """Locks a local file, creating it if needed; None if it is already locked.

    Returns a descriptor for `unlock`, of the file that has this name now.
    Raises NoLocksError if the file system does not support locks, and OSError
    if the file can't be opened for writing.
    """
    while True:
        descriptor, is_new = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            if error.errno in _NO_LOCKS:
                if is_new:
                    os.remove(path)
                raise NoLocksError(error.errno, error.strerror, path) from error
            raise
        # The previous holder may have renamed or removed the file in between.
        if is_at(descriptor, path):
            return descriptor
        os.close(descriptor)


def is_locked(path: str) -> bool:
    """Returns whether a process holds the lock of a local file, if known."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _open(path: str) -> tuple[int, bool]:
    """Returns a descriptor of a file, and whether this call created it."""
    flags = os.O_RDWR | os.O_CLOEXEC
    while True:
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags), False
        with contextlib.suppress(FileExistsError):
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666), True


def is_at(descriptor: int, path: str) -> bool:
    """Returns whether an open file is the one that a path names."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def open_folder(path: str) -> int:
    """Returns a descriptor of a folder, which may be unreadable."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
    return os.open(path or ".", flags | os.O_CLOEXEC)


def unlock(descriptor: int) -> None:
    """Releases the lock, even if a child process still has the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def locked_by(path: str) -> int | None:
    """Returns the id of the process that locked a file, if known."""
    try:
        inode = os.stat(path).st_ino
        with open("/proc/locks", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return None
    # 1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF. Devices are not compared:
    # file systems on several disks report another one here than `stat` does.
    found = {
        int(row[4])
        for row in rows
        if row[1] == "FLOCK" and row[5].rpartition(":")[2] == str(inode)
    }
    # The id is 0 for a process in another container.
    return found.pop() if len(found) == 1 and min(found) > 0 else None
