"""Finds columns of a table, and checks the width of rows.

Errors name the file and the line, as in `tasks.tables`.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping

from bert_tf import terminals
from bert_tf.errors import InputError, listed, shortened
from bert_tf.storage import input_files

from absl import logging


def there(
    path: str,
    columns: Mapping[str, str | int],
    optional: Collection[str],
    first: list[str],
    has_header: bool,
) -> dict[str, str | int]:
    """Drops optional columns that a table with this first row lacks.

    Warns if the header has a column of a similar name.
    """

    def is_there(column: str) -> bool:
        is_number = column.isdecimal() and int(column) < len(first)
        return is_number or (has_header and column in first)

    kept = {
        name: column
        for name, column in columns.items()
        if name not in optional or is_there(str(column))
    }
    for name in (columns.keys() - kept.keys()) if has_header else ():
        if hint := suggestion(str(columns[name]), first):
            logging.warning(
                "%s has no column %r, which is optional. %s",
                *(path, columns[name], hint.rstrip()),
            )
    return kept


def check_is_row(path: str, first: list[str]) -> None:
    """Raises InputError if the first line only names the separator."""
    if re.fullmatch("sep=.?", first[0]) and not any(first[1:]):
        raise InputError(
            f"{path}, line 1: the line names the separator (Excel). Expected "
            f"a header or a row. Received: {first[0]!r}. Remove the line."
        )


def check_width(where: str, row: list[str], least: int, most: int) -> None:
    """Raises InputError if a row has too few columns, or too many."""
    if len(row) < least:
        raise InputError(
            f"{where}: a column is missing. Expected at least {least} columns. "
            f"Received: {len(row)} columns, {shortened(repr(row))}"
        )
    # A separator within a text shifts the rest of it into unused columns.
    if len(row) > most:
        raise InputError(
            f"{where}: more columns than the first row. Expected {most}. "
            f"Received: {len(row)}, {shortened(repr(row))}. Quote "
            "fields that hold the separator (CSV), or remove tabs from texts "
            "(TSV)."
        )


def numbers(path: str, columns: Mapping[str, str | int]) -> dict[str, int]:
    """Returns column positions in a table without a header."""
    names = [at for at in columns.values() if not str(at).isdecimal()]
    if names:
        raise InputError(
            f"{path} has no header, so its columns go by number, from 0. "
            f"Received: {', '.join(map(str, names))}"
        )
    return {name: int(at) for name, at in columns.items()}


def _of_one_column(header: list[str]) -> str:
    """Returns a hint if the header was plainly not split."""
    problem = input_files.explain(header[0][:64].encode())
    if problem:
        return f"As it seems, {problem}. "
    if len(header) == 1 and any(x in header[0] for x in "\t,;|"):
        return (
            "It is one column only: between columns TSV has tabs and CSV "
            "commas. The file's name says which (.tsv, .csv), or "
            "--file_format=csv. "
        )
    return ""


def suggestion(name: str, names: Iterable[str]) -> str:
    """Returns a hint that suggests a name similar to a missing one."""
    spelled = {each.strip().lower(): each for each in names}
    near = difflib.get_close_matches(name.strip().lower(), spelled, 1)
    return f"Did you mean {spelled[near[0]]!r}? " if near else ""


# Hints by column, the first that the user's own tables must have.
_FIRST_COLUMNS = {
    name: f"Name it by --{flag}; or if this line is an example, give "
    f"--has_header=false and the columns by number, --{flag}=0. "
    for name, flag in (("text_a", "text_a_column"), ("source", "source_column"))
}


def positions(
    path: str, header: list[str], columns: Mapping[str, str | int]
) -> dict[str, int]:
    """Returns column positions; InputError if the header lacks a column."""
    positions = {}
    for name, column in columns.items():
        count = header.count(str(column))
        if count == 1:
            positions[name] = header.index(str(column))
        elif (
            count == 0 and str(column).isdecimal() and int(column) < len(header)
        ):
            positions[name] = int(column)
            # The columns of published tasks are integers.
            if isinstance(column, str):
                terminals.log_once(
                    f"Row 1 of {path} is taken for the names of its columns: "
                    f"{listed(header)}. Use --has_header=false if it is an "
                    "example."
                )
        else:
            problem, way_out = "appears twice in", "Give its number, from 0. "
            if not count:
                problem = "is missing from"
                way_out = (
                    _of_one_column(header)
                    or suggestion(str(column), header)
                    or _FIRST_COLUMNS.get(name, "")
                )
                if name == "source" and len(header) == 1:
                    way_out += (
                        "For a text on each line, without columns, give "
                        "--file_format=text. "
                    )
            raise InputError(
                f"{path}, line 1: the column {column!r} {problem} the header. "
                f"{way_out}"
                f"Received: {shortened(', '.join(header), 300)}"
            )
    return positions
