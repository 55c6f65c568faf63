"""Finds added tokens in texts, in the graph.

As in `vocabularies.added_token_search`. A trie of the tokens is followed from
all positions of all texts at once, while any token continues. Time grows with
the texts and with the length of the longest match, but hardly with the number
of tokens.

Shapes: Q texts, N characters of all texts, S normalized characters, K matches,
P parts of texts.
"""

import functools
from collections.abc import Mapping
from typing import NamedTuple

from bert_tf import characters
from bert_tf.text import graph_code_tables, graph_rows
from bert_tf.vocabularies import added_token_search

import numpy as np
import tensorflow as tf

# A value of a character is 8 times its class, or 0, and these.
_SPACE, _WORD, _DROPPED = 1, 2, 4
_CLASS_BITS = 3


class Parts(NamedTuple):
    """Texts cut at tokens: text, token, text, and so on.

    Attributes:
        texts: The parts of each text.
        ids: The token of each part, or -1.
        positions: The position in the texts [N] of each character of the parts;
            None if texts and parts have the same characters.
    """

    texts: tf.RaggedTensor  # [Q, (parts)] string
    ids: tf.Tensor  # [P] int32
    positions: tf.Tensor | None  # [characters of all parts] int64


class _Matches(NamedTuple):
    """Matches in normalized texts, in order."""

    starts: tf.Tensor  # [K] int64
    ends: tf.Tensor  # [K] int64
    tokens: tf.Tensor  # [K] int32, index of the token

    def gather(self, kept: tf.Tensor) -> "_Matches":
        return _Matches(*(tf.gather(x, kept) for x in self))


class _Text(NamedTuple):
    """The normalized characters of all texts.

    Attributes:
        values: The value of each character.
        index: The position of each character in [N].
        splits: Where texts begin and end.
    """

    values: tf.Tensor  # [S] int32
    index: tf.Tensor  # [S] int64
    splits: tf.Tensor  # [Q + 1] int64


