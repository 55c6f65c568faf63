"""Exports models to runtimes other than TensorFlow.

An export is a folder with the model of ids, its vocabulary, config and labels,
and export.json, which describes the model's inputs and outputs.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import files, options, phases
from bert_tf.errors import InputError
from bert_tf.exporting import (
    export_description,
    litert,
    numbers,
    onnx,
    saved_model,
)
from bert_tf.storage import input_files

import numpy as np
import tensorflow as tf

DESCRIPTION = export_description.FILE


@dataclasses.dataclass(frozen=True)
class Runtime:
    """A runtime for models of ids.

    Attributes:
        name: Display name.
        file: File name of the model in its folder.
        check: Takes whether weights are int8; raises InputError if the
            converter is not installed.
        convert: Returns the contents of the model's file, optionally with int8
            weights.
        open_model: Returns a function that runs a file on some number of
            threads.
    """

    name: str
    file: str
    check: Callable[[bool], None]
    convert: Callable[[numbers.Numbers, bool], bytes]
    open_model: Callable[[bytes, int | None], numbers.Compute]


# By the name of the format.
RUNTIMES: Mapping[str, Runtime] = {
    "litert": Runtime(
        "LiteRT",
        "model.tflite",
        lambda _: None,  # The converter is part of TensorFlow.
        litert.convert,
        litert.open_model,
    ),
    "onnx": Runtime(
        "ONNX Runtime",
        "model.onnx",
        onnx.check_installed,
        onnx.convert,
        onnx.open_model,
    ),
}


def check(export_format: str, weights: str) -> None:
    """Raises InputError for an unknown format, or a missing converter."""
    for name, value, known in (
        ("format", export_format, options.EXPORT_FORMATS),
        ("weights", weights, options.EXPORT_WEIGHTS),
    ):
        if value not in known:
            raise InputError(
                f"{name} must be one of {', '.join(known)}. "
                f"Received: {name}={value}"
            )
    if export_format in RUNTIMES:
        RUNTIMES[export_format].check(weights == "int8")


def save(
    path: str,
    export: saved_model.Export,
    export_format: str,
    weights: str = "float32",
    overwrite: bool = False,
) -> None:
    """Writes a SavedModel, or a model for another runtime, atomically.

    Args:
        path: Path of the new folder.
        export: The model of raw text.
        export_format: From options.EXPORT_FORMATS.
        weights: "float32", or "int8" for a quarter of the size.
        overwrite: Whether to replace an existing export, once the new one is
            complete.

    Raises:
        InputError: The head does not support the format, or `path` exists.
    """
    check(export_format, weights)
    if export_format not in RUNTIMES:
        saved_model.save(path, with_weights(export, weights), overwrite)
        return
    saved_model.check_target(path, overwrite)
    runtime = RUNTIMES[export_format]
    description = json.loads(export.files[DESCRIPTION])
    found = numbers.ids_function(export, description["head"])
    description |= {
        "format": export_format,
        "weights": weights,
        "inputs": _described(found.inputs),
        "outputs": _described(found.outputs),
    }
    with phases.lasting(f"Writing the model for {runtime.name}"):
        data = runtime.convert(found, weights == "int8")
        with files.new_folder(path, overwrite, len(data)) as new:
            for name, content in export.files.items():
                files.write_bytes(os.path.join(new, name), content)
            files.write_json(os.path.join(new, DESCRIPTION), description)
            files.write_bytes(os.path.join(new, runtime.file), data)


def with_weights(
    export: saved_model.Export, weights: str
) -> saved_model.Export:
    """Returns a model with weights in one of options.EXPORT_WEIGHTS.

    Raises:
        InputError: The head does not support int8.
    """
    if weights != "int8":
        return export
    made = export.in_int8() if export.in_int8 else export
    if not any(variable.dtype == tf.int8 for variable in made.module.variables):
        raise InputError(
            "A SavedModel of this head or encoder keeps float32. Leave "
            "weights=int8 out; of encoders without loops there is the format "
            f"{' or '.join(RUNTIMES)}. "
            "Received: weights=int8, format=saved_model"
        )
    description = json.loads(made.files[DESCRIPTION]) | {"weights": "int8"}
    content = saved_model.described(description)
    return dataclasses.replace(made, files={**made.files, DESCRIPTION: content})


def _described(specs: Mapping[str, tf.TensorSpec]) -> dict[str, Any]:
    """Returns type and shape by name, for JSON; null for any size."""
    return {
        name: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
        for name, spec in specs.items()
    }


def find(path: str) -> str | None:
    """Returns the format of the model in a folder, or None."""
    for name, runtime in RUNTIMES.items():
        if tf.io.gfile.exists(os.path.join(path, runtime.file)):
            return name
    return None


def open_folder(
    path: str, description: Mapping[str, Any], threads: int | None = None
) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Returns a function that runs the model in a folder on tensors.

    Args:
        path: Path of the folder.
        description: Contents of its export.json.
        threads: Number of threads to compute with; by default, the runtime
            chooses.

    Returns:
        A function that can be used in a graph. It takes tensors by name, and
        ignores those that the model does not need.

    Raises:
        InputError: The file is damaged, or the runtime is not installed.
    """
    export_format = description["format"]
    if export_format != find(path):
        raise InputError(
            f"{os.path.join(path, DESCRIPTION)} must name the format of the "
            "model next to it. Export it again, or copy the whole folder "
            f"again. Received: format={export_format!r}, expected {find(path)}"
        )
    runtime = RUNTIMES[export_format]
    file_path = os.path.join(path, runtime.file)
    input_files.check_can_be_read_again(file_path)
    with tf.io.gfile.GFile(file_path, "rb") as file:
        data = file.read()
    try:
        compute = runtime.open_model(data, threads)
    except InputError:
        raise
    except Exception as error:  # Each runtime has its own error types.
        raise InputError(
            f"{file_path} is damaged, or not all there: {runtime.name} can't "
            f"read it ({str(error)[:200].rstrip('.')}). Export it again, or "
            "copy the whole folder again."
        ) from error
    return _in_graph(compute, description["inputs"], description["outputs"])


def _in_graph(
    compute: numbers.Compute,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Mapping[str, Any]],
) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        rows = len(arrays[0])
        if not rows:  # Runtimes do not support empty batches.
            arrays = tuple(np.zeros([1, *x.shape[1:]], x.dtype) for x in arrays)
        found = compute(dict(zip(inputs, arrays, strict=True)))
        return [found[name][:rows] for name in outputs]

    def function(given: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        found = tf.numpy_function(
            run,
            [given[name] for name in inputs],
            [tf.as_dtype(x["dtype"]) for x in outputs.values()],
            stateful=False,
        )
        found = tf.nest.flatten(found)  # Eagerly, one output is no list.
        for tensor, described in zip(found, outputs.values(), strict=True):
            tensor.set_shape(described["shape"])
        return dict(zip(outputs, found, strict=True))

    return function
