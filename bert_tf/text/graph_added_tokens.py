"""Tokens added to a vocabulary, in the graph.

As in `vocabularies.added_token_search`: TensorFlow's own ops find the added
tokens, and a tokenizer without them splits the text in between.

Shapes: B texts, Q parts of all texts; every second part is an added token.
"""

from collections.abc import Mapping
from typing import Any

from bert_tf import vocabularies
from bert_tf.text import graph_rows
from bert_tf.vocabularies import added_token_search

import tensorflow as tf

# Stands on both sides of a token: a byte that no UTF-8 has.
_CUT = b"\xff"
_SPACES = added_token_search.SPACES


class AddedTokenizer(graph_rows.Tokenizer):
    """Splits texts by `plain`, which knows no added tokens."""

    def __init__(self, plain: Any, vocabulary: vocabularies.Vocabulary):
        """`plain` is a tokenizer of `graph` or of `graph_offsets`."""
        super().__init__(vocabulary)
        self._plain = plain
        found = vocabulary.added_patterns
        self._pattern = found.pattern
        # Only where they can't be looked up: an op for each token.
        self._others = {} if found.groups else found.others
        self._literal = _table(found.literal)
        self._groups = {x: _table(ids) for x, ids in found.groups.items()}
        self._normal = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(["", *found.normal]),
                tf.constant(["", *found.normal.values()]),
            ),
            "",
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are left out.
        """
        parts, ids = self._parts(texts)
        text = self._plain.tokenize(_texts_of(parts, ids))
        return _joined(parts, text, ids)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Pieces:
        """Splits UTF-8 texts [B] into tokens; invalid bytes are left out."""
        parts, ids = self._parts(texts)
        found = self._plain.tokenize_with_offsets(_texts_of(parts, ids))
        sizes = parts.with_values(
            tf.strings.length(parts.values, unit="UTF8_CHAR")
        )
        sizes = tf.cast(sizes, tf.int32)
        # Where each part begins in its text.
        begin = tf.cumsum(sizes.values, exclusive=True)  # [Q]
        begin -= tf.gather(
            tf.gather(begin, parts.row_starts()), parts.value_rowids()
        )
        before = tf.gather(begin, found.ids.value_rowids())
        starts = found.ids.with_values(found.starts + before)
        ends = found.ids.with_values(found.ends + before)
        is_token = ids >= 0
        return graph_rows.Pieces(
            _joined(parts, found.ids, ids),
            _joined(parts, starts, begin, is_token).values,
            _joined(parts, ends, begin + sizes.values, is_token).values,
        )

    def _parts(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Cuts texts at tokens: the parts [B, (parts)], and their ids [Q].

        The id of what is no token is -1.
        """
        valid = tf.strings.unicode_transcode(
            texts, "UTF-8", "UTF-8", errors="ignore"
        )
        marked = tf.strings.regex_replace(
            valid, f"({self._pattern})", _CUT + rb"\1" + _CUT
        )
        parts = tf.strings.split(marked, _CUT)
        number = tf.range(tf.size(parts.values, tf.int64))
        first = tf.gather(parts.row_starts(), parts.value_rowids())
        tokens = tf.where((number - first) % 2 == 1)  # [tokens, 1]
        return parts, tf.tensor_scatter_nd_update(
            tf.fill([tf.size(number)], -1),
            tokens,
            self._ids(tf.gather_nd(parts.values, tokens)),
        )

    def _ids(self, matches: tf.Tensor) -> tf.Tensor:
        """Returns the ids of texts that `_pattern` has found."""
        ids = self._literal.lookup(matches)
        for flags, table in self._groups.items():
            text = matches
            if flags.lstrip:
                text = tf.strings.regex_replace(text, f"^{_SPACES}", "")
            if flags.rstrip:
                text = tf.strings.regex_replace(text, f"{_SPACES}$", "")
            if flags.normalized:
                text = self._normalized(text)
            ids = tf.where(ids < 0, table.lookup(text), ids)
        for pattern, number in self._others.items():
            is_this = tf.strings.regex_full_match(matches, pattern)
            ids = tf.where(is_this & (ids < 0), number, ids)
        return ids

    def _normalized(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns texts [N] with each character normalized."""
        chars = tf.strings.unicode_split(texts, "UTF-8")
        normal = self._normal.lookup(chars.values)
        return tf.strings.unsorted_segment_join(
            tf.where(normal == "", chars.values, normal),
            chars.value_rowids(),
            chars.nrows(),
        )


def _table(ids: Mapping[str, int]) -> tf.lookup.StaticHashTable:
    # A table must not be empty. No match is, either.
    ids = ids or {"": -1}
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(ids)), tf.constant(list(ids.values()), tf.int32)
        ),
        -1,
    )


def _texts_of(parts: tf.RaggedTensor, ids: tf.Tensor) -> tf.Tensor:
    """Returns the parts, with nothing where they are tokens: [Q]."""
    return tf.where(ids < 0, parts.values, "")


def _joined(
    parts: tf.RaggedTensor,
    text: tf.RaggedTensor,
    of_tokens: tf.Tensor,
    is_token: tf.Tensor | None = None,
) -> tf.RaggedTensor:
    """Joins the values of added tokens [Q] and of text [Q, (tokens)], in order.

    Returns them by text, [B, (tokens)].
    """
    is_token = of_tokens >= 0 if is_token is None else is_token
    tokens = tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(of_tokens, is_token), tf.cast(is_token, tf.int64)
    )
    # Each part is either text or a token.
    both = tf.concat([text, tokens], axis=1)
    return parts.with_values(both).merge_dims(1, 2)
