"""JSON Schemas of requests to a signature, and of its responses.

They describe what `json_requests` accepts and `json_answers` writes, from the
same signatures. JSON Schema cannot express that lists must have equal lengths,
that rows must have the same keys as the first one, or the range of a model's
ids.
"""

from typing import Any

from bert_tf.server import json_answers, json_requests
from bert_tf.server.refusals import Refusal
from bert_tf.server.signature_defs import (
    CLASSIFY,
    PREDICT,
    Signature,
    Signatures,
    Tensor,
)

import tensorflow as tf

Schema = dict[str, Any]

_BYTES = {"$ref": "#/components/schemas/Bytes"}
_FEATURES = {"$ref": "#/components/schemas/Features"}
_TEXT: Schema = {"anyOf": [{"type": "string"}, _BYTES]}
# Shared schemas, which the schemas of signatures refer to.
COMPONENTS: dict[str, Schema] = {
    "Bytes": {
        "type": "object",
        "description": "Bytes in base 64.",
        "required": ["b64"],
        "properties": {"b64": {"type": "string", "contentEncoding": "base64"}},
        "additionalProperties": False,
    },
    "Features": {
        "type": "object",
        "description": "The features of a tf.Example by name.",
        "additionalProperties": {
            "anyOf": [
                *({"type": x} for x in ("number", "boolean")),
                *_TEXT["anyOf"],
                {"type": "array", "items": {"type": ["number", "boolean"]}},
                {"type": "array", "items": _TEXT},
            ]
        },
    },
}


def object_of(
    required: list[str] | None = None, /, **properties: Schema
) -> Schema:
    """Returns the schema of an object.

    Args:
        required: Names of required properties; by default all.
        **properties: Schemas of the properties by name.
    """
    return {
        "type": "object",
        "required": list(properties) if required is None else required,
        "properties": properties,
    }


def _list(items: Schema, size: int | None = None) -> Schema:
    sizes = {} if size is None else {"minItems": size, "maxItems": size}
    return {"type": "array", "items": items, **sizes}


def _any(schemas: list[Schema]) -> Schema:
    """Returns a schema for any of the given ones, without duplicates."""
    unique = [x for i, x in enumerate(schemas) if x not in schemas[:i]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _nested(value: Schema, tensor: Tensor, is_row: bool) -> Schema:
    """Returns the schema of nested lists of values, or of one row."""
    if tensor.shape is None:
        return {}
    for size in reversed(tensor.shape[is_row:]):
        value = _list(value, size)
    return value


# ---- Requests ---------------------------------------------------------------


def request(signatures: Signatures, method: str) -> Schema:
    """Returns the schema of the bodies of a method."""
    by_default = default(signatures, method)
    bodies = []
    for signature in of_method(signatures, method):
        for body in _bodies(signature, method):
            body["title"] = signature.name
            name = {"signature_name": {"const": signature.name}}
            body["properties"] = {**name, **body["properties"]}
            if signature.name != by_default:
                body["required"] = ["signature_name", *body["required"]]
            bodies.append(body)
    return _any(bodies)


def default(signatures: Signatures, method: str) -> str:
    """Returns the signature of requests that specify none, or ""."""
    try:
        return signatures.find(None, method).name
    except Refusal:
        return ""


def of_method(signatures: Signatures, method: str) -> list[Signature]:
    """Returns the signatures that a method can be used with."""
    return [
        x
        for x in signatures.by_name.values()
        if method == PREDICT
        or (x.method == method and json_requests.takes_examples(x))
    ]


def _bodies(signature: Signature, method: str) -> list[Schema]:
    if method != PREDICT:
        examples = {**_list(_FEATURES), "minItems": 1}
        return [object_of(["examples"], examples=examples, context=_FEATURES)]
    columns = object_of(inputs=_columns(signature))
    rows = object_of(instances=_any(_rows(signature)))
    # Exactly one of the two is allowed.
    columns["not"] = {"required": ["instances"]}
    rows["not"] = {"required": ["inputs"]}
    has_rows = all(x.has_rows for x in signature.inputs.values())
    return [rows, columns] if has_rows else [columns]


def _columns(signature: Signature) -> Schema:
    only = json_requests.only_input(signature)
    values = [_input(signature.inputs[only], False)] if only else []
    return _any([*values, _inputs(signature, False)])


def _rows(signature: Signature) -> list[Schema]:
    only = json_requests.only_input(signature)
    rows = [_input(signature.inputs[only], True)] if only else []
    rows.append(_inputs(signature, True))
    return [{**_list(x), "minItems": 1} for x in rows]


def _inputs(signature: Signature, is_row: bool) -> Schema:
    """Returns the schema of an object with the inputs by name."""
    needed = [x for x in signature.inputs if x not in signature.defaults]
    inputs = {
        name: _input(tensor, is_row)
        for name, tensor in signature.inputs.items()
    }
    return {
        **object_of(needed, **inputs),
        "additionalProperties": False,
        "minProperties": 1,
    }


def _input(tensor: Tensor, is_row: bool) -> Schema:
    kind = json_requests.kind(tensor.dtype)
    value: Schema = {"type": kind}
    if kind == "string":
        value = _TEXT
    elif kind == "integer":
        value |= {"minimum": tensor.dtype.min, "maximum": tensor.dtype.max}
    elif not kind:
        value = {"not": {}}
    return _nested(value, tensor, is_row)


# ---- Responses --------------------------------------------------------------


def response(signatures: Signatures, method: str) -> Schema:
    """Returns the schema of the responses of a method."""
    if method == PREDICT:
        schemas = []
        for signature in signatures.by_name.values():
            if signature.has_rows:
                row = _outputs(signature, True)
                schemas.append(object_of(predictions=_list(row)))
            columns = _outputs(signature, False)
            schemas.append(object_of(outputs=columns))
        return _any(schemas)
    result: Schema = {"type": "number"}
    if method == CLASSIFY:
        pair = [{"type": "string"}, {"type": "number"}]
        result = _list({**_list({}, 2), "prefixItems": pair})
    return object_of(results=_list(result))


def _outputs(signature: Signature, is_row: bool) -> Schema:
    outputs = {
        name: _nested(_output(name, tensor), tensor, is_row)
        for name, tensor in sorted(signature.outputs.items())
    }
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    return {
        **object_of(**outputs),
        "additionalProperties": False,
    }


def _output(name: str, tensor: Tensor) -> Schema:
    if tensor.dtype == tf.string and json_answers.is_binary(name):
        return _BYTES
    return {"type": json_requests.kind(tensor.dtype) or "number"}
