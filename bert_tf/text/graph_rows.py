"""Builds model inputs in the graph, for vocabularies of all kinds.

Shapes: B texts, S sequence length, P tokens of all texts, M positions
of any sequence.
"""

import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bert_tf import characters, vocabularies
from bert_tf.errors import InputError

import tensorflow as tf


class Tokens(NamedTuple):
    """The tokens of all texts, in order."""

    ids: tf.RaggedTensor  # [B, (tokens)] int32
    starts: tf.Tensor  # [P] int32, first character of each token in its text
    ends: tf.Tensor  # [P] int32, the character after its last one


def import_tokenizers(vocabulary: vocabularies.Vocabulary) -> None:
    """Imports the module that registers a vocabulary's tokenizers, if any."""
    if vocabulary.graph_module:
        importlib.import_module(vocabulary.graph_module)


def register(
    tokenizers: dict[str, Callable[[Any], Any]],
    kind: str,
    make: Callable[[Any], Any],
    what: str,
) -> None:
    """Adds a tokenizer of a kind; InputError if the kind has another one."""
    if tokenizers.get(kind, make) != make:
        raise InputError(
            f"There is a tokenizer {what} of this kind already. "
            f"Received: kind={kind!r}"
        )
    tokenizers[kind] = make


SIGMA = ord("Σ")
_FINAL_SIGMA = ord("ς")


def final_sigmas(codes: tf.Tensor, kinds: tf.Tensor) -> tf.Tensor:
    """Replaces capital sigmas that end a word by small final ones.

    Unicode's rule considers the nearest characters that are not ignored: the
    one before is cased, the one after is not. `kinds` are found by
    `characters.sigma_kinds`. The first and the last code point are spaces, so
    rolling joins no words.
    """
    seen = tf.where(kinds != characters.IGNORED)
    kinds = tf.gather_nd(kinds, seen)
    is_final = (
        (tf.gather_nd(codes, seen) == SIGMA)
        & (tf.roll(kinds, 1, 0) == characters.CASED)
        & (tf.roll(kinds, -1, 0) != characters.CASED)
    )
    final = tf.gather_nd(seen, tf.where(is_final))
    return tf.tensor_scatter_nd_update(
        codes, final, tf.fill([tf.size(final)], _FINAL_SIGMA)
    )


# ---- Ragged tensors and vectors, in fewer ops than TensorFlow's functions ----


def search(
    keys: tf.Tensor,
    values: tf.Tensor,
    side: str = "left",
    out_type: tf.DType = tf.int32,
) -> tf.Tensor:
    """Applies `tf.searchsorted` to vectors."""
    bound = tf.raw_ops.UpperBound
    if side == "left":
        bound = tf.raw_ops.LowerBound
    keys, values = tf.expand_dims(keys, 0), tf.expand_dims(values, 0)
    found = bound(sorted_inputs=keys, values=values, out_type=out_type)
    return tf.squeeze(found, 0)


