"""How much the loss hangs on each layer, and on each feed-forward unit.

A gate is a factor of 1, one for each row of a batch. That of a unit stands
behind its activation: at 0 the unit is gone. That of a layer multiplies what
the layer changes, x + gate * (layer(x) - x): at 0 the layer is gone. (Its layer
norms are in it. So a layer whose two output kernels are zero is not gone: it
normalizes still.) To first order the loss of a row changes by its derivative by
the gate when what is behind it goes, and the importance is the mean of its size
over rows (Michel et al., 2019, https://arxiv.org/abs/1905.10650, equation 2):

    importance = mean over rows of |d loss of the row / d gate|

It is taken row by row, as there. Summed over a batch first, rows that pull in
opposite directions would cancel, as they do where training has ended, and the
result would hang on the batch size.

Shapes as in modeling.py; K: blocks with weights of their own, L of them unless
layers share theirs.
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
    """Of the layers of a model, [L], and of its units, [K, F], in float64."""

    layers: np.ndarray
    units: np.ndarray


def most_important(values: np.ndarray, count: int) -> tuple[int, ...]:
    """Returns where the largest values are, ascending; ties to the first."""
    order = np.argsort(-values, kind="stable")[:count]
    return tuple(sorted(map(int, order)))


def measure(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    loss: Loss,
    dataset: tf.distribute.DistributedDataset,
    rows: int,
) -> Importance:
    """Measures both in one pass over a finite dataset of so many rows.

    The loss of a row must hang on no other row, and rows that fill batches must
    have none: their weight is 0. It raises InputError for layers of which it is
    not known what is in them.
    """
    _check_known(model.bert.encoder)

    @tf.function(autograph=False)
    def step(batch):
        def replica(batch):
            context = tf.distribute.get_replica_context()
            found = _sums(model, loss, batch)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, found)

        return loop.first_replica(strategy, strategy.run(replica, (batch,)))

    # By the dataset's shapes: those of its batches differ where they are cut.
    step = step.get_concrete_function(dataset.element_spec)
    phase = phases.Phase("Measuring", "batches")
    total: Sequence[Any] = (0.0, 0.0)
    with (
        distribution.left_together(strategy),
        distribution.cluster_watched(),
    ):
        for batch in dataset:
            found = step(batch)
            # Over many rows float32 would not hold the sums.
            total = [
                t + np.float64(x) for t, x in zip(total, found, strict=True)
            ]
            phase.add()
    phase.finish()
    return Importance(*(x / rows for x in total))


def _sums(
    model: keras.Model, loss: Loss, batch: loop.Batch
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sizes of derivatives, summed over rows: [L] and [K, F]."""
    encoder, config = model.bert.encoder, model.bert.config
    blocks = _blocks(encoder)
    rows = tf.shape(batch["row_weights"])[0]
    whole = tf.ones([len(encoder.layers), rows])  # [L, B]
    units = tf.ones([len(blocks), rows, config.intermediate_size])  # [K, B, F]
    # Of gates only: the weights need no gradients.
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
    """Returns the layers, each once, in the order in which they first stand."""
    return list({id(layer): layer for layer in encoder.layers}.values())


@contextlib.contextmanager
def _gated(
    encoder: modeling.Encoder, whole: tf.Tensor, units: tf.Tensor
) -> Iterator[None]:
    """An encoder computes with these gates, [L, B] and [K, B, F]."""
    before = encoder.layers
    places = {id(layer): i for i, layer in enumerate(_blocks(encoder))}
    gated = [
        _Gated(layer, whole[i], units[places[id(layer)]])
        for i, layer in enumerate(before)
    ]
    # Without a word to Keras, whose lists of layers and variables stay.
    object.__setattr__(encoder, "layers", gated)
    try:
        yield
    finally:
        object.__setattr__(encoder, "layers", before)


class _Gated:
    """A layer, and the gates of it, [B], and of its units, [B, F]."""

    def __init__(
        self, layer: layers.TransformerLayer, whole: tf.Tensor, units: tf.Tensor
    ):
        self._layer = layer
        self._whole = whole[:, tf.newaxis, tf.newaxis]  # [B, 1, 1]
        self._units = units[:, tf.newaxis]  # [B, 1, F]

    def __call__(self, x, dropout_seed, layout):
        """As TransformerLayer.call, with sequences as rows; no dropout."""
        del dropout_seed
        y = self._layer.attention(x, None, layout=layout)  # [B, S or R, D]
        units = self._layer.intermediate(y)  # [B, S or R, F]
        units *= tf.cast(self._units, units.dtype)
        y = self._layer.residual(units, y, None)  # [B, S or R, D]
        # The output as it is, to the last bit, where the gate is 1.
        gate = tf.cast(self._whole - 1, y.dtype)
        return y + gate * (y - layout.queries(x))


def _check_known(encoder: modeling.Encoder) -> None:
    """Raises InputError if a layer does something else than we gate."""
    for layer in encoder.layers:
        if type(layer).call is not layers.TransformerLayer.call:
            raise InputError(
                "The importance of layers and units is known of layers that "
                "compute as BERT's, and these are of a class of their own. "
                f"Received: {type(layer).__name__}"
            )
