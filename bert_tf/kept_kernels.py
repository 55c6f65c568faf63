"""Whether oneDNN was told that kernels never change.

It then keeps each kernel in the layout that it computes with, which halves the
time of a short text. It does not look whether kernels do change: a run that
trains would compute with those of its first step, and learn nothing.
"""

import os

from bert_tf.errors import InputError

# Of the environment; read by TensorFlow when it makes its first product.
VARIABLE = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


def are_kept() -> bool:
    """Whether kernels are kept as they were at first."""
    return os.environ.get(VARIABLE, "").lower() in ("1", "true")


def check_that_they_change() -> None:
    """Raises InputError where nothing could be learned."""
    if are_kept():
        raise InputError(
            "Steps would compute with the weights of the first one, as oneDNN "
            "is told that weights never change, which is for models that only "
            "answer. Unset it to train. "
            f"Received: {VARIABLE}={os.environ[VARIABLE]} in the environment"
        )
