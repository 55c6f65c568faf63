"""Which run a path is of, and what its flags were.

A run keeps its flags in its folder. Its best weights, and each of its
checkpoints, are read as these say.
"""

import os

from bert_tf.checkpoints import best
from bert_tf.storage import kept_flags

import tensorflow as tf


def places(path: str) -> list[str]:
    """Lists the folders whose run a path may be of, the nearest first.

    The path is that of a run, of its `best/`, or of a checkpoint in either.
    """
    folder = path.rstrip("/")
    found = [folder]
    if not tf.io.gfile.isdir(folder):
        folder = os.path.dirname(folder)
        found.append(folder)
    if os.path.basename(folder) == best.FOLDER:
        found.append(os.path.dirname(folder))
    return [place or "." for place in found]


def folder_of(path: str) -> str:
    """Returns the folder of the run that a path is of; "" if of none."""
    for place in places(path):
        if tf.io.gfile.exists(os.path.join(place, kept_flags.FILE)):
            return place
    return ""


def flags_of(path: str) -> dict[str, str]:
    """Returns the flags, as text, of the run that a path is of, if of any."""
    folder = folder_of(path)
    return kept_flags.of_folder(folder) if folder else {}


def lower_cases(path: str) -> bool | None:
    """Whether a run read lower-cased text; None where nothing says it."""
    said = flags_of(path).get("do_lower_case")
    return None if said is None else said == "true"
