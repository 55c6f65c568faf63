"""Finds the run that a path belongs to, and reads its saved flags.

The flags are in the run's folder. They determine how the run's checkpoints,
including the best one, are read.
"""

import contextlib
import glob
import os
import shutil

from bert_tf import files
from bert_tf.checkpoints import best, tf1_files
from bert_tf.errors import InputError
from bert_tf.storage import kept_flags

import tensorflow as tf


def places(path: str) -> list[str]:
    """Lists the folders of runs a path may belong to, the nearest first.

    The path is a run, its `best/`, or a checkpoint in either.
    """
    folder = path.rstrip("/")
    found = [folder]
    if not tf.io.gfile.isdir(folder):
        folder = os.path.dirname(folder)
        found.append(folder)
    if (run := best.run_of(folder)) is not None:
        found.append(run)
    return [place or "." for place in found]


def folder_of(path: str) -> str:
    """Returns the folder of the run that a path belongs to; "" if no run."""
    # TensorFlow has no file system for preset addresses.
    with contextlib.suppress(tf.errors.UnimplementedError):
        if not any(map(tf.io.gfile.exists, (path, f"{path}.index"))):
            return ""  # a preset's name
        for place in places(path):
            if tf.io.gfile.exists(os.path.join(place, kept_flags.FILE)):
                return place
    return ""


def flags_of(path: str) -> dict[str, str]:
    """Returns the training flags, as text, of the run a path belongs to.

    Empty without a run, and for flags.txt of an evaluation: next to the
    original's weights it does not describe how they were trained.
    """
    folder = folder_of(path)
    found = kept_flags.of_folder(folder) if folder else {}
    return {} if found.get("do_train") == "false" else found


_BOOLEANS = {
    **dict.fromkeys(("true", "t", "1", ""), True),
    **dict.fromkeys(("false", "f", "0"), False),
}


def lower_cases(path: str) -> bool | None:
    """Whether a run reads lower-cased text; None if unknown."""
    said = flags_of(path).get("do_lower_case")
    if said is None:
        return None
    if said.lower() not in _BOOLEANS:
        place = os.path.join(folder_of(path), kept_flags.FILE)
        raise InputError(
            f"{place}, which keeps the flags of the run, is wrong: "
            "--do_lower_case is true or false. Bring it back as it was. "
            f"Received: do_lower_case={said}"
        )
    return _BOOLEANS[said.lower()]


def tidy(folder: str, keeps_best: bool, keeps_last: bool) -> None:
    """Removes a run's records, and its weights unless they are kept."""
    for path in glob.glob(f"{glob.escape(folder)}/*.tf_record"):
        os.remove(path)
    files.remove_leftovers(folder, ["*.tf_record"])
    for path in glob.glob(f"{glob.escape(folder)}/records.tmp*"):
        shutil.rmtree(path)  # Left by a killed process.
    if not keeps_best:
        shutil.rmtree(os.path.join(folder, best.FOLDER), ignore_errors=True)
    if not keeps_last:
        for prefix in tf1_files.numbered(folder).values():
            tf1_files.remove(prefix)
