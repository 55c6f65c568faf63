"""Weights set to zero while training, the smallest of each kernel first.

So many of a kernel's n weights are zero after step t, and at the end step the
wanted share (Zhu & Gupta, 2017, https://arxiv.org/abs/1710.01878, equation 1,
from 0 zeros at step 0):

    zeros(t) = n * share * (1 - (1 - t / end)^3)

What is pruned stays so: after each update weights are zero that were zero
before it. So the mask is in the weights, nothing else need be saved, and a run
that goes on masks as one that was not stopped.
"""

import dataclasses
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Pruning:
    """How zeros grow in number.

    Attributes:
        share: Of the weights of each kernel that is zero at last, below 1.
        end: The step at which that is reached.
        every: Steps from one choice of weights to the next.
        prunes: Name of a variable -> whether it is pruned.
    """

    share: float
    end: int
    every: int
    prunes: Callable[[str], bool]

    def share_after(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the share that is to be zero after so many steps, float32."""
        done = tf.cast(step, tf.float32) / self.end
        return self.share * (1 - (1 - tf.minimum(done, 1)) ** 3)

    def nonzero(
        self, variables: Sequence[keras.Variable]
    ) -> dict[str, tf.Tensor]:
        """Returns where variables to prune are not zero, before an update."""
        return {
            v.path: tf.convert_to_tensor(v.value) != 0
            for v in variables
            if self.prunes(v.path)
        }

    def apply(
        self,
        variables: Sequence[keras.Variable],
        nonzero: dict[str, tf.Tensor],
        step: tf.Tensor,
    ) -> None:
        """Sets weights to zero after the update of this step, counted from 1.

        Every replica calls it with the same weights, and does the same.
        """
        # From the end on also after a step that was skipped then.
        is_due = (step % self.every == 0) | (step >= self.end)
        share = self.share_after(step)
        for variable in variables:
            if variable.path in nonzero:
                weights = tf.convert_to_tensor(variable.value)
                kept = nonzero[variable.path]
                variable.value.assign(_pruned(weights, kept, share, is_due))

    def zeros(self, variables: Sequence[keras.Variable]) -> tuple[int, int]:
        """Returns how many weights of those to prune are zero, and of all."""
        values = [
            np.asarray(tf.convert_to_tensor(v.value))
            for v in variables
            if self.prunes(v.path)
        ]
        return (
            sum(int((value == 0).sum()) for value in values),
            sum(value.size for value in values),
        )


def _pruned(
    weights: tf.Tensor, kept: tf.Tensor, share: tf.Tensor, is_due: tf.Tensor
) -> tf.Tensor:
    """Returns the weights where they are kept; if it is due, fewer of them."""
    weights = tf.where(kept, weights, 0)
    size = tf.size(weights)
    wanted = tf.cast(tf.round(share * tf.cast(size, tf.float32)), tf.int32)
    zeros = size - tf.math.count_nonzero(weights, dtype=tf.int32)

    def fewer():
        sizes = tf.reshape(tf.abs(weights), [-1])
        # Those of the same size as the last one go with it.
        largest = tf.sort(sizes)[tf.maximum(wanted, 1) - 1]
        return tf.where(tf.abs(weights) > largest, weights, 0)

    return tf.cond(is_due & (wanted > zeros), fewer, lambda: weights)
