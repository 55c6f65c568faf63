"""The formats of tables: TSV as in GLUE, CSV and JSON."""

import json
import os
import pathlib
import re

from bert_tf.storage import file_systems

from absl import logging

FORMATS = ("tsv", "csv", "jsonl")
_FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_MAX_FIRST_LINE = 1 << 20
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UTF_32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


def of_name(path: str) -> str:
    """Returns the format for a file's extension, by default TSV."""
    return _FORMAT_OF_SUFFIX.get(pathlib.PurePath(path).suffix.lower(), "tsv")


def find(path: str, has_header: bool = True) -> str:
    """Detects the format of a file by its name and its first line.

    JSON is recognized under any name. A header with semicolons is CSV.
    """
    named = of_name(path)
    first = _first_line(path)
    if named != "jsonl" and _is_json(first):
        logging.info("Reading %s as JSON.", path)
        return "jsonl"
    is_split = "\t" in first and named == "tsv"
    if (
        named != "jsonl"
        and not is_split
        and delimiter(first, has_header) == ";"
    ):
        logging.info("Reading %s as CSV, with semicolons.", path)
        return "csv"
    return named


def find_delimiter(path: str, has_header: bool = True) -> str:
    """Detects the delimiter of a CSV file by its first line."""
    return delimiter(_first_line(path), has_header)


def delimiter(first_line: str, has_header: bool = True) -> str:
    """Returns the delimiter of a CSV file: a comma or a semicolon."""
    names = re.sub('"[^"]*"', "", first_line)
    return ";" if has_header and ";" in names and "," not in names else ","


def quote(first_line: str, separator: str) -> str:
    """Returns the quote of a CSV file: ' if all names in the header have it."""
    names = first_line.strip().split(separator)
    is_single = all(re.fullmatch("'[^']*'", name) for name in names)
    return "'" if is_single and len(names) > 1 else '"'


def is_quoted(text: str) -> bool:
    """Returns whether a text is quoted as in CSV, with quotes inside."""
    inner = text[1:-1]
    is_around = len(text) > 2 and text[0] == text[-1] == '"'
    return is_around and '""' in inner and '"' not in inner.replace('""', "")


def is_utf_16(start: bytes) -> bool:
    """Whether a file begins with the UTF-16 byte-order mark."""
    return start.startswith(_UTF_16) and not start.startswith(_UTF_32)


def _first_line(path: str) -> str:
    system = file_systems.find_backend(path)
    # A pipe can be read only once.
    is_file = file_systems.is_remote(path) or os.path.isfile(path)
    if not is_file or not system.exists(path):
        return ""
    with system.open(path, "rb") as file:
        # TensorFlow's files, as of a bucket, have no bound for a line.
        line = file.read(_MAX_FIRST_LINE).partition(b"\n")[0]
    encoding = "utf-16" if is_utf_16(line) else "utf-8-sig"
    return line.decode(encoding, errors="ignore").strip()


def _is_json(first_line: str) -> bool:
    """Whether the line is an object, or begins an array of objects."""
    if re.match(r"\[\s*(\{|$)", first_line):
        return True
    try:
        return isinstance(json.loads(first_line), dict)
    except (ValueError, RecursionError):
        return False
