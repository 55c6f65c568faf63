"""Tokens added to a vocabulary, in the graph.

`graph_token_search` finds the added tokens, by TensorFlow's own ops, and a
tokenizer without them splits the text in between.

Shapes: B texts, Q parts of all texts; every second part is an added token.
"""

from typing import Any

from bert_tf import vocabularies
from bert_tf.text import graph_rows, graph_token_search

import tensorflow as tf


class AddedTokenizer(graph_rows.Tokenizer):
    """Splits texts by `plain`, which knows no added tokens."""

    def __init__(self, plain: Any, vocabulary: vocabularies.Vocabulary):
        """`plain` is a tokenizer of `graph` or of `graph_offsets`."""
        super().__init__(vocabulary)
        self._plain = plain
        self._searches = [
            graph_token_search.Search(x) for x in vocabulary.added_searches
        ]

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are left out.
        """
        parts, ids, _ = self._parts(_valid(texts))
        text = self._plain.tokenize(_texts_of(parts, ids))
        return _joined(parts, text, ids)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Splits UTF-8 texts [B] into tokens; invalid bytes are left out."""
        texts = _valid(texts)
        parts, ids, positions = self._parts(texts)
        found = self._plain.tokenize_with_offsets(_texts_of(parts, ids))
        sizes = tf.strings.length(parts.values, unit="UTF8_CHAR")  # [Q]
        # Where each part begins, in the characters of all parts.
        begin = tf.cumsum(sizes, exclusive=True)
        before = tf.gather(begin, found.ids.value_rowids())
        starts = found.ids.with_values(found.starts + before)
        ends = found.ids.with_values(found.ends + before)
        is_token = ids >= 0
        joined = _joined(parts, found.ids, ids)
        starts = _joined(parts, starts, begin, is_token).values
        ends = _joined(parts, ends, begin + sizes, is_token).values
        if positions is not None:
            starts, ends = _in_texts(positions, starts, ends)
        # Offsets count from the beginning of each text.
        lengths = tf.strings.length(texts, unit="UTF8_CHAR")
        first = tf.cumsum(lengths, exclusive=True)
        first = tf.gather(first, joined.value_rowids())
        return graph_rows.Tokens(joined, starts - first, ends - first)

    def _parts(
        self, texts: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor | None]:
        """Cuts valid UTF-8 texts [B] at tokens.

        Returns:
            The parts [B, (parts)], their ids [Q], which are -1 for text, and
            the position of each of their characters among the characters of all
            texts; None if it is the same.
        """
        parts = tf.RaggedTensor.from_tensor(texts[:, tf.newaxis])
        ids = tf.fill([tf.size(texts)], -1)
        positions = None
        for number, search in enumerate(self._searches):
            found = search.cut(parts.values, ids < 0 if number else None)
            ids = tf.gather(ids, found.texts.value_rowids())
            ids = tf.where(ids < 0, found.ids, ids)
            parts = parts.with_values(found.texts).merge_dims(1, 2)
            # Only the last search may change texts.
            positions = found.positions
        return parts, ids, positions


def _valid(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )


def _in_texts(
    positions: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps starts and ends from characters of parts to characters of texts."""
    limits = tf.concat([[0], tf.cast(positions, tf.int32) + 1], 0)
    first = tf.where(
        ends > starts,
        tf.gather(limits, tf.minimum(starts + 1, tf.size(positions))) - 1,
        tf.gather(limits, starts),
    )
    return first, tf.where(ends > starts, tf.gather(limits, ends), first)


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
