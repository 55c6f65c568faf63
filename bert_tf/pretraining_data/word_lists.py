"""Words of several tokens, for whole-word masking of Chinese.

The tokenizer makes every Chinese character a separate word. This module joins
adjacent tokens that form a word of a list, or of the user's own segmenter; the
longest at each position wins (BERT-wwm, Cui et al., 2019).
"""

import importlib
from collections.abc import Callable, Iterable, Sequence

from bert_tf.errors import InputError
from bert_tf.storage import input_files

import numpy as np
from etils import epath

# Texts -> tokens of all texts, and the number for each text.
Tokenize = Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]

# Max words of a segmenter in the cache (150 MB).
_MAX_KNOWN = 1 << 19


class _Words:
    """Words as tuples of tokens."""

    def __init__(self, words: Iterable[tuple[int, ...]]):
        self._words = {word for word in words if len(word) > 1}
        # First token -> number of tokens of the longest word.
        self._longest: dict[int, int] = {}
        for word in self._words:
            longest = self._longest.get(word[0], 0)
            self._longest[word[0]] = max(longest, len(word))

    def join(self, pieces: list[int], starts: list[bool]) -> None:
        """Removes the word starts inside of words, in place."""
        place, end = 0, len(pieces)
        while place < end:
            longest = min(self._longest.get(pieces[place], 1), end - place)
            length = 1
            for size in range(longest, 1, -1):
                stop = place + size
                # A word of the list must not begin or end inside another word.
                is_whole = starts[place] and (stop == end or starts[stop])
                if is_whole and tuple(pieces[place:stop]) in self._words:
                    starts[place + 1 : stop] = [False] * (size - 1)
                    length = size
                    break
            place += length


class WordList:
    """The words of a UTF-8 file, one per line, tokenized like the text.

    The rest of a line after white space, such as a frequency, is ignored.
    Raises InputError for a file without words.
    """

    def __init__(self, path: str, tokenize: Tokenize):
        input_files.check(path, "word_list")
        input_files.check_can_be_read_again(path)
        try:
            lines = epath.Path(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(
                f"The word list {path} must be UTF-8 ({error.reason} at byte "
                f"{error.start}). Convert it, for example with iconv"
            ) from error
        words = [line.split()[0] for line in lines if line.strip()]
        if not words:
            raise InputError(
                f"The word list {path} holds no words: write one per line"
            )
        self._words = _Words(_split(words, tokenize))

    def of_text(self, text: str) -> _Words:
        """Returns the words to find in a text."""
        return self._words


class Segmenter:
    """The user's own function, `module:function`, that splits texts into words.

    It takes a str and returns strings, which are tokenized like the text.
    Raises InputError if it cannot be imported.
    """

    def __init__(self, name: str, tokenize: Tokenize):
        module, _, function = name.partition(":")
        try:
            self._function = getattr(importlib.import_module(module), function)
            if not callable(self._function):
                raise TypeError(f"{function} is no function")
        # Importing the user's module may raise anything.
        except Exception as error:
            raise InputError(
                "The segmenter must be an importable module:function, such as "
                f"jieba:lcut ({error}). Received: segmenter={name!r}"
            ) from error
        self._name = name
        self._tokenize = tokenize
        self._known: dict[str, tuple[int, ...]] = {}

    def of_text(self, text: str) -> _Words:
        """Returns the words to find in a text."""
        try:
            words = list(self._function(text))
        # The user's function may raise anything.
        except Exception as error:
            raise InputError(
                f"The segmenter {self._name} must make a list of words of a "
                f"text, and ends with {type(error).__name__} ({error}). Mend "
                f"it or choose another. Received: text={text[:60]!r}"
            ) from error
        for word in words:
            if not isinstance(word, str):
                raise InputError(
                    f"The segmenter {self._name} must return strings. "
                    f"Received: {word!r}"
                )
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        self._known.update(zip(new, _split(new, self._tokenize), strict=True))
        return _Words(self._known[word] for word in words)


def join(
    words: WordList | Segmenter,
    texts: Sequence[str],
    tokens: np.ndarray,
    lengths: np.ndarray,
    word_starts: np.ndarray,
) -> np.ndarray:
    """Returns which tokens begin a word, after joining words: [n] bool.

    `lengths` are the numbers of `tokens` [n] of each text; `word_starts` [n]
    bool are the word starts of the tokenizer.
    """
    pieces, starts = tokens.tolist(), word_starts.tolist()
    joined: list[bool] = []
    place = 0
    for text, length in zip(texts, lengths.tolist(), strict=True):
        own = starts[place : place + length]
        words.of_text(text).join(pieces[place : place + length], own)
        joined += own
        place += length
    return np.array(joined, bool)


def _split(words: Sequence[str], tokenize: Tokenize) -> list[tuple[int, ...]]:
    pieces, lengths = tokenize(words)
    ends = np.cumsum(lengths)[:-1]
    return [tuple(part.tolist()) for part in np.split(pieces, ends)][
        : len(words)
    ]
