"""Numbered versions of a model, in the layout of TensorFlow Serving.

A model is a folder, and a version is a folder in it with a number as its name:
/models/mrpc/3. TensorFlow Serving ignores other names: a version that is being
written is 4.tmp, next to its lock 4.lock.
"""

import contextlib
import os
from collections.abc import Iterator

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, written_files


def numbers(path: str) -> list[int]:
    """Returns the sorted version numbers in a model's folder.

    Raises InputError if the path is something else.
    """
    system = file_systems.find_backend(path)
    if not system.exists(path):
        return []
    if not system.isdir(path):
        raise InputError(
            "The folder of a model's versions is needed, and this is a file. "
            f"Received: path={path}"
        )
    # Some buckets list folders as "3/".
    names = [name.rstrip("/") for name in system.listdir(path)]
    if written_files.GRAPH in names:
        raise InputError(
            "The folder of a model's versions is needed, and this is that of "
            f"a SavedModel. Give the one above it. Received: path={path}"
        )
    return sorted(int(x) for x in names if x.isascii() and x.isdecimal())


@contextlib.contextmanager
def new_version(path: str) -> Iterator[tuple[int, str]]:
    """Yields the next number, and a local folder that becomes that version.

    The version appears when it is complete; after an error, nothing is left.
    Existing versions are unchanged. Concurrent processes get different numbers.
    Raises the errors of `numbers`, and OSError if it can't be written.
    """
    number = max(numbers(path), default=0) + 1
    with contextlib.ExitStack() as stack:
        while True:
            new = files.new_folder(os.path.join(path, str(number)))
            try:
                folder = stack.enter_context(new)
                break
            # Another process is writing this version, or has written it.
            except InputError:
                number += 1
        yield number, folder
