"""Storage of a served model's weights: float32; int8 is in quantized.py.

Shapes: X rows, I inputs, O outputs, V vectors of a table, D values per vector.
"""

import abc
from collections.abc import Callable
from typing import Protocol

import numpy as np
import tensorflow as tf

# Maps rows [X, I] to their products with a kernel, [X, O].
Product = Callable[[tf.Tensor], tf.Tensor]


class Table(Protocol):
    """A table of vectors, looked up by index."""

    def rows(self, ids: tf.Tensor) -> tf.Tensor:  # [...]
        """Returns the vectors of `ids`, [..., D]."""

    def all(self) -> tf.Tensor:
        """Returns all vectors, [V, D]."""


class Weights(abc.ABC):
    """Stores weights in some format.

    Attributes:
        variables: All stored weights, for a module to track.
    """

    def __init__(self):
        self.variables: list[tf.Variable] = []

    def keep(self, values: np.ndarray) -> tf.Variable:
        """Stores biases, scales or small tables unchanged."""
        variable = tf.Variable(values, trainable=False)
        self.variables.append(variable)
        return variable

    @abc.abstractmethod
    def kernel(self, values: np.ndarray) -> Product:
        """Stores a kernel [I, O], and returns the product with it."""

    @abc.abstractmethod
    def table(self, values: np.ndarray) -> Table:
        """Stores a table of vectors, [V, D]."""


class Float32(Weights):
    """Stores all weights unchanged."""

    def kernel(self, values):
        kernel = self.keep(values)
        return lambda rows: tf.matmul(rows, kernel)

    def table(self, values):
        return _Float32Table(self.keep(values))


class _Float32Table:
    def __init__(self, vectors: tf.Variable):
        self._vectors = vectors

    def rows(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._vectors, ids)

    def all(self) -> tf.Tensor:
        return tf.convert_to_tensor(self._vectors)
