"""Masked words of raw text: where they stand, and the text with them filled."""

from collections.abc import Sequence

from bert_tf import vocab_files, vocabularies
from bert_tf.errors import InputError

# What stands for a masked word in a text, whatever piece a model has for it.
MASK = vocab_files.MASK
# White space that the space of a piece stands for.
_SPACES = " \t\r\n"


def count(text: str) -> int:
    """Returns how many words of a text are masked."""
    return text.count(MASK)


def fill(text: str, number: int, piece: vocabularies.Spelling) -> str:
    """Puts a piece in the place of one mask, from 0; the other masks stay.

    A piece that goes on with a word takes the space before it; one that has a
    space brings it where there is none.
    """
    parts = text.split(MASK)
    head = MASK.join(parts[: number + 1])
    tail = MASK.join(parts[number + 1 :])
    if piece.space is False:
        head = head.rstrip(_SPACES)
    elif piece.space and head and head[-1] not in _SPACES:
        head += " "
    return head + piece.text + tail


def fill_all(text: str, filled: Sequence[str]) -> str:
    """Returns the text with every mask filled, from those with one filled."""
    parts = text.split(MASK)
    # From the last: a piece may be [MASK] itself, and would be filled again.
    for number in reversed(range(len(filled))):
        tail = MASK.join(parts[number + 1 :])
        head = filled[number][: len(filled[number]) - len(tail)]
        text = head + text.split(MASK, number + 1)[number + 1]
    return text


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
