"""Keeps two processes from writing the same file.

A file is written as PATH.tmp, which is locked until it is renamed. A script
locks it before it starts to work: a second process that would write the same
file ends at once, and not when its work is done. Buckets have no such locks.
"""

import contextlib
import os
import socket
from collections.abc import Iterator

from bert_tf.errors import InputError
from bert_tf.storage import file_systems

ENDING = ".tmp"
# Absolute paths -> descriptors of their folders.
_RESERVED: dict[str, int] = {}


@contextlib.contextmanager
def hold(path: str, temporary: str | None = None) -> Iterator[int | None]:
    """Locks a file while this process writes it; yields PATH.tmp's descriptor.

    None without a lock. `temporary` is another name of PATH.tmp, if its folder
    has another name. Raises InputError if another process writes the file, or
    the folder of a reserved file was replaced, and OSError if PATH.tmp can't be
    created.
    """
    temporary = temporary or path + ENDING
    if file_systems.is_remote(path):
        yield None
        return
    reserved = _RESERVED.get(os.path.abspath(path))
    if reserved is not None:
        _check_folder(path, reserved)
        yield None
        return
    try:
        descriptor = file_systems.lock(temporary)
    except file_systems.NoLocksError:
        yield None
        return
    if descriptor is None:
        number = file_systems.locked_by(temporary)
        writer = f"process {number}" if number else "one"
        raise InputError(
            f"Another process writes {path}: {writer} on host "
            f"{socket.gethostname()}. Wait for its end, or choose another name."
        )
    try:
        yield descriptor
    finally:
        file_systems.unlock(descriptor)


def _check_folder(path: str, reserved: int) -> None:
    """Raises InputError if a file's folder is no longer the reserved one."""
    folder = os.path.dirname(os.path.abspath(path))
    if not file_systems.is_at(reserved, folder):
        raise InputError(
            f"The folder {folder} was removed, moved or replaced since this "
            "process began, so its output is not written. Start it again. "
            f"Received: path={path}"
        )


@contextlib.contextmanager
def reserve(path: str) -> Iterator[None]:
    """Locks a file that this process will write later.

    Creates its folder. PATH.tmp and the folder are removed at the end if they
    were not used. Raises the errors of `hold`.
    """
    if file_systems.is_remote(path) or file_systems.is_special(path):
        yield
        return
    name = os.path.abspath(path)
    folder = os.path.dirname(name)
    with _folder(folder), hold(path) as descriptor:
        try:
            _RESERVED[name] = file_systems.open_folder(folder)
            yield
        finally:
            if name in _RESERVED:
                os.close(_RESERVED.pop(name))
            # A descriptor may be 0, if standard input is closed.
            if descriptor is not None and file_systems.is_at(
                descriptor, name + ENDING
            ):
                os.remove(name + ENDING)


@contextlib.contextmanager
def _folder(path: str) -> Iterator[None]:
    """Creates a folder, and removes it if it is empty at the end."""
    missing = []
    while not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    os.makedirs(missing[0] if missing else path, exist_ok=True)
    created = [(folder, os.stat(folder)) for folder in missing]
    try:
        yield
    finally:
        for folder, before in created:
            with contextlib.suppress(OSError):
                # Another process may have replaced it.
                if os.path.samestat(os.stat(folder), before):
                    os.rmdir(folder)
