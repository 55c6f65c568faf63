"""Models of ids for LiteRT, formerly TensorFlow Lite: `.tflite` files.

LiteRT runs on phones and small computers, and on servers faster than
TensorFlow. Batch size and length are dynamic, and all ops are LiteRT's built-in
ones.
"""

import threading
from collections.abc import Mapping

from bert_tf import extras, files
from bert_tf.exporting import numbers

import numpy as np
import tensorflow as tf

_SIGNATURE = "serving_default"


def convert(found: numbers.Numbers, is_int8: bool) -> bytes:
    """Converts a model to the contents of a file.

    With `is_int8`, its weights are int8, and LiteRT dynamically quantizes the
    inputs of products to int8, with one scale per row.
    """
    module = tf.Module()
    module.compute = found.function
    module.weights = list(found.function.get_concrete_function().variables)
    with files.temporary_folder() as folder:
        # From a SavedModel, the converter keeps the names of inputs and
        # outputs.
        tf.saved_model.save(module, folder, {_SIGNATURE: found.function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if is_int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return converter.convert()


def open_model(data: bytes, threads: int | None = None) -> numbers.Compute:
    """Returns a function that runs a file: inputs -> outputs by name.

    It is thread-safe, but answers one thread at a time. By default, LiteRT
    chooses the number of threads it computes with.
    """
    extras.check("ai_edge_litert", "litert", "Models of LiteRT")
    from ai_edge_litert import interpreter

    model = interpreter.Interpreter(model_content=data, num_threads=threads)
    runner = model.get_signature_runner(_SIGNATURE)
    lock = threading.Lock()

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        with lock:
            return dict(runner(**inputs))

    return compute
