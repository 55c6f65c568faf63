"""Dynamic loss scaling, for training in float16.

Gradients below 6e-8 are zero in float16. So the loss is multiplied before the
backward pass, and the gradients are divided after it, in float32. Whether they
overflowed is asked of the gradients summed over all replicas: all replicas see
the same answer, and all skip the step or none does.
"""

from collections.abc import Callable

import tensorflow as tf

SCALE = "loss_scale/scale"
GOOD_STEPS = "loss_scale/good_steps"


class LossScale:
    """A factor that halves at an overflow and doubles after quiet steps.

    Micikevicius et al., 2018, https://arxiv.org/abs/1710.03740, section 3.2.
    """

    def __init__(self, initial: float = 2.0**15, period: int = 2000):
        """Takes where to start.

        Args:
            initial: the first factor, a power of two.
            period: steps without overflow before the factor doubles.
        """
        self.initial = initial
        self.period = period

    def build(self) -> dict[str, tf.Variable]:
        """Makes the state and returns it by its names in checkpoints."""
        # Aggregation NONE: replicas assign equal values by themselves.
        self.scale, self.good_steps = (
            tf.Variable(
                value,
                trainable=False,
                name=name,
                aggregation=tf.VariableAggregation.NONE,
            )
            for name, value in (
                (SCALE, tf.constant(self.initial, tf.float32)),
                (GOOD_STEPS, tf.constant(0, tf.int64)),
            )
        )
        return {SCALE: self.scale, GOOD_STEPS: self.good_steps}

    def guard(
        self, norm: tf.Tensor, update: Callable[[], None]
    ) -> dict[str, tf.Tensor]:
        """Calls `update` unless the gradients overflowed; adapts the factor.

        Args:
            norm: of the gradients, the same on all replicas.
            update: assigns to variables.

        Returns:
            `gradient_norm`, 0 where the step is skipped; `loss_scale`, the
            factor of this step; `skipped_steps`, 0 or 1.
        """
        finite = tf.math.is_finite(norm)

        def apply():
            update()
            return 0.0

        skipped = tf.cond(finite, apply, lambda: 1.0)
        scale = tf.convert_to_tensor(self.scale)
        # With nothing left to halve the gradients themselves are at fault: the
        # norm stays as it is, and the loop stops the run.
        hopeless = ~finite & (scale <= 1)
        good = tf.where(finite, self.good_steps + 1, 0)
        grows = good >= self.period
        grown = tf.where(grows, 2 * scale, scale)
        self.scale.assign(tf.where(finite, grown, tf.maximum(scale / 2, 1)))
        self.good_steps.assign(tf.where(grows, tf.zeros_like(good), good))
        return {
            "gradient_norm": tf.where(finite | hopeless, norm, 0),
            "loss_scale": scale,
            "skipped_steps": skipped,
        }
