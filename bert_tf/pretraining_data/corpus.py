"""Reads text as documents of sentences, in units for parallel workers.

A unit is about 16 MB of text. A large file is divided into several units, each
read by seeking; small files share a unit. A unit has all documents that START
in its range of bytes. A compressed file can't be divided, so one worker reads
it, and `pieces` groups its documents into chunks of the size of a unit.

For the formats see text_formats.py. In all formats except `lines`, sentencex
splits the sentences. Vocabularies of symbols skip this, because symbols form no
sentences, and sentencex would split some symbols. On 2.9 MB of English
Wikipedia and one core:

    library                    MB/s
    sentencex 1.0.32           55    leaves "Dr. Smith", "5 p.m. Mr.", "$3.50"
                                     whole; 300 languages; no dependencies
    blingfire 0.1.8            12    splits after "Dr."; no release since 2021
    a regular expression        7    English only, abbreviations by hand
    StateBasedSentenceBreaker   2.1  (tensorflow-text) splits in "$3.50"; cuts
                                     characters with the UTF-8 byte 0xA0
    sentence-splitter 1.4       1.2  splits after "5 p.m." and "(See p."
    syntok 1.4                  1.1  (pysbd 0.3.4 has 0.2)
"""

import collections
import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.pretraining_data import text_files, text_formats
from bert_tf.storage import file_systems, paths

from absl import logging

FORMATS = tuple(text_formats.FORMATS)
UNIT_BYTES = 16 << 20

# Compressed text has about a quarter of its size.
_COMPRESSION = 4
# Keys combine the file number and the offset: 2^24 files of 2^40 bytes.
_OFFSET_BITS = 40
# A language, perhaps with a variant, as in zh-hant.
_LANGUAGE = re.compile("[a-z]{2,3}(-[a-z]+)*")
_BLANK_LINES = re.compile(r"\n\s*\n")
# A period after non-ASCII white space, such as U+00A0. After a capital,
# sentencex takes it for an initial, splits within a character, and aborts the
# process.
_PERIOD_APART = re.compile(r"\.(?<=[^\S\x00-\x7f]\.)")


@dataclasses.dataclass(frozen=True)
class Part:
    """A range of a file, or of a data set of TFDS.

    It is in bytes, or in examples of the data set. If `end` is None, it extends
    to the end of the file. `number` is the index of the input file.
    """

    file: str
    number: int
    start: int
    end: int | None


@dataclasses.dataclass(frozen=True)
class Unit:
    """The text that a worker reads at a time; `size` is in bytes on disk."""

    index: int
    parts: tuple[Part, ...]
    size: int


@dataclasses.dataclass(frozen=True)
class Document:
    """A document of sentences. It may have none, but none of them is empty.

    Its `key`, from 0 to 2^64 - 1, is unique in the input; `size` is the size of
    the text in bytes; `replaced` counts lines in which bad text was replaced.
    """

    key: int
    sentences: list[str]
    size: int
    replaced: int = 0


@dataclasses.dataclass(frozen=True)
class Reader(options.Options):
    """How to read the input; the fields are flags."""

    input_format: str = options.option(
        "lines",
        "lines: one sentence per line, a blank line between documents. "
        "documents: one document per line. files: one document per file. "
        "wikiextractor: WikiExtractor's output. jsonl: JSON objects with a "
        "text field. tfds: TensorFlow Datasets. All formats except lines are "
        "split into sentences.",
        choices=FORMATS,
        only_with="!show",
        harmless=True,
    )
    text_field: str = options.option(
        "text",
        "Field of the text in jsonl and tfds.",
        only_with=("input_format=jsonl", "input_format=tfds"),
        kind="NAME",
    )
    language: str = options.option(
        "en",
        "Language of the text (ISO 639), for splitting it into sentences.",
        only_with=[
            f"input_format={name}" for name in FORMATS if name != "lines"
        ],
        kind="CODE",
    )
    on_bad_text: str = options.option(
        "error",
        "For bytes that are not valid UTF-8: error stops and names the file "
        "and line, replace inserts U+FFFD.",
        choices=text_files.ON_BAD_TEXT,
        only_with="!show",
        harmless=True,
    )

    def __post_init__(self):
        super().__post_init__()
        # sentencex treats unknown languages as English.
        if not _LANGUAGE.fullmatch(self.language):
            raise InputError(
                "`language` must be a code of ISO 639, such as en or de. "
                f"Received: language={self.language!r}"
            )


