"""Models of ids for ONNX Runtime: `.onnx` files, converted by tf2onnx.

Batch size and length are dynamic. All ops are standard ONNX ops; with int8
weights, some are ONNX Runtime's.
"""

import contextlib
import logging
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf import extras, files
from bert_tf.errors import InputError
from bert_tf.exporting import inference, numbers

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

# From 2021, so supported by all current runtimes.
_OPSET = 17


def _erfc(context: Any, node: Any, name: str, _: Any) -> None:
    """Converts erfc to 1 - erf, as tf2onnx lacks it; part of exact GELU."""
    dtype, shape = context.get_dtype(name), context.get_shape(name)
    outputs = node.output
    one = context.make_const(f"{name}/one", np.ones([], np.float32))
    context.remove_node(name)
    erf = context.make_node("Erf", node.input, dtypes=[dtype], shapes=[shape])
    context.make_node(
        "Sub",
        [one.output[0], erf.output[0]],
        name=name,
        outputs=outputs,
        dtypes=[dtype],
        shapes=[shape],
    )


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silences log messages of tf2onnx and its dependencies."""
    loggers = [tf.get_logger(), logging.getLogger("tf2onnx")]
    loggers.append(logging.getLogger())  # ONNX Runtime's quantizer uses it.
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def check_installed(is_int8: bool) -> None:
    """Raises InputError if the converter is not installed."""
    extras.check("tf2onnx", "onnx", "Models of ONNX")
    extras.check("onnx", "onnx", "Models of ONNX")
    if is_int8:
        extras.check("onnxruntime", "onnx", "Models of ONNX in int8")


def convert(found: numbers.Numbers, is_int8: bool) -> bytes:
    """Converts a model to the contents of a file.

    With `is_int8`, its weights are int8, and ONNX Runtime dynamically quantizes
    the inputs of products to 8 bits.
    """
    check_installed(is_int8)
    import onnx
    import tf2onnx

    # The quantizer skips weights that branches share, which all weights are.
    branches = (
        inference.computing_padding if is_int8 else contextlib.nullcontext
    )
    with branches():
        traced = found.function.get_concrete_function()
    _check_size(traced.variables)
    frozen = convert_to_constants.convert_variables_to_constants_v2(traced)
    inputs = [tensor.name for tensor in frozen.inputs]
    outputs = [tensor.name for tensor in frozen.outputs]
    wanted = [*found.inputs, *found.outputs]
    names = dict(zip([*inputs, *outputs], wanted, strict=True))
    with _quietly():
        # Without ops that produce texts, which tf2onnx would also convert.
        graph = tf.compat.v1.graph_util.extract_sub_graph(
            frozen.graph.as_graph_def(),
            [name.partition(":")[0] for name in (*inputs, *outputs)],
        )
        model, _ = tf2onnx.convert.from_graph_def(
            graph,
            name="bert",
            input_names=inputs,
            output_names=outputs,
            opset=_OPSET,
            custom_op_handlers={"Erfc": (_erfc, [])},
            tensors_to_rename=names,
        )
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString()
    return _in_int8(data) if is_int8 else data


def _check_size(variables: Sequence[tf.Variable]) -> None:
    """Raises InputError for weights that exceed the max size of protobuf."""
    size = sum(x.dtype.size * x.shape.num_elements() for x in variables)
    if size >= 2**31:
        raise InputError(
            "A model for ONNX Runtime must have less than 2 GiB of weights. "
            "Write a SavedModel. Received: format=onnx, "
            f"{size / 2**30:.1f} GiB of weights"
        )


def _in_int8(data: bytes) -> bytes:
    """Quantizes weights to int8, with one scale per column of kernels.

    They use only 7 of the 8 bits: x86 processors without VNNI add two products
    with 8 bits in 16 bits, where ONNX Runtime lets large sums saturate.
    """
    from onnxruntime import quantization

    with files.temporary_folder() as folder, _quietly():
        start = pathlib.Path(folder, "float32.onnx")
        end = pathlib.Path(folder, "int8.onnx")
        start.write_bytes(data)
        quantization.quantize_dynamic(
            start, end, per_channel=True, reduce_range=True
        )
        return end.read_bytes()


def open_model(data: bytes, threads: int | None = None) -> numbers.Compute:
    """Returns a function that runs a file: inputs -> outputs by name.

    It can be called from several threads in parallel. By default, ONNX Runtime
    chooses the number of threads it computes with.
    """
    extras.check("onnxruntime", "onnx", "Models of ONNX")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    session = onnxruntime.InferenceSession(
        data, options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]

    def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = session.run(names, dict(inputs))
        return dict(zip(names, found, strict=True))

    return compute
