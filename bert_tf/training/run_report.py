"""Log lines about a run: model, devices, data and folder; then its end."""

import math
import shlex
from typing import NamedTuple

from bert_tf import phases
from bert_tf.errors import counted
from bert_tf.training import distribution

import keras
import tensorflow as tf
from absl import logging


class Replicas(NamedTuple):
    """How many replicas compute a step, and the kind of their devices."""

    number: int
    kind: str


def replicas_of(strategy: tf.distribute.Strategy) -> Replicas:
    """Returns the replicas of a strategy."""
    kind = "CPU" if distribution.is_cpu(strategy) else "GPU"
    if distribution.is_tpu(strategy):
        kind = "TPU"
    return Replicas(strategy.num_replicas_in_sync, kind)


def log_model(replicas: Replicas, model: keras.Model, rows: int) -> None:
    """Logs the size of the model and the devices that compute it.

    Args:
        replicas: The replicas of the run.
        model: The model to train.
        rows: Sequences that a replica computes at a time.
    """
    parameters = sum(math.prod(v.shape) for v in model.trainable_variables)
    logging.info("Model: %s.", counted(parameters, "parameter"))
    logging.info(
        "Devices: %s, %s at a time per replica, %s.",
        counted(replicas.number, f"{replicas.kind} replica"),
        counted(rows, "sequence"),
        model.compute_dtype,
    )


def log_plan(
    examples: int | None, start: int, stop: int, batch_size: int, folder: str
) -> None:
    """Logs what is trained, for how long, and where the results are.

    Args:
        examples: How many there are; None where their number is not known.
        start: The step to start from.
        stop: The step to end at.
        batch_size: Sequences or examples per step, over all replicas.
        folder: The output folder.
    """
    steps = counted(stop - start, "step")
    if start:
        steps += f" from step {start:,} to {stop:,}"
    parts = [steps, f"batch size {batch_size:,}"]
    if examples:
        epochs = f"{stop * batch_size / examples:.3g}"
        parts += [
            counted(examples, "example"),
            f"{epochs} epoch{'s' * (epochs != '1')}",
        ]
    logging.info("Training: %s.", ", ".join(parts))
    logging.info("Output: %s", folder)
    logging.info(
        "Curves: tensorboard --logdir=%s (needs the extra tensorboard)",
        shlex.quote(folder),
    )


def log_end(steps: int, seconds: float, folder: str) -> None:
    """Logs what was trained, how long it took, and where the weights are."""
    logging.info(
        "Trained %s in %s. The weights are in %s.",
        counted(steps, "step"),
        phases.duration(seconds),
        folder,
    )
