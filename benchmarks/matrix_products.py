"""Says how fast matrix products are here: what no step can be faster than.

    python -m benchmarks.matrix_products
    python -m benchmarks.matrix_products --library=torch

Prints the FLOP/s of the fastest of three shapes, in float32.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

from absl import app, flags

_LIBRARY = flags.DEFINE_enum(
    "library", "tensorflow", ["tensorflow", "torch"], "Whose products."
)

_SHAPES = ((4096, 256, 1024), (4096, 512, 2048), (1024, 768, 3072))


def of_tensorflow() -> float:
    """Returns the FLOP/s of TensorFlow's, as this project uses it."""
    importlib.import_module("bert_tf")
    import tensorflow as tf

    product = tf.function(tf.matmul)
    return _fastest(
        lambda m, n: tf.random.normal([m, n]),
        lambda a, b: product(a, b).numpy(),
    )


def of_torch() -> float:
    """Returns the FLOP/s of PyTorch's."""
    import torch

    return _fastest(torch.randn, torch.matmul)


def _fastest(
    make: Callable[[int, int], Any], multiply: Callable[[Any, Any], Any]
) -> float:
    best = 0.0
    for m, k, n in _SHAPES:
        a, b = make(m, k), make(k, n)
        multiply(a, b)
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(5):
                multiply(a, b)
            seconds = (time.perf_counter() - start) / 5
            best = max(best, 2 * m * k * n / seconds)
    return best


def main(_: list[str]) -> None:
    """Measures and prints."""
    is_torch = _LIBRARY.value == "torch"
    print(of_torch() if is_torch else of_tensorflow())


if __name__ == "__main__":
    app.run(main)