class Search(tf.Module):
    """Finds the tokens of a search."""

    def __init__(self, search: added_token_search.Search):
        super().__init__()
        tokens = list(search.tokens.values())
        self._ids = tf.constant([token.id for token in tokens])
        flags = [(x.lstrip, x.rstrip, x.single_word) for x in tokens]
        self._flags = tf.constant(flags)  # [tokens, 3]
        self._has_flags = np.any(flags, axis=0)  # [3]
        letters = {*"".join(search.tokens), *"".join(search.accents.values())}
        classes = {char: i for i, char in enumerate(sorted(letters), 1)}
        self._trie = _Trie(search.accents, classes)
        self._values = graph_code_tables.CodeTable(
            _values(search, classes, self._has_flags.any())
        )
        self._drops = "" in search.forms.values()
        self._expander = None
        if search.expanded:
            self._expander = graph_code_tables.Expander(search.expanded)

    def cut(self, texts: tf.Tensor, is_text: tf.Tensor | None) -> Parts:
        """Cuts texts [Q] at tokens, except where `is_text` [Q] is false."""
        given = texts
        if is_text is not None:
            texts = tf.where(is_text, texts, "")
        decoded = graph_code_tables.decode(texts)
        if self._expander is not None:
            texts, decoded = self._expander.expand(texts, decoded)
        values = self._values.lookup(decoded.codes)
        text = self._text(values, decoded.splits)
        found = self._matches(text)
        owner = tf.searchsorted(
            text.splits, found.starts, "right", tf.int64
        )  # [K], counted from 1
        first = tf.gather(text.splits, owner - 1)
        limit = tf.gather(text.splits, owner)
        if self._has_flags[2]:
            kept = _where(~self._is_in_word(text, found, first, limit))
            found = found.gather(kept)
            owner, first, limit = (
                tf.gather(x, kept) for x in (owner, first, limit)
            )
        owner -= 1
        if self._has_flags[:2].any():
            found = self._with_spaces(text, found, first, limit)
        # Where matches are, in characters and then in bytes.
        begins, ends = _in_characters(text, found)
        limit = tf.gather(decoded.splits, owner + 1)
        sizes = tf.strings.length(texts)  # [Q]
        size = tf.cast(tf.gather(sizes, owner), tf.int64)
        offset = tf.concat([decoded.offsets, [0]], 0)  # [N + 1]
        bounds = [
            tf.where(x < limit, tf.gather(offset, x), size)
            for x in (begins, ends)
        ]
        has_match = tf.tensor_scatter_nd_update(
            tf.zeros_like(sizes, tf.bool),
            owner[:, tf.newaxis],
            tf.ones_like(owner, tf.bool),
        )
        texts = tf.where(has_match, texts, given)
        positions = None
        if self._expander is not None:
            # Where no offsets are needed, graphs do not compute them.
            counts = self._expander.counts(graph_code_tables.decode(given))
            is_changed = tf.gather(has_match, counts.value_rowids())
            positions = tf.repeat(
                tf.range(tf.size(is_changed, tf.int64)),
                tf.where(is_changed, counts.values, 1),
            )
        ids = tf.gather(self._ids, found.tokens)
        cut, numbers = _cut(texts, owner, bounds, ids)
        return Parts(cut, numbers, positions)

    def _text(self, values: tf.Tensor, splits: tf.Tensor) -> _Text:
        """Returns the normalized characters of characters [N]."""
        if not self._drops:
            index = tf.range(tf.size(values, tf.int64))
            return _Text(values, index, splits)
        index = _where(values & _DROPPED == 0)
        return _Text(
            tf.gather(values, index),
            index,
            tf.searchsorted(index, splits, out_type=tf.int64),
        )

    def _matches(self, text: _Text) -> _Matches:
        """Returns the longest match at each position, from left to right."""
        classes = tf.bitwise.right_shift(text.values, _CLASS_BITS)
        found = self._trie.follow(classes, text.splits)
        found = found.gather(_where(found.tokens >= 0))
        following = tf.searchsorted(found.starts, found.ends)
        jump = following - tf.range(tf.size(following))
        return found.gather(_where(graph_rows.mark_reached(jump)))

    def _is_in_word(
        self,
        text: _Text,
        found: _Matches,
        first: tf.Tensor,
        limit: tf.Tensor,
    ) -> tf.Tensor:
        """Whether letters touch matches of tokens that must be words [K]."""

        def is_word(place: tf.Tensor) -> tf.Tensor:
            inside = tf.clip_by_value(place, first, limit - 1)
            is_letter = tf.gather(text.values, inside) & _WORD > 0
            return is_letter & (inside == place)

        is_single = tf.gather(self._flags[:, 2], found.tokens)
        return is_single & (is_word(found.starts - 1) | is_word(found.ends))

    def _with_spaces(
        self,
        text: _Text,
        found: _Matches,
        first: tf.Tensor,
        limit: tf.Tensor,
    ) -> _Matches:
        """Returns matches with the white space that belongs to them."""
        starts, ends, tokens = found
        others = _where(text.values & _SPACE == 0)
        others = tf.concat([[-1], others, tf.shape(text.values, tf.int64)], 0)
        flags = tf.gather(self._flags, tokens)  # [K, 3]
        place = tf.searchsorted(others, starts)
        left = tf.maximum(tf.gather(others, place - 1) + 1, first)
        right = tf.gather(others, tf.searchsorted(others, ends))
        right = tf.minimum(right, limit)
        starts = tf.where(flags[:, 0], left, starts)
        ends = tf.where(flags[:, 1], right, ends)
        if self._has_flags[1]:
            # A token of white space may be in the space after another one.
            ends = _running_max(ends)
        before = tf.concat([[0], ends], 0)[:-1]
        return _Matches(tf.maximum(starts, before), ends, tokens)


def _where(is_true: tf.Tensor) -> tf.Tensor:
    """Returns the positions that are true, int64."""
    return tf.where(is_true)[:, 0]


