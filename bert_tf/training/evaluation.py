"""Applies a model to a finite dataset: evaluation and prediction."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from bert_tf import phases
from bert_tf.errors import InputError
from bert_tf.training import distribution, loop

import keras
import numpy as np
import tensorflow as tf


def make_evaluate(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    objective: loop.Objective,
) -> Callable[..., loop.Scalars]:
    """Returns a function that evaluates a model, traced once for all calls.

    It takes a dataset and, if known, its number of batches, and returns the
    mean of each of the objective's metrics.
    """

    @tf.function(autograph=False)
    def step(batch):
        def replica(batch):
            values = (
                objective.weights(batch),
                objective.sums(model, batch, None),
            )
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, values)

        values = distribution.run(strategy, replica, [batch])
        return loop.first_replica(strategy, values)

    def means(dataset, batches=None):
        total = before = None
        with (
            distribution.left_together(strategy),
            distribution.cluster_watched(),
        ):
            for batch in phases.tracked(
                dataset, "Evaluating", "batches", batches
            ):
                # Accelerators compute this batch while the host waits for the
                # previous one.
                values, before = before, step(batch)
                total = _sum(total, values)
        if before is None:
            raise InputError("There are no records to evaluate on.")
        weights, sums = _sum(total, before)
        return loop.divide(objective, sums, weights)

    return means


def _sum(total: Any, values: Any) -> Any:
    """Adds the values of a batch to a total, which starts as None."""
    if values is None:
        return total
    # float32 would lose precision over a long evaluation.
    values = tf.nest.map_structure(np.float64, values)
    if total is None:
        return values
    return tf.nest.map_structure(lambda a, b: a + b, total, values)


def predict(
    strategy: tf.distribute.Strategy,
    function: Callable[[loop.Batch], dict[str, tf.Tensor]],
    dataset: tf.distribute.DistributedDataset,
) -> Iterator[dict[str, np.ndarray]]:
    """Applies a function to a finite dataset, batch by batch, in order.

    The function maps a replica's batch to {name: [rows, ...]} and is traced
    once for all its datasets. Yields the outputs of each global batch, without
    the rows that fill batches.
    """
    step = _predict_step(strategy, function)
    # Trace with the dataset's shapes: the shapes of single batches may differ.
    step = step.get_concrete_function(dataset.element_spec)
    with (
        distribution.left_together(strategy),
        distribution.cluster_watched(),
    ):
        for batch in dataset:
            values = {name: x.numpy() for name, x in step(batch).items()}
            real = values.pop("row_weights") > 0
            yield {name: value[real] for name, value in values.items()}


@functools.lru_cache(maxsize=2)
def _predict_step(
    strategy: tf.distribute.Strategy,
    function: Callable[[loop.Batch], dict[str, tf.Tensor]],
) -> tf.types.experimental.PolymorphicFunction:
    @tf.function(autograph=False)
    def step(batch):
        def replica(batch):
            return function(batch) | {"row_weights": batch["row_weights"]}

        values = distribution.run(strategy, replica, [batch])
        return {
            name: strategy.gather(value, axis=0)
            for name, value in values.items()
        }

    return step
