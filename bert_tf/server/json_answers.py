"""Formats answers as JSON, as TensorFlow Serving's json_tensor.cc does.

Shapes: B rows, C classes.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from bert_tf.server.refusals import Refusal

import numpy as np

Outputs = Mapping[str, np.ndarray]
_BINARY = "_bytes"  # Suffix of the names of outputs that are not text.


def of_predict(outputs: Outputs, in_rows: bool) -> str:
    """Formats an answer to `:predict`; omits the name of a single output.

    NaN and infinite numbers are written as NaN, Infinity and -Infinity.
    """
    values = {name: _values(name, outputs[name]) for name in sorted(outputs)}
    if not in_rows:
        columns = values if len(values) > 1 else next(iter(values.values()))
        return json.dumps({"outputs": columns}, ensure_ascii=False)
    sizes = set()
    for name, array in outputs.items():
        if not array.shape:
            raise Refusal(f"Tensor name: {name} has no shape information")
        sizes.add(len(array))
    if len(sizes) > 1:
        raise Refusal(
            "Tensors have inconsistent batch sizes, so that there are no rows: "
            "ask by 'inputs' instead of 'instances'"
        )
    rows: list[Any]
    if len(values) == 1:
        (rows,) = values.values()
    else:
        rows = [
            dict(zip(values, row, strict=True))
            for row in zip(*values.values(), strict=True)
        ]
    return json.dumps({"predictions": rows}, ensure_ascii=False)


def of_classify(outputs: Outputs) -> str:
    """Formats an answer to `:classify`: `classes` and `scores`, [B, C]."""
    known = {
        name: outputs[name] for name in ("classes", "scores") if name in outputs
    }
    if not known:
        raise Refusal("Expected classification signature to have outputs")
    shape = next(iter(known.values())).shape
    if len(shape) != 2 or any(x.shape != shape for x in known.values()):
        raise Refusal("Expected classes and scores of shape [batch, classes]")
    labels = _values(
        "classes", known.get("classes", np.full(shape, b"", object))
    )
    scores = _values("scores", known.get("scores", np.zeros(shape, np.float32)))
    results = [
        [list(pair) for pair in zip(*row, strict=True)]
        for row in zip(labels, scores, strict=True)
    ]
    return json.dumps({"results": results}, ensure_ascii=False)


def of_regress(outputs: Outputs) -> str:
    """Formats an answer to `:regress`: `outputs`, [B] or [B, 1]."""
    scores = outputs.get("outputs")
    if scores is None or scores.shape not in (
        (len(scores),),
        (len(scores), 1),
    ):
        raise Refusal("Expected regression output of shape [batch]")
    return json.dumps({"results": _values("outputs", scores.reshape(-1))})


def is_binary(name: str) -> bool:
    """Whether strings of an output are bytes, to be encoded in base64."""
    return name.endswith(_BINARY)


def _values(name: str, array: np.ndarray) -> Any:
    """Converts an array to JSON values."""
    if array.dtype == object:
        as_text = _in_base64 if is_binary(name) else _decoded
        flat = np.empty(array.size, object)
        flat[:] = [as_text(x) for x in array.ravel()]
        return flat.reshape(array.shape).tolist()
    if array.dtype.kind in "biu":
        return array.tolist()
    if array.dtype != np.float64:
        # The shortest decimals with the same value: 0.2, not 0.2000000003.
        array = array.astype(np.float32).astype("U32").astype(np.float64)
    return array.tolist()


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")


def _in_base64(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode("ascii")}
