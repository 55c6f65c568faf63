"""The versions of a model, as TensorFlow Serving finds them.

A model is a folder, and a version a folder in it whose name is its number:
/models/mrpc/3. Whatever else is there TensorFlow Serving leaves alone: a
version that is being written is 4.tmp, beside its lock 4.lock.
"""

import contextlib
import os
from collections.abc import Iterator

from bert_tf import files
from bert_tf.errors import InputError
from bert_tf.storage import file_systems


def numbers(path: str) -> list[int]:
    """Returns the numbers of the versions in a model's folder, in order.

    It raises InputError if the path is that of something else.
    """
    system = file_systems.of(path)
    if not system.exists(path):
        return []
    if not system.isdir(path):
        raise InputError(
            "The folder of a model's versions is needed, and this is a file. "
            f"Received: path={path}"
        )
    # Of folders in buckets some list "3/".
    names = [name.rstrip("/") for name in system.listdir(path)]
    if "saved_model.pb" in names:
        raise InputError(
            "The folder of a model's versions is needed, and this is that of "
            f"a SavedModel. Give the one above it. Received: path={path}"
        )
    return sorted(int(x) for x in names if x.isascii() and x.isdecimal())


@contextlib.contextmanager
def new_version(path: str) -> Iterator[tuple[int, str]]:
    """Yields the next number, and a local folder that becomes that version.

    It becomes it when it is complete, or leaves nothing after an error. Those
    that are there stay as they are. Of processes that write at one time each
    has a number of its own. Raises as `numbers`, and OSError if it can't be
    written.
    """
    number = max(numbers(path), default=0) + 1
    with contextlib.ExitStack() as stack:
        while True:
            new = files.new_folder(os.path.join(path, str(number)))
            try:
                folder = stack.enter_context(new)
                break
            # Another process writes this one, or has written it meanwhile.
            except InputError:
                number += 1
        yield number, folder
