"""Parses requests in JSON: TensorFlow Serving's rows, columns and examples.

Accepts everything that TensorFlow Serving's json_tensor.cc does. Inputs with a
default in the signature may also be omitted.
"""

import base64
import binascii
import dataclasses
import itertools
import json
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import repeated
from bert_tf.server import joining
from bert_tf.server.refusals import Refusal, shown
from bert_tf.server.signature_defs import (
    CLASSIFY,
    PREDICT,
    Signature,
    Signatures,
)
from bert_tf.server.signature_defs import Tensor as TensorInfo

import numpy as np
import tensorflow as tf

# Max nesting of lists; no model needs more.
_DEEPEST = 16
_EXAMPLES = "inputs"  # The input of signatures for `:classify`, `:regress`.


@dataclasses.dataclass(frozen=True)
class Request:
    """A parsed request.

    Attributes:
        signature: The signature to run.
        inputs: The specified inputs.
        in_rows: Whether the request has rows, and the answer must, too.
    """

    signature: Signature
    inputs: Mapping[str, np.ndarray]
    in_rows: bool


def parse(body: bytes) -> dict[str, Any]:
    """Parses the JSON object in a body; raises Refusal if it is invalid."""
    if not body:
        raise Refusal("JSON Parse error: The document is empty")
    try:
        found = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise Refusal(
            f"JSON Parse error: not UTF-8, {error.reason} at offset: "
            f"{error.start}"
        ) from None
    except json.JSONDecodeError as error:
        raise Refusal(
            f"JSON Parse error: {error.msg} at offset: {error.pos}"
        ) from None
    except RecursionError:
        raise Refusal("JSON Parse error: lists nested too deep") from None
    except ValueError as error:  # For example a number of 5,000 digits.
        raise Refusal(f"JSON Parse error: {error}") from None
    if not isinstance(found, dict):
        raise Refusal(f"JSON Value: {shown(found)} Is not object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = repeated(name for name, _ in pairs)[0]
        raise Refusal(f"JSON Parse error: key given twice: {shown(twice)}")
    return found


def _signature_name(asked: Mapping[str, Any]) -> str | None:
    name = asked.get("signature_name")
    if "signature_name" in asked and not isinstance(name, str):
        raise Refusal(
            "'signature_name' key must be a string value. "
            f"Received: {shown(name)}"
        )
    return name


# ---- :predict ---------------------------------------------------------------


def to_predict(body: bytes, signatures: Signatures) -> Request:
    """Parses a body of `:predict`; raises Refusal if it is invalid."""
    asked = parse(body)
    signature = signatures.find(_signature_name(asked), PREDICT)
    if "instances" in asked and "inputs" in asked:
        raise Refusal(
            "Not formatted correctly expecting only one of 'inputs' or "
            "'instances' keys to exist"
        )
    if "instances" in asked:
        columns = _columns_of_rows(asked["instances"], signature)
    elif "inputs" in asked:
        columns = _columns(asked["inputs"], signature)
    else:
        raise Refusal("Missing 'inputs' or 'instances' key")
    inputs = {
        name: to_tensor(value, signature.inputs[name], name)
        for name, value in columns.items()
    }
    if joining.rows_of(inputs) is None:
        # A default for all rows, such as {"text_b": [""]}, is no row.
        inputs = {
            name: x
            for name, x in inputs.items()
            if name not in signature.defaults
            or not np.array_equal(x, signature.defaults[name])
        }
    return Request(signature, inputs, "instances" in asked)


def _columns(asked: Any, signature: Signature) -> dict[str, Any]:
    """Returns the values of `inputs` by name."""
    if not _is_object(asked):
        return {_only_input(signature, "inputs", "an object"): asked}
    _check_names(asked, signature, "'inputs' object")
    return asked


def _columns_of_rows(rows: Any, signature: Signature) -> dict[str, list]:
    """Returns the values of `instances` by name."""
    if not isinstance(rows, list):
        raise Refusal("Expecting 'instances' to be an list/array")
    if not rows:
        raise Refusal("No values in 'instances' array")
    are_objects = _is_object(rows[0])
    for number, row in enumerate(rows):
        if _is_object(row) != are_objects:
            expected, got = (
                ("object", "value/list")
                if are_objects
                else ("value/list", "object")
            )
            raise Refusal(
                f"Expecting {expected} but got {got} at item {number} of "
                "'instances' list"
            )
    if not are_objects:
        return {_only_input(signature, "instances", "objects"): rows}
    for number, row in enumerate(rows):
        _check_names(row, signature, f"element {number} of 'instances' list")
        if row.keys() != rows[0].keys():
            raise Refusal(
                f"Failed to process element {number} of 'instances' list: its "
                f"keys must be those of the first, {', '.join(rows[0])}. "
                f"Received: {', '.join(row)}"
            )
    return {name: [row[name] for row in rows] for name in rows[0]}


def _is_object(value: Any) -> bool:
    """Whether a value is an object, but not bytes in base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value: dict) -> bool:
    return value.keys() == {"b64"} and isinstance(value["b64"], str)


def only_input(signature: Signature) -> str | None:
    """Returns the input that unnamed values are for, or None."""
    names = list(signature.inputs)
    if len(names) > 1:
        names = [x for x in names if x not in signature.defaults]
    return names[0] if len(names) == 1 else None


def _only_input(signature: Signature, key: str, expected: str) -> str:
    """Returns the input that unnamed values are for, or raises Refusal."""
    name = only_input(signature)
    if name is None:
        raise Refusal(
            f"{key} is a plain value/list, but expecting {expected} with "
            f"{', '.join(signature.inputs)}, as the signature "
            f"{signature.name} has several inputs"
        )
    return name


def _check_names(
    given: Mapping[str, Any], signature: Signature, where: str
) -> None:
    """Raises Refusal for unknown or missing names of inputs."""
    for name in signature.inputs:
        if name not in given and name not in signature.defaults:
            raise Refusal(f"Missing named input: {name} in {where}.")
    for name in given:
        if name not in signature.inputs:
            raise Refusal(
                f"JSON object: does not have named input: {name}, in {where}. "
                f"The signature {signature.name} has "
                f"{', '.join(signature.inputs)}."
            )
    if not given:
        raise Refusal(f"No named input in {where}.")


# ---- Tensors ----------------------------------------------------------------


def to_tensor(value: Any, info: TensorInfo, name: str) -> np.ndarray:
    """Converts nested lists to an array of an input's type.

    Raises Refusal if they have another type, or are not an array.
    """
    shape, leaves = _flat(value, name)
    if not info.fits(shape):
        sizes = ", ".join(map(str, shape))
        raise Refusal(
            f"Input {name} must be {info}. Received: a shape of [{sizes}]"
        )
    if info.dtype == tf.string:
        flat = np.empty(len(leaves), object)
        flat[:] = [_bytes(leaf) for leaf in leaves]
    else:
        flat = _numbers(leaves, info.dtype)
    return flat.reshape(shape)


def _flat(value: Any, name: str) -> tuple[tuple[int, ...], list[Any]]:
    """Returns the shape and the flattened values of nested lists."""
    shape: list[int] = []
    leaves = [value]
    while leaves and isinstance(leaves[0], list):
        size = len(leaves[0])
        for leaf in leaves:
            got = len(leaf) if isinstance(leaf, list) else "no list"
            if got != size:
                raise Refusal(
                    f"Input {name}: encountered list at unexpected size: {got} "
                    f"at level: {len(shape)} expected size: {size}"
                )
        shape.append(size)
        if len(shape) > _DEEPEST:
            raise Refusal(f"Input {name}: lists nested too deep")
        leaves = list(itertools.chain.from_iterable(leaves))
    if any(isinstance(leaf, list) for leaf in leaves):
        raise Refusal(
            f"Input {name}: encountered list at unexpected level: {len(shape)}"
        )
    return tuple(shape), leaves


def _bytes(leaf: Any) -> bytes:
    if isinstance(leaf, str):
        try:
            return leaf.encode("utf-8")
        except UnicodeEncodeError:
            raise Refusal(
                f"JSON Value: {shown(leaf)} has half of a surrogate pair, "
                "which is no character"
            ) from None
    if not isinstance(leaf, dict):
        raise _type_error(leaf, "string")
    if not _is_base64(leaf):
        raise Refusal(
            f"JSON Value: {shown(leaf)} not formatted correctly for base64 data"
        )
    try:
        return base64.b64decode(leaf["b64"], validate=True)
    except (binascii.Error, ValueError):
        raise Refusal("Unable to base64 decode") from None


# Type in JSON Schema -> Python types of its values.
_TYPES: dict[str, set[type]] = {
    "boolean": {bool},
    "number": {int, float},
    "integer": {int},
}


def kind(dtype: tf.DType) -> str:
    """Returns the JSON Schema type of a tensor's values, or ""."""
    if dtype == tf.string:
        return "string"
    if dtype.is_bool:
        return "boolean"
    if dtype.is_floating:
        return "number"
    return "integer" if dtype.is_integer else ""


def _numbers(leaves: list[Any], dtype: tf.DType) -> np.ndarray:
    allowed = _TYPES.get(kind(dtype))
    if allowed is None:
        raise Refusal(
            f"Conversion of JSON Value to type: {dtype.name} is not known", 501
        )
    if not {type(leaf) for leaf in leaves} <= allowed:
        wrong = next(x for x in leaves if type(x) not in allowed)
        raise _type_error(wrong, dtype.name)
    if dtype.is_integer:
        for leaf in (min(leaves, default=0), max(leaves, default=0)):
            if not dtype.min <= leaf <= dtype.max:
                raise _type_error(leaf, dtype.name)
    try:
        # Floats that are too large become infinite, as in C.
        with np.errstate(over="ignore"):
            return np.array(leaves, dtype.as_numpy_dtype)
    except OverflowError:
        raise _type_error(max(leaves, key=abs), dtype.name) from None


_KINDS = {
    type(None): "Null",
    bool: "Boolean",
    dict: "Object",
    str: "String",
    int: "Number",
    float: "Number",
}


def _type_error(leaf: Any, expected: str) -> Refusal:
    return Refusal(
        f"JSON Value: {shown(leaf)} Type: {_KINDS[type(leaf)]} is not of "
        f"expected type: {expected}"
    )


# ---- :classify and :regress -------------------------------------------------


def takes_examples(signature: Signature) -> bool:
    """Whether a signature has the input of `:classify` and `:regress`."""
    return list(signature.inputs) == [_EXAMPLES]


def to_examples(body: bytes, signatures: Signatures, method: str) -> Request:
    """Parses a body of `:classify` or `:regress`."""
    asked = parse(body)
    signature = signatures.find(_signature_name(asked), method)
    if not takes_examples(signature):
        kind = "classification" if method == CLASSIFY else "regression"
        raise Refusal(
            f"Expected {kind} signature input to be {_EXAMPLES!r}. "
            f"Was: {', '.join(signature.inputs)}"
        )
    context = asked.get("context", {})
    examples = asked.get("examples")
    if not isinstance(context, dict):
        raise Refusal("'context' must be an object")
    if not isinstance(examples, list) or not examples:
        raise Refusal("'examples' must be a list of at least one object")
    serialized = np.empty(len(examples), object)
    for number, example in enumerate(examples):
        if not isinstance(example, dict):
            raise Refusal(f"Example {number} must be an object")
        twice = sorted(context.keys() & example.keys())
        if twice:
            raise Refusal(
                f"Feature {twice[0]} of 'context' must not be in example "
                f"{number} too"
            )
        whole = {**context, **example}
        features = {name: _feature(name, x) for name, x in whole.items()}
        serialized[number] = tf.train.Example(
            features=tf.train.Features(feature=features)
        ).SerializeToString()
    return Request(signature, {_EXAMPLES: serialized}, in_rows=True)


def _feature(name: str, value: Any) -> tf.train.Feature:
    leaves = value if isinstance(value, list) else [value]
    kinds = {type(leaf) for leaf in leaves}
    if kinds <= {str, dict}:
        values = tf.train.BytesList(value=map(_bytes, leaves))
        return tf.train.Feature(bytes_list=values)
    if kinds <= {int, bool}:
        integers = _numbers([int(leaf) for leaf in leaves], tf.int64)
        return tf.train.Feature(
            int64_list=tf.train.Int64List(value=integers.tolist())
        )
    if kinds <= {int, float}:
        numbers = _numbers(leaves, tf.float32)
        return tf.train.Feature(
            float_list=tf.train.FloatList(value=numbers.tolist())
        )
    raise Refusal(
        f"Feature: {name} must be a number or a string, or a list of one kind"
        f". Received: {shown(value)}"
    )
