"""Optimizers, learning-rate schedules and clipping.

AdamWeightDecay's numbers are the original's (google-research/bert,
optimization.py): no bias correction, epsilon outside the root, decoupled
weight decay on everything but layer norms and biases, linear warm-up and
linear decay. LAMB is for batches of thousands.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

Schedule = Callable[[tf.Tensor], tf.Tensor]

# Matched anywhere in a variable's name, as the original does.
NO_DECAY = ("LayerNorm", "layer_norm", "bias")

OPTIMIZERS = ("adamw", "lamb")
SCHEDULES = ("linear", "polynomial", "cosine", "constant")
CLIPPING = ("global", "per_replica")


# ---- Schedules: the step, an int64 scalar -> the rate, a float32 scalar ------


def linear_warmup_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly from 0, then follows a line to the end.

    As in the original, the falling line starts at step 0: after the warm-up
    the rate is learning_rate * (1 - step / num_train_steps).

    Args:
        learning_rate: where the line starts.
        num_warmup_steps: how long the rate rises to `learning_rate`.
        num_train_steps: where the line ends.
        end_learning_rate: the rate there and after.
    """
    _check_steps(num_warmup_steps, num_train_steps)

    def decay(step):
        left = tf.maximum(1 - step / num_train_steps, 0)
        return end_learning_rate + (learning_rate - end_learning_rate) * left

    return _warmed_up(learning_rate, num_warmup_steps, decay)


def polynomial_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    power: float = 1.0,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, then falls as a power of the share of steps left.

    Unlike `linear_warmup_decay` the fall starts where the warm-up ends, so
    there is no jump. Large-batch recipes use a power of 0.5.
    """
    _check_steps(num_warmup_steps, num_train_steps)

    def decay(step):
        left = 1 - _progress(step, num_warmup_steps, num_train_steps)
        span = learning_rate - end_learning_rate
        return end_learning_rate + span * left**power

    return _warmed_up(learning_rate, num_warmup_steps, decay)


def cosine_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, then falls along half a cosine wave.

    Loshchilov & Hutter, 2017, https://arxiv.org/abs/1608.03983, without
    restarts.
    """
    _check_steps(num_warmup_steps, num_train_steps)

    def decay(step):
        done = _progress(step, num_warmup_steps, num_train_steps)
        span = learning_rate - end_learning_rate
        return end_learning_rate + span * (1 + tf.cos(math.pi * done)) / 2

    return _warmed_up(learning_rate, num_warmup_steps, decay)


