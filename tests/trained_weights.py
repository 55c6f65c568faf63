"""The checkpoint of a run, without the run."""

import pathlib

from bert_tf.checkpoints import tf1_files

import keras
import numpy as np
import tensorflow as tf


def write(folder: pathlib.Path, model: keras.Model, step: int = 1) -> None:
    """Writes the weights of a model, random ones as they are, as of a step."""
    weights = {v.path: tf.convert_to_tensor(v.value) for v in model.variables}
    prefix = str(folder / f"model.ckpt-{step}")
    tf1_files.write(prefix, {**weights, "global_step": np.int64(step)})
