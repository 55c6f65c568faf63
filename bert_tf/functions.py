"""Functions of tensors that the layers are made of.

Their gradients are written out where that saves passes over memory. Shapes:
- B: batch       S: sequence length     D: hidden size
- R: places whose output is read        V: vocabulary
"""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf


@tf.custom_gradient
def gelu(x: tf.Tensor) -> tf.Tensor:
    """The tanh form of GELU, as the original (Hendrycks & Gimpel, 2016).

    The gradient is written out: automatic differentiation of the formula
    makes twice as many passes over the largest activation of the model.
    """
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    tanh = tf.tanh(scale * x * (1 + cubic * square))

    def gradient(dy):
        slope = (1 - tanh * tanh) * x * (1 + 3 * cubic * square)
        return dy * (0.5 + 0.5 * (tanh + scale * slope))

    return 0.5 * x * (1 + tanh), gradient


def activation(name: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns the function that a config calls `name`."""
    known = {
        "gelu": gelu,
        "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
        "relu": tf.nn.relu,
        "tanh": tf.tanh,
        "linear": tf.identity,
    }
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"`hidden_act` must be one of {', '.join(known)}. "
            f"Received: hidden_act={name!r}"
        )
    return known[name]


def dropout(x: tf.Tensor, rate: float, seed: tf.Tensor | None) -> tf.Tensor:
    """Zeroes a share `rate` of `x` and scales up the rest."""
    if seed is None or rate == 0:
        return x
    # Comparing raw 32-bit integers saves the conversion to floats. [-2^31, ..)
    bits = tf.random.stateless_uniform(
        tf.shape(x), seed, minval=None, maxval=None, dtype=tf.int32
    )
    keep = bits >= round(rate * 2**32) - 2**31
    return x * (tf.cast(keep, x.dtype) * (1 / (1 - rate)))


def split_seed(seed: tf.Tensor | None, count: int) -> list[Any]:
    """Returns `count` independent seeds, or as many Nones."""
    if seed is None:
        return [None] * count
    return tf.unstack(tf.random.split(seed, count))


def affine(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Returns x @ kernel + bias over the last axis of `x`."""
    # One large matrix product: tf.matmul of 3-D by 2-D is a batch of them.
    rows = tf.reshape(x, [-1, x.shape[-1]])
    y = tf.nn.bias_add(tf.matmul(rows, kernel), bias)
    return tf.reshape(y, tf.concat([tf.shape(x)[:-1], [y.shape[-1]]], axis=0))


def normalize(x, gamma, beta, epsilon):  # [..., D], [D], [D]
    """Normalizes the last axis, then scales and shifts it."""

    # The gradient is written out (Ba et al., 2016, equation 4): it needs half
    # the passes over memory that automatic differentiation makes.
    @tf.custom_gradient
    def function(x, gamma, beta):
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)  # [..., 1]
        unit = centred * scale

        def gradient(dy):
            d_unit = dy * gamma
            mean = tf.reduce_mean(d_unit, axis=-1, keepdims=True)
            slope = tf.reduce_mean(d_unit * unit, axis=-1, keepdims=True)
            axes = list(range(len(x.shape) - 1))
            return (
                scale * (d_unit - mean - unit * slope),
                tf.reduce_sum(dy * unit, axis=axes),
                tf.reduce_sum(dy, axis=axes),
            )

        return unit * gamma + beta, gradient

    return function(x, gamma, beta)


@tf.custom_gradient
def embed(table: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Rows of `table` [V, D] by `ids` [...], with a dense gradient.

    Sparse gradients would have to be merged with the dense one of the tied
    output layer, and densified for clipping and for the all-reduce.
    """

    def gradient(dy):
        rows = tf.shape(table)[0]
        return tf.math.unsorted_segment_sum(dy, ids, rows), None

    return tf.gather(table, ids), gradient


def at(x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Rows of `x` [B, S, D] at `positions` [B, R]: [B, R, D]."""
    return tf.gather(x, positions, batch_dims=1)


def recomputed(
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    x: tf.Tensor,
    seed: tf.Tensor | None,
) -> tf.Tensor:
    """Returns function(x, seed), computed again in the backward pass.

    Between the passes only `x` is kept (Chen et al., 2016,
    https://arxiv.org/abs/1604.06174).
    """

    @tf.custom_gradient
    def compute(x):
        def gradient(dy, variables=()):
            # Not before the gradient comes: without this dependency the second
            # pass could run right after the first.
            with tf.control_dependencies([dy]):
                again = tf.identity(x)
                own = None if seed is None else tf.identity(seed)
            with tf.GradientTape() as tape:
                tape.watch(again)
                y = function(again, own)
            sources = [again, *variables]
            dx, *rest = tape.gradient(y, sources, output_gradients=dy)
            return dx, rest

        return function(x, seed), gradient

    return compute(x)
