"""Fills a mask in raw text in Python: the reference of the graph."""

from bert_tf import vocabularies
from bert_tf.tasks.masked_words.masked_texts import MASK

# White space that counts as the space of a token.
_SPACES = " \t\r\n"


def fill(text: str, number: int, piece: vocabularies.Spelling) -> str:
    """Fills mask `number`, counted from 0, with a token; others stay.

    A token that continues a word removes the space before it; a token with a
    leading space adds the space if it is missing.
    """
    parts = text.split(MASK)
    head = MASK.join(parts[: number + 1])
    tail = MASK.join(parts[number + 1 :])
    if piece.space is False:
        head = head.rstrip(_SPACES)
    elif piece.space and head and head[-1] not in _SPACES:
        head += " "
    return head + piece.text + tail
