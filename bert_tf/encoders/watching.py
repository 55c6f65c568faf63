"""Captures an encoder's attention inputs or last hidden states.

Distillation compares the attention inputs of each layer. They are captured by a
wrapper of the layout, through which layers compute attention, so the layers do
not change. Auxiliary objectives need the last hidden states of all tokens where
a head reads only some of them. Shapes as in modeling.py.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import NamedTuple

from bert_tf.encoders import padding

import keras
import tensorflow as tf


class Attended(NamedTuple):
    """The inputs of one layer's attention."""

    queries: tf.Tensor  # [B, N, S, H], divided by the root of H
    keys: tf.Tensor  # [B, N, S, H]
    values: tf.Tensor  # [B, N, S, H]
    mask: tf.Tensor  # [B, 1, 1, S] or [B, 1, S, S], added to the scores


class Watched(padding.Rows):
    """Wraps a layout and records each layer's attention inputs."""

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
    """Yields a list that one call of the encoder fills, one entry a layer.

    If only some positions of the last layer are read, its queries have only
    these.
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
    """Yields a list of the last hidden states [B, S, D] of enclosed calls.

    All positions are then computed, even if a head reads only some of them.
    """
    kept: list[tf.Tensor] = []
    before = encoder.keep
    encoder.keep = kept.append
    try:
        yield kept
    finally:
        encoder.keep = before
