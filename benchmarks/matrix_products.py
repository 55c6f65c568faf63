"""Measures the speed of matrix products, the upper bound of any step.

    python -m benchmarks.matrix_products
    python -m benchmarks.matrix_products --library=torch --matrix_dtype=bfloat16

Prints the FLOP/s of the fastest of several shapes, on a GPU if there is one,
where float32 is TF32.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

from absl import app, flags

_LIBRARY = flags.DEFINE_enum(
    "library", "tensorflow", ["tensorflow", "torch"], "Whose products."
)
_DTYPE = flags.DEFINE_enum(
    "matrix_dtype", "float32", ["float32", "bfloat16"], "Of the matrices."
)

_SHAPES = ((4096, 256, 1024), (4096, 512, 2048), (1024, 768, 3072))
_SHAPES_OF_GPUS = ((8192, 8192, 8192), (32768, 1024, 4096))
_TIMES = 5


def of_tensorflow(dtype: str) -> float:
    """Returns the FLOP/s of TensorFlow, as this project uses it."""
    importlib.import_module("bert_tf")
    import tensorflow as tf

    product = tf.function(tf.matmul)
    return _fastest(
        lambda m, n: tf.cast(tf.random.normal([m, n]), dtype),
        product,
        lambda x: x[0, 0].numpy(),
        is_gpu=bool(tf.config.list_physical_devices("GPU")),
    )


def of_torch(dtype: str) -> float:
    """Returns the FLOP/s of PyTorch."""
    import torch

    is_gpu = torch.cuda.is_available()
    torch.set_default_device("cuda" if is_gpu else "cpu")
    torch.set_float32_matmul_precision("high")
    return _fastest(
        lambda m, n: torch.randn(m, n).to(getattr(torch, dtype)),
        torch.matmul,
        lambda x: x[0, 0].item(),
        is_gpu,
    )


def _fastest(
    make: Callable[[int, int], Any],
    multiply: Callable[[Any, Any], Any],
    wait_for: Callable[[Any], Any],
    is_gpu: bool,
) -> float:
    best = 0.0
    for m, k, n in _SHAPES_OF_GPUS if is_gpu else _SHAPES:
        a, b = make(m, k), make(k, n)
        wait_for(multiply(a, b))
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(_TIMES):
                product = multiply(a, b)
            wait_for(product)
            seconds = (time.perf_counter() - start) / _TIMES
            best = max(best, 2 * m * k * n / seconds)
    return best


def main(_: list[str]) -> None:
    """Measures and prints."""
    of_library = of_torch if _LIBRARY.value == "torch" else of_tensorflow
    print(of_library(_DTYPE.value))


if __name__ == "__main__":
    app.run(main)
