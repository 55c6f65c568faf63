"""The input formats of text: files -> documents of paragraphs.

- lines: the original's. One sentence per line, a blank line after a document.
- documents: one document per line.
- files: one document per file. Blank lines end paragraphs, as in books.
- wikiextractor: the output of WikiExtractor: `<doc ...>`, the title, which is
  skipped, one paragraph per line, `</doc>`.
- jsonl: one JSON object per line, with the text in one of its fields. A newline
  in the text ends a paragraph.
- tfds: a data set of TensorFlow Datasets, such as wikipedia/20230601.en or
  imdb_reviews@unsupervised (@train by default), or the folder of a prepared
  one. The text is in one of its features, as in jsonl.

Each document belongs to the range of bytes in which it starts, so that several
workers can read a file.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bert_tf import extras
from bert_tf.errors import InputError
from bert_tf.pretraining_data import text_files
from bert_tf.storage import data_sets, json_files

from etils import epath

# Bounds the memory. A document of this size is a book of 6,000 pages.
_MAX_DOCUMENT = text_files.MAX_LINE


@dataclasses.dataclass(frozen=True)
class Source:
    """A range of a file, or of a data set of TFDS, and how to read it.

    It is in bytes, or in examples of the data set. If `end` is None, it extends
    to the end of the file. `text_field` is for jsonl and tfds; `on_bad_text` is
    "error", or "replace" by U+FFFD.
    """

    file: str
    start: int = 0
    end: int | None = None
    text_field: str = "text"
    on_bad_text: str = "error"

    def lines(self) -> Iterator[text_files.Line]:
        """Yields the lines that begin in the range or after it."""
        return text_files.lines(self.file, self.on_bad_text, self.start)

    def is_over(self, offset: int) -> bool:
        """Returns whether an offset is after the range."""
        return self.end is not None and offset >= self.end


class Text(NamedTuple):
    """A document of paragraphs, which are sentences in the format `lines`.

    `offset` is its start in the file, or the number of its example; `size` is
    in bytes; `replaced` counts lines in which bad text was replaced.
    """

    offset: int
    paragraphs: list[str]
    size: int
    replaced: int


def read(source: Source, input_format: str) -> Iterator[Text]:
    """Yields the documents that start in a range; InputError if text is bad."""
    return FORMATS[input_format](source)


def _lines(source: Source) -> Iterator[Text]:
    document: list[text_files.Line] = []
    # A document starts at the blank line before it, the first at offset 0.
    is_owned = not source.start
    for line in source.lines():
        if source.is_over(line.offset) and not (line.text and is_owned):
            break
        if not line.text:
            is_owned = True
            if document:
                yield _join(document)
                document = []
        elif is_owned:
            _append(document, line, source)
    if document:
        yield _join(document)


def _append(
    document: list[text_files.Line], line: text_files.Line, source: Source
) -> None:
    document.append(line)
    start = document[0].offset
    if line.offset - start > _MAX_DOCUMENT:
        raise text_files.error_at(
            source.file,
            start,
            f"the document that begins here is longer than "
            f"{_MAX_DOCUMENT >> 20} MB: break it into several, in the format "
            "`lines` by blank lines. Is --input_format what the file is in?",
        )


def _join(document: list[text_files.Line]) -> Text:
    first, last = document[0], document[-1]
    return Text(
        first.offset,
        [line.text for line in document],
        last.offset + last.size - first.offset,
        sum(line.replaced for line in document),
    )


def _documents(source: Source) -> Iterator[Text]:
    for line in source.lines():
        if source.is_over(line.offset):
            break
        yield Text(line.offset, [line.text], line.size, line.replaced)


def _files(source: Source) -> Iterator[Text]:
    document: list[text_files.Line] = []
    for line in source.lines():
        _append(document, line, source)
    if not document:
        return
    text = _join(document)
    # The sentence splitter distinguishes paragraphs from lines.
    yield text._replace(paragraphs=["\n".join(text.paragraphs)])


def is_article(line: str) -> bool:
    """Returns whether an article of WikiExtractor begins with this line."""
    return line.startswith("<doc ")


def _wikiextractor(source: Source) -> Iterator[Text]:
    article: list[text_files.Line] = []
    # The range may begin inside an article of the previous range.
    is_foreign = source.start > 0
    for line in source.lines():
        starts = is_article(line.text)
        if source.is_over(line.offset) and (starts or not article):
            break
        if starts:
            if article:
                break
            article, is_foreign = [line], False
        elif line.text == "</doc>":
            if article:
                yield _article(article)
            article, is_foreign = [], False
        elif article:
            _append(article, line, source)
        elif line.text and not is_foreign:
            raise text_files.error_at(
                source.file,
                line.offset,
                "no text of WikiExtractor, which begins articles with "
                f'`<doc id="...">`. Received: {line.text[:60]!r}',
            )
    if article:
        raise text_files.error_at(
            source.file,
            article[0].offset,
            "the article that begins here has no </doc>: the file is "
            "truncated, or not of WikiExtractor",
        )


def _article(article: list[text_files.Line]) -> Text:
    text = _join(article)
    filled = [paragraph for paragraph in text.paragraphs if paragraph]
    return text._replace(paragraphs=filled[2:])  # without <doc> and the title


def _jsonl(source: Source) -> Iterator[Text]:
    for line in source.lines():
        if source.is_over(line.offset):
            break
        if not line.text:
            continue
        fail = functools.partial(text_files.error_at, source.file, line.offset)
        try:
            record = json_files.DECODER.decode(line.text)
        except InputError as error:
            raise fail(str(error)) from error
        # ValueError: numbers of 5,000 digits, too. RecursionError: endless
        # nesting.
        except (ValueError, RecursionError) as error:
            raise fail(
                f"not JSON: {error}. Is the file in --input_format? "
                f"Received: {line.text[:60]!r}"
            ) from error
        text = _field(record, source.text_field, fail)
        # Escapes can contain surrogates, which UTF-8 can't encode.
        text, problem = text_files.decode(text.encode("utf-8", "surrogatepass"))
        if problem and source.on_bad_text == "error":
            raise fail(problem + text_files.REMEDY)
        yield Text(
            line.offset,
            text.split("\n"),
            line.size,
            int(line.replaced or bool(problem)),
        )


def _field(record: Any, name: str, fail: Callable[[str], InputError]) -> str:
    if not isinstance(record, dict):
        raise fail(f"not a JSON object. Received: {str(record)[:60]}")
    if name not in record:
        raise fail(
            f"no field {name!r}: name the text's by --text_field. "
            f"Received: fields={sorted(record)}"
        )
    if not isinstance(record[name], str):
        raise fail(
            f"the field {name!r} must be a string. "
            f"Received: {str(record[name])[:60]}"
        )
    return record[name]


# ---- TensorFlow Datasets ----------------------------------------------------


def prepare_tfds(name: str) -> tuple[int, int]:
    """Prepares a data set if needed; returns its examples and bytes."""
    builder, split = _builder(name)
    data_sets.prepare(
        builder, "Prepare it in $TFDS_DATA_DIR where there is a network."
    )
    if split not in builder.info.splits:
        raise InputError(
            f"The data set {name} has the splits "
            f"{', '.join(sorted(builder.info.splits))}: name one after an @. "
            f"Received: {split}"
        )
    info = builder.info.splits[split]
    return info.num_examples, info.num_bytes


def _builder(name: str) -> tuple[Any, str]:
    extras.check("tensorflow_datasets", "tfds", "Texts of --input_format=tfds")
    # Slow to import, and only needed here.
    import tensorflow_datasets as tfds

    name, _, split = name.partition("@")
    try:
        if epath.Path(name).is_dir():
            return tfds.builder_from_directory(name), split or "train"
        return tfds.builder(name), split or "train"
    # Its messages fill a screen, and its exceptions are custom classes.
    except Exception as error:
        raise InputError(
            f"There is no data set {name} in TensorFlow Datasets. Give its "
            "name, such as wikipedia/20230601.en or imdb_reviews@unsupervised, "
            "or the folder of a prepared one; other files need another "
            f"--input_format. Received: {name}"
        ) from error


def _tfds(source: Source) -> Iterator[Text]:
    import tensorflow_datasets as tfds

    builder, split = _builder(source.file)
    if source.text_field not in builder.info.features:
        raise InputError(
            f"The data set {source.file} has no feature {source.text_field!r}: "
            "name the text's by --text_field. "
            f"Received: features={sorted(builder.info.features)}"
        )
    end = "" if source.end is None else source.end
    examples = builder.as_dataset(
        split=f"{split}[{source.start}:{end}]",
        # One file after the other, so that examples are in the order of
        # numbers.
        read_config=tfds.ReadConfig(interleave_cycle_length=1),
    )
    for number, example in enumerate(tfds.as_numpy(examples), source.start):
        data = example[source.text_field]
        if not isinstance(data, bytes):
            raise InputError(
                f"{source.file}, example {number}: the feature "
                f"{source.text_field!r} must be a text. Name another by "
                f"--text_field. Received: {type(data).__name__}"
            )
        text, problem = text_files.decode(data)
        if problem and source.on_bad_text == "error":
            raise InputError(
                f"{source.file}, example {number}: {problem}"
                + text_files.REMEDY
            )
        yield Text(number, text.split("\n"), len(data), int(bool(problem)))


FORMATS: dict[str, Callable[[Source], Iterator[Text]]] = {
    "lines": _lines,
    "documents": _documents,
    "files": _files,
    "wikiextractor": _wikiextractor,
    "jsonl": _jsonl,
    "tfds": _tfds,
}
