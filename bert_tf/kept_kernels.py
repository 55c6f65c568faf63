"""Whether oneDNN caches constant weights (TF_ONEDNN_ASSUME_FROZEN_WEIGHTS).

It then keeps each kernel in the layout that it computes with, which halves the
time for a short text. It does not check whether kernels change: a training run
would compute with the kernels of its first step and learn nothing.
"""

import os

from bert_tf.errors import InputError

# An environment variable that TensorFlow reads at its first product.
VARIABLE = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


def are_kept() -> bool:
    """Whether kernels are cached at their first use."""
    return os.environ.get(VARIABLE, "").lower() in ("1", "true")


def check_that_they_change() -> None:
    """Raises InputError if kernels are cached, so training can't work."""
    if are_kept():
        raise InputError(
            "Steps would compute with the weights of the first one, as oneDNN "
            "is told that weights never change, which is for models that only "
            "answer. Unset it to train. "
            f"Received: {VARIABLE}={os.environ[VARIABLE]} in the environment"
        )