def _running_max(x: tf.Tensor) -> tf.Tensor:
    """Returns the max of all values up to each one, [K]."""
    _, x = tf.while_loop(
        lambda step, x: step < tf.size(x),
        lambda step, x: (
            step * 2,
            tf.concat([x[:step], tf.maximum(x[step:], x[:-step])], 0),
        ),
        (1, x),
        (tf.TensorShape([]), tf.TensorShape([None])),
    )
    return x


def _in_characters(text: _Text, found: _Matches) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns starts and ends of matches in [N]."""
    # An empty match is after another one.
    last = tf.gather(text.index, found.ends - 1) + 1
    is_empty = found.starts == found.ends
    inside = tf.where(is_empty, found.ends - 1, found.starts)
    return tf.where(is_empty, last, tf.gather(text.index, inside)), last


def _cut(
    texts: tf.Tensor,
    owner: tf.Tensor,
    bounds: list[tf.Tensor],
    ids: tf.Tensor,
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Cuts texts [Q] at bytes: the parts [Q, (parts)], and their ids [P].

    Args:
        texts: Texts.
        owner: The text of each token, [K].
        bounds: Where each token starts and ends in its text, [K] each.
        ids: The id of each token, [K].
    """
    sizes = tf.cast(tf.strings.length(texts), tf.int64)  # [Q]
    count = tf.math.unsorted_segment_sum(
        tf.ones_like(owner), owner, tf.size(texts)
    )
    splits = tf.concat([[0], tf.cumsum(2 * count + 1)], 0)
    rows = tf.ragged.row_splits_to_segment_ids(splits)  # [P]
    # Each text begins with a part without a token. Each token adds two parts:
    # itself, and what follows it.
    token = owner + 2 * tf.range(tf.size(owner, tf.int64)) + 1  # [K]
    around = tf.concat([token, token + 1], 0)[:, tf.newaxis]
    both = tf.concat(bounds, 0)
    starts = tf.tensor_scatter_nd_update(tf.zeros_like(rows), around, both)
    stops = tf.tensor_scatter_nd_update(
        tf.gather(sizes, rows), around - 1, both
    )
    numbers = tf.tensor_scatter_nd_update(
        tf.fill(tf.shape(rows), -1), token[:, tf.newaxis], ids
    )
    found = tf.strings.substr(tf.gather(texts, rows), starts, stops - starts)
    parts = tf.RaggedTensor.from_row_splits(found, splits, validate=False)
    return parts, numbers


# ---- Tables ------------------------------------------------------------------


@functools.cache
def _kinds(normalize: added_token_search.Normalize | None) -> np.ndarray:
    """Returns the kind of each code point's form as bits, [0x110000] int32."""
    forms = added_token_search.forms(normalize)
    kinds = np.zeros(characters.CODE_POINTS, np.int32)
    if normalize is not None:
        kinds = _kinds(None).copy()
    chars = characters.assigned() if normalize is None else forms.changed
    for char in {*chars, *forms.spaced}:
        form = forms.changed.get(char, char)
        if form:
            # All forms that are not expanded begin and end in the same kind.
            kind = forms.kind(form[0])
            kinds[ord(char)] = kind.is_word * _WORD + kind.is_space * _SPACE
    return kinds


def _values(
    search: added_token_search.Search,
    classes: Mapping[str, int],
    has_kinds: bool,
) -> np.ndarray:
    """Returns the value of each code point, [0x110000] int32.

    Kinds, which take most of a second, are left out unless `has_kinds`.
    """
    values = np.zeros(characters.CODE_POINTS, np.int32)
    if has_kinds:
        values = _kinds(search.normalize).copy()
    for char in {*classes, *search.forms}:
        form = search.forms.get(char, char)
        values[ord(char)] |= (
            classes.get(form, 0) << _CLASS_BITS if form else _DROPPED
        )
    return values


