"""Lines of text as the extractor reads them, with the places of their words."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from bert_tf import vocabularies
from bert_tf.text import graph as text_graph

import tensorflow as tf

_PAIR = re.compile(r"^(.*) \|\|\| (.*)$", re.DOTALL)
# Of the texts that are kept in memory at a time.
_MOST_CHARACTERS = 1 << 24


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the input, as the model reads it.

    `words` are known where they are wanted: their first pieces are at `starts`,
    and `ends` are behind their last. `ids` and `segments` have [CLS] and [SEP];
    `index` counts from 0.
    """

    index: int
    ids: Sequence[int]
    segments: Sequence[int]
    words: Sequence[str] = ()
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    is_cut: bool = False


class Reader:
    """Makes `Line`s of texts, or of pairs of texts with ` ||| ` between."""

    def __init__(
        self,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
        by_word: bool,
    ):
        """Traces its graph; `max_seq_length` counts [CLS] and [SEP], too."""
        tokenizer = text_graph.of(vocabulary)
        self._template = vocabulary.template
        self._unknown = vocabulary.special.unk.id
        self._before_words = vocabulary.before_words
        self._length = max_seq_length
        self._by_word = by_word
        self._tokenize = tf.function(
            tokenizer.tokenize,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    def read(self, texts: Sequence[str], first: int) -> list[Line]:
        """Returns a line for each text; `first` is the number of the first."""
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
        """Returns the pieces of each word, or of each part as one word."""
        if not self._by_word:
            return [[ids] for ids in self._tokenize(parts).to_list()]
        split = [part.split() for part in parts]
        words = [self._before_words + word for part in split for word in part]
        # A word of control characters only has no pieces, and needs a vector.
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
    """Returns the lengths that are left when the longer text loses pieces.

    If both are equally long the second loses, as in the original.
    """
    half = room // 2
    if first + second <= room:
        return first, second
    first = min(first, max(room - second, room - half))
    return first, min(second, room - first)


def windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cuts a stream into lists of up to `size` texts, fewer of long ones.

    Each is to be sorted by length.
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
