"""The characters of an ELMo in the graph, with TensorFlow's own ops only.

Shapes: B texts, N bytes of all texts, P tokens of all texts.
"""

from bert_tf.contrib import elmo_characters
from bert_tf.text import graph_offsets, graph_rows, graph_symbols, text_graph

import tensorflow as tf


class CharacterTokenizer(graph_rows.Tokenizer):
    """Spells words that are separated by white space."""

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are skipped.
        """
        return self.tokenize_with_offsets(texts).ids

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Returns the ids and the offsets of their characters."""
        split = tf.strings.bytes_split(graph_symbols.with_plain_spaces(texts))
        codes = tf.reshape(tf.io.decode_raw(split.values, tf.uint8), [-1])
        codes, rows = tf.cast(codes, tf.int32), split.value_rowids()  # [N]
        is_space = codes == ord(" ")
        before = tf.concat([[True], is_space[:-1] | (rows[1:] != rows[:-1])], 0)
        begins = ~is_space & before[: tf.size(rows)]
        # The other bytes of a character in UTF-8 are 128 to 191.
        is_char = tf.cast((codes < 128) | (codes > 191), tf.int32)
        count = tf.cumsum(is_char)  # [N]
        first = tf.gather(tf.concat([[0], count], 0), split.row_starts())
        places = count - 1 - tf.gather(first, rows)
        # Two tokens where a word begins: the mark and the byte.
        copies = tf.cast(~is_space, tf.int32) + tf.cast(begins, tf.int32)
        index = tf.repeat(tf.range(tf.size(codes)), copies)  # [P]
        is_other = tf.concat([[True], index[1:] != index[:-1]], 0)
        is_mark = is_other[: tf.size(index)] & tf.gather(begins, index)
        ids = tf.where(is_mark, elmo_characters.WORD, tf.gather(codes, index))
        starts = tf.gather(places, index)
        lengths = tf.cast(copies, tf.int64)
        lengths = tf.math.unsorted_segment_sum(lengths, rows, split.nrows())
        return graph_rows.Tokens(
            tf.RaggedTensor.from_row_lengths(ids, lengths, validate=False),
            starts,
            starts + 1,
        )


_KIND = elmo_characters.WordCharacters.kind
text_graph.register(_KIND, CharacterTokenizer)
graph_offsets.register(_KIND, CharacterTokenizer)
