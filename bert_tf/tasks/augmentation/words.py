"""Finds the replaceable words of a text, and the tokens of each.

Words are split as by the original's basic tokenizer: letters between white
space, punctuation and Chinese characters; each Chinese character is a word. As
in TinyBERT, words with digits or symbols, and stop words, are not replaced. In
a vocabulary of symbols, each symbol is a word.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from bert_tf import characters, tokenization, vocabularies
from bert_tf.tasks import tables

# TinyBERT's list without "don't", which is three words to a tokenizer.
_STOP_WORDS = """
a about above after again against ain all am an and any are aren as at be
because been before being below between both but by can couldn d did didn do
does doesn doing don down during each few for from further had hadn has hasn
have haven having he her here hers herself him himself his i if in into is isn
it its itself just ll m ma me mightn more most mustn my myself needn no nor
not now o of off on once only or other our ours ourselves out over own re s
same shan she should shouldn so some such t than that the their theirs them
themselves then there these they this those through to too under until up ve
very was wasn we were weren while will with won wouldn y you your yours
yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Longer words are names, or text in a script without spaces, which a single
# word cannot replace.
_MOST_PIECES = 8


def read_stop_words(path: str) -> frozenset[str]:
    """Reads stop words, one per line; InputError if the file is not text."""
    words = (line.strip().lower() for _, line in tables.lines(path))
    return frozenset(words) - {""}


class Word(NamedTuple):
    """A word: characters `text[start:end]` and token ids `ids[first:last]`."""

    text: str
    start: int
    end: int
    first: int
    last: int


class Text(NamedTuple):
    """A text, the ids that fit into a sequence, and the words among them."""

    text: str
    ids: list[int]
    words: list[Word]


class Reader:
    """Finds the replaceable words of texts."""

    def __init__(
        self,
        vocabulary: vocabularies.Vocabulary,
        stop_words: Collection[str],
        max_seq_length: int,
    ):
        """Creates a reader; `stop_words` are in lower case."""
        self._tokenizer = vocabulary.tokenizer()
        self._find = finder(vocabulary)
        self._stop_words = stop_words
        self._room = max_seq_length - vocabulary.template.special(1)

    def read(self, text: str) -> Text:
        """Returns the words that may be replaced."""
        tokens = self._tokenizer.tokenize_with_offsets(text)
        spans = _Spans(tokens)
        words = []
        for start, end in self._find(text):
            if text[start:end].lower() in self._stop_words:
                continue
            pieces = spans.find(start, end)
            if pieces is None or pieces[1] > self._room:
                continue
            if pieces[1] - pieces[0] <= _MOST_PIECES:
                words.append(Word(text[start:end], start, end, *pieces))
        kept = [token.text for token in tokens[: self._room]]
        return Text(text, self._tokenizer.convert_tokens_to_ids(kept), words)


class _Spans:
    """Finds the tokens that exactly cover a word."""

    def __init__(self, tokens: Sequence[tokenization.Token]):
        self._tokens = tokens
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        for place, token in enumerate(tokens):
            self._first.setdefault(token.start, place)
            self._last[token.end] = place

    def find(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the range of tokens; None if one crosses a boundary."""
        first, last = self._first.get(start), self._last.get(end)
        if first is None or last is None or last < first:
            return None
        if first and self._tokens[first - 1].end > start:
            return None
        is_end = last + 1 == len(self._tokens)
        if not is_end and self._tokens[last + 1].start < end:
            return None
        return first, last + 1


def finder(
    vocabulary: vocabularies.Vocabulary,
) -> Callable[[str], list[tuple[int, int]]]:
    """Returns a function that finds where words of a text begin and end."""
    return of_letters if vocabulary.splits_punctuation else of_symbols


def of_symbols(text: str) -> list[tuple[int, int]]:
    """Returns the start and end of each run without white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


# ---- Letters ----------------------------------------------------------------

_LETTER, _OTHER, _CHINESE, _BETWEEN = "aox "
_WORD = re.compile(f"(?<![{_LETTER}{_OTHER}])a+(?![{_LETTER}{_OTHER}])|x")


class _Kinds(dict[int, str]):
    """Table for str.translate: maps characters to letters and others."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(chr(code))
        return kind


def _kind(char: str) -> str:
    if characters.is_whitespace(char) or characters.is_punctuation(char):
        return _BETWEEN
    if characters.is_cjk(char):
        return _CHINESE
    # In many scripts, vowels are marks.
    return _LETTER if unicodedata.category(char)[0] in "LM" else _OTHER


_KINDS = _Kinds()


def of_letters(text: str) -> list[tuple[int, int]]:
    """Returns the start and end of each word that is made of letters only."""
    found = _WORD.finditer(text.translate(_KINDS))
    return [match.span() for match in found]
