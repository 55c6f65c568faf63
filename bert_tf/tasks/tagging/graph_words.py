"""Finds the words of raw text in the graph, as `words` does in Python.

All ops are part of TensorFlow, so TensorFlow Serving supports them.

Shapes: B texts, N characters of all texts, U words of all texts.
"""

import functools
from typing import NamedTuple

from bert_tf import characters
from bert_tf.tasks.tagging import tagging_words
from bert_tf.text import graph_code_tables, graph_rows

import numpy as np
import tensorflow as tf

# The kinds of characters.
_INNER, _EDGE, _SPACE, _ALONE = 0, 1, 2, 3


class Words(NamedTuple):
    """The words of all texts, in order."""

    texts: tf.Tensor  # [U] string
    rows: tf.Tensor  # [U] int64, the text's index
    starts: tf.Tensor  # [U] int32, in characters of the text
    ends: tf.Tensor  # [U] int32


@functools.cache
def _kinds(splits_cjk: bool) -> np.ndarray:
    """Returns the kind of each code point, [0x110000] int32."""
    kinds = np.full(characters.CODE_POINTS, _INNER, np.int32)
    for char in characters.assigned():
        if char.isspace():
            kinds[ord(char)] = _SPACE
        # Checked first: it is fast, and the other two checks imply it.
        elif not characters.is_punctuation(char):
            continue
        elif splits_cjk and tagging_words.is_cjk_mark(char):
            kinds[ord(char)] = _ALONE
        elif tagging_words.is_edge(char):
            kinds[ord(char)] = _EDGE
    if splits_cjk:
        kinds[list(map(ord, characters.all_cjk()))] = _ALONE
    return kinds


class WordSplitter(tf.Module):
    """Splits texts at white space, and punctuation off the ends of words.

    If `splits_cjk`, each Chinese character is a word, and so is each mark of
    Chinese texts (`tagging_words.is_cjk_mark`), which stands between words.
    """

    def __init__(self, splits_cjk: bool):
        super().__init__()
        self._kinds = graph_code_tables.CodeTable(_kinds(splits_cjk))

    def split(self, texts: tf.Tensor, split_punctuation: bool) -> Words:
        """Finds the words of UTF-8 texts [B]; drops invalid bytes.

        Without `split_punctuation`, texts are split only at white space.
        """
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        codes, rows = decoded.values, graph_rows.row_ids(decoded)  # [N], [N]
        places = tf.range(tf.size(codes, tf.int64))
        places -= tf.gather(decoded.row_starts(), rows)
        kinds = self._kinds.lookup(codes)
        is_space = kinds == _SPACE
        others = tf.where(~is_space)
        after_space = tf.concat([[True], is_space], 0)[:-1]
        begins = ~is_space & (after_space | (places == 0))
        if split_punctuation:
            begins |= self._inner_begins(codes, kinds, begins)
        word = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        word = tf.gather_nd(word, others)
        number = tf.math.count_nonzero(begins)
        ragged = graph_rows.of_sorted_rows(
            tf.gather_nd(codes, others), word, number
        )
        lasts = tf.math.unsorted_segment_max(
            tf.gather_nd(places, others), word, number
        )
        firsts = tf.where(begins)
        return Words(
            tf.strings.unicode_encode(ragged, "UTF-8"),
            tf.gather_nd(rows, firsts),
            tf.cast(tf.gather_nd(places, firsts), tf.int32),
            tf.cast(lasts + 1, tf.int32),
        )

    def _inner_begins(
        self, codes: tf.Tensor, kinds: tf.Tensor, begins: tf.Tensor
    ) -> tf.Tensor:
        """Returns where words begin, [N], with punctuation split off."""
        is_alone = kinds == _ALONE
        starts = begins | is_alone | tf.concat([[False], is_alone], 0)[:-1]
        chunk = tf.maximum(tf.cumsum(tf.cast(starts, tf.int32)) - 1, 0)
        chunks = tf.size(codes) + 1
        index = tf.range(tf.size(codes))
        is_inner = (kinds == _INNER) | is_alone
        first = tf.math.unsorted_segment_min(
            tf.where(is_inner, index, tf.size(codes)), chunk, chunks
        )
        last = tf.math.unsorted_segment_max(
            tf.where(is_inner, index, -1), chunk, chunks
        )
        first, last = tf.gather(first, chunk), tf.gather(last, chunk)  # [N]
        is_outside = (index < first) | (index > last)
        is_other = codes != tf.concat([[-1], codes], 0)[:-1]
        begins = (index == first) | (is_outside & is_other)
        # Punctuation without other characters is not split.
        return (starts | (begins & (last >= 0))) & (kinds != _SPACE)
