"""The file export.json, which describes an exported model."""

from collections.abc import Mapping
from typing import Any

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.storage import json_files

FILE = "export.json"
# The hash of the vocabulary next to the model.
VOCAB_SHA256 = "vocab_sha256"

_TYPES: Mapping[str, type] = {
    "head": str,
    "do_lower_case": bool,
    "max_seq_length": int,
    VOCAB_SHA256: str,
    # Of some heads.
    "takes_pairs": bool,
    "needs_pairs": bool,
    "multi_label": bool,
    "long_documents": str,
    "window_stride": int,
    "scheme": str,
    "top_k": int,
    "features": list,
    "unit": str,
    "normalize": bool,
    "doc_stride": int,
    "max_query_length": int,
    "n_best_size": int,
    "max_answer_length": int,
    "version_2_with_negative": bool,
    "null_score_diff_threshold": float,
    # Of other runtimes.
    "format": str,
    "weights": str,
    "inputs": dict,
    "outputs": dict,
}
_TENSOR = {"dtype": str, "shape": list}
# The fields that may be null.
_OPTIONAL = ("window_stride", "null_score_diff_threshold")
# Head -> the fields that a model of another runtime needs.
_NEEDED = {
    "classification": (
        "takes_pairs",
        "multi_label",
        "long_documents",
        "window_stride",
    ),
    "tagging": ("scheme",),
    "masked_lm": ("top_k",),
    "encoder": ("features", "unit", "normalize"),
    "span": (
        "doc_stride",
        "max_query_length",
        "n_best_size",
        "max_answer_length",
        "version_2_with_negative",
        "null_score_diff_threshold",
    ),
}


def parse(data: bytes, path: str) -> dict[str, Any]:
    """Returns the content of the file at `path`; InputError if damaged."""
    return json_files.parse_object(data, path, **_TYPES)


def check_runtime(values: Mapping[str, Any], path: str) -> None:
    """Raises InputError unless the file at `path` describes a model of ids."""
    needed = [
        *("format", "inputs", "outputs", "max_seq_length"),
        *_NEEDED.get(values["head"], ()),
    ]
    missing = [
        name
        for name in needed
        if name not in values
        or (values[name] is None and name not in _OPTIONAL)
    ]
    if missing:
        raise InputError(
            f"{path} must have a value for `{missing[0]}`. Export the model "
            "again, or copy the whole folder again."
        )
    for side in ("inputs", "outputs"):
        for name, tensor in values[side].items():
            json_files.check(tensor, f"{path}, {side}.{name}", _TENSOR)
            if None in (tensor.get("dtype"), tensor.get("shape")):
                raise InputError(
                    f"{path}: {side}.{name} must have a dtype and a shape. "
                    "Export the model again, or copy the whole folder again."
                )


def check_vocab(contents: Mapping[str, bytes], path: str) -> None:
    """Checks the vocabulary next to a model against its description.

    Exports of earlier versions have no hash of it.

    Args:
        contents: Name -> content of the files next to the model.
        path: The folder of the model, for errors.

    Raises:
        InputError: The vocabulary is another one, or the description is
            damaged.
    """
    values = parse(contents[FILE], f"{path}, {FILE}")
    files = vocabularies.among(contents)
    expected = values.get(VOCAB_SHA256)
    if files is not None and expected not in (None, files.sha256):
        raise InputError(
            f"The vocabulary of {path} is not the one that the model was "
            f"exported with: {', '.join(files.contents)} changed. Copy the "
            "whole folder again, or export the model again. "
            f"Received: SHA-256 {files.sha256[:12]}, expected {expected[:12]}"
        )