def format_of(file: str, on_bad_text: str) -> str:
    """Detects the format of a text file by its beginning, "" if unknown."""
    lines = text_files.lines(file, on_bad_text)
    first = next((line.text for line in lines if line.text), "")
    if text_formats.is_article(first):
        return "wikiextractor"
    if first.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(first)
            return "jsonl"
    return ""


# ---- Units ------------------------------------------------------------------


def plan(
    files: Sequence[str], input_format: str, unit_bytes: int = UNIT_BYTES
) -> list[Unit]:
    """Divides files, or data sets of TFDS, into units of about `unit_bytes`.

    The order of `files` does not matter. A file that is named several times, or
    with several names, is read once.
    """
    sized = []  # parts with their sizes
    named = collections.Counter(files)
    for name, times in named.items():
        if times > 1:
            logging.warning(
                "%s is named %d times: it is read once.", name, times
            )
    names = sorted(named)
    if input_format == "tfds":
        measures = [text_formats.prepare_tfds(name) for name in names]
    else:
        names = _different(names)
        stats = paths.at_once(paths.stat, names)
        measures = [(stat.length, stat.length) for stat in stats]
    for number, (file, measure) in enumerate(zip(names, measures, strict=True)):
        sized += _parts(file, number, measure, input_format, unit_bytes)
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


def parallelism(units: Sequence[Unit]) -> int:
    """Returns how many processes have work: one per 16 MB.

    A compressed file is one unit of any size, but only its tokenizing is bound
    to one process.
    """
    size = sum(unit.size for unit in units)
    return max(len(units), size // UNIT_BYTES)


def _different(names: Sequence[str]) -> list[str]:
    """Removes names of files that are already listed, such as links."""
    first: dict[str, str] = {}
    for name in names:
        is_local = not file_systems.is_remote(name)
        place = os.path.realpath(name) if is_local else name
        same = first.setdefault(place, name)
        if same != name:
            logging.warning(
                "%s is the same file as %s: it is read once.", name, same
            )
    return list(first.values())


def _parts(
    file: str,
    number: int,
    measure: tuple[int, int],
    input_format: str,
    unit_bytes: int,
) -> list[tuple[Part, int]]:
    """Divides one file; returns the parts and their sizes in bytes.

    `measure` is its length, as of `Part.end`, and its size in bytes.
    """
    length, size = measure
    count = max(1, -(-size // unit_bytes))
    if input_format == "files" or text_files.is_compressed(file):
        count = 1
    borders = [length * i // count for i in range(count)]
    return [
        (Part(file, number, start, end), size // count)
        for start, end in zip(borders, [*borders[1:], None], strict=True)
    ]


# ---- Documents --------------------------------------------------------------


def read(
    unit: Unit, reader: Reader, has_sentences: bool = True
) -> Iterator[Document]:
    """Yields a unit's documents, including empty ones.

    If text `has_sentences`, paragraphs are split into them. Raises InputError
    if the text is bad.
    """
    for part, text in _texts(unit, reader):
        if reader.input_format == "lines":
            sentences = text.paragraphs
        elif has_sentences:
            sentences = _sentences(text.paragraphs, reader.language)
        else:
            # Blank lines end paragraphs, as for the sentence splitter.
            sentences = [
                paragraph
                for several in text.paragraphs
                for paragraph in _BLANK_LINES.split(several)
                if paragraph.strip()
            ]
        key = (part.number << _OFFSET_BITS) + text.offset
        yield Document(key, sentences, text.size, text.replaced)


def paragraphs(unit: Unit, reader: Reader) -> Iterator[str]:
    """Yields the text of a unit, not split into sentences."""
    for _, text in _texts(unit, reader):
        yield from text.paragraphs


def _texts(
    unit: Unit, reader: Reader
) -> Iterator[tuple[Part, text_formats.Text]]:
    for part in unit.parts:
        source = text_formats.Source(
            part.file,
            part.start,
            part.end,
            reader.text_field,
            reader.on_bad_text,
        )
        for text in text_formats.read(source, reader.input_format):
            yield part, text


def _sentences(paragraphs: Iterable[str], language: str) -> list[str]:
    # Only this function needs it, and it is an optional dependency.
    import sentencex

    return [
        sentence
        for paragraph in paragraphs
        for part in sentencex.segment(
            language, _PERIOD_APART.sub(" .", paragraph)
        )
        if (sentence := part.strip())
    ]


def pieces(
    documents: Iterable[Document], piece_bytes: int = UNIT_BYTES
) -> Iterator[list[Document]]:
    """Groups documents into chunks, by the size of their text.

    A unit of an uncompressed file becomes a single chunk, unless it has very
    long documents.
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
