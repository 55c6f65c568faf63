"""Reads examples from tables: TSV as in GLUE, CSV, JSON.

Every error names the file and the line.
"""

import csv
import dataclasses
import io
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bert_tf import terminals
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files
from bert_tf.tasks import (
    label_column,
    left_out_rows,
    table_columns,
    table_formats,
    table_json,
)

from absl import logging

# csv's default limit of 131,072 characters rejects long documents; without one,
# a stray quote reads the rest of a file into memory.
_LONGEST_CSV_FIELD = 32 << 20


@dataclasses.dataclass(frozen=True)
class Example:
    """A text or pair of texts with its label.

    `guid` is split and line, such as "dev-12", or the user's id. `text_b` is ""
    for single texts. `label` is a class, a score, several classes, or None if
    it is hidden.
    """

    guid: str
    text_a: str
    text_b: str = ""
    label: label_column.Label = None


class Row(NamedTuple):
    """A row of a table, with all of its columns.

    Attributes:
        line: Number of its first line, from 1.
        cells: The whole row: texts, or the object for JSON lines.
        `places`: The caller's column name -> its position in `cells`.
        texts: The caller's column name -> its text.
    """

    line: int
    cells: Any
    places: Mapping[str, Any]
    texts: dict[str, str]


def read_columns(
    path: str, columns: Mapping[str, str | int], **how: Any
) -> Iterator[tuple[int, dict[str, str]]]:
    """Reads some columns of a table, local or in a bucket.

    Takes the arguments of `read_rows` and raises the same errors.

    Yields:
        Line number from 1, and the text of each of `columns` that is present;
        for a list, the JSON of its texts.
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
    left_out: left_out_rows.LeftOut | None = None,
    is_own: bool = False,
) -> Iterator[Row]:
    """Reads whole rows, and finds some of their columns.

    Args:
        path: The file.
        columns: The caller's column name -> its name in the header (or its JSON
            key), or its number from 0.
        file_format: One of `table_formats.FORMATS`.
        has_header: Whether the first row names the columns (TSV and CSV).
        skip_short_rows: Whether to skip rows that lack a column, with a
            warning.
        lists: The `columns` that may be lists in JSON lines.
        optional: The `columns` that a table or a JSON object may lack.
        left_out: Counts bad rows; if None, bad rows are errors.
        is_own: Whether the file is the user's own: warns of a spreadsheet's
            quotes in TSV.

    Raises:
        FileNotFoundError: There is no such file.
        InputError: The file is empty or not UTF-8, a row or the header lacks a
            column, a row is longer than the first, or a JSON value is not text.
    """
    input_files.check_can_be_read_again(path)
    left_out = left_out or left_out_rows.LeftOut(path, strict=True)
    if file_format == "jsonl":
        yield from _json_rows(path, columns, lists, optional, left_out)
        return
    positions: dict[str, int] | None = None
    number_of_rows = width = short = first_short = quoted = first_quoted = 0
    for line, row in _text_rows(path, file_format, has_header, left_out):
        width = width or len(row)
        if positions is None:
            there = table_columns.there(
                path, columns, optional, row, has_header
            )
            if has_header:
                positions = table_columns.positions(path, row, there)
                continue
            positions = table_columns.numbers(path, there)
        least = max(positions.values()) + 1
        if not skip_short_rows:
            where = f"{path}, line {line}"
            try:
                table_columns.check_width(where, row, least, width)
            except InputError as error:
                left_out.add(error)
                continue
        number_of_rows += 1
        if len(row) < least:
            short += 1
            first_short = first_short or line
            continue
        texts = {name: row[at] for name, at in positions.items()}
        if any(map(table_formats.is_quoted, texts.values())):
            quoted += 1
            first_quoted = first_quoted or line
        yield Row(line, row, positions, texts)
    left_out.check(number_of_rows)
    if not number_of_rows:
        raise InputError(
            f"{path}: the file has no rows. Expected at least one row"
            f"{' under the header' if has_header else ''}."
        )
    if short:
        terminals.warn_once(
            f"{path}: skipped {short} rows that lack a column, the first at "
            f"line {first_short}."
        )
    if quoted and is_own and file_format == "tsv":
        terminals.warn_once(
            f"{path}: texts in quotes with doubled quotes inside: {quoted}, "
            f"the first at line {first_quoted}. Quotes are characters of the "
            "text in TSV. If a program put them there, such as Excel, save the "
            "table as CSV instead."
        )


def read_header(path: str, file_format: str) -> list[str]:
    """Returns the first row of a TSV or CSV file, whose rows are read later."""
    input_files.check_can_be_read_again(path)
    return next((row for _, row in _cells(path, file_format, True)), [])


def _cells(
    path: str,
    file_format: str,
    has_header: bool,
    undecoded: list[InputError] | None = None,
) -> Iterator[tuple[int, list[str]]]:
    if file_format == "csv":
        return _csv_rows(path, has_header, undecoded)
    return _tsv_rows(path, undecoded)


def _text_rows(
    path: str,
    file_format: str,
    has_header: bool,
    left_out: left_out_rows.LeftOut,
) -> Iterator[tuple[int, list[str]]]:
    """Yields rows of text, ignoring empty lines at the end of the file.

    Other empty lines, and rows after the first that are not UTF-8, are bad.
    """
    undecoded: list[InputError] | None = None if left_out.strict else []
    blank_line = None
    is_first = True
    for line, row in _cells(path, file_format, has_header, undecoded):
        if undecoded:
            if is_first:
                raise undecoded[0]
            left_out.add(undecoded[0])
            undecoded.clear()
            continue
        if is_first and row:
            table_columns.check_is_row(path, row)
        is_first = False
        if not row:
            blank_line = blank_line or line
            continue
        if blank_line is not None:
            left_out.add(
                InputError(
                    f"{path}, line {blank_line}: the line is empty. Expected a "
                    "row. Remove the line."
                )
            )
            blank_line = None
        yield line, row


def lines(
    path: str, undecoded: list[InputError] | None = None
) -> Iterator[tuple[int, str]]:
    """Yields numbered lines of UTF-8, or UTF-16 with a byte-order mark.

    Errors of lines in other encodings are raised, or added to `undecoded`. Only
    a line feed ends a line, as texts contain U+2028, U+0085 and such.
    """
    input_files.check(path)
    if file_systems.is_special(path):
        logging.info("Waiting for the program that writes to %s.", path)
    with file_systems.find_backend(path).open(path, "rb") as file:
        yield from decoded(file, path, undecoded)


def decoded(
    file: Iterable[bytes],
    path: str,
    undecoded: list[InputError] | None = None,
) -> Iterator[tuple[int, str]]:
    """Yields numbered lines of an open file, as `lines` does."""
    rest: Iterator[bytes] = iter(file)
    start = [*itertools.islice(rest, 1)]
    # Another program may write each line only after it reads an answer.
    if start and b"\r" in start[0].rstrip(b"\r\n"):
        start += itertools.islice(rest, 1)
    is_only = len(start) == 1
    rest = itertools.chain(start, rest)
    for number, line in enumerate(rest, start=1):
        if number == 1 and table_formats.is_utf_16(line):
            yield from enumerate(_utf_16_lines(path, line, rest), start=1)
            return
        problem = input_files.explain_text(line[:64]) if number == 1 else ""
        if "git-lfs" in problem or "UTF-16" in problem:  # It is valid UTF-8.
            raise InputError(f"{path} can't be read: {problem}.")
        encoding = "utf-8-sig" if number == 1 else "utf-8"
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            if problem:
                raise InputError(f"{path} can't be read: {problem}.") from error
            found = InputError(
                f"{path}, line {number}: the text is not UTF-8 "
                f"({error.reason} at byte {error.start} of the line; convert "
                "it by iconv -f CP1252 -t UTF-8 FILE > NEW_FILE). CP1252 is "
                "Western European Windows; Chinese is GB18030."
            )
            if undecoded is None:
                raise found from error
            undecoded.append(found)
            text = line.decode(encoding, errors="replace")
        if number == 1 and is_only:
            input_files.check_line_ends(path, text)
        yield number, text


def _utf_16_lines(
    path: str, first: bytes, rest: Iterable[bytes]
) -> Iterator[str]:
    try:
        text = b"".join([first, *rest]).decode("utf-16")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} can't be read: it begins as UTF-16 and is not "
            f"({error.reason}). Convert the file to UTF-8."
        ) from error
    if "\n" not in text.removesuffix("\n"):
        input_files.check_line_ends(path, text)
    return io.StringIO(text, newline="\n")


def check_text(value: object, where: str) -> None:
    """Raises InputError if a JSON value has text that is not valid UTF-8.

    JSON escapes can encode half a surrogate pair, which TensorFlow rejects
    without naming its location. `value` may be nested lists and objects.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: a text holds half a surrogate pair (such as \\ud83d "
            "alone), which no UTF-8 text has. Remove it."
        ) from error


