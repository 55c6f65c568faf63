"""Masked words of raw text: where they stand, and the text with them filled."""

from bert_tf import vocab_files, vocabularies
from bert_tf.errors import InputError

# What stands for a masked word in a text.
MASK = vocab_files.MASK
_CONTINUES = vocab_files.SUFFIX_INDICATOR


def count(text: str) -> int:
    """Returns how many words of a text are masked."""
    return text.count(MASK)


def fill(text: str, number: int, piece: str) -> str:
    """Puts a piece in the place of one mask, from 0; the other masks stay.

    A piece that goes on with a word loses its `##`, and the space before it.
    """
    parts = text.split(MASK)
    head = MASK.join(parts[: number + 1])
    tail = MASK.join(parts[number + 1 :])
    if piece.startswith(_CONTINUES) and piece != _CONTINUES:
        return head.rstrip(" \t\r\n") + piece.removeprefix(_CONTINUES) + tail
    return head + piece + tail


def check(vocabulary: vocabularies.Vocabulary, top_k: int) -> None:
    """Raises InputError if so many pieces cannot be found for a mask."""
    mask = vocabulary.special.mask.text
    if mask in vocabulary.missing:
        raise InputError(
            f"The vocabulary has no piece {mask}, so no word can be masked. "
            f"Received: {len(vocabulary.pieces)} pieces"
        )
    if not 1 <= top_k <= len(vocabulary.pieces):
        raise InputError(
            "`top_k` must be at least 1 and at most the number of pieces, "
            f"{len(vocabulary.pieces)}. Received: top_k={top_k}"
        )
