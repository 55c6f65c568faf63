"""Checkpoints of runs: writes, reads and compares them."""

import pathlib

from bert_tf.checkpoints import tf1_files

import keras
import numpy as np
import tensorflow as tf


def write(folder: pathlib.Path, model: keras.Model, step: int = 1) -> None:
    """Writes the weights of a model, as a checkpoint of a step."""
    weights = {v.path: tf.convert_to_tensor(v.value) for v in model.variables}
    prefix = str(folder / f"model.ckpt-{step}")
    tf1_files.write(prefix, {**weights, "global_step": np.int64(step)})


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads a checkpoint, or the last one of a folder."""
    prefix = tf1_files.find(str(path))
    return tf1_files.read(prefix, list(tf1_files.shapes(prefix)))


def drop_last(folder: pathlib.Path, steps: int = 1) -> int:
    """Removes the last checkpoints of a run, as if it had been killed earlier.

    Args:
        folder: The output folder.
        steps: The number of checkpoints to remove.

    Returns:
        The step of the last checkpoint that is left.
    """
    for prefix in list(tf1_files.numbered(str(folder)).values())[-steps:]:
        tf1_files.remove(prefix)
    return max(tf1_files.numbered(str(folder)))


def assert_same(
    found: pathlib.Path, expected: pathlib.Path, tolerance: float = 0.0
) -> None:
    """Asserts that two checkpoints, or the last of folders, are equal."""
    ours, theirs = read(found), read(expected)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_allclose(
            ours[name], value, rtol=0, atol=tolerance, err_msg=name
        )
