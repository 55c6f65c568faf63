"""Checkpoints: explicit names, in the original's TF1 format.

Our checkpoints have the original's format: the variables of the model and the
optimizer under their released names, and `global_step`, together with the
position in the data. A checkpoint is renamed when it is complete, so a crash
leaves no partial checkpoint.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import files, optimization
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files, run_lock

import numpy as np
import tensorflow as tf
from absl import logging

# The released checkpoints, and those that are converted.
PREFIX = "bert_model.ckpt"
GLOBAL_STEP = "global_step"
RECORDS = "data_position/records"
SEED = "data_position/seed"
SINCE_LINE = "since_line/"
# Prefix of the variables that an objective trains in addition to the model.
OF_OBJECTIVES = "objective/"
# Suffix of checkpoints that are set aside.
_UNREADABLE = ".unreadable"
# State of a run in addition to weights and moments.
_STATE = re.compile(
    r"^global_step$|^data_position/|^loss_scale/|^"
    + "|^".join((SINCE_LINE, OF_OBJECTIVES))
)


class UnreadableError(InputError):
    """A checkpoint is truncated, corrupt or not all there."""


# ---- Files ------------------------------------------------------------------


def write(
    prefix: str,
    tensors: Mapping[str, Any],
    write_beside: Callable[[], None] = lambda: None,
) -> None:
    """Writes tensors by name in TF1 format, whole or not at all.

    `write_beside` is called when they are written and lack their names only. It
    raises OSError if the disk is full, or the like.
    """
    run_lock.check_held()
    temporary = f"{prefix}.tmp"
    names = sorted(tensors)
    # Of a process that was killed: TensorFlow's names are new each time.
    _remove_all(_begins_with(temporary))
    try:
        with files.naming(prefix, temporary):
            tf.raw_ops.SaveV2(
                prefix=temporary,
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[tf.convert_to_tensor(tensors[name]) for name in names],
            )
            write_beside()
            # The index comes last: without it there is no checkpoint.
            for ending in (".data-00000-of-00001", ".index"):
                tf.io.gfile.rename(
                    temporary + ending, prefix + ending, overwrite=True
                )
    except BaseException:
        _remove_all(_begins_with(temporary))
        if not tf.io.gfile.exists(prefix + ".index"):
            _remove_all(_begins_with(f"{prefix}.data-"))
        raise


def _begins_with(path: str, ending: str = "") -> list[str]:
    """Returns the paths that begin with `path`, and end with `ending`."""
    found = tf.io.gfile.glob(f"{file_systems.glob_escape(path)}*{ending}")
    if os.path.dirname(path):
        return found
    # In the working directory, TensorFlow finds ./NAME.
    return [os.path.basename(name) for name in found]


def _remove_all(paths: Iterable[str]) -> None:
    """Removes half-written files; errors here would hide the first error."""
    _remove_each(tf.io.gfile.remove, paths, "Half-written checkpoints")


def read(prefix: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Reads tensors by name, checking their checksums."""
    with _explained(prefix) as path:
        reader = tf.train.load_checkpoint(path)
        return {name: reader.get_tensor(name) for name in names}


def shapes(prefix: str) -> dict[str, tuple[int, ...]]:
    """Returns the name and shape of every tensor in a checkpoint."""
    with _explained(prefix) as path:
        return {n: tuple(s) for n, s in tf.train.list_variables(path)}


def is_weight(name: str) -> bool:
    """Says whether a tensor is the model's, not the optimizer's or a step."""
    return not (is_state(name) or optimization.slot_of(name))


def is_state(name: str) -> bool:
    """Says whether a tensor is a run's own, and no model's.

    That is its step, data position, loss scale, what its objective trains.
    """
    return bool(_STATE.search(name))


_NOT_OF_THE_FILE = (
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnauthenticatedError,
    tf.errors.UnavailableError,
)


@contextlib.contextmanager
def _explained(prefix: str) -> Iterator[str]:
    """Yields a checkpoint's prefix for TensorFlow's reader.

    TensorFlow's errors about a bad file become UnreadableError.
    Others stay: a network that is down must not cost the newest checkpoint.
    """
    paths = files_of(prefix)
    for path in paths:
        input_files.check_can_be_read_again(path)
    links = prefix
    try:
        with file_systems.not_as_glob(prefix, paths) as links:
            yield links
    except _NOT_OF_THE_FILE:
        raise
    # A checksum that does not match comes as a plain OpError, missing bytes
    # come as an IndexError.
    except (tf.errors.OpError, IndexError) as error:
        plain = next(filter(None, map(not_weights, paths)), None)
        reason = getattr(error, "message", str(error)).replace(links, prefix)
        raise UnreadableError(
            plain
            or f"The checkpoint {prefix} can't be read, it is truncated, "
            f"corrupt or not all there: {reason}. If it was copied or "
            "downloaded, do so again."
        ) from error


def not_weights(path: str) -> str | None:
    """Says what a file is, if it plainly is none of what it is taken for."""
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path, "rb") as file:
        start = file.read(64)
    problem = input_files.explain(start)
    if not problem:
        return None
    again = " Copy or download it again." * (not start)
    return f"{path} can't be read: {problem}.{again}"


