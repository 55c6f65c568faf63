"""Parses JSON tables: one object per line, or an array of objects.

Errors name the file and the line, as in `tasks.tables`.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.errors import InputError, shortened
from bert_tf.storage import input_files, json_files

# An array's opening bracket or the comma after an item, and white space.
_BETWEEN = re.compile(r"\s*[\[,]?\s*")


def of_line(where: str, line: int, text: str) -> dict[str, Any]:
    """Parses the object of a line."""
    try:
        value = json_files.DECODER.decode(text)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    # Also raised for a number of 5,000 digits, or deeply nested lists.
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", error)
        if line == 1:
            start = text[:64].encode(errors="replace")
            problem = input_files.explain_text(start) or problem
        raise InputError(
            f"{where}: the line is not JSON ({problem}). "
            "Expected one object per line, or an array of objects."
        ) from error
    return _checked_object(where, value)


def array(
    path: str, line: int, text: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the line number and the value of each object of an array.

    Args:
        path: The file, for error messages.
        line: Line number of the text's first line.
        text: The array.
    """
    end = 0
    while True:
        start = next(_BETWEEN.finditer(text, end)).end()
        line += text.count("\n", end, start)
        where = f"{path}, line {line}"
        if text[start : start + 1] == "]" and not text[start + 1 :].strip():
            return
        try:
            value, end = json_files.DECODER.raw_decode(text, start)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{where}: the array is not JSON "
                f"({getattr(error, 'msg', error)}). Expected an array of "
                "objects."
            ) from error
        yield line, _checked_object(where, value)
        line += text.count("\n", start, end)


def _checked_object(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(
            f"{where}: expected a JSON object, one per line or in one array. "
            f"Received: {shortened(repr(value))}"
        )
    return value


def plain(
    where: str, row: Mapping[str, Any], key: str, may_be_list: bool
) -> str:
    """Returns a JSON value as a TSV cell: 1 -> "1", true -> "true"."""
    value = row[key]
    values = value if may_be_list and isinstance(value, list) else [value]
    for each in values:
        if is_missing(each) or not isinstance(each, str | int | float):
            raise InputError(
                f"{where}: {key!r} is no text. Expected a text or a number"
                f"{', or a list of them' * may_be_list}. "
                f"Received: {key}={json.dumps(value)[:80]}. Write one, or "
                "remove the line."
            )
    texts = [x if isinstance(x, str) else json.dumps(x) for x in values]
    if values is value:
        return json.dumps(texts, ensure_ascii=False)
    return texts[0]


def is_missing(value: Any) -> bool:
    """Whether a JSON value is null, also as NaN (pandas, Python)."""
    return value is None or (isinstance(value, float) and math.isnan(value))