def _tsv_rows(
    path: str, undecoded: list[InputError] | None
) -> Iterator[tuple[int, list[str]]]:
    """Splits at tabs; quotes are plain characters, as in GLUE's files."""
    for number, line in lines(path, undecoded):
        text = line.removesuffix("\n").removesuffix("\r")
        yield number, text.split("\t") if text else []


def _csv_rows(
    path: str, has_header: bool, undecoded: list[InputError] | None
) -> Iterator[tuple[int, list[str]]]:
    """Splits at commas, or at semicolons if the header has them.

    Quoted fields may contain separators and line breaks. Quotes are double,
    unless the header has single ones.
    """
    csv.field_size_limit(_LONGEST_CSV_FIELD)
    texts = (line for _, line in lines(path, undecoded))
    first = next(texts, "")
    delimiter = table_formats.delimiter(first, has_header)
    quote = table_formats.quote(first, delimiter) if has_header else '"'
    reader = csv.reader(
        itertools.chain([first], texts),
        delimiter=delimiter,
        quotechar=quote,
        strict=True,
    )
    while True:
        first_line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            kind = "double" if quote == '"' else "single"
            raise InputError(
                f"{path}, line {first_line}: the row is not valid CSV "
                f"({error}). Put fields with quotes or commas in {kind} "
                f"quotes, and double the quotes inside ({quote * 2})."
            ) from error
        if row is None:
            return
        yield first_line, row


