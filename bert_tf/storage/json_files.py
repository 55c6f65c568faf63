"""Checks the JSON of files: objects whose fields have known types."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.errors import InputError, repeated, shortened
from bert_tf.storage import input_files

# A type of Python -> its name in errors.
_TYPES = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
}


def parse(
    data: bytes,
    path: str,
    what: str = "whole JSON",
    way_out: str = "Copy or download it again.",
    make_object: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Returns the value in the JSON of a file; InputError if it is damaged.

    The error says that the file is not `what`, and ends with `way_out`.
    `make_object` makes objects, such as `unique_keys`, by default dicts.
    """
    try:
        return json.loads(data, object_pairs_hook=make_object)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    # Bad encoding or syntax; deeply nested lists are a RecursionError.
    except (ValueError, RecursionError) as error:
        problem = input_files.explain_text(data[:64]) or str(error)
        raise InputError(
            f"{path} is not {what}: {problem}. {way_out}"
        ) from error


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a JSON object; InputError if a key appears twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = repeated(name for name, _ in pairs)[0]
        raise InputError(
            f"the key {twice!r} appears twice. Remove one. Received: "
            f"{shortened(json.dumps(value))}"
        )
    return value


# json.loads would make a decoder for each text.
DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def parse_object(data: bytes, path: str, **types: type) -> dict[str, Any]:
    """Returns the object in the JSON of a file; InputError if it is damaged.

    Args:
        data: The content of the file.
        path: Its path, for errors.
        **types: Types of fields. A field may be missing or null.
    """
    values = parse(data, path)
    check(values, path, types)
    return values


def check(values: Any, path: str, types: Mapping[str, type]) -> None:
    """Raises InputError unless values are an object with such fields."""
    if not isinstance(values, dict):
        raise InputError(
            f"{path} must hold one JSON object. Copy or download it again. "
            f"Received: {repr(values)[:40]}"
        )
    for name, kind in types.items():
        value = values.get(name)
        if value is not None and not _is_a(value, kind):
            raise InputError(
                f"{path}: `{name}` must be {_TYPES[kind]}. Copy or download it "
                f"again. Received: {name}={repr(value)[:40]}"
            )


def _is_a(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
