"""SentencePiece in the graph, with character offsets.

The op that finds tokens does not return their positions. But the characters
that the model sees are known: the normalized text, changed by the model's
rules, which this module applies as well. Each token then covers as many of
these characters as it has, and `<unk>` covers a run of unknown characters.

Shapes: B texts, N characters of all texts, M after normalization, E characters
that the model sees, U of them when each unknown run counts as one, P tokens.
"""

import itertools
from typing import NamedTuple

from bert_tf.errors import InputError
from bert_tf.text import graph_rows, graph_sentence_pieces
from bert_tf.vocabularies import (
    sentence_models,
    sentence_pieces,
    sentence_tokenizers,
)

import numpy as np
import tensorflow as tf

_SPACE = ord(" ")
# More than the number of code points.
_CODES = 1 << 21


class _Seen(NamedTuple):
    """The characters of all texts that the model sees, U of them.

    Each word has a space before it, and another follows the last word.
    """

    begins: tf.Tensor  # [U] int32: position in M of a token that begins here
    ends: tf.Tensor  # [U] int32: end in M of a token that ends before here


class OffsetTokenizer(graph_sentence_pieces.SentencePieceTokenizer):
    """A SentencePieceTokenizer that also returns character offsets."""

    def __init__(self, vocabulary: sentence_pieces.SentencePieces):
        super().__init__(vocabulary)
        proto = vocabulary.proto
        used = [x for x in proto.pieces if x.type in (x.NORMAL, x.USER_DEFINED)]
        known = {x.piece for x in used if len(x.piece) == 1}
        _check_known(known, [x.piece for x in used])
        self._known = tf.constant(sorted(map(ord, known)))
        self._units = tf.constant(
            [
                1 if entry.type == entry.UNKNOWN else len(entry.piece)
                for entry in proto.pieces
            ]
        )
        self._build_rules(_rules(vocabulary))
        # Positions within tokens that are split again; other tokens have none.
        parts = [
            (part.start, part.end, parts[-1].end)
            for number in range(len(vocabulary.pieces))
            for parts in [self._cut.get(number, _WHOLE)]
            for part in parts
        ]
        self._part_places = tf.constant(parts, tf.int32)

    def _build_rules(self, rules: dict[str, str]) -> None:
        """Builds a trie of the rules: state and character -> next state."""
        steps: dict[int, int] = {}
        outputs = {0: ""}
        for source, output in rules.items():
            state = 0
            for code in map(ord, source):
                key = state * _CODES + code
                state = steps.setdefault(key, len(steps) + 1)
            outputs[state] = output
        self._longest = max(map(len, rules), default=0)
        self._steps = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(steps), tf.int64),
                tf.constant(list(steps.values()), tf.int64),
            ),
            default_value=-1,
        )
        texts = [outputs.get(state, "") for state in range(len(steps) + 1)]
        counts = np.array(list(map(len, texts)), np.int32)
        self._is_rule = tf.constant(
            [state in outputs and state > 0 for state in range(len(texts))]
        )
        self._rule_count = tf.constant(counts)
        self._rule_start = tf.constant(np.cumsum(counts) - counts, tf.int32)
        self._rule_outputs = tf.constant(
            [ord(char) for char in "".join(texts)], tf.int32
        )

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Splits UTF-8 texts [B] into tokens; invalid bytes are skipped."""
        # With a space at each end, no rule applies across texts.
        decoded = tf.strings.unicode_decode(
            tf.strings.join([" ", self._with_quotes(texts), " "]),
            "UTF-8",
            errors="ignore",
        )
        rows, place = self._normalize_codes(decoded)  # [B, (M)], [M]
        words = tf.strings.split(tf.strings.unicode_encode(rows, "UTF-8"))
        pieces = self._sentencepiece.tokenize(words.values)
        ids = pieces.values  # [P]
        splits = tf.gather(
            tf.cast(pieces.row_splits, tf.int64), words.row_splits
        )  # [B + 1]
        units = tf.gather(self._units, ids)
        first = tf.cumsum(units, exclusive=True)
        text = tf.ragged.row_splits_to_segment_ids(splits, out_type=tf.int32)
        seen = self._seen(rows.values)
        begins = tf.gather(seen.begins, first)  # [P], in M
        ends = tf.gather(seen.ends, first + units)
        counts = tf.gather(self._part_count, ids)
        parts = graph_sentence_pieces.ranges(
            tf.gather(self._part_start, ids), counts
        )
        begins, ends = self._cut_places(begins, ends, parts, counts)
        text = tf.repeat(text, counts)
        starts, ends = _origins(decoded, place, begins, ends, text)
        total = tf.cumsum(tf.concat([[0], counts], 0))
        return graph_rows.Tokens(
            tf.RaggedTensor.from_row_splits(
                tf.gather(self._parts, parts),
                tf.cast(tf.gather(total, splits), tf.int64),
                validate=False,
            ),
            starts,
            ends,
        )

    def _cut_places(
        self,
        begins: tf.Tensor,
        ends: tf.Tensor,
        parts: tf.Tensor,
        counts: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the bounds of the parts of tokens, `counts` parts each."""
        begins, ends = tf.repeat(begins, counts), tf.repeat(ends, counts)
        places = tf.gather(self._part_places, parts)  # [parts, 3]
        # Where the model's own rules change lengths, each part gets all of it.
        same = ends - begins == places[:, 2]
        return (
            tf.where(same, begins + places[:, 0], begins),
            tf.where(same, begins + places[:, 1], ends),
        )

    # ---- Characters that the model sees --------------------------------------

    def _seen(self, codes: tf.Tensor) -> _Seen:
        """Applies the model's rules to normalized characters [M]."""
        seen, origin, others = self._apply_rules(codes)  # [E], [E], [others]
        is_space = seen == _SPACE
        # Each run of spaces is reduced to one.
        is_kept = ~(is_space & tf.roll(is_space, 1, 0)) | (
            tf.range(tf.size(seen)) == 0
        )
        run = tf.cumsum(tf.cast(is_kept, tf.int32)) - 1
        is_parting = tf.gather(codes, origin) == _SPACE
        parting = tf.math.segment_max(tf.where(is_parting, origin, -1), run)
        seen = tf.boolean_mask(seen, is_kept)
        origin = tf.boolean_mask(origin, is_kept)
        # A space between words gets the position where the next word begins,
        # even if the model drops its first characters. Other characters keep
        # their position.
        others = tf.concat([others, [tf.size(codes)]], 0)
        word = tf.gather(others, tf.searchsorted(others, parting))
        begins = tf.where(parting >= 0, word, origin)
        # A run of unknown characters is one token.
        place = tf.searchsorted(self._known, seen)
        place = tf.minimum(place, tf.size(self._known) - 1)
        is_unknown = (tf.gather(self._known, place) != seen) & (seen != _SPACE)
        is_unit = ~(is_unknown & tf.roll(is_unknown, 1, 0))
        return _Seen(
            tf.boolean_mask(begins, is_unit), tf.boolean_mask(origin, is_unit)
        )

    def _apply_rules(
        self, codes: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Applies the longest rule at each position, from left to right.

        Returns:
            Code points [E], the position in [M] where the rule of each begins,
            and all such positions that do not become spaces alone.
        """
        length, rule = self._match(codes)  # [M]
        is_start = tf.cond(
            tf.reduce_any(length > 1),
            lambda: graph_rows.mark_reached(length),
            lambda: tf.ones_like(length, tf.bool),
        )
        has_rule = rule > 0
        counts = tf.where(has_rule, tf.gather(self._rule_count, rule), 1)
        counts = tf.where(is_start, counts, 0)
        origin = tf.repeat(tf.range(tf.size(codes)), counts)  # [E]
        before = tf.cumsum(counts, exclusive=True)
        number = tf.range(tf.size(origin)) - tf.gather(before, origin)
        number += tf.gather(self._rule_start, tf.gather(rule, origin))
        is_changed = tf.gather(has_rule, origin)
        outputs = tf.gather(
            # At least one value, so that gather has an input.
            tf.concat([self._rule_outputs, [0]], 0),
            tf.where(is_changed, number, 0),
        )
        seen = tf.where(is_changed, outputs, tf.gather(codes, origin))
        others = is_start
        # A character that becomes a space and more begins a word.
        for has_more in (False, True):
            found = tf.where((seen != _SPACE) == has_more)
            others = tf.tensor_scatter_nd_update(
                others,
                tf.gather(origin, found),
                tf.fill(tf.shape(found)[:1], has_more),
            )
        return seen, origin, tf.cast(tf.where(others)[:, 0], tf.int32)

    def _match(self, codes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the longest rule at each position: its length, and its id or 0.

        Where no rule applies, the character stays and the length is 1.
        """
        size = tf.size(codes)
        state = tf.zeros_like(codes, tf.int64)  # [M]
        length = tf.ones_like(codes)
        rule = tf.zeros_like(codes)
        padded = tf.pad(codes, [[0, self._longest]], constant_values=_SPACE)
        for step in range(self._longest):
            key = state * _CODES + tf.cast(padded[step : size + step], tf.int64)
            state = self._steps.lookup(tf.where(state < 0, tf.int64.min, key))
            is_rule = tf.gather(self._is_rule, tf.maximum(state, 0))
            length = tf.where(is_rule, step + 1, length)
            rule = tf.where(is_rule, tf.cast(state, tf.int32), rule)
        return length, rule


# The parts of a token that stays whole.
_WHOLE = (sentence_tokenizers.CutPiece(id=-1, start=0, end=-1),)


def _check_known(known: set[str], pieces: list[str]) -> None:
    """Raises InputError if `<unk>` may stand for less than a whole run."""
    others = sorted(set(itertools.chain.from_iterable(pieces)) - known)
    if others:
        raise InputError(
            "Where pieces come from is known in the graph only if each of "
            "their characters is a piece by itself, as in the models that "
            "sentencepiece trains without symbols of one's own. "
            f"Received: pieces with {others[:5]}, which are no pieces"
        )


def _rules(vocabulary: sentence_pieces.SentencePieces) -> dict[str, str]:
    """Returns the model's replacements that apply to normalized text."""
    proto = vocabulary.proto
    symbols = {
        entry.piece
        for entry in proto.pieces
        if entry.type == entry.USER_DEFINED
    }
    rules = sentence_models.rules(vocabulary.model)
    chars = {*itertools.chain.from_iterable(source for source, _ in rules)}
    rule = vocabulary.rules.char
    stays = {char for char in chars if rule(char) == char != " "}
    # User-defined symbols stay unchanged, whatever follows them.
    before = tuple(symbols)
    return {
        source: output
        for source, output in rules
        if stays.issuperset(source) and not source.startswith(before)
    } | {symbol: symbol for symbol in symbols}


def _origins(
    decoded: tf.RaggedTensor,
    place: tf.Tensor,
    begins: tf.Tensor,
    ends: tf.Tensor,
    text: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps spans [begins, ends) in M to starts and ends [P] in the texts.

    A mark that normalization drops belongs to the character before it. `place`
    is the position in [N] of each character [M].
    """
    size = tf.size(decoded.values)
    one = tf.ones_like(place)
    widths = tf.math.unsorted_segment_sum(one, place, size)  # [N]
    letters = tf.cast(tf.where(widths > 0)[:, 0], tf.int32)
    number = tf.cumsum(tf.cast(widths > 0, tf.int32))  # [N], of the next
    # Each text has a space before it, which is not counted.
    first = tf.cast(tf.gather(decoded.row_starts(), text), tf.int32) + 1
    starts = tf.gather(place, begins)
    last = tf.gather(place, tf.maximum(ends - 1, begins))
    behind = tf.gather(letters, tf.gather(number, last))
    return starts - first, tf.where(ends > begins, behind, starts) - first