def json_objects(
    path: str, left_out: left_out_rows.LeftOut | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the line and the value of each object, one per line or an array.

    Skips empty lines. Raises FileNotFoundError for a missing file, and
    InputError for anything but an object, unless `left_out` counts the line.
    """
    left_out = left_out or left_out_rows.LeftOut(path, strict=True)
    undecoded: list[InputError] = []
    numbered = lines(path, None if left_out.strict else undecoded)
    is_first = True
    for line, text in numbered:
        if not text.strip():
            continue
        if is_first and text.lstrip().startswith("["):
            text += "".join(rest for _, rest in numbered)
            if undecoded:
                raise undecoded[0]
            yield from table_json.array(path, line, text)
            return
        is_first = False
        try:
            if undecoded:
                raise undecoded.pop()
            value = table_json.of_line(f"{path}, line {line}", line, text)
        except InputError as error:
            left_out.add(error)
        else:
            yield line, value


def _json_rows(
    path: str,
    columns: Mapping[str, str | int],
    lists: Collection[str],
    optional: Collection[str],
    left_out: left_out_rows.LeftOut,
) -> Iterator[Row]:
    number_of_rows = 0
    for line, value in json_objects(path, left_out):
        try:
            row = _json_row(path, line, value, columns, lists, optional)
        except InputError as error:
            left_out.add(error)
        else:
            number_of_rows += 1
            yield row
    left_out.check(number_of_rows)
    if not number_of_rows:
        raise InputError(
            f"{path}: the file has no rows. Expected JSON objects."
        )


def _json_row(
    path: str,
    line: int,
    row: Mapping[str, Any],
    columns: Mapping[str, str | int],
    lists: Collection[str],
    optional: Collection[str],
) -> Row:
    where = f"{path}, line {line}"
    there = {
        name: str(key)
        for name, key in columns.items()
        if name not in optional or not table_json.is_missing(row.get(str(key)))
    }
    missing = [key for key in there.values() if key not in row]
    if missing:
        raise InputError(
            f"{where}: keys are missing: {', '.join(missing)}. "
            f"{table_columns.suggestion(missing[0], row)}"
            f"Received: keys {', '.join(row) or 'none'}"
        )
    texts = {
        name: table_json.plain(where, row, key, name in lists)
        for name, key in there.items()
    }
    check_text(texts, where)
    return Row(line, row, there, texts)
