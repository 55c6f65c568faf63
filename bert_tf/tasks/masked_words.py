"""Masked words of raw text: where they stand, and the text with them filled."""

from collections.abc import Sequence

MASK = "[MASK]"
_CONTINUES = "##"


def count(text: str) -> int:
    """Returns how many words of a text are masked."""
    return text.count(MASK)


def fill(text: str, number: int, piece: str) -> str:
    """Puts a piece in the place of one mask; the other masks stay.

    A piece that goes on with a word loses its `##`, and the white space before
    it.

    Args:
        text: With masks.
        number: Of the mask, from 0.
        piece: Of the vocabulary.
    """
    parts = text.split(MASK)
    head = MASK.join(parts[: number + 1])
    tail = MASK.join(parts[number + 1 :])
    if piece.startswith(_CONTINUES) and piece != _CONTINUES:
        return head.rstrip(" \t\r\n") + piece.removeprefix(_CONTINUES) + tail
    return head + piece + tail


def check(vocab: Sequence[str], top_k: int) -> None:
    """Raises ValueError if so many pieces cannot be found for a mask."""
    if MASK not in vocab:
        raise ValueError(
            f"The vocabulary has no piece {MASK}, so no word can be masked. "
            f"Received: {len(vocab)} pieces"
        )
    if not 1 <= top_k <= len(vocab):
        raise ValueError(
            "`top_k` must be at least 1 and at most the number of pieces, "
            f"{len(vocab)}. Received: top_k={top_k}"
        )
