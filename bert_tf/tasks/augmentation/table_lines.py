"""Reads rows of a table and writes them back in the same format."""

import csv
import dataclasses
import functools
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert_tf.storage import input_files
from bert_tf.tasks import table_formats, tables

# Characters of the rows that are held in memory at a time, or one row.
_MOST_IN_WINDOW = 1 << 24


@dataclasses.dataclass(frozen=True)
class Table:
    """A file and its text columns; attributes as for `tables.read_rows`."""

    path: str
    columns: Mapping[str, str | int]
    file_format: str = "tsv"
    has_header: bool = True
    skips_short_rows: bool = False
    is_own: bool = False

    def rows(self) -> Iterator[tables.Row]:
        """Reads it; raises as `tables.read_rows`, and InputError for pipes."""
        input_files.check_can_be_read_again(self.path)
        for row in tables.read_rows(
            self.path,
            self.columns,
            file_format=self.file_format,
            has_header=self.has_header,
            skip_short_rows=self.skips_short_rows,
            is_own=self.is_own,
        ):
            if self.file_format == "jsonl":
                # Also checks cells that are copied unchanged.
                tables.check_text(row.cells, f"{self.path}, line {row.line}")
            yield row

    def header(self) -> Iterator[str]:
        """Yields the header line, if there is one."""
        if self.has_header and self.file_format != "jsonl":
            yield self.line(tables.read_header(self.path, self.file_format))

    def line(self, cells: Any) -> str:
        """Returns cells as a line of the file, with its delimiter."""
        return line(cells, self.file_format, self._delimiter)

    @functools.cached_property
    def _delimiter(self) -> str:
        return table_formats.find_delimiter(self.path, self.has_header)


def windows(
    rows: Iterable[tables.Row], most: int
) -> Iterator[list[tables.Row]]:
    """Cuts a stream into lists of up to `most` rows that fit into memory."""
    window: list[tables.Row] = []
    size = 0
    for row in rows:
        length = sum(map(len, row.texts.values()))
        if window and (len(window) == most or size + length > _MOST_IN_WINDOW):
            yield window
            window, size = [], 0
        window.append(row)
        size += length
    if window:
        yield window


def changed(row: tables.Row, texts: Mapping[str, str]) -> Any:
    """Returns the cells of a row with some texts replaced."""
    cells = row.cells.copy()
    for name, text in texts.items():
        if text != row.texts[name]:
            cells[row.places[name]] = text
    return cells


def line(cells: Any, file_format: str, delimiter: str = ",") -> str:
    """Returns cells as a line, without the line break; CSV has `delimiter`."""
    if file_format == "jsonl":
        return json.dumps(cells, ensure_ascii=False)
    if file_format == "tsv":
        return "\t".join(cells)
    file = io.StringIO(newline="")
    # A comma in a header without quotes would be taken for the delimiter.
    if delimiter == ",":
        writer = csv.writer(file)
    else:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(cells)
    return file.getvalue().removesuffix("\r\n")