def constant(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    num_cooldown_steps: int = 0,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, stays, and falls linearly in the last steps."""
    _check_steps(num_warmup_steps, num_train_steps)
    if not 0 <= num_cooldown_steps <= num_train_steps - num_warmup_steps:
        raise ValueError(
            "Warm-up and cooldown must not take more than all steps. "
            f"Received: num_warmup_steps={num_warmup_steps}, "
            f"num_cooldown_steps={num_cooldown_steps}, "
            f"num_train_steps={num_train_steps}"
        )

    def decay(step):
        first = num_train_steps - num_cooldown_steps
        done = _progress(step, first, num_train_steps)
        return learning_rate + (end_learning_rate - learning_rate) * done

    return _warmed_up(learning_rate, num_warmup_steps, decay)


def _check_steps(num_warmup_steps: int, num_train_steps: int) -> None:
    if num_train_steps < 1:
        raise ValueError(
            "`num_train_steps` must be positive. "
            f"Received: num_train_steps={num_train_steps}"
        )
    if not 0 <= num_warmup_steps <= num_train_steps:
        raise ValueError(
            "`num_warmup_steps` must not exceed `num_train_steps`, or the "
            "learning rate never reaches its peak. "
            f"Received: num_warmup_steps={num_warmup_steps}, "
            f"num_train_steps={num_train_steps}"
        )


def _progress(step: tf.Tensor, first: int, last: int) -> tf.Tensor:
    """The share of the way from step `first` to `last` that is done."""
    return tf.clip_by_value((step - first) / max(last - first, 1), 0, 1)


def _warmed_up(
    learning_rate: float, num_warmup_steps: int, decay: Schedule
) -> Schedule:
    def schedule(step):
        step = tf.cast(step, tf.float32)
        warmup = learning_rate * step / max(num_warmup_steps, 1)
        return tf.where(step < num_warmup_steps, warmup, decay(step))

    return schedule


# ---- Clipping ---------------------------------------------------------------


def clip_by_global_norm(
    gradients: Sequence[tf.Tensor], limit: float
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Scales all gradients down together if their joint norm is over `limit`.

    Returns:
        The gradients, and the norm before clipping, a float32 scalar.
    """
    # 2 * l2_loss is the sum of squares, without a squared copy.
    squares = [tf.cast(2 * tf.nn.l2_loss(g), tf.float32) for g in gradients]
    # Not tf.add_n: it starts from whichever input buffer is free to be reused,
    # so the order of the sum, and its last bit, would depend on timing.
    norm = tf.sqrt(tf.reduce_sum(tf.stack(squares)))
    scale = limit / tf.maximum(norm, limit)
    return [g * tf.cast(scale, g.dtype) for g in gradients], norm


class AdamWeightDecay:
    """Adam with decoupled weight decay and without bias correction.

    One step, for every variable w with gradient g:
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g^2
        w = w - rate * (m / (sqrt(v) + epsilon) + weight_decay_rate * w)
    """

    def __init__(
        self,
        schedule: Schedule,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float = 1.0,
        exclude_from_weight_decay: Sequence[str] = NO_DECAY,
    ):
        self.schedule = schedule
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.clip_norm = clip_norm
        self.exclude_from_weight_decay = tuple(exclude_from_weight_decay)
        # The original weighs g^2 by 1 - beta_2, TensorFlow's kernel by what
        # float32's beta_2 leaves to 1: less by 1.3e-5, and so is its v. With
        # rate and epsilon less by the root of that, updates are the original's.
        taken = float(np.float32(1) - np.float32(beta_2))
        self._share_of_root_v = math.sqrt(taken / (1 - beta_2))
        self.variables: list[keras.Variable] = []
        self.slots: dict[str, tf.Variable] = {}  # by name in the checkpoint

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes the moments; call it where the model was made."""
        self.variables = list(variables)
        for variable in self.variables:
            for slot in ("adam_m", "adam_v"):
                name = f"{variable.path}/{slot}"
                # Aggregation NONE: replicas assign equal values by themselves,
                # which, unlike a merge call, may happen inside a loop.
                self.slots[name] = tf.Variable(
                    tf.zeros(variable.shape),
                    trainable=False,
                    name=name,
                    aggregation=tf.VariableAggregation.NONE,
                )

    def decays(self, name: str) -> bool:
        """Whether the variable of this name is subject to weight decay."""
        return self.weight_decay_rate != 0 and not any(
            re.search(p, name) for p in self.exclude_from_weight_decay
        )

    def apply(
        self, gradients: Sequence[tf.Tensor], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Clips the gradients and updates the variables.

        Called in replica context, by every replica with the same gradients.

        Args:
            gradients: one per variable, already summed over replicas.
            step: int64 scalar, the number of steps made before this one.

        Returns:
            `learning_rate` and `gradient_norm`, float32 scalars.
        """
        gradients, norm = clip_by_global_norm(gradients, self.clip_norm)
        rate = self.schedule(step)
        for variable, gradient in zip(self.variables, gradients, strict=True):
            self._update(variable, gradient, rate)
        return {"learning_rate": rate, "gradient_norm": norm}

    def _update(self, variable, gradient, rate):
        path = variable.path
        if self.decays(path):
            # Decay acts on the weights from before the step, so it goes first.
            # As a difference: 1 - rate * decay is coarse in float32.
            decay = (rate * self.weight_decay_rate) * variable.value
            variable.value.assign_sub(decay)
        # With both powers of beta at zero, TensorFlow's Adam kernel computes
        # the formula above, without bias correction, in one pass over memory.
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle,
            m=self.slots[f"{path}/adam_m"].handle,
            v=self.slots[f"{path}/adam_v"].handle,
            beta1_power=0.0,
            beta2_power=0.0,
            lr=rate * self._share_of_root_v,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon * self._share_of_root_v,
            grad=gradient,
        )
