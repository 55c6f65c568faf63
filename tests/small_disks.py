"""Disks that are full or read-only."""

import contextlib
import ctypes
import os
import pathlib
import resource
from collections.abc import Iterator

import pytest

# Not a process: forking this large process would take long.
_LIBC = ctypes.CDLL(None, use_errno=True)
_READ_ONLY, _DETACH = 1, 2  # MS_RDONLY, MNT_DETACH


@contextlib.contextmanager
def mounted(
    folder: pathlib.Path, kilobytes: int, read_only: bool = False
) -> Iterator[pathlib.Path]:
    """Mounts a file system in memory; skips the test if it can't."""
    if os.geteuid():
        pytest.skip("needs to mount a file system, which only root may")
    folder.mkdir()
    path, size = os.fsencode(folder), f"size={kilobytes}k".encode()
    flags = _READ_ONLY if read_only else 0
    if _LIBC.mount(b"tmpfs", path, b"tmpfs", flags, size):
        problem = os.strerror(ctypes.get_errno())
        pytest.skip(f"can't mount a file system: {problem}")
    try:
        yield folder
    finally:
        assert not _LIBC.umount2(path, _DETACH)


@contextlib.contextmanager
def limited(folder: pathlib.Path, kilobytes: float) -> Iterator[pathlib.Path]:
    """Limits the size of files, as a quota would; needs no privileges."""
    folder.mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(1024 * kilobytes), hard))
    try:
        yield folder
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
