"""Disks that are full, or that nothing may be written to."""

import contextlib
import os
import pathlib
import resource
import subprocess
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def mounted(
    folder: pathlib.Path, kilobytes: int, read_only: bool = False
) -> Iterator[pathlib.Path]:
    """Mounts a file system of its own, in memory; skips where it can't."""
    if os.geteuid():
        pytest.skip("needs to mount a file system, which only root may")
    options = f"size={kilobytes}k,{'ro' if read_only else 'rw'}"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"can't mount a file system: {done.stderr.splitlines()[0]}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def limited(folder: pathlib.Path, kilobytes: float) -> Iterator[pathlib.Path]:
    """Lets no file be larger, as a quota would; any user may."""
    folder.mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(1024 * kilobytes), hard))
    try:
        yield folder
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
