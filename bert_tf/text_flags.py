"""Flags of the text that is read, which the scripts that read text share."""

from collections.abc import Sequence

from bert_tf import corpus, paths, text_files

from absl import flags

INPUT_FILE = flags.DEFINE_list(
    "input_file",
    None,
    "Text files or globs, comma separated, perhaps compressed (.gz, .bz2, "
    ".xz, .zst); or data sets of TFDS, as name/config@split.",
    required=True,
)
INPUT_FORMAT = flags.DEFINE_enum(
    "input_format",
    "lines",
    corpus.FORMATS,
    "lines: one sentence per line, a blank line between documents. documents: "
    "one document per line. files: one per file. wikiextractor: what "
    "WikiExtractor writes. jsonl: JSON objects with a field of text. tfds: "
    "TensorFlow Datasets. Sentences of all but lines are split for you.",
)
TEXT_FIELD = flags.DEFINE_string(
    "text_field", "text", "The field of jsonl and tfds that holds the text."
)
LANGUAGE = flags.DEFINE_string(
    "language", "en", "Of the text, for the ends of sentences (ISO 639)."
)
ON_BAD_TEXT = flags.DEFINE_enum(
    "on_bad_text",
    "error",
    text_files.ON_BAD_TEXT,
    "What to do with bytes that are no UTF-8 text: stop and name file and "
    "line, or replace them.",
)


def reader() -> corpus.Reader:
    """Returns how the text is read."""
    return corpus.Reader(
        INPUT_FORMAT.value,
        TEXT_FIELD.value,
        LANGUAGE.value,
        ON_BAD_TEXT.value,
    )


def units() -> Sequence[corpus.Unit]:
    """Returns the text in units.

    Raises:
        ValueError: A glob matches nothing, or a file is empty or a folder.
    """
    files = INPUT_FILE.value
    if INPUT_FORMAT.value != "tfds":
        files = paths.expand(files)
    return corpus.plan(files, INPUT_FORMAT.value)
