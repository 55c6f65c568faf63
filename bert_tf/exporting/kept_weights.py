"""What a served model keeps its weights in: float32 here, int8 in quantized.py.

Shapes: X rows, I inputs, O outputs, V vectors of a table, D values of a vector.
"""

import abc
from collections.abc import Callable
from typing import Protocol

import numpy as np
import tensorflow as tf

# From rows [X, I] to their products [X, O].
Product = Callable[[tf.Tensor], tf.Tensor]


class Table(Protocol):
    """Vectors by their numbers."""

    def rows(self, ids: tf.Tensor) -> tf.Tensor:  # [...]
        """Returns the vectors of `ids`, [..., D]."""

    def all(self) -> tf.Tensor:
        """Returns all vectors, [V, D]."""


class Weights(abc.ABC):
    """Keeps weights in one way or another.

    Attributes:
        variables: All that are kept, for a module to track.
    """

    def __init__(self):
        self.variables: list[tf.Variable] = []

    def keep(self, values: np.ndarray) -> tf.Variable:
        """Keeps anything as it is: biases, scales, small tables."""
        variable = tf.Variable(values, trainable=False)
        self.variables.append(variable)
        return variable

    @abc.abstractmethod
    def kernel(self, values: np.ndarray) -> Product:
        """Keeps a kernel [I, O], and returns the product with it."""

    @abc.abstractmethod
    def table(self, values: np.ndarray) -> Table:
        """Keeps vectors that are looked up, [V, D]."""


class Float32(Weights):
    """Keeps all weights as they are."""

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
