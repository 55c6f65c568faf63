"""Splits texts into words, and words into windows that fit the model.

Shapes: W windows per text.
"""

import collections
import dataclasses
import functools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

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


def is_cjk_mark(char: str) -> bool:
    """Whether a character is punctuation of texts without spaces, such as 、.

    Quotes and dashes that other languages share are not.
    """
    return is_edge(char) and unicodedata.east_asian_width(char) in "WFH"


def splits_cjk(sentences: Iterable[conll.Sentence]) -> bool:
    """Whether Chinese characters are words in training data, as in MSRA's.

    Data that is segmented into words has many words of several characters.
    """
    words = (x for s in sentences for x in s.words if characters.count_cjk(x))
    lengths = collections.Counter(map(len, words))
    return lengths[1] > 0.9 * lengths.total()


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
