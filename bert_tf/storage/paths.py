"""Finds the files that users name, local or on gs://."""

import concurrent.futures
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files

from absl import logging
from etils import epath
from etils.epath import stat_utils

_MAGIC = frozenset("*?[")
# In a bucket, each request takes a tenth of a second.
_AT_A_TIME = 32
Item = TypeVar("Item")
Result = TypeVar("Result")


def expand(
    patterns: Sequence[str],
    is_left_out: Callable[[str], bool] = lambda path: False,
) -> list[str]:
    """Lists the files that match globs, in the order of the globs.

    A file that different globs match is listed once. The files of a repeated
    glob are repeated. The name of a file or folder that exists is not taken for
    a glob. Files that only a glob names may be left out.
    Raises InputError for a glob without a match, an empty file, or a folder.
    """
    files: list[str] = []
    globs: dict[str, str] = {}  # The first that matches each file.
    for pattern in patterns:
        # File names may contain brackets or stars.
        exists = bool(pattern) and file_systems.find_backend(pattern).exists(
            pattern
        )
        matches = (
            [pattern]
            if exists
            else [x for x in _glob(pattern) if not is_left_out(x)]
        )
        if not matches and _is_link(pattern):
            matches = [pattern]
        if not matches:
            raise InputError(
                f"No file matches. Received: {pattern!r}. Give existing files "
                "or globs, separated by commas"
            )
        again = [x for x in matches if globs.setdefault(x, pattern) != pattern]
        if again:
            logging.warning(
                "Several of the globs match the same files, such as %s. They "
                "are read once.",
                again[0],
            )
        files += [x for x in matches if globs[x] == pattern]
    different = list(globs)
    for file, found in zip(different, at_once(stat, different), strict=True):
        if found.is_directory:
            raise InputError(
                f"{file} is a folder. Give files or a glob, such as "
                f"{file.rstrip('/')}/*"
            )
        input_files.check_can_be_read_again(file)
        if not found.length:
            raise InputError(
                f"{file} is empty: leave it out, or bring back what it held"
            )
    return files


def at_once(
    function: Callable[[str], Result], files: Sequence[str]
) -> list[Result]:
    """Calls a function with each file, for many at a time."""
    with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(function, files))


def size(file: str) -> int:
    """Returns the size of a file in bytes, 0 if it is missing."""
    system = file_systems.find_backend(file)
    return system.stat(file).length if system.exists(file) else 0


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Returns up to `most` items, evenly spaced, with the first and last."""
    if len(items) <= most:
        return list(items)
    return [items[i * (len(items) - 1) // (most - 1)] for i in range(most)]


def _is_link(path: str) -> bool:
    return not file_systems.is_remote(path) and os.path.islink(path)


def stat(file: str) -> stat_utils.StatResult:
    """Returns the size and more of a file; OSError if it is missing."""
    try:
        return file_systems.find_backend(file).stat(file)
    except OSError as error:
        if not _is_link(file):
            raise
        raise file_systems.with_text(
            error,
            f"{file} is a link to what is not there: remove it, or bring back "
            f"what it leads to. Received: {file} -> {os.readlink(file)}",
        ) from error


def _glob(pattern: str) -> list[str]:
    parts = epath.Path(pattern).parts
    fixed = 0
    while fixed < len(parts) and (
        not _MAGIC & set(parts[fixed])
        or epath.Path(*parts[: fixed + 1]).exists()
    ):
        fixed += 1
    if fixed == len(parts):
        return []
    if "**" in pattern:
        raise InputError(
            "`**` is not supported: write one `*` for each level of folders. "
            f"Received: {pattern!r}"
        )
    folder = epath.Path(
        file_systems.glob_escape(os.fspath(epath.Path(*parts[:fixed])))
    )
    return sorted(map(os.fspath, folder.glob("/".join(parts[fixed:]))))
