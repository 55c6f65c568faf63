"""Tokenized lines of text for the extractor, with their word boundaries."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from bert_tf import vocabularies
from bert_tf.text import text_graph

_PAIR = re.compile(r"^(.*) \|\|\| (.*)$", re.DOTALL)
# Size of the texts that are held in memory at a time.
_MOST_CHARACTERS = 1 << 24


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the input, tokenized.

    `words` is set only when vectors are extracted by word; a word's tokens are
    those from `starts` up to, but not including, `ends`. `ids` and `segments`
    include [CLS] and [SEP]; `index` counts from 0.
    """

    index: int
    ids: Sequence[int]
    segments: Sequence[int]
    words: Sequence[str] = ()
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    is_cut: bool = False


class Reader:
    """Converts texts, or pairs separated by ` ||| `, into `Line`s."""

    def __init__(
        self,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
        by_word: bool,
    ):
        """Traces the graph; `max_seq_length` includes [CLS] and [SEP]."""
        tokenizer = text_graph.make_tokenizer(vocabulary)
        self._template = vocabulary.template
        self._unknown = vocabulary.special.unk.id
        self._before_words = vocabulary.before_words
        self._length = max_seq_length
        self._by_word = by_word
        self._tokenize = tokenizer.tokenize

    def read(self, texts: Sequence[str], first: int) -> list[Line]:
        """Returns one line per text; `first` is the index of the first text."""
        parts: list[str] = []
        for text in texts:
            match = _PAIR.match(text.strip())
            parts += match.groups() if match else (text.strip(), "")
        pieces = self._pieces(parts)
        return [
            self._line(
                first + i, parts[2 * i : 2 * i + 2], pieces[2 * i : 2 * i + 2]
            )
            for i in range(len(texts))
        ]

    def _pieces(self, parts: Sequence[str]) -> list[list[list[int]]]:
        """Returns the tokens of each word, or of each part as one word."""
        if not self._by_word:
            return [[ids] for ids in self._tokenize(parts).to_list()]
        split = [part.split() for part in parts]
        words = [self._before_words + word for part in split for word in part]
        # A word of control characters has no tokens, but needs a vector.
        ids = iter(
            x or [self._unknown] for x in self._tokenize(words).to_list()
        )
        return [list(itertools.islice(ids, len(part))) for part in split]

    def _line(
        self,
        index: int,
        parts: Sequence[str],
        pieces: Sequence[list[list[int]]],
    ) -> Line:
        first, second = (list(itertools.chain(*part)) for part in pieces)
        template = self._template
        room = self._length - template.special(2 if second else 1)
        lengths = _fitting(len(first), len(second), room)
        ids, segments = template.row(first[: lengths[0]], second[: lengths[1]])
        places = len(template.before), template.second(lengths[0])
        is_cut = sum(lengths) < len(first) + len(second)
        if not self._by_word:
            return Line(index, ids, segments, is_cut=is_cut)
        words, starts, ends = [], [], []
        for part, part_pieces, place, length in zip(
            parts, pieces, places, lengths, strict=True
        ):
            at, stop = place, place + length
            for word, its_pieces in zip(part.split(), part_pieces, strict=True):
                if at >= stop:
                    break
                words.append(word)
                starts.append(at)
                at = min(at + len(its_pieces), stop)
                ends.append(at)
        return Line(index, ids, segments, words, starts, ends, is_cut)


def _fitting(first: int, second: int, room: int) -> tuple[int, int]:
    """Returns the two lengths after truncating the longer text first.

    If both are equally long, the second is truncated, as in the original.
    """
    half = room // 2
    if first + second <= room:
        return first, second
    first = min(first, max(room - second, room - half))
    return first, min(second, room - first)


def windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cuts a stream into lists of up to `size` texts, fewer for long texts.

    The extractor sorts each list by length.
    """
    window: list[str] = []
    characters = 0
    for text in texts:
        if len(window) == size or characters + len(text) > _MOST_CHARACTERS:
            if window:
                yield window
            window, characters = [], 0
        window.append(text)
        characters += len(text)
    if window:
        yield window
