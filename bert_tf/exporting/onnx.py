"""Models of ids for ONNX Runtime: `.onnx` files, by tf2onnx.

Batch and length are free, and all ops are those of ONNX itself; of int8 weights
those of ONNX Runtime as well.
"""

import contextlib
import logging
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf import extras
from bert_tf.exporting import inference, numbers

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

# Of 2021: what reads models today reads it, and what is newer.
_OPSET = 17


def _erfc(context: Any, node: Any, name: str, _: Any) -> None:
    """1 - erf: of GELU as other libraries compute it; tf2onnx lacks it."""
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
    """Keeps back what tf2onnx and others say of each other."""
    loggers = [tf.get_logger(), logging.getLogger("tf2onnx")]
    loggers.append(logging.getLogger())  # That of ONNX Runtime's quantizer.
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def check_installed(is_int8: bool) -> None:
    """Raises InputError if what writes files is not installed."""
    extras.check("tf2onnx", "onnx", "Models of ONNX")
    extras.check("onnx", "onnx", "Models of ONNX")
    if is_int8:
        extras.check("onnxruntime", "onnx", "Models of ONNX in int8")


def convert(found: numbers.Numbers, is_int8: bool) -> bytes:
    """Returns the file of a model.

    With `is_int8` its weights are int8, and ONNX Runtime rounds what products
    take, as it comes, to 8 bits as well.
    """
    check_installed(is_int8)
    import onnx
    import tf2onnx

    # The quantizer leaves alone what branches share, which is all weights.
    branches = (
        inference.computing_padding if is_int8 else contextlib.nullcontext
    )
    with branches():
        traced = found.function.get_concrete_function()
    frozen = convert_to_constants.convert_variables_to_constants_v2(traced)
    inputs = [tensor.name for tensor in frozen.inputs]
    outputs = [tensor.name for tensor in frozen.outputs]
    wanted = [*found.inputs, *found.outputs]
    names = dict(zip([*inputs, *outputs], wanted, strict=True))
    with _quietly():
        # Without what makes texts of the numbers: tf2onnx looks at that, too.
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


def _in_int8(data: bytes) -> bytes:
    """Makes weights int8, of kernels by column."""
    from onnxruntime import quantization

    with tempfile.TemporaryDirectory() as folder, _quietly():
        start = pathlib.Path(folder, "float32.onnx")
        end = pathlib.Path(folder, "int8.onnx")
        start.write_bytes(data)
        quantization.quantize_dynamic(start, end, per_channel=True)
        return end.read_bytes()


def open_model(data: bytes, threads: int | None = None) -> numbers.Compute:
    """Returns what a file computes, inputs -> outputs by name.

    It may be called from several threads at once. By default it computes on as
    many cores as ONNX Runtime chooses.
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
