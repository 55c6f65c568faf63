"""Checks that the disk has room for the checkpoints of a run."""

import math
import os
import shutil
from typing import Any

from bert_tf.checkpoints import tf1_files
from bert_tf.training import training_state


def check_checkpoints(
    folder: str, state: training_state.TrainState, saves: int
) -> None:
    """Raises OSError if the disk has too little room for a run's checkpoints.

    The run needs room for its newest checkpoints, one more that is being
    written, and twice the weights alone for the best checkpoint: a new one is
    complete before the old one is deleted.
    """
    free = _free(folder)
    if free is None:
        return
    weights = sum(_size(variable) for variable in state.model.variables)
    whole = sum(_size(variable) for variable in state.variables.values())
    there = len(tf1_files.numbered(folder))
    more = max(0, min(state.keep, there + saves) - there) + 1
    needed = more * whole + 2 * weights
    if needed > free:
        raise OSError(
            f"The disk of {folder} has {_spelt(free)} free, and the "
            f"checkpoints of this run need {_spelt(needed)}: {more} of "
            f"{_spelt(whole)} each, and the best. Free some, choose "
            "another --output_dir or lower --keep_checkpoint_max. "
            f"Received: keep_checkpoint_max={state.keep}"
        )


def _spelt(size: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit / 10:
            return f"{size / unit:.2f} {name}"
    return f"{size:,} bytes"


def _size(variable: Any) -> int:
    return 4 * math.prod(variable.shape)


def _free(folder: str) -> int | None:
    """Free bytes on the disk of a folder, which may be new; None: a bucket."""
    if "://" in folder:
        return None
    folder = os.path.abspath(folder)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free
