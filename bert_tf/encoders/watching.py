"""What goes on inside an encoder, for objectives that need more of it.

That is what attention is given in each layer, for those who compare two models:
layers do not know that they are watched, as their layout passes on what they
call, and keeps it. Or it is the last hidden states of all tokens, where a head
reads some of them. Shapes as in modeling.py.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import NamedTuple

from bert_tf.encoders import padding

import keras
import tensorflow as tf


class Attended(NamedTuple):
    """What one layer's attention is given."""

    queries: tf.Tensor  # [B, N, S, H], divided by the root of H
    keys: tf.Tensor  # [B, N, S, H]
    values: tf.Tensor  # [B, N, S, H]
    mask: tf.Tensor  # [B, 1, 1, S] or [B, 1, S, S], added to the scores


class Watched(padding.Rows):
    """A layout that keeps what layers attend with, and does as another."""

    def __init__(self, layout: padding.Rows, seen: list[Attended]):
        super().__init__(layout.mask, layout.positions)
        self.layout = layout
        self.seen = seen

    def reading(self, positions):
        return Watched(self.layout.reading(positions), self.seen)

    def queries(self, x):
        return self.layout.queries(x)

    def attend(self, q, k, v, rate, seed):
        self.seen.append(Attended(q, k, v, self.mask))
        return self.layout.attend(q, k, v, rate, seed)

    def to_rows(self, x):
        return self.layout.to_rows(x)

    def from_rows(self, x):
        return self.layout.from_rows(x)


@contextlib.contextmanager
def watched(bert: keras.Model) -> Iterator[list[Attended]]:
    """Gives the list that one call of the encoder fills, a row for a layer.

    Where only some places are read of the last layer, its queries are theirs.
    """
    seen: list[Attended] = []
    before = bert.laid_out
    bert.laid_out = functools.partial(Watched, seen=seen)
    try:
        yield seen
    finally:
        bert.laid_out = before


@contextlib.contextmanager
def keeping_sequence(encoder: keras.Model) -> Iterator[list[tf.Tensor]]:
    """Gives the list of last hidden states [B, S, D] of calls inside.

    All places are computed then, also where a head reads some of them only.
    """
    kept: list[tf.Tensor] = []
    before = encoder.keep
    encoder.keep = kept.append
    try:
        yield kept
    finally:
        encoder.keep = before
