"""Text files -> documents of sentences, in units that workers read in parallel.

A unit is about 16 MB of text. A large file is cut into several, each read by
seeking; small files share one. Documents are whole: a unit has those that
START in its range of bytes. A compressed file can't be cut, so that one worker
reads it; `pieces` groups its documents as if it were several units.

Formats:
- lines: the original's. One sentence per line, a blank line after a document.
- documents: one document per line.
- files: one document per file. Blank lines end paragraphs, other line ends are
  white space, as in books.
- wikiextractor: what WikiExtractor writes: `<doc ...>`, the title, one
  paragraph per line, `</doc>`. Titles are left out.
- jsonl: one JSON object per line; the text is in one of its fields. A line end
  in it ends a sentence.
- tfds: a data set of TensorFlow Datasets, such as wikipedia/20230601.en or
  my_set:train+test; otherwise as jsonl.

Sentences of all but `lines` are split by sentencex. Compared on 2.9 MB of
English Wikipedia, one core, and by reading what each makes of abbreviations:

    library                     MB/s  what it does
    sentencex 1.0.32            55    "U.S. Army", "Dr. Smith", "J. K." and $3.50
                                      stay whole; 300 languages; by Wikimedia,
                                      released every few weeks, no dependency
    blingfire 0.1.8             12    splits after "Dr."; last release in 2021
    regular expressions          7    English only
    sentence-splitter 1.4        1.2  splits after "5 p.m."
    syntok 1.4                   1.1
    pysbd 0.3.4                  0.2  last release in 2021
    StateBasedSentenceBreaker    2.1  (tensorflow-text) splits after "U.S.",
                                      "Dr." and "e.", cuts "$3. 50", and cuts
                                      UTF-8 characters that hold the byte 0xA0
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence

from bert_tf import text_files

from etils import epath

FORMATS = ("lines", "documents", "files", "wikiextractor", "jsonl", "tfds")
UNIT_BYTES = 16 << 20

# So that memory is bounded. A document of this size is a book of 6,000 pages.
_MAX_DOCUMENT = text_files.MAX_LINE
# Text takes about a quarter of its size when it is compressed.
_COMPRESSION = 4
# Keys are the file's number and the offset in it: 2^24 files of 2^40 bytes.
_OFFSET_BITS = 40


@dataclasses.dataclass(frozen=True)
class Part:
    """A range of a file.

    Args:
        file: Its path, or a data set of TFDS.
        number: Which of the input files it is.
        start: The first byte; of a data set the first example.
        end: The byte or example after the last; None for the end of the file.
    """

    file: str
    number: int
    start: int
    end: int | None


@dataclasses.dataclass(frozen=True)
class Unit:
    """What a worker reads at a time.

    Args:
        index: Its number.
        parts: What it consists of.
        size: Of the files on disk, in bytes.
    """

    index: int
    parts: tuple[Part, ...]
    size: int


@dataclasses.dataclass(frozen=True)
class Document:
    """A document.

    Args:
        key: Another for each document of the input, from 0 to 2^64 - 1.
        sentences: None is empty; there may be none at all.
        size: Of its text, in bytes.
        replaced: Lines in which bad text was replaced.
    """

    key: int
    sentences: list[str]
    size: int
    replaced: int = 0


@dataclasses.dataclass(frozen=True)
class Reader:
    """How the input is read.

    Args:
        input_format: One of FORMATS.
        text_field: Of jsonl and tfds.
        language: Of the text, for the sentences' ends, as in ISO 639.
        on_bad_text: "error", or "replace" by U+FFFD.
    """

    input_format: str = "lines"
    text_field: str = "text"
    language: str = "en"
    on_bad_text: str = "error"

    def __post_init__(self):
        for name, known in (
            ("input_format", FORMATS),
            ("on_bad_text", text_files.ON_BAD_TEXT),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"`{name}` must be one of {', '.join(known)}. "
                    f"Received: {name}={getattr(self, name)!r}"
                )


# ---- Units ------------------------------------------------------------------


def plan(
    files: Sequence[str], input_format: str, unit_bytes: int = UNIT_BYTES
) -> list[Unit]:
    """Cuts the input into units.

    Args:
        files: Paths, in any order; or data sets of TFDS.
        input_format: One of FORMATS.
        unit_bytes: About the size of a unit.
    """
    sized = []  # parts, and their sizes
    for number, file in enumerate(sorted(set(files))):
        sized += _parts(file, number, input_format, unit_bytes)
    units: list[Unit] = []
    group: list[Part] = []
    size = expected = 0
    for part, part_size in sized:
        text = part_size
        if text_files.is_compressed(part.file):
            text *= _COMPRESSION
        if group and expected + text > unit_bytes:
            units.append(Unit(len(units), tuple(group), size))
            group, size, expected = [], 0, 0
        group.append(part)
        size += part_size
        expected += text
    if group:
        units.append(Unit(len(units), tuple(group), size))
    return units


def _parts(
    file: str, number: int, input_format: str, unit_bytes: int
) -> list[tuple[Part, int]]:
    """Cuts one file; returns the parts and their sizes in bytes."""
    size = epath.Path(file).stat().length
    if input_format == "files" or text_files.is_compressed(file):
        return [(Part(file, number, 0, None), size)]
    count = max(1, -(-size // unit_bytes))
    borders = [size * i // count for i in range(count)]
    parts = [
        Part(file, number, start, end)
        for start, end in zip(borders, [*borders[1:], None], strict=True)
    ]
    return [(part, size // count) for part in parts]


# ---- Documents --------------------------------------------------------------


def read(unit: Unit, reader: Reader) -> Iterator[Document]:
    """Yields the documents of a unit in their order.

    A document without text has no sentences: leave it out, and count it.

    Raises:
        ValueError: Bad text, or not of the format. Names file and line.
    """
    for part in unit.parts:
        yield from _READERS[reader.input_format](part, reader)


def pieces(
    documents: Iterable[Document], piece_bytes: int = UNIT_BYTES
) -> Iterator[list[Document]]:
    """Groups documents by the size of their text.

    One piece comes of a unit of a file that is not compressed, unless there
    are very long documents.
    """
    piece: list[Document] = []
    size = 0
    for document in documents:
        if piece and size + document.size > 2 * piece_bytes:
            yield piece
            piece, size = [], 0
        piece.append(document)
        size += document.size
    if piece:
        yield piece


class _Collector:
    """Gathers the lines of one document."""

    def __init__(self, part: Part):
        self._part = part
        self._texts: list[str] = []
        self._start = self._size = self._replaced = 0

    @property
    def is_empty(self) -> bool:
        return not self._texts

    def add(self, line: text_files.Line) -> None:
        if not self._texts:
            self._start = line.offset
        self._texts.append(line.text)
        self._size += line.size
        self._replaced += line.replaced
        if self._size > _MAX_DOCUMENT:
            raise text_files.error_at(
                self._part.file,
                self._start,
                "the document that begins here is longer than "
                f"{_MAX_DOCUMENT >> 20} MB. The format `lines` has a blank "
                "line after each document. Break it, or choose another "
                "--input_format",
            )

    def take(self) -> Document:
        document = Document(
            (self._part.number << _OFFSET_BITS) + self._start,
            self._texts,
            self._size,
            self._replaced,
        )
        self.__init__(self._part)
        return document


def _read_lines(part: Part, reader: Reader) -> Iterator[Document]:
    document = _Collector(part)
    # A document starts with the blank line before it, the first with the file.
    is_owned = not part.start
    for line in text_files.lines(part.file, reader.on_bad_text, part.start):
        if part.end is not None and line.offset >= part.end:
            if not line.text or not is_owned:
                break
        if line.text:
            if is_owned:
                document.add(line)
            continue
        is_owned = True
        if not document.is_empty:
            yield document.take()
    if not document.is_empty:
        yield document.take()


_READERS = {
    "lines": _read_lines,
}
