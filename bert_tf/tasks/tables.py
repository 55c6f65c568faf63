"""Examples, and the files that hold them: TSV as GLUE writes it, CSV, JSONL.

Every error names the file and the line.
"""

import csv
import dataclasses
import json
import math
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bert_tf.errors import InputError
from bert_tf.storage import input_files
from bert_tf.tasks import labels, table_columns

from absl import logging
from etils import epath

FORMATS = ("tsv", "csv", "jsonl")
_FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
# csv's own limit of 131,072 characters refuses long documents.
_LONGEST_CSV_FIELD = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Example:
    """One text or pair of texts with its label, None where the task hides it.

    `guid` is split and line, such as "dev-12", or the user's id. `text_b` is ""
    where there is one text only. `label` is a class, a score, or several
    classes.
    """

    guid: str
    text_a: str
    text_b: str = ""
    label: labels.Label = None


class Row(NamedTuple):
    """A row of a table, with all of its columns.

    Attributes:
        line: Number from 1 of its first line.
        cells: All that stands in it: texts, or of JSON lines the object.
        places: What the caller calls a column -> its place in `cells`.
        texts: What the caller calls a column -> its text.
    """

    line: int
    cells: Any
    places: Mapping[str, Any]
    texts: dict[str, str]


def format_of(path: str) -> str:
    """Returns the format that a file's name promises; TSV if none."""
    return _FORMAT_OF_SUFFIX.get(pathlib.PurePath(path).suffix.lower(), "tsv")


def read_columns(
    path: str, columns: Mapping[str, str | int], **how: Any
) -> Iterator[tuple[int, dict[str, str]]]:
    """Reads some columns of a table, local or in a bucket.

    Arguments and errors are those of `read_rows`.

    Yields:
        Line number from 1, and the text of each of `columns` that is there; of
        a list the JSON of its texts.
    """
    for row in read_rows(path, columns, **how):
        yield row.line, row.texts


def read_rows(
    path: str,
    columns: Mapping[str, str | int],
    *,
    file_format: str = "tsv",
    has_header: bool = True,
    skip_short_rows: bool = False,
    lists: Collection[str] = (),
    optional: Collection[str] = (),
) -> Iterator[Row]:
    """Reads rows whole, and finds some of their columns.

    Args:
        path: The file.
        columns: What the caller calls a column -> its name in the header (or
            its JSON key), or its number from 0.
        file_format: One of FORMATS.
        has_header: Whether the first row names the columns (TSV and CSV).
        skip_short_rows: Whether to skip rows that lack a column, with a
            warning.
        lists: Those of `columns` that may be lists in JSON lines.
        optional: Those that a table, or a JSON object, may lack.

    Raises:
        FileNotFoundError: There is no such file.
        InputError: The file is empty or not UTF-8, a row or the header lacks a
            column, a row is longer than the first, or a JSON value is no text.
    """
    if file_format == "jsonl":
        yield from _json_rows(path, columns, lists, optional)
        return
    positions: dict[str, int] | None = None
    short_lines: list[int] = []
    number_of_rows = width = 0
    for line, row in _without_blank_end(path, _cells(path, file_format)):
        width = width or len(row)
        if positions is None:
            there = table_columns.there(columns, optional, row, has_header)
            if has_header:
                positions = table_columns.positions(path, row, there)
                continue
            positions = table_columns.numbers(path, there)
        number_of_rows += 1
        least = max(positions.values()) + 1
        if not skip_short_rows:
            where = f"{path}, line {line}"
            table_columns.check_width(where, row, least, width)
        elif len(row) < least:
            short_lines.append(line)
            continue
        texts = {name: row[at] for name, at in positions.items()}
        yield Row(line, row, positions, texts)
    _check_found(path, number_of_rows, short_lines, has_header)


def read_header(path: str, file_format: str) -> list[str]:
    """Returns the first row of a TSV or CSV."""
    return next((row for _, row in _cells(path, file_format)), [])


def _cells(path: str, file_format: str) -> Iterator[tuple[int, list[str]]]:
    return _csv_rows(path) if file_format == "csv" else _tsv_rows(path)


def _check_found(
    path: str, number_of_rows: int, short_lines: list[int], has_header: bool
) -> None:
    """Raises InputError if there are no rows; warns of those left out."""
    if not number_of_rows:
        raise InputError(
            f"{path}: the file has no rows. Expected at least one row"
            f"{' under the header' if has_header else ''}."
        )
    if short_lines:
        logging.warning(
            "%s: skipped %d rows that lack a column, the first at line %d.",
            path,
            len(short_lines),
            short_lines[0],
        )


