"""Splits texts into words, and words into windows that fit the model.

Shapes: W windows per text.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

from bert_tf import characters, vocabularies
from bert_tf.tasks.tagging import conll

import numpy as np

# Punctuation that stays attached to its word: @name, #topic, $5, C++.
_STICKY = "@#$+"


# ---- Words ------------------------------------------------------------------


@functools.cache
def is_edge(char: str) -> bool:
    """Whether the character is split off the ends of words."""
    return char not in _STICKY and characters.split_punctuation(char) != char


def split_text(text: str) -> list[tuple[int, int]]:
    """Finds the words of raw text as ranges: `text[start:end]`.

    As in files for tagging, words are separated by white space, and punctuation
    is split off both ends. Punctuation alone, such as `...`, stays one word.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        end = start
        while end < len(text) and not text[end].isspace():
            end += 1
        spans += _split_ends(text, start, end)
        start = end
    return spans


def _split_ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Splits punctuation off one word; `!!` stays together."""
    first, last = start, end - 1
    while first < end and is_edge(text[first]):
        first += 1
    if first == end:
        yield start, end
        return
    while is_edge(text[last]):
        last -= 1
    for i in range(start + 1, end):
        outside = i < first or i > last
        if i == first or (outside and text[i] != text[i - 1]):
            yield start, i
            start = i
    yield start, end


def group(
    sentences: Sequence[conll.Sentence], context: str
) -> Iterator[list[conll.Sentence]]:
    """Yields groups of sentences that the model reads together.

    If `context` is "document", a group is a document, as in the paper (section
    5.3).
    """
    together: list[conll.Sentence] = []
    for sentence in sentences:
        is_other = context == "sentence" or (
            together and together[0].document != sentence.document
        )
        if together and is_other:
            yield together
            together = []
        together.append(sentence)
    if together:
        yield together


# ---- Tokens -----------------------------------------------------------------


class WordPieces:
    """The token ids of words, with a cache."""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        self.vocabulary = vocabulary
        self._tokenizer = vocabulary.tokenizer()
        # Texts of any length have few distinct words.
        self._find = functools.lru_cache(1 << 16)(self._split)

    def __call__(self, word: str) -> list[int]:
        """Returns the ids; at least one, so that every word has a label."""
        return self._find(word)

    def _split(self, word: str) -> list[int]:
        # Tokenized as a separate word, as transformers does for split texts.
        word = self.vocabulary.before_words + word
        pieces = self._tokenizer.tokenize(word)
        # A variation selector or a zero-width joiner has no tokens.
        return self._tokenizer.convert_tokens_to_ids(pieces) or [
            self.vocabulary.special.unk.id
        ]


# ---- Windows ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Windows:
    """Where a text of tokens is cut: the starts of windows, [W].

    `borders` [W] are the first tokens that belong to each window: a token
    belongs to the window that has the most context on both sides of it.
    """

    starts: np.ndarray
    borders: np.ndarray


def windows(pieces: int, room: int) -> Windows:
    """Cuts a text of `pieces` tokens into windows that overlap by half.

    Each window has room for `room` tokens.
    """
    stride = max(room // 2, 1)
    last = max(pieces - room, 0)
    starts = np.append(np.arange(0, last, stride), last)
    # Halfway between the centres of adjacent windows.
    borders = (starts[:-1] + starts[1:] + room - 1) // 2 + 1
    return Windows(starts, np.append(0, borders))