def find(path: str) -> str:
    """Returns the prefix of the checkpoint that `path` means.

    The path is a prefix, one of its files, or a folder, whose newest counts.
    """
    if tf.io.gfile.isdir(path):
        prefix = latest(path) or _only(path)
    else:
        prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)
    if not tf.io.gfile.exists(prefix + ".index"):
        data = _data_files(prefix)
        raise InputError(
            f"There is no checkpoint {path}: {prefix}.index does not exist. "
            "A checkpoint is named by its prefix, such as "
            ".../bert_model.ckpt, or by its folder; a Hugging Face model by "
            "its folder."
            + (" Its data is there: copy the index, too." if data else "")
        )
    _check_data(prefix)
    return prefix


def files_of(prefix: str) -> list[str]:
    """Returns the files of a checkpoint."""
    return [f"{prefix}.index", *_data_files(prefix)]


def _data_files(prefix: str) -> list[str]:
    found = _begins_with(f"{prefix}.data-")
    return [p for p in found if re.search(r"\.data-\d+-of-\d+$", p)]


def _check_data(prefix: str) -> None:
    """Raises InputError unless all files are there that hold the tensors."""
    found = _data_files(prefix)
    counts = {int(path.rpartition("-of-")[2]) for path in found} or {1}
    wanted = [
        [f"{prefix}.data-{i:05d}-of-{count:05d}" for i in range(count)]
        for count in sorted(counts)
    ]
    missing = [[p for p in paths if p not in found] for paths in wanted]
    if all(missing):
        state = "not all of its" if found else "no"
        raise InputError(
            f"The checkpoint {prefix} has an index but {state} data: "
            f"{missing[0][0]} does not exist. Copy or download it, too."
        )


def _only(folder: str) -> str:
    """Returns the prefix of bert_model.ckpt, or of the only checkpoint."""
    paths = _begins_with(os.path.join(folder, ""), ".index")
    found = [path.removesuffix(".index") for path in paths]
    # Of a process that was killed while it wrote.
    found = [path for path in found if not path.endswith((".tmp", _UNREADABLE))]
    released = os.path.join(folder, PREFIX)
    if released in found:
        return released
    if not found:
        data = _begins_with(os.path.join(folder, ""), ".data-*")
        raise InputError(
            f"The folder {folder} holds no checkpoint: neither "
            "model.ckpt-STEP.index nor bert_model.ckpt.index."
            + (f" {min(data)} is there: copy its index, too." if data else "")
        )
    if len(found) > 1:
        raise InputError(
            f"The folder {folder} holds several checkpoints. Name one of "
            f"them: {', '.join(sorted(found))}."
        )
    return found[0]


def numbered(folder: str) -> dict[int, str]:
    """Returns step -> prefix of the folder's checkpoints, oldest first."""
    found = {}
    for path in _begins_with(os.path.join(folder, "model.ckpt-"), ".index"):
        match = re.search(r"model\.ckpt-(\d+)\.index$", path)
        if match:
            found[int(match.group(1))] = path.removesuffix(".index")
    return dict(sorted(found.items()))


def latest(folder: str) -> str | None:
    """Returns the prefix of the newest checkpoint in a folder, or None."""
    found = numbered(folder)
    return found[max(found)] if found else None


def write_state(folder: str, prefixes: Sequence[str]) -> None:
    """Writes the file `checkpoint`, by which TensorFlow finds the newest."""
    names = [os.path.basename(prefix) for prefix in prefixes]
    lines = [f'model_checkpoint_path: "{names[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    files.write_lines(os.path.join(folder, "checkpoint"), lines)


def set_aside(prefix: str) -> None:
    """Gives a checkpoint that can't be read a name that nothing looks for."""
    # The index last: without it the rest would be taken for a leftover.
    for path in sorted(
        _begins_with(f"{prefix}."),
        key=lambda path: path.endswith(".index"),
    ):
        to = f"{prefix}{_UNREADABLE}{path.removeprefix(prefix)}"
        tf.io.gfile.rename(path, to, overwrite=True)


def remove(prefix: str) -> None:
    """Deletes a checkpoint."""
    # The index first: without it the rest is no checkpoint.
    for path in sorted(
        _begins_with(f"{prefix}."),
        key=lambda path: not path.endswith(".index"),
    ):
        tf.io.gfile.remove(path)


def remove_old(prefixes: Sequence[str]) -> None:
    """Deletes checkpoints that a newer one replaces; warns if any remain."""
    _remove_each(remove, prefixes, "Old checkpoints")


def _remove_each(
    remove_one: Callable[[str], None], paths: Iterable[str], noun: str
) -> None:
    """Removes each path, and warns in one line of those that remain."""
    reasons = {}
    for path in paths:
        try:
            remove_one(path)
        # A bucket that retains its objects, for example.
        except (OSError, tf.errors.OpError) as error:
            folder, name = os.path.split(path)
            text = getattr(error, "message", None) or str(error)
            reasons[name] = text.replace(f"{folder}/", "")
    if reasons:
        name, reason = next(iter(reasons.items()))
        logging.warning(
            "%s that could not be removed: %d. The first is %s: %s",
            noun,
            len(reasons),
            name,
            reason,
        )


def remove_leftovers(folder: str, names: Sequence[str] = ()) -> None:
    """Deletes half-written checkpoints, and half-written files of `names`."""
    checkpoints = os.path.join(folder, "model.ckpt-")
    left = dict.fromkeys(_begins_with(checkpoints, ".tmp*"))
    # Without an index they are none, and nothing counts or removes them.
    for path in _begins_with(checkpoints, ".data-*"):
        if not tf.io.gfile.exists(path.rpartition(".data-")[0] + ".index"):
            left[path] = None
    _remove_all(left)
    files.remove_leftovers(folder, ["checkpoint", *names])