def lines(path: str) -> Iterator[tuple[int, str]]:
    """Yields numbered lines, without a byte-order mark at the start.

    Only a line feed ends a line: texts hold U+2028, U+0085 and such.
    """
    input_files.check(path)
    with epath.Path(path).open("rb") as file:
        yield from decoded(file, path)


def decoded(file: Iterable[bytes], path: str) -> Iterator[tuple[int, str]]:
    """Yields numbered lines as `lines` does, of an open file."""
    for number, line in enumerate(file, start=1):
        problem = input_files.explain_text(line[:64]) if number == 1 else ""
        if "git-lfs" in problem:
            raise InputError(f"{path} can't be read: {problem}.")
        try:
            yield (
                number,
                line.decode("utf-8-sig" if number == 1 else "utf-8"),
            )
        except UnicodeDecodeError as error:
            if problem:
                raise InputError(f"{path} can't be read: {problem}.") from error
            raise InputError(
                f"{path}, line {number}: the text is not UTF-8 "
                f"({error.reason} at byte {error.start} of the line). "
                "Convert the file to UTF-8."
            ) from error


def check_text(value: object, where: str) -> None:
    """Raises InputError if a JSON value has a text that can't be UTF-8.

    JSON's escapes can say half a surrogate pair, which TensorFlow refuses
    without a word of where it stands. `value` may have lists and objects.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: a text holds half a surrogate pair (such as \\ud83d "
            "alone), which no UTF-8 text has. Remove it."
        ) from error


def _tsv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Splits at tabs; quotes are plain characters, as in GLUE's files."""
    for number, line in lines(path):
        text = line.removesuffix("\n").removesuffix("\r")
        yield number, text.split("\t") if text else []


def _csv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Splits at commas; quoted fields may hold commas and line ends."""
    csv.field_size_limit(_LONGEST_CSV_FIELD)
    reader = csv.reader((line for _, line in lines(path)), strict=True)
    while True:
        first_line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{path}, line {first_line}: the row is not valid CSV "
                f"({error}). Put fields with quotes or commas in double "
                'quotes, and double the quotes inside ("").'
            ) from error
        if row is None:
            return
        yield first_line, row


def _without_blank_end(
    path: str, rows: Iterable[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    """Drops empty lines at the end of a file; refuses them before it."""
    blank_line = None
    for line, row in rows:
        if not row:
            blank_line = blank_line or line
            continue
        if blank_line is not None:
            raise InputError(
                f"{path}, line {blank_line}: the line is empty. Expected a "
                "row. Remove the line."
            )
        yield line, row


def json_objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields each line's number and object; InputError if it is none.

    Empty lines are left out; a missing file is a FileNotFoundError.
    """
    for line, text in lines(path):
        if not text.strip():
            continue
        where = f"{path}, line {line}"
        try:
            row = json.loads(text)
        # Also a number of 5,000 digits, or lists in lists without end.
        except (ValueError, RecursionError) as error:
            problem = getattr(error, "msg", error)
            if line == 1:
                start = text[:64].encode(errors="replace")
                problem = input_files.explain_text(start) or problem
            raise InputError(
                f"{where}: the line is not JSON ({problem}). "
                "Expected one object per line."
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: expected a JSON object, one per line. "
                f"Received: {labels.shortened(repr(row))}"
            )
        yield line, row


def _json_rows(
    path: str,
    columns: Mapping[str, str | int],
    lists: Collection[str],
    optional: Collection[str],
) -> Iterator[Row]:
    number_of_rows = 0
    for line, row in json_objects(path):
        number_of_rows += 1
        where = f"{path}, line {line}"
        there = {
            name: str(key)
            for name, key in columns.items()
            if name not in optional or not _is_missing(row.get(str(key)))
        }
        missing = [key for key in there.values() if key not in row]
        if missing:
            raise InputError(
                f"{where}: keys are missing: {', '.join(missing)}. "
                f"Received: keys {', '.join(row) or 'none'}"
            )
        texts = {
            name: _plain(where, row, key, name in lists)
            for name, key in there.items()
        }
        check_text(texts, where)
        yield Row(line, row, there, texts)
    if not number_of_rows:
        raise InputError(
            f"{path}: the file has no rows. Expected JSON objects."
        )


def _plain(
    where: str, row: Mapping[str, Any], key: str, may_be_list: bool
) -> str:
    """A JSON value as a TSV would hold it: 1 -> "1", true -> "true"."""
    value = row[key]
    values = value if may_be_list and isinstance(value, list) else [value]
    for each in values:
        if _is_missing(each) or not isinstance(each, str | int | float):
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


def _is_missing(value: Any) -> bool:
    """Whether a JSON value is null, as pandas writes it, or Python's NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))
