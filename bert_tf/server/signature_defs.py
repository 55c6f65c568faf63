"""The signatures of a SavedModel: names, types, shapes and defaults."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.server.refusals import Refusal
from bert_tf.storage import input_files, written_files

import numpy as np
import tensorflow as tf
from google.protobuf import json_format, message
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

SERVING_DEFAULT = "serving_default"
PREDICT = "tensorflow/serving/predict"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
# A signature that TensorFlow adds, and TensorFlow Serving hides.
_INITIALIZER = "__saved_model_init_op"


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output.

    Attributes:
        dtype: Type of its values.
        shape: Its shape, with None for unknown sizes; None for unknown rank.
    """

    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    @property
    def has_rows(self) -> bool:
        """Whether its first dimension is the batch dimension."""
        # A shape that is neither None nor empty has a first size.
        return bool(self.shape) and self.shape[0] is None  # type: ignore[index]

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor may have a shape."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            mine in (None, size)
            for mine, size in zip(self.shape, shape, strict=True)
        )

    def __str__(self):
        """Formats it for error messages: `string [?, 3]`."""
        if self.shape is None:
            return self.dtype.name
        sizes = ", ".join("?" if x is None else str(x) for x in self.shape)
        return f"{self.dtype.name} [{sizes}]"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a SavedModel.

    Attributes:
        name: Its name.
        method: The API that TensorFlow Serving offers it by, such as PREDICT.
        inputs: Inputs by name.
        outputs: Outputs by name.
        defaults: Values of the inputs that may be omitted.
    """

    name: str
    method: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    defaults: Mapping[str, np.ndarray]

    @property
    def has_rows(self) -> bool:
        """Whether inputs and outputs have rows, for any batch size."""
        tensors = (*self.inputs.values(), *self.outputs.values())
        return all(x.has_rows for x in tensors)

    @property
    def has_fixed_widths(self) -> bool:
        """Whether the shape of a row's outputs does not depend on the batch."""
        return all(
            x.shape is not None and None not in x.shape[1:]
            for x in self.outputs.values()
        )


class Signatures:
    """The signatures of a SavedModel."""

    def __init__(self, definitions: Mapping[str, meta_graph_pb2.SignatureDef]):
        self._definitions = {
            name: definition
            for name, definition in sorted(definitions.items())
            if name != _INITIALIZER
        }
        self.by_name = {
            name: _signature(name, definition)
            for name, definition in self._definitions.items()
        }

    def find(self, name: str | None, method: str = PREDICT) -> Signature:
        """Returns the signature for a call.

        Args:
            name: Name in the request; by default `serving_default` or, for
                other methods than PREDICT, the only signature with the method.
            method: The method; all signatures support PREDICT.

        Raises:
            Refusal: There is no such signature, or it has another method.
        """
        if name is None and method != PREDICT:
            able = [x for x in self.by_name.values() if x.method == method]
            if len(able) == 1:
                return able[0]
        name = name or SERVING_DEFAULT
        if name not in self.by_name:
            raise Refusal(
                f'Serving signature name: "{name}" not found in signature def. '
                f"There are {', '.join(self.by_name)}."
            )
        found = self.by_name[name]
        if method not in (PREDICT, found.method):
            kind = {CLASSIFY: "classification", REGRESS: "regression"}[method]
            raise Refusal(
                f"Expected {kind} signature method_name to be {method}. "
                f"Was: {found.method}. Ask for {name} by :predict."
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """Returns the signatures as in TensorFlow Serving's metadata."""
        return {
            name: json_format.MessageToDict(
                definition,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, definition in self._definitions.items()
        }


def read(path: str) -> Signatures:
    """Reads the signatures of a SavedModel; InputError if it can't be read."""
    return Signatures(_read(path).signature_def)


def read_graph(path: str) -> graph_pb2.GraphDef:
    """Reads the graph of a SavedModel; InputError if it can't be read."""
    return _read(path).graph_def


def _read(path: str) -> meta_graph_pb2.MetaGraphDef:
    input_files.check_no_pipes(path)
    file = os.path.join(path, written_files.GRAPH)
    model = saved_model_pb2.SavedModel()
    try:
        with tf.io.gfile.GFile(file, "rb") as contents:
            model.ParseFromString(contents.read())
    except message.DecodeError:
        raise InputError(
            f"The SavedModel {path} is damaged, or not all there: "
            f"{written_files.GRAPH} can't be read. Export it again."
        ) from None
    graphs = [x for x in model.meta_graphs if "serve" in x.meta_info_def.tags]
    if not graphs or not set(graphs[0].signature_def) - {_INITIALIZER}:
        raise InputError(
            "A SavedModel must have signatures to be served: export it by "
            f"export_saved_model.py. Received: {path}"
        )
    return graphs[0]


def _signature(name: str, definition: meta_graph_pb2.SignatureDef) -> Signature:
    return Signature(
        name,
        definition.method_name,
        {key: _tensor(x) for key, x in sorted(definition.inputs.items())},
        {key: _tensor(x) for key, x in sorted(definition.outputs.items())},
        {key: tf.make_ndarray(x) for key, x in definition.defaults.items()},
    )


def _tensor(info: meta_graph_pb2.TensorInfo) -> Tensor:
    shape = None
    if not info.tensor_shape.unknown_rank:
        sizes = (dim.size for dim in info.tensor_shape.dim)
        shape = tuple(None if size < 0 else size for size in sizes)
    return Tensor(tf.dtypes.as_dtype(info.dtype), shape)
