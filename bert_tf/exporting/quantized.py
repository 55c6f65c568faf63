"""Int8 matrices with scales: a quarter of the size, using core ops only.

Each column of a kernel, or row of a table, has its own scale, so that its
largest absolute value is 127. Zeros stay exact. Products are computed in
float32 and scaled afterwards: (x @ values) * scales equals x @ (values *
scales), but scales fewer numbers.

Shapes: I inputs, O outputs, V rows of a table, D values per row.
"""

from typing import NamedTuple

from bert_tf.exporting import kept_weights

import numpy as np
import tensorflow as tf

# The max of int8; -128 is not used, so the range is symmetric.
_MOST = 127


class Quantized(NamedTuple):
    """A matrix, `values * scales`.

    Values are int8, and scales are float32, [1, O] for columns or [V, 1] for
    rows. Both may be arrays, tensors or variables.
    """

    values: tf.Tensor
    scales: tf.Tensor


def columns(kernel: np.ndarray) -> Quantized:
    """Quantizes a kernel [I, O], with a scale for each output."""
    return _quantize(kernel, axis=0)


def rows(table: np.ndarray) -> Quantized:
    """Quantizes a table [V, D], with a scale for each row."""
    return _quantize(table, axis=1)


def _quantize(matrix: np.ndarray, axis: int) -> Quantized:
    largest = np.abs(matrix).max(axis, keepdims=True)
    # For a column of zeros, any scale is correct.
    scales = np.where(largest > 0, largest, 1).astype(np.float32) / _MOST
    return Quantized(np.rint(matrix / scales).astype(np.int8), scales)


def product(x: tf.Tensor, kernel: Quantized) -> tf.Tensor:
    """Returns x [..., I] @ kernel, quantized by columns: [..., O]."""
    values = tf.cast(kernel.values, x.dtype)
    return tf.matmul(x, values) * tf.cast(kernel.scales, x.dtype)


def embed(table: Quantized, ids: tf.Tensor) -> tf.Tensor:
    """Looks up ids [...] in a table, quantized by rows: [..., D]."""
    values = tf.cast(tf.gather(table.values, ids), tf.float32)
    return values * tf.gather(table.scales, ids)


# ---- Storage -----------------------------------------------------------------


class Table:
    """A table of vectors, quantized by rows."""

    def __init__(self, table: Quantized):
        self._table = table

    def rows(self, ids: tf.Tensor) -> tf.Tensor:  # [...]
        """Returns the vectors of `ids`, [..., D]."""
        return embed(self._table, ids)

    def all(self) -> tf.Tensor:
        """Returns all vectors, [V, D]."""
        return tf.cast(self._table.values, tf.float32) * self._table.scales


class Int8(kept_weights.Weights):
    """Stores kernels and tables as int8, and other weights unchanged."""

    def kernel(self, values):
        kernel = self._kept(columns(values))
        return lambda rows: product(rows, kernel)

    def table(self, values):
        return Table(self._kept(rows(values)))

    def _kept(self, found: Quantized) -> Quantized:
        return Quantized(*map(self.keep, found))
