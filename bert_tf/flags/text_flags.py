"""Flags of text inputs, shared by the scripts that read text."""

from collections.abc import Sequence

from bert_tf.flags import flag_sections
from bert_tf.pretraining_data import corpus, text_files
from bert_tf.storage import paths

from absl import logging

_DATA = flag_sections.Section("Data")

INPUT_FILE = _DATA.input_paths(
    "input_file",
    "Text files or globs, comma separated, perhaps compressed (.gz, .bz2, "
    ".xz, .zst); or data sets of TFDS, as name/config@split.",
    required=True,
)
INPUT_FORMAT = _DATA.choice(
    "input_format",
    "lines",
    corpus.FORMATS,
    "lines: one sentence per line, a blank line between documents. documents: "
    "one document per line. files: one per file. wikiextractor: what "
    "WikiExtractor writes. jsonl: JSON objects with a field of text. tfds: "
    "TensorFlow Datasets. Sentences of all but lines are split for you.",
    only_with="!show",
    harmless=True,
)
TEXT_FIELD = _DATA.string(
    "text_field",
    "text",
    "The field of jsonl and tfds that holds the text.",
    kind="NAME",
    only_with=("input_format=jsonl", "input_format=tfds"),
)
LANGUAGE = _DATA.string(
    "language",
    "en",
    "Of the text, for the ends of sentences (ISO 639).",
    kind="CODE",
    only_with=[
        f"input_format={name}" for name in corpus.FORMATS if name != "lines"
    ],
)
ON_BAD_TEXT = _DATA.choice(
    "on_bad_text",
    "error",
    text_files.ON_BAD_TEXT,
    "What to do with bytes that are no UTF-8 text: stop and name file and "
    "line, or replace them.",
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
