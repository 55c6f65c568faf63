"""Learns a WordPiece vocabulary from text.

    python learn_vocabulary.py \
        --input_file=/data/wiki/*.txt --vocab_file=vocab.txt \
        --vocab_size=30522 --do_lower_case=true

The text is split into words as every script of this project splits it, so that
the vocabulary fits. The same text and flags give the same vocabulary.
"""

import time
from collections.abc import Iterator, Sequence

from bert_tf import command_line, pretraining_data, records, vocabulary

import tensorflow as tf
from absl import flags, logging

# ---- Flags ------------------------------------------------------------------

_INPUT_FILE = flags.DEFINE_list(
    "input_file",
    None,
    "Text files or globs, comma separated.",
    required=True,
)
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file",
    None,
    "The vocabulary to write, one piece per line.",
    required=True,
)
_OVERWRITE = flags.DEFINE_bool(
    "overwrite", False, "Whether to replace an existing vocab_file."
)
_VOCAB_SIZE = flags.DEFINE_integer(
    "vocab_size", 30522, "Pieces to learn at most.", lower_bound=1
)
_DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", True, "Whether to lower-case and strip accents."
)
_MIN_FREQUENCY = flags.DEFINE_integer(
    "min_frequency",
    2,
    "How often two pieces must follow each other to be joined.",
    lower_bound=1,
)
_MAX_CHARACTERS = flags.DEFINE_integer(
    "max_characters",
    1000,
    "The most frequent characters so many are kept; words with others become "
    "[UNK]. Chinese needs more.",
    lower_bound=1,
)
_NUM_UNUSED = flags.DEFINE_integer(
    "num_unused",
    99,
    "[unused] rows to reserve for words of your own.",
    lower_bound=0,
)


# ---- Read and write ---------------------------------------------------------


def read(files: Sequence[str]) -> Iterator[str]:
    """Yields the lines of text files."""
    for lines in pretraining_data.read_lines(files):
        yield from lines.texts


def write(path: str, pieces: Sequence[str]) -> None:
    """Writes a vocabulary, under its name only when it is complete."""
    with tf.io.gfile.GFile(path + ".tmp", "w") as file:
        file.write("".join(piece + "\n" for piece in pieces))
    tf.io.gfile.rename(path + ".tmp", path, overwrite=True)


# ---- Main -------------------------------------------------------------------


def main(_):
    """Counts the words, learns the pieces, writes them."""
    logging.set_verbosity(logging.INFO)
    start = time.monotonic()
    path = _VOCAB_FILE.value
    if tf.io.gfile.exists(path) and not _OVERWRITE.value:
        raise ValueError(
            f"{path} exists. Choose another --vocab_file, or replace it by "
            "--overwrite"
        )
    files = records.expand(_INPUT_FILE.value)
    size = sum(tf.io.gfile.stat(file).length for file in files)
    logging.info("Reading %.1f MB of text.", size / 1e6)
    words = vocabulary.count_words(read(files), _DO_LOWER_CASE.value)
    logging.info("Learning pieces from %s different words.", f"{len(words):,}")
    pieces = vocabulary.learn(
        words,
        _VOCAB_SIZE.value,
        _MIN_FREQUENCY.value,
        _MAX_CHARACTERS.value,
        _NUM_UNUSED.value,
    )
    write(path, pieces)
    logging.info("Wrote %s pieces to %s.", f"{len(pieces):,}", path)
    if len(pieces) < _VOCAB_SIZE.value:
        logging.warning(
            "The text has no more pieces that occur %d times: --vocab_size=%d "
            "is not reached.",
            _MIN_FREQUENCY.value,
            _VOCAB_SIZE.value,
        )
    found = vocabulary.coverage(pieces, words)
    logging.info(
        "The text: %s words, %.2f pieces per word, %.3f %% of the words are "
        "[UNK].",
        f"{found.words:,}",
        found.pieces / found.words,
        100 * found.unknown / found.words,
    )
    logging.info("Took %.1f seconds.", time.monotonic() - start)


if __name__ == "__main__":
    command_line.run(main)
