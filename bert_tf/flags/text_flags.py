"""Flags of text inputs, shared by the scripts that read text."""

from collections.abc import Sequence

from bert_tf.flags import flag_sections
from bert_tf.pretraining_data import corpus, text_files
from bert_tf.storage import paths

from absl import logging

_DATA = flag_sections.Section("Data")

INPUT_FILE = _DATA.input_paths(
    "input_file",
    "Text files or globs, comma separated; they can be compressed (.gz, .bz2, "
    ".xz, .zst). Or TensorFlow Datasets, as name/config@split.",
    required=True,
)
INPUT_FORMAT = _DATA.choice(
    "input_format",
    "lines",
    corpus.FORMATS,
    "lines: one sentence per line, a blank line between documents. documents: "
    "one document per line. files: one document per file. wikiextractor: "
    "WikiExtractor's output. jsonl: JSON objects with a text field. tfds: "
    "TensorFlow Datasets. All formats except lines are split into sentences.",
    only_with="!show",
    harmless=True,
)
TEXT_FIELD = _DATA.string(
    "text_field",
    "text",
    "Field of the text in jsonl and tfds.",
    kind="NAME",
    only_with=("input_format=jsonl", "input_format=tfds"),
)
LANGUAGE = _DATA.string(
    "language",
    "en",
    "Language of the text (ISO 639), for splitting it into sentences.",
    kind="CODE",
    only_with=[
        f"input_format={name}" for name in corpus.FORMATS if name != "lines"
    ],
)
ON_BAD_TEXT = _DATA.choice(
    "on_bad_text",
    "error",
    text_files.ON_BAD_TEXT,
    "For bytes that are not valid UTF-8: error stops and names the file and "
    "line, replace inserts U+FFFD.",
    only_with="!show",
    harmless=True,
)


def reader() -> corpus.Reader:
    """Returns a reader of the text, configured by the flags."""
    return corpus.Reader(
        INPUT_FORMAT.value,
        TEXT_FIELD.value,
        LANGUAGE.value,
        ON_BAD_TEXT.value,
    )


def units() -> Sequence[corpus.Unit]:
    """Returns the text in units; warns if it looks like another format.

    Raises:
        InputError: A glob matches nothing, or a file is empty or a folder.
    """
    files, input_format = INPUT_FILE.value, INPUT_FORMAT.value
    if input_format != "tfds":
        files = paths.expand(files)
    if input_format in ("lines", "documents"):
        looks = corpus.format_of(files[0], ON_BAD_TEXT.value)
        if looks:
            logging.warning(
                "%s looks like --input_format=%s but is read as plain text, so "
                "its markup becomes words.",
                files[0],
                looks,
            )
    return corpus.plan(files, input_format)
