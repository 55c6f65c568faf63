"""Whether a step is compiled as a whole or run op by op.

XLA fuses what TensorFlow otherwise runs one operation at a time, so the same
mathematics needs two forms. Op by op, each operation should do much; compiled,
operations should be simple, so that they can be fused. Code with two forms
calls `is_compiled` while it is traced. TPUs always compile, GPUs do by default,
CPUs on demand.
"""

import contextvars
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# "XLA" or "TPU" while compiled code is traced; empty for op by op.
_DIALECT = contextvars.ContextVar("dialect", default="")


def is_compiled() -> bool:
    """Returns whether XLA will compile the code that is being traced."""
    return bool(_DIALECT.get())


def is_for_tpus() -> bool:
    """Returns whether this code will be compiled for TPUs."""
    return _DIALECT.get() == "TPU"


def marked(
    function: Callable[..., Any], dialect: str = "XLA"
) -> Callable[..., Any]:
    """Wraps a function so that it is traced as compiled code."""

    @functools.wraps(function)
    def traced(*arguments: Any) -> Any:
        # Set here: each replica is traced in its own thread.
        token = _DIALECT.set(dialect)
        try:
            return function(*arguments)
        finally:
            _DIALECT.reset(token)

    return traced


def whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of tensors that XLA compiles as one program.

    It is compiled once for each combination of argument shapes.
    """
    return tf.function(marked(function), autograph=False, jit_compile=True)
