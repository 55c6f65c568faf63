"""Models of ids for LiteRT, which was TensorFlow Lite: `.tflite` files.

It runs on phones and small computers, and on servers faster than TensorFlow.
Batch and length are free, and all ops are LiteRT's own.
"""

import tempfile
import threading
from collections.abc import Mapping

from bert_tf import extras
from bert_tf.exporting import numbers

import numpy as np
import tensorflow as tf

_SIGNATURE = "serving_default"


def convert(found: numbers.Numbers, is_int8: bool) -> bytes:
    """Returns the file of a model.

    With `is_int8` its weights are int8: LiteRT computes products with rows that
    it rounds to int8 as they come, by a scale of each row's own.
    """
    module = tf.Module()
    module.compute = found.function
    module.weights = list(found.function.get_concrete_function().variables)
    with tempfile.TemporaryDirectory() as folder:
        # Of a SavedModel the converter keeps the names of inputs and outputs.
        tf.saved_model.save(module, folder, {_SIGNATURE: found.function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if is_int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return converter.convert()


def open_model(data: bytes, threads: int | None = None) -> numbers.Compute:
    """Returns what a file computes, inputs -> outputs by name.

    It may be called from several threads, one of which it answers at a time.
    By default it computes on as many cores as LiteRT chooses.
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
