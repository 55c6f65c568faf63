"""Masked words in raw text: counting and filling them."""

from collections.abc import Sequence

from bert_tf import vocab_files, vocabularies
from bert_tf.errors import InputError

# Marks a masked word in a text, whatever mask token a model has.
MASK = vocab_files.MASK
# Max bytes of the filled texts of a request or line; each repeats the text, and
# about ten copies of each are held in memory.
MAX_FILLED_BYTES = 1 << 26


def count(text: str) -> int:
    """Returns the number of masked words in a text."""
    return text.count(MASK)


def fill_all(text: str, filled: Sequence[str]) -> str:
    """Combines texts that each have one mask filled into one filled text."""
    parts = text.split(MASK)
    # Backwards: a token may be [MASK] itself, which must not be filled.
    for number in reversed(range(len(filled))):
        tail = MASK.join(parts[number + 1 :])
        head = filled[number][: len(filled[number]) - len(tail)]
        text = head + text.split(MASK, number + 1)[number + 1]
    return text


def check(vocabulary: vocabularies.Vocabulary, top_k: int) -> None:
    """Raises InputError if `top_k` tokens cannot be predicted for a mask."""
    mask = vocabulary.special.mask.text
    if mask in vocabulary.missing:
        raise InputError(
            f"The vocabulary has no token {mask}, so no word can be masked. "
            f"Received: {len(vocabulary.pieces)} tokens"
        )
    if not 1 <= top_k <= len(vocabulary.pieces):
        raise InputError(
            "`top_k` must be at least 1 and at most the number of tokens, "
            f"{len(vocabulary.pieces)}. Received: top_k={top_k}"
        )
