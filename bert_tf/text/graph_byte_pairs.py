"""Byte-level BPE in the graph, with TensorFlow's own ops only.

The results are the same as from the `tokenizers` library. A table classifies
each code point as a letter, a number or white space, and word boundaries follow
from neighbouring classes. Words that are a single token are looked up. All
other words are merged step by step, each distinct word once. Nothing is cached
between calls, so that the memory of a server does not grow.

Shapes: B texts, N code points of all texts plus an end marker after each, W
words, R distinct words of several tokens, M tokens of those words, P tokens of
all texts.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from bert_tf.text import graph_rows
from bert_tf.vocabularies import byte_pair_files
from bert_tf.vocabularies import byte_pairs as vocabulary_kind

import numpy as np
import tensorflow as tf

# Classes of code points for word splitting. Of all white space, only the plain
# space belongs to the word after it.
_OTHER, _LETTER, _NUMBER, _BLANK, _PLAIN, _END = range(6)

# End marker after each text, larger than any code point.
_END_CODE = 0x110000
# All planes beyond are for private use, or have neither letters nor spaces.
_PLANES = 0x40000

_APOSTROPHE = ord("'")
_NO_RANK = np.iinfo(np.int64).max


class Words(NamedTuple):
    """The words of all texts, and the code points that they consist of."""

    words: tf.Tensor  # [W] string
    rows: tf.Tensor  # [W] int64, the text of each
    # [B, (code points and an end)] int32, where offsets need them
    codes: Any = None


@functools.cache
def _classes() -> np.ndarray:
    """Classifies every code point with `tokenizers`: [N] int8."""
    made = vocabulary_kind.library()
    classes = np.full(_END_CODE + 1, _OTHER, np.int8)
    codes = [x for x in range(_PLANES) if not 0xD800 <= x < 0xE000]
    chars = "".join(map(chr, codes))
    patterns = {_LETTER: r"\p{L}+", _NUMBER: r"\p{N}+", _BLANK: r"\s+"}
    for number, pattern in patterns.items():
        runs = made.pre_tokenizers.Split(
            made.Regex(pattern), "removed", invert=True
        ).pre_tokenize_str(chars)
        for run, _ in runs:
            classes[[ord(char) for char in run]] = number
    classes[ord(" ")] = _PLAIN
    classes[_END_CODE] = _END
    return classes


class BytePairTokenizer(graph_rows.Tokenizer):
    """Splits texts into the ids of byte pairs and packs them for the model."""

    def __init__(self, vocabulary: vocabulary_kind.BytePairs):
        super().__init__(vocabulary)
        self._add_prefix_space = vocabulary.add_prefix_space
        self._classes = tf.constant(_classes())
        ids = vocabulary.ids
        self._byte_ids = tf.constant([ids[x] for x in byte_pair_files.BYTES])
        self.set_merges(vocabulary, _whole_words(vocabulary))

    def set_merges(
        self, vocabulary: Any, whole: tuple[list[bytes], list[int]]
    ) -> None:
        """Creates the tables of merges, and of words that are one token."""
        ids, merges = vocabulary.ids, vocabulary.merges
        self._num_pieces = len(ids)
        self._whole = _table(*whole, tf.int32, -1)
        pairs = np.array(
            [ids[a] * len(ids) + ids[b] for a, b in merges], np.int64
        )
        ranks = np.arange(len(merges), dtype=np.int64)
        self._ranks = _table(pairs, ranks, tf.int64, _NO_RANK)
        self._joined = tf.constant([ids[a + b] for a, b in merges] or [0])
        self._one_at_a_time = not _is_in_order(merges)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are skipped.
        """
        texts, _ = self._begun(texts)
        return self.split_words(self._words(texts), tf.size(texts, tf.int64))

    def _begun(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns texts with the prefix space, and how many each text got."""
        if not self._add_prefix_space:
            return texts, tf.zeros_like(texts, tf.int32)
        valid = tf.strings.unicode_transcode(
            texts, "UTF-8", "UTF-8", errors="ignore"
        )
        begun = tf.strings.regex_replace(valid, r"\A([^ ])", r" \1")
        return begun, tf.strings.length(begun) - tf.strings.length(valid)

    # ---- Words ---------------------------------------------------------------

    def _words(self, texts: tf.Tensor) -> Words:
        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        ends = tf.fill([tf.size(texts), 1], _END_CODE)
        codes = tf.concat([codes, ends], 1)
        flat = codes.values  # [N]
        classes = tf.gather(self._classes, flat)
        is_text = classes != _END
        starts = tf.where(_starts(flat, classes))[:, 0]  # [W]
        number = tf.cumsum(tf.cast(_starts(flat, classes), tf.int64)) - 1
        rows = codes.value_rowids()
        words = tf.strings.unicode_encode(
            tf.RaggedTensor.from_value_rowids(
                tf.boolean_mask(flat, is_text),
                tf.boolean_mask(number, is_text),
                nrows=tf.size(starts, tf.int64),
                validate=False,
            ),
            "UTF-8",
        )
        return Words(words, tf.gather(rows, starts), codes)

    # ---- Tokens --------------------------------------------------------------

    def split_words(self, words: Words, size: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of the words of `size` texts, [B, (tokens)]."""
        whole = self._whole.lookup(words.words)  # [W]
        is_cut = whole < 0
        cut, number = tf.unique(tf.boolean_mask(words.words, is_cut), tf.int64)
        pieces = self._join(cut)  # [R, (tokens)]
        # All tokens, and the position where the tokens of each word begin.
        pool = tf.concat([pieces.values, whole], 0)
        num_cut = tf.size(pieces.values, tf.int64)
        first = num_cut + tf.range(tf.size(whole, tf.int64))  # [W]
        counts = tf.ones_like(first)  # [W]
        places = tf.where(is_cut)
        first = tf.tensor_scatter_nd_update(
            first, places, tf.gather(pieces.row_starts(), number)
        )
        counts = tf.tensor_scatter_nd_update(
            counts, places, tf.gather(pieces.row_lengths(), number)
        )
        offset = first - tf.cumsum(counts, exclusive=True)
        index = tf.repeat(offset, counts)  # [P]
        index += tf.range(tf.size(index, tf.int64))
        return tf.RaggedTensor.from_value_rowids(
            tf.gather(pool, index),
            tf.repeat(words.rows, counts),
            nrows=size,
            validate=False,
        )

    def _join(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Merges the symbols of words [R] to tokens: [R, (tokens)] int32."""
        ids, rows = self.symbols(words)
        num_words = tf.size(words, tf.int64)

        def step(
            ids: tf.Tensor, rows: tf.Tensor, ranks: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            best = tf.math.segment_min(ranks, rows)  # [R]
            hits = (ranks == tf.gather(best, rows)) & (ranks != _NO_RANK)
            hits = self._without_overlaps(hits, rows)
            joined = tf.gather(self._joined, tf.where(hits, ranks, 0))
            kept = ~tf.roll(hits, 1, 0)
            ids = tf.boolean_mask(tf.where(hits, joined, ids), kept)
            rows = tf.boolean_mask(rows, kept)
            return ids, rows, self._rank(ids, rows)

        ids, rows, _ = tf.while_loop(
            lambda ids, rows, ranks: tf.reduce_any(ranks != _NO_RANK),
            step,
            (ids, rows, self._rank(ids, rows)),
            shape_invariants=(tf.TensorShape([None]),) * 3,
        )
        return tf.RaggedTensor.from_value_rowids(
            ids, rows, nrows=num_words, validate=False
        )

    def symbols(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the id of each byte of words [R], and its word: [M]."""
        data = tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8)
        ids = tf.gather(self._byte_ids, tf.cast(data, tf.int32))
        lengths = tf.cast(tf.strings.length(words), tf.int64)
        return ids, tf.repeat(tf.range(tf.size(words, tf.int64)), lengths)

    def _rank(self, ids: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Returns the rank of each token's merge with the next token: [M]."""
        left = tf.cast(ids, tf.int64)
        ranks = self._ranks.lookup(
            left * self._num_pieces + tf.roll(left, -1, 0)
        )
        # The last token has no next token, even if there is only one word.
        last = tf.size(rows) - 1
        is_inside = (rows == tf.roll(rows, -1, 0)) & (tf.range(last + 1) < last)
        return tf.where(is_inside, ranks, _NO_RANK)

    def _without_overlaps(self, hits: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Keeps the first, third, fifth ... of each run of adjacent hits."""
        places = tf.range(tf.size(hits, tf.int64))  # [M]
        others = tf.concat([[np.int64(-1)], tf.where(~hits)[:, 0]], 0)
        before = tf.cumsum(tf.cast(~hits, tf.int32))
        hits &= (places - tf.gather(others, before)) % 2 == 1
        if not self._one_at_a_time:
            return hits
        found = tf.where(hits)[:, 0]
        word = tf.gather(rows, found)
        is_first = tf.concat([[True], word[1:] != word[:-1]], 0)
        is_first = is_first[: tf.size(found)]
        first = tf.boolean_mask(found, is_first)[:, tf.newaxis]
        return tf.scatter_nd(
            first, tf.fill(tf.shape(first)[:1], True), tf.shape(hits, tf.int64)
        )


class OffsetTokenizer(BytePairTokenizer):
    """A BytePairTokenizer that also returns character offsets."""

    def __init__(self, vocabulary: vocabulary_kind.BytePairs):
        super().__init__(vocabulary)
        pieces, space = vocabulary.pieces, vocabulary_kind.SPACE
        self._sizes = tf.constant([len(piece) for piece in pieces])
        # Spaces at the ends of a token do not count as its characters.
        self._before, self._after = (
            tf.constant([len(x) - len(strip(x, space)) for x in pieces])
            for strip in (str.lstrip, str.rstrip)
        )

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Splits UTF-8 texts [B] into tokens; invalid bytes are skipped."""
        texts, more = self._begun(texts)
        words = self._words(texts)
        ids = self.split_words(words, tf.size(texts, tf.int64))
        flat = words.codes.values  # [N]
        # Tokens cover all bytes in order, except for the end markers.
        widths = tf.cast(flat != _END_CODE, tf.int32)
        for least in (0x80, 0x800, 0x10000):
            widths += tf.cast((flat >= least) & (flat < _END_CODE), tf.int32)
        places = tf.range(tf.size(flat))
        place = places - tf.cast(
            tf.gather(words.codes.row_starts(), words.codes.value_rowids()),
            tf.int32,
        )  # [N], in the text
        chars = tf.repeat(place, widths)  # by byte
        sizes = tf.gather(self._sizes, ids.values)  # [P]
        limits = tf.cumsum(sizes)
        starts = tf.gather(chars, limits - sizes)
        ends = tf.gather(chars, limits - 1) + 1
        starts = tf.minimum(starts + tf.gather(self._before, ids.values), ends)
        after = ends - tf.gather(self._after, ids.values)
        ends = tf.maximum(after, starts)
        more = tf.gather(more, ids.value_rowids())
        starts, ends = (tf.maximum(x - more, 0) for x in (starts, ends))
        return graph_rows.Tokens(ids, starts, ends)


def _starts(codes: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """Returns whether a word begins at each code point: [N] bool."""
    before, after = tf.roll(classes, 1, 0), tf.roll(classes, -1, 0)
    is_blank = _is_blank(classes)
    was_blank = _is_blank(before)
    # The last character of white space is separate, or begins the next word.
    is_last = is_blank & ~_is_blank(after) & (after != _END)
    starts = (is_blank & ~was_blank) | is_last | (before == _BLANK) & ~is_blank
    starts |= ~is_blank & ~was_blank & (classes != before)
    # Contractions after an apostrophe: 's 't 'm 'd, and 're 've 'll.
    is_free = (before != _OTHER) & (before != _PLAIN)
    is_free &= codes == _APOSTROPHE
    next_1, next_2 = tf.roll(codes, -1, 0), tf.roll(codes, -2, 0)
    takes_1 = is_free & _is_one_of(next_1, "stmd")
    takes_2 = is_free & (
        (_is_one_of(next_1, "rv") & (next_2 == ord("e")))
        | ((next_1 == ord("l")) & (next_2 == ord("l")))
    )
    starts &= ~tf.roll(takes_1 | takes_2, 1, 0)
    starts |= tf.roll(takes_1, 2, 0) | tf.roll(takes_2, 3, 0)
    return starts & (classes != _END)


def _is_blank(classes: tf.Tensor) -> tf.Tensor:
    return (classes == _BLANK) | (classes == _PLAIN)


def _is_one_of(codes: tf.Tensor, letters: str) -> tf.Tensor:
    found = [codes == ord(letter) for letter in letters]
    return functools.reduce(tf.logical_or, found)


def _table(
    keys: Any, values: Any, dtype: tf.DType, default: int
) -> tf.lookup.StaticHashTable:
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(keys), tf.constant(values, dtype)
        ),
        default,
    )


def _whole_words(
    vocabulary: vocabulary_kind.BytePairs,
) -> tuple[list[bytes], list[int]]:
    """Returns the words that are a single token, as bytes, and their ids."""
    made = vocabulary_kind.library()
    model = made.models.BPE(vocabulary.ids, list(vocabulary.merges))
    numbers = {char: i for i, char in enumerate(byte_pair_files.BYTES)}
    words, ids = [], []
    for piece, index in vocabulary.ids.items():
        # Tokens that no merges lead to are never found.
        if numbers.keys() >= set(piece) and [
            token.id for token in model.tokenize(piece)
        ] == [index]:
            words.append(bytes(numbers[char] for char in piece))
            ids.append(index)
    return words, ids


def _is_in_order(merges: Sequence[tuple[str, str]]) -> bool:
    """Returns whether every token is built before a merge uses it.

    Then equal pairs of a word can be merged in one step: no result of such a
    merge takes part in another merge before all equal pairs are merged.
    """
    made = {left + right: rank for rank, (left, right) in enumerate(merges)}
    return all(
        made.get(part, -1) < rank
        for rank, pair in enumerate(merges)
        for part in pair
    )
