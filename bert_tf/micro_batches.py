"""Finds the largest micro-batch that a device has memory for."""

from collections.abc import Callable

from bert_tf import devices, modeling, optimization, training

import keras
import tensorflow as tf
from absl import logging

# Shares of the free memory: the rest is for the framework and for other
# processes. A batch in parts takes twice the estimate (benchmarks/memory.py).
_USABLE = 0.9
_USABLE_IN_PARTS = 0.45


def choose(rows: int, fits: Callable[[int], bool]) -> int:
    """Returns how many micro-batches to cut a replica's batch into.

    Args:
        rows: of the batch of one replica.
        fits: whether there is memory for a micro-batch of so many rows; asked
            about a few divisors of `rows`.
    """
    sizes = [size for size in range(1, rows + 1) if rows % size == 0]
    largest, low, high = None, 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if fits(sizes[middle]):
            largest, low = sizes[middle], middle + 1
        else:
            high = middle
    if largest is None:
        raise ValueError(
            "There is not enough memory to train on one example. Use --remat, "
            "--dtype=bfloat16, shorter sequences or a smaller model. "
            f"Received: --auto_batch_size, {rows} examples per replica"
        )
    logging.info("Micro-batches of %d of %d rows.", largest, rows)
    return rows // largest


def estimated(
    config: modeling.BertConfig,
    batch: int,
    seq: int,
    predictions: int,
    replicas: int,
    dtype: str = "float32",
    remat: bool = False,
    available: float | None = None,
) -> Callable[[int], bool]:
    """Returns a `fits` for CPUs, where running out ends the process.

    Args:
        config: the model's.
        batch: rows of one replica's batch.
        seq: tokens per sequence.
        predictions: masked words per sequence.
        replicas: how many share the memory.
        dtype: of the activations.
        remat: whether layers are computed again in the backward pass.
        available: bytes; by default what is free now.
    """
    free = devices.available_memory() if available is None else available

    def fits(rows):
        memory = devices.training_memory(
            config, rows, seq, predictions, dtype, remat, batch // rows
        )
        usable = _USABLE if rows == batch else _USABLE_IN_PARTS
        return replicas * memory.total <= usable * free

    return fits


def tried(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    optimizer: optimization.Optimizer,
    objective: training.Objective,
    dataset: tf.distribute.DistributedDataset,
) -> Callable[[int], bool]:
    """Returns a `fits` that computes gradients and sees if memory runs out.

    Nothing is updated.
    """
    batch = next(iter(dataset))

    def fits(rows):
        @tf.function(autograph=False)
        def attempt(batch):
            def replica(batch):
                whole = batch["row_weights"].shape[0]
                # Two parts, where the batch has so many: the gradients of the
                # first are kept while the second is computed.
                count = 1 if rows == whole else 2
                part = {name: x[: rows * count] for name, x in batch.items()}
                gradients, _ = training.add_up(
                    lambda i, x: training.gradients_and_sums(
                        model,
                        optimizer,
                        objective,
                        x,
                        objective.weights(x),
                        tf.stack([i, 0]),
                    ),
                    part,
                    count,
                )
                return tf.linalg.global_norm(gradients)

            return strategy.run(replica, (batch,))

        try:
            results = strategy.experimental_local_results(attempt(batch))
            for result in results:
                result.numpy()  # Waits: errors of GPUs come late.
        except tf.errors.ResourceExhaustedError:
            return False
        return True

    return fits