def _find(keys: tf.Tensor, values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns positions of values in sorted keys, and whether they occur."""
    place = tf.searchsorted(keys, values)
    place = tf.minimum(place, tf.size(keys) - 1)
    return place, tf.gather(keys, place) == values


class _Trie(tf.Module):
    """A trie of tokens: state and class of a character -> next state."""

    def __init__(self, texts: Mapping[str, str], classes: Mapping[str, int]):
        """Each text comes with the characters that may not follow it."""
        super().__init__()
        steps: dict[tuple[int, int], int] = {}
        tokens = {}
        blocked = []
        for number, (text, accents) in enumerate(texts.items()):
            state = 0
            for char in text:
                step = state, classes[char]
                state = steps.setdefault(step, len(steps) + 1)
            tokens[state] = number
            blocked += [(state, classes[accent]) for accent in accents]
        self._classes = len(classes) + 1
        blocked_keys = sorted(s * self._classes + c for s, c in blocked)
        self._blocked = tf.constant(blocked_keys, tf.int64)
        keys = {s * self._classes + c: x for (s, c), x in steps.items()}
        order = sorted(keys)
        self._keys = tf.constant(order, tf.int64)
        self._states = tf.constant([keys[x] for x in order], tf.int64)
        states = range(len(steps) + 1)
        # The index of a state's token, or -1.
        self._tokens = tf.constant([tokens.get(x, -1) for x in states])
        first = np.zeros(self._classes, np.int64)
        for (state, number), following in steps.items():
            if state == 0:
                first[number] = following
        self._first = tf.constant(first)

    def _step(self, states: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
        """Returns the next states, or 0."""
        place, is_step = _find(self._keys, self._key(states, classes))
        return tf.where(is_step, tf.gather(self._states, place), 0)

    def _key(self, states: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
        return states * self._classes + tf.cast(classes, tf.int64)

    def follow(self, classes: tf.Tensor, splits: tf.Tensor) -> _Matches:
        """Returns the longest match from each position where a token may begin.

        The token is -1 without a match. `classes` are the classes of the
        characters [S], `splits` [Q + 1] where texts begin and end.
        """
        states = tf.gather(self._first, classes)  # [S]
        starts = _where(states > 0)  # [K]
        limits = tf.gather(
            splits, tf.searchsorted(splits, starts, "right", tf.int64)
        )

        def go_on(
            alive: tf.Tensor,
            states: tf.Tensor,
            place: tf.Tensor,
            ends: tf.Tensor,
            tokens: tf.Tensor,
        ) -> tuple[tf.Tensor, ...]:
            found = tf.gather(self._tokens, states)
            is_inside = place < tf.gather(limits, alive)
            is_match = found >= 0
            if self._blocked.shape[0]:
                following = tf.gather(
                    classes, tf.where(is_inside, place, place - 1)
                )
                key = self._key(states, following)
                is_match &= ~(is_inside & _find(self._blocked, key)[1])
            matched = tf.where(is_match)
            which = tf.gather(alive, matched)
            ends = tf.tensor_scatter_nd_update(
                ends, which, tf.gather_nd(place, matched)
            )
            tokens = tf.tensor_scatter_nd_update(
                tokens, which, tf.gather_nd(found, matched)
            )
            inside = _where(is_inside)
            place = tf.gather(place, inside)
            states = self._step(
                tf.gather(states, inside), tf.gather(classes, place)
            )
            kept = _where(states > 0)
            alive = tf.gather(alive, tf.gather(inside, kept))
            states = tf.gather(states, kept)
            return alive, states, tf.gather(place, kept) + 1, ends, tokens

        some = tf.TensorShape([None])
        *_, ends, tokens = tf.while_loop(
            lambda alive, *_: tf.size(alive) > 0,
            go_on,
            (
                # Those that still match, by their numbers in [K].
                tf.range(tf.size(starts, tf.int64)),
                tf.gather(states, starts),
                starts + 1,
                starts,
                tf.fill(tf.shape(starts), -1),
            ),
            (some,) * 5,
        )
        return _Matches(starts, ends, tokens)
