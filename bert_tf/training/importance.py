"""The importance of each layer and each feed-forward unit for the loss.

A gate is a factor of 1 for each row of a batch. The gate of a unit multiplies
the output of its activation: at 0 the unit is removed. The gate of a layer
multiplies the change that the layer makes, x + gate * (layer(x) - x): at 0 the
layer is removed. (The change includes its layer norms, so a layer whose two
output kernels are zero is not removed: it still normalizes.) To first order,
removing a unit or layer changes the loss of a row by the derivative with
respect to its gate. The importance is the mean absolute derivative over rows
(Michel et al., 2019, https://arxiv.org/abs/1905.10650, equation 2):

    importance = mean over rows of |d loss of the row / d gate|

Derivatives are taken row by row, as in the paper. If they were summed over a
batch first, rows that pull in opposite directions would cancel, as they do
after training, and the result would depend on the batch size.

Shapes as in modeling.py; K: blocks with their own weights, which is L unless
layers share weights.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bert_tf import modeling, phases
from bert_tf.encoders import layers
from bert_tf.errors import InputError
from bert_tf.training import distribution, loop

import keras
import numpy as np
import tensorflow as tf

# (model, batch) -> the summed losses of its rows, a float32 scalar.
Loss = Callable[[keras.Model, loop.Batch], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Importance:
    """Importance of a model's layers, [L], and units, [K, F], in float64."""

    layers: np.ndarray
    units: np.ndarray


def most_important(values: np.ndarray, count: int) -> tuple[int, ...]:
    """Returns the indices of the largest values, ascending; first on ties."""
    order = np.argsort(-values, kind="stable")[:count]
    return tuple(sorted(map(int, order)))


def measure(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    loss: Loss,
    dataset: tf.distribute.DistributedDataset,
    rows: int,
) -> Importance:
    """Measures layers and units in one pass over a dataset of `rows` rows.

    The loss of a row must not depend on other rows, and rows that fill batches
    must have weight 0. Raises InputError if the class of a layer is unknown.
    """
    _check_known(model.bert.encoder)

    @tf.function(autograph=False)
    def step(batch):
        def replica(batch):
            context = tf.distribute.get_replica_context()
            found = _sums(model, loss, batch)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, found)

        values = distribution.run(strategy, replica, [batch])
        return loop.first_replica(strategy, values)

    # Trace with the dataset's shapes: the shapes of single batches may differ.
    step = step.get_concrete_function(dataset.element_spec)
    phase = phases.Phase("Measuring", "batches")
    total: Sequence[Any] = (0.0, 0.0)
    with (
        distribution.left_together(strategy),
        distribution.cluster_watched(),
    ):
        for batch in dataset:
            found = step(batch)
            # float32 would lose precision over many rows.
            total = [
                t + np.float64(x) for t, x in zip(total, found, strict=True)
            ]
            phase.add()
    phase.finish()
    return Importance(*(x / rows for x in total))


def _sums(
    model: keras.Model, loss: Loss, batch: loop.Batch
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns absolute derivatives, summed over rows: [L] and [K, F]."""
    encoder, config = model.bert.encoder, model.bert.config
    blocks = _blocks(encoder)
    rows = tf.shape(batch["row_weights"])[0]
    whole = tf.ones([len(encoder.layers), rows])  # [L, B]
    units = tf.ones([len(blocks), rows, config.intermediate_size])  # [K, B, F]
    # Only gates need gradients, not the weights.
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([whole, units])
        with _gated(encoder, whole, units):
            value = loss(model, batch)
    of_whole, of_units = tape.gradient(value, [whole, units])
    return (
        tf.reduce_sum(tf.abs(of_whole), axis=1),
        tf.reduce_sum(tf.abs(of_units), axis=1),
    )


# ---- Gates ------------------------------------------------------------------


def _blocks(encoder: modeling.Encoder) -> list[layers.TransformerLayer]:
    """Returns the distinct layers in the order of their first use."""
    return list({id(layer): layer for layer in encoder.layers}.values())


@contextlib.contextmanager
def _gated(
    encoder: modeling.Encoder, whole: tf.Tensor, units: tf.Tensor
) -> Iterator[None]:
    """Makes an encoder use these gates, [L, B] and [K, B, F], inside."""
    before = encoder.layers
    places = {id(layer): i for i, layer in enumerate(_blocks(encoder))}
    gated = [
        _Gated(layer, whole[i], units[places[id(layer)]])
        for i, layer in enumerate(before)
    ]
    # Bypass Keras, whose lists of layers and variables must not change.
    object.__setattr__(encoder, "layers", gated)
    try:
        yield
    finally:
        object.__setattr__(encoder, "layers", before)


class _Gated:
    """A layer with a gate for itself, [B], and for its units, [B, F]."""

    def __init__(
        self, layer: layers.TransformerLayer, whole: tf.Tensor, units: tf.Tensor
    ):
        self._layer = layer
        self._whole = whole[:, tf.newaxis, tf.newaxis]  # [B, 1, 1]
        self._units = units[:, tf.newaxis]  # [B, 1, F]

    def __call__(self, x, dropout_seed, layout):
        """Runs TransformerLayer.call, one sequence a row, without dropout."""
        del dropout_seed
        y = self._layer.attention(x, None, layout=layout)  # [B, S or R, D]
        units = self._layer.intermediate(y)  # [B, S or R, F]
        units *= tf.cast(self._units, units.dtype)
        y = self._layer.residual(units, y, None)  # [B, S or R, D]
        # With a gate of 1 the output is exactly the layer's output.
        gate = tf.cast(self._whole - 1, y.dtype)
        return y + gate * (y - layout.queries(x))


def _check_known(encoder: modeling.Encoder) -> None:
    """Raises InputError if a layer's computation is not the gated one."""
    for layer in encoder.layers:
        if type(layer).call is not layers.TransformerLayer.call:
            raise InputError(
                "The importance of layers and units is known of layers that "
                "compute as BERT's, and these are of a class of their own. "
                f"Received: {type(layer).__name__}"
            )
