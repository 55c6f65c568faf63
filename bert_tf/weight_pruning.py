"""Magnitude pruning: sets the smallest weights to zero during training.

The number of zeros among the n weights of a kernel grows with step t to the
final share (Zhu & Gupta, 2017, https://arxiv.org/abs/1710.01878, equation 1,
from 0 zeros at step 0):

    zeros(t) = n * share * (1 - (1 - t / end)^3)

Pruned weights stay zero: after each update, weights that were zero before it
are set to zero again. So the weights themselves are the mask, nothing else
needs to be saved, and a resumed run has the same mask as an uninterrupted one.
"""

import dataclasses
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Pruning:
    """The schedule of pruning.

    Attributes:
        share: The final share of zeros in each kernel, below 1.
        end: The step at which `share` is reached.
        every: Steps from one choice of weights to the next.
        prunes: Name of a variable -> whether it is pruned.
    """

    share: float
    end: int
    every: int
    prunes: Callable[[str], bool]

    def share_after(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the share of zeros after `step` steps, float32."""
        done = tf.cast(step, tf.float32) / self.end
        return self.share * (1 - (1 - tf.minimum(done, 1)) ** 3)

    def nonzero(
        self, variables: Sequence[keras.Variable]
    ) -> dict[str, tf.Tensor]:
        """Returns masks of the non-zero weights to prune, before an update."""
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
        """Sets weights to zero after the update of a step, counted from 1.

        All replicas call it with the same weights and get the same result.
        """
        # After the end at every step, in case the last choice was skipped.
        is_due = (step % self.every == 0) | (step >= self.end)
        share = self.share_after(step)
        for variable in variables:
            if variable.path in nonzero:
                weights = tf.convert_to_tensor(variable.value)
                kept = nonzero[variable.path]
                variable.value.assign(_pruned(weights, kept, share, is_due))

    def zeros(self, variables: Sequence[keras.Variable]) -> tuple[int, int]:
        """Returns the numbers of zeros and of weights in pruned kernels."""
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
    """Returns the masked weights, with more zeros if pruning is due."""
    weights = tf.where(kept, weights, 0)
    size = tf.size(weights)
    wanted = tf.cast(tf.round(share * tf.cast(size, tf.float32)), tf.int32)
    zeros = size - tf.math.count_nonzero(weights, dtype=tf.int32)

    def fewer():
        sizes = tf.reshape(tf.abs(weights), [-1])
        # Weights of equal size are pruned together.
        largest = tf.sort(sizes)[tf.maximum(wanted, 1) - 1]
        return tf.where(tf.abs(weights) > largest, weights, 0)

    return tf.cond(is_due & (wanted > zeros), fewer, lambda: weights)
