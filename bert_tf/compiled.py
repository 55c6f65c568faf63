"""Whether a step is compiled as a whole or run op by op.

XLA fuses what TensorFlow otherwise runs one operation at a time, and so the
same mathematics wants two forms. Op by op, each operation should do much;
compiled, operations should be plain, so that they fuse. Code with two forms
asks `is_compiled` while it is traced. TPUs always compile, GPUs do by default,
CPUs on demand.
"""

import contextvars
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# "XLA" or "TPU", of what is being traced; empty: it runs op by op.
_DIALECT = contextvars.ContextVar("dialect", default="")


def is_compiled() -> bool:
    """Returns whether XLA compiles what is being traced."""
    return bool(_DIALECT.get())


def is_for_tpus() -> bool:
    """Returns whether it compiles for TPUs."""
    return _DIALECT.get() == "TPU"


def marked(
    function: Callable[..., Any], dialect: str = "XLA"
) -> Callable[..., Any]:
    """Returns the function, traced as something that will be compiled."""

    @functools.wraps(function)
    def traced(*arguments: Any) -> Any:
        # Set here: replicas are traced in threads of their own.
        token = _DIALECT.set(dialect)
        try:
            return function(*arguments)
        finally:
            _DIALECT.reset(token)

    return traced


def whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of tensors that XLA compiles as one program.

    Each shape of its arguments is compiled once.
    """
    return tf.function(marked(function), autograph=False, jit_compile=True)