def row_ids(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Returns the row of each value, int64, as `value_rowids`."""
    places = tf.range(tf.size(ragged.values, tf.int64))
    return search(ragged.row_splits, places, "right", tf.int64) - 1


def repeats(counts: tf.Tensor) -> tf.Tensor:
    """Returns each index i of `counts` counts[i] times, int64."""
    places = tf.range(tf.reduce_sum(counts))
    return search(tf.cumsum(counts), places, "right", tf.int64)


def of_sorted_rows(
    values: tf.Tensor, rows: tf.Tensor, number: tf.Tensor
) -> tf.RaggedTensor:
    """Applies `tf.RaggedTensor.from_value_rowids`, with `number` int64 rows."""
    splits = search(rows, tf.range(number + 1), out_type=tf.int64)
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


class Tokenizer(tf.Module):
    """Splits texts into ids and packs them by the `vocabulary`'s template."""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        super().__init__()
        self.vocabulary = vocabulary

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are skipped.
        """
        raise NotImplementedError

    def tokenize_columns(
        self, *columns: tf.Tensor
    ) -> Iterator[tf.RaggedTensor]:
        """Yields the token ids of each column of texts.

        Calls `tokenize` once, as TensorFlow optimizes its graph anew for each
        call.
        """
        ids = self.tokenize(tf.concat(columns, 0))
        lengths = tf.split(ids.row_lengths(), [tf.size(x) for x in columns])
        values = tf.split(ids.values, [tf.reduce_sum(x) for x in lengths])
        for column, rows in zip(values, lengths, strict=True):
            yield tf.RaggedTensor.from_row_lengths(column, rows, validate=False)

    def pack(
        self,
        first: tf.RaggedTensor,
        second: tf.RaggedTensor | None,
        max_seq_length: int,
        pad_to_max: bool,
    ) -> dict[str, tf.Tensor]:
        """Packs token ids [B, (tokens)] of one or two texts, by the template.

        Sequences longer than `max_seq_length`, which is at least one more than
        the template, lose tokens from the end of the longer text, or of the
        second text if both are equally long, as in the original. An example
        whose second text has no tokens is packed as a single text. `pad_to_max`
        pads to `max_seq_length` instead of the longest sequence.

        Returns:
            `input_ids`, `input_mask` and `segment_ids`, each [B, S] int32.
        """
        template, special = self.vocabulary.template, self.vocabulary.special
        self._check_room(max_seq_length)
        length_1 = tf.cast(tf.expand_dims(first.row_lengths(), 1), tf.int32)
        length_2 = tf.zeros_like(length_1)
        if second is not None:
            length_2 = tf.expand_dims(second.row_lengths(), 1)
            length_2 = tf.cast(length_2, tf.int32)
        length_1, length_2 = _truncated(
            length_1, length_2, max_seq_length, template
        )
        is_pair = length_2 > 0  # [B, 1]
        start_1 = len(template.before)
        end_1 = start_1 + length_1
        start_2 = end_1 + len(template.between) * tf.cast(is_pair, tf.int32)
        end_2 = start_2 + length_2
        total = end_2 + len(template.after)  # [B, 1]
        # At least the special tokens of one text, even for an empty batch.
        fewest = max(template.special(1), 1)
        longest = tf.maximum(tf.reduce_max(total), fewest)
        place = tf.range(max_seq_length if pad_to_max else longest)  # [S]
        # The first text starts at the same position in all sequences.
        ids = tf.gather(
            first.to_tensor(shape=[None, max_seq_length]),
            tf.maximum(place - start_1, 0),
            axis=1,
        )
        if second is not None:
            ids_2 = tf.gather(
                second.to_tensor(shape=[None, max_seq_length]),
                tf.maximum(place - start_2, 0),  # [B, S]
                batch_dims=1,
            )
            ids = tf.where(place < start_2, ids, ids_2)
            between = tf.where(is_pair, end_1, max_seq_length)
            ids = put(ids, template.between, place - between)
        ids = put(ids, template.before, place)
        ids = put(ids, template.after, place - end_2)
        is_used = place < total
        is_second = is_used & is_pair & (place >= start_2)
        number_1, number_2 = template.segments
        return {
            "input_ids": tf.where(is_used, ids, special.pad.id),
            "input_mask": tf.cast(is_used, tf.int32),
            "segment_ids": tf.where(is_second, number_2, number_1),
        }

    def _check_room(self, max_seq_length: int) -> None:
        template, pieces = self.vocabulary.template, self.vocabulary.pieces
        shortest = template.special(1) + 1
        if max_seq_length < shortest:
            before = " ".join(pieces[i] for i in template.before)
            after = " ".join(pieces[i] for i in template.after)
            raise InputError(
                f"`max_seq_length` must be at least {shortest}: {before}, one "
                f"token and {after}. Received: max_seq_length={max_seq_length}"
            )


def put(ids: tf.Tensor, tokens: tuple[int, ...], place: tf.Tensor) -> tf.Tensor:
    """Writes `tokens` to positions 0, 1, ... of each sequence of ids [B, S].

    `place`, [B, S] or [S], is the position of each id, counted from the first
    of `tokens`.
    """
    for number, token in enumerate(tokens):
        ids = tf.where(place == number, token, ids)
    return ids


def _truncated(
    length_1: tf.Tensor,
    length_2: tf.Tensor,
    max_seq_length: int,
    template: vocabularies.Template,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the lengths of two texts after truncation: [B, 1] each.

    The original removes one token at a time from the longer text. The result: a
    text within its half stays whole, and the other gets the remaining room.
    """
    between = len(template.between) * tf.cast(length_2 > 0, tf.int32)
    room = max_seq_length - template.special(1) - between
    half_2 = room // 2
    new_1 = tf.minimum(length_1, tf.maximum(room - length_2, room - half_2))
    return new_1, tf.minimum(length_2, room - new_1)


def mark_reached(length: tf.Tensor) -> tf.Tensor:
    """Returns which positions are reached by jumps from the first, [M] bool.

    `length` [M] is the length of the jump from each position.
    """
    size = tf.size(length)
    # The position after the last one jumps to itself.
    jump = tf.concat([tf.range(size) + length, [size]], 0)
    jump = tf.minimum(jump, size)  # [M + 1]
    is_reached = tf.range(size + 1) == 0

    def double(
        steps: tf.Tensor, is_reached: tf.Tensor, jump: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        found = tf.gather(jump, tf.where(is_reached))  # [reached, 1]
        is_reached = tf.tensor_scatter_nd_update(
            is_reached, found, tf.ones_like(found[:, 0], tf.bool)
        )
        return steps * 2, is_reached, tf.gather(jump, jump)

    _, is_reached, _ = tf.while_loop(
        lambda steps, *_: steps <= size,
        double,
        (tf.constant(1), is_reached, jump),
    )
    return is_reached[:-1]
