"""Variables as arguments: the training step as a function without state.

A variable is on a device of TensorFlow, so steps for devices that TensorFlow
does not have can't have variables. Here, the step is traced with arguments
instead. An assignment replaces an argument, and its last value is a result. The
step must be traced as compiled: kernels that update variables take no
arguments.
"""

import contextlib
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf
from tensorflow.python.eager import tape
from tensorflow.python.ops import resource_variable_ops


class Argument(resource_variable_ops.BaseResourceVariable):
    """A variable whose handle is its value, a tensor.

    Gradient tapes watch handles, so gradients are taken of the tensor.
    """

    def __init__(self, variable: tf.Variable, value: tf.Tensor):
        super().__init__(
            trainable=variable.trainable,
            shape=variable.shape,
            dtype=variable.dtype,
            handle=value,
            unique_id=variable.name,
            handle_name=variable.name,
            in_graph_mode=False,
        )

    def _read_variable_op(self, no_copy=False):
        del no_copy
        if self.trainable:
            tape.variable_accessed(self)
        return tf.identity(self.handle)

    def assign(self, value, use_locking=None, name=None, read_value=True):
        del use_locking, name, read_value
        self._handle = tf.convert_to_tensor(value, self.dtype)
        return self

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        return self.assign(self.handle + delta)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        return self.assign(self.handle - delta)


@contextlib.contextmanager
def replaced(
    weights: Sequence[keras.Variable],
    slots: dict[str, tf.Variable],
    values: Sequence[tf.Tensor],
) -> Iterator[list[Argument]]:
    """Replaces weights and an optimizer's slots by arguments.

    `values` has the values of the weights, then of the slots, in order.
    """
    variables = [weight._value for weight in weights]
    everything = [*variables, *slots.values()]
    made = [Argument(*x) for x in zip(everything, values, strict=True)]
    before = dict(slots)
    try:
        for weight, argument in zip(weights, made, strict=False):
            weight._value = argument
        slots.update(zip(slots, made[len(variables) :], strict=True))
        yield made
    finally:
        slots.update(before)
        for weight, variable in zip(weights, variables, strict=True):
            weight._value = variable
