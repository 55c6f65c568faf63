"""Flags of text inputs, shared by the scripts that read text."""

from collections.abc import Sequence

from bert_tf.flags import flag_sections
from bert_tf.pretraining_data import corpus
from bert_tf.storage import paths

from absl import logging

_DATA = flag_sections.Section("Data")

INPUT_FILE = _DATA.input_paths(
    "input_file",
    "Text files or globs, comma separated; they can be compressed (.gz, .bz2, "
    ".xz, .zst). Or TensorFlow Datasets, as name/config@split.",
    required=True,
)
_DATA.define(corpus.Reader)


def reader() -> corpus.Reader:
    """Returns a reader of the text, configured by the flags."""
    return flag_sections.read(corpus.Reader)


def units() -> Sequence[corpus.Unit]:
    """Returns the text in units; warns if it looks like another format.

    Raises:
        InputError: A glob matches nothing, or a file is empty or a folder.
    """
    files, how = INPUT_FILE.value, reader()
    input_format = how.input_format
    if input_format != "tfds":
        files = paths.expand(files)
    if input_format in ("lines", "documents"):
        looks = corpus.format_of(files[0], how.on_bad_text)
        if looks:
            logging.warning(
                "%s looks like --input_format=%s but is read as plain text, so "
                "its markup becomes words.",
                files[0],
                looks,
            )
    return corpus.plan(files, input_format)
