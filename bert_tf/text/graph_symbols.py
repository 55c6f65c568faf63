"""Symbols in the graph, with TensorFlow's own ops only.

The results equal `str.split` and a dictionary.

Shapes: B texts, N characters of all texts, P symbols of all texts.
"""

import functools
import sys

from bert_tf.text import graph_rows
from bert_tf.vocabularies import symbols as vocabulary_kind

import tensorflow as tf

_SPACE = ord(" ")


@functools.cache
def _spaces() -> str:
    """Returns the regular expression of a white space character."""
    codes = (x for x in range(sys.maxunicode + 1) if chr(x).isspace())
    return "[" + "".join(rf"\x{{{x:x}}}" for x in codes) + "]"


class SymbolTokenizer(graph_rows.Tokenizer):
    """Looks up symbols separated by white space, and packs their ids."""

    def __init__(self, vocabulary: vocabulary_kind.Symbols):
        super().__init__(vocabulary)
        known = vocabulary.known
        # A table must have a key; no text contains this one.
        keys = tf.constant([*known, " "])
        unknown = vocabulary.special.unk.id
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                keys, tf.constant([*known.values(), unknown], tf.int32)
            ),
            unknown,
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the symbol ids of UTF-8 texts [B]: [B, (symbols)] int32.

        Invalid bytes are skipped.
        """
        return self._look_up(tf.strings.split(with_plain_spaces(texts)))

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Returns the ids and the character offsets of the symbols."""
        spaced = with_plain_spaces(texts)
        symbols = tf.strings.split(spaced)  # [B, (symbols)]
        codes = tf.strings.unicode_decode(spaced, "UTF-8")
        flat = codes.values  # [N]
        places = tf.range(tf.size(flat, tf.int64))
        places -= tf.gather(codes.row_starts(), codes.value_rowids())
        is_space = flat == _SPACE
        after_space = tf.concat([[True], is_space], 0)[:-1]
        begins = ~is_space & (after_space | (places == 0))
        starts = tf.cast(tf.boolean_mask(places, begins), tf.int32)  # [P]
        lengths = tf.strings.length(symbols.values, unit="UTF8_CHAR")
        return graph_rows.Tokens(
            self._look_up(symbols), starts, starts + lengths
        )

    def _look_up(self, symbols: tf.RaggedTensor) -> tf.RaggedTensor:
        return symbols.with_values(self._table.lookup(symbols.values))


def with_plain_spaces(texts: tf.Tensor) -> tf.Tensor:
    """Replaces each white space character by a plain space, in valid UTF-8."""
    valid = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )
    return tf.strings.regex_replace(valid, _spaces(), " ")
