"""Tokens added to a vocabulary, in the graph.

As in `vocabularies.added_token_search`: TensorFlow's own ops find the added
tokens, and a tokenizer without them splits the text in between.

Shapes: B texts, Q parts of all texts; every second part is an added token.
"""

from typing import Any

from bert_tf import vocabularies
from bert_tf.text import graph_rows
from bert_tf.vocabularies import added_token_search

import numpy as np
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
        self._searches = [_Search(x) for x in vocabulary.added_searches]

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
        parts = tf.RaggedTensor.from_tensor(valid[:, tf.newaxis])
        ids = tf.fill([tf.size(valid)], -1)
        for search in self._searches:
            inner, new = search.cut(_texts_of(parts, ids))
            # The parts that are tokens already, as the text of none, are whole.
            owner = inner.value_rowids()
            ids = tf.gather(ids, owner)
            values = tf.where(
                ids < 0, inner.values, tf.gather(parts.values, owner)
            )
            ids = tf.where(ids < 0, new, ids)
            parts = parts.with_values(inner.with_values(values))
            parts = parts.merge_dims(1, 2)
        return parts, ids


class _Search(tf.Module):
    """Finds tokens by one pattern.

    Parts of a text alternate: text, token, text, and so on. T tokens; N parts.
    """

    def __init__(self, search: added_token_search.Search):
        super().__init__()
        self._pattern = search.pattern
        tokens = list(search.tokens.values())
        # A token by its number here, and then, by -1, no token.
        self._ids = tf.constant([*(x.id for x in tokens), -1])
        flags = [(x.lstrip, x.rstrip, x.single_word) for x in tokens]
        self._flags = tf.constant([*flags, (False,) * 3])  # [T + 1, 3]
        self._has_flags = np.any(flags, axis=0)  # [3]
        self._numbers = _table(
            list(search.tokens), list(range(len(tokens))), len(tokens)
        )
        # A table must not be empty. No character is, either.
        self._normal = _table(
            ["", *search.normal], ["", *search.normal.values()], ""
        )
        if self._has_flags[2]:
            self._neighbours = search.neighbours()

    def cut(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Cuts texts [Q]: the parts [Q, (parts)], and the id of each [N]."""
        marked = tf.strings.regex_replace(
            texts, f"({self._pattern})", _CUT + rb"\1" + _CUT
        )
        parts = tf.strings.split(marked, _CUT)
        tokens = tf.where(_places(parts) % 2 == 1)  # [tokens, 1]
        text = self._normalized(tf.gather_nd(parts.values, tokens))
        numbers = tf.tensor_scatter_nd_update(
            tf.fill([tf.size(parts.values)], tf.size(self._ids) - 1),
            tokens,
            self._numbers.lookup(text),
        )
        if self._has_flags[2]:
            parts, numbers = self._without_parts_of_words(parts, numbers)
        if self._has_flags[:2].any():
            parts = parts.with_values(self._with_spaces(parts, numbers))
        return parts, tf.gather(self._ids, numbers)

    def _normalized(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns texts [N] with each character normalized."""
        chars = tf.strings.unicode_split(texts, "UTF-8")
        normal = self._normal.lookup(chars.values)
        return tf.strings.unsorted_segment_join(
            tf.where(normal == "", chars.values, normal),
            chars.value_rowids(),
            chars.nrows(),
        )

    def _without_parts_of_words(
        self, parts: tf.RaggedTensor, numbers: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Makes text of the tokens that must be words but are not."""
        values, places = parts.values, _places(parts)
        none = tf.size(self._ids) - 1
        single = tf.where(tf.gather(self._flags[:, 2], numbers))  # [single, 1]

        def neighbor(offset: int) -> tf.Tensor:
            """Returns the parts that far from single words, of their texts."""
            place = single[:, 0] + offset
            inside = tf.clip_by_value(place, 0, tf.size(values, tf.int64) - 1)
            is_there = tf.gather(parts.value_rowids(), inside) == tf.gather(
                parts.value_rowids(), single[:, 0]
            )
            is_there &= inside == place
            return tf.where(is_there, tf.gather(values, inside), "")

        before = tf.strings.join([neighbor(-2), neighbor(-1)])
        after = tf.strings.join([neighbor(1), neighbor(2)])
        match = tf.strings.regex_full_match
        is_inside = match(before, self._neighbours.before)
        is_inside |= match(after, self._neighbours.after)
        numbers = tf.tensor_scatter_nd_update(
            numbers,
            single,
            tf.where(is_inside, none, tf.gather_nd(numbers, single)),
        )
        is_token = numbers != none
        is_first = is_token | tf.roll(is_token, 1, 0) | (places == 0)
        rows = tf.boolean_mask(parts.value_rowids(), is_first)
        joined = tf.strings.unsorted_segment_join(
            values,
            tf.cumsum(tf.cast(is_first, tf.int64)) - 1,
            tf.size(rows, tf.int64),
        )
        parts = tf.RaggedTensor.from_value_rowids(
            joined, rows, nrows=parts.nrows(), validate=False
        )
        return parts, tf.boolean_mask(numbers, is_first)

    def _with_spaces(
        self, parts: tf.RaggedTensor, numbers: tf.Tensor
    ) -> tf.Tensor:
        """Moves white space from texts to the tokens that it belongs to."""
        flags = tf.gather(self._flags, numbers)  # [N, 3]
        text = parts.values
        # The first part and the last of a text are no tokens.
        rest = tf.where(
            tf.roll(flags[:, 1], 1, 0),
            tf.strings.regex_replace(text, f"^{_SPACES}", ""),
            text,
        )
        size = tf.strings.length(text) - tf.strings.length(rest)
        first = tf.strings.substr(text, tf.zeros_like(size), size)
        middle = tf.where(
            tf.roll(flags[:, 0], -1, 0),
            tf.strings.regex_replace(rest, f"{_SPACES}$", ""),
            rest,
        )
        size = tf.strings.length(middle)
        last = tf.strings.substr(rest, size, tf.strings.length(rest) - size)
        return tf.strings.join(
            [tf.roll(last, 1, 0), middle, tf.roll(first, -1, 0)]
        )


def _places(parts: tf.RaggedTensor) -> tf.Tensor:
    """Returns the position of each part in its text [N]."""
    number = tf.range(tf.size(parts.values, tf.int64))
    return number - tf.gather(parts.row_starts(), parts.value_rowids())


def _table(keys: Any, values: Any, default: Any) -> tf.lookup.StaticHashTable:
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(keys), tf.constant(values)
        ),
        default,
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
