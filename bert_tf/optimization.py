"""AdamWeightDecay, learning-rate schedules and clipping.

The numbers are the original's (google-research/bert, optimization.py): no
bias correction, epsilon outside the root, decoupled weight decay on
everything but layer norms and biases, linear warm-up and linear decay.
"""

import re
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

Schedule = Callable[[tf.Tensor], tf.Tensor]

# Matched anywhere in a variable's name, as the original does.
NO_DECAY = ("LayerNorm", "layer_norm", "bias")


def linear_warmup_decay(
    learning_rate: float, num_warmup_steps: int, num_train_steps: int
) -> Schedule:
    """Rises linearly from 0, then follows a line to 0 at `num_train_steps`.

    As in the original, the falling line starts at step 0: after the warm-up
    the rate is learning_rate * (1 - step / num_train_steps).

    Returns:
        A function from the step, an int64 scalar, to a float32 scalar.
    """
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

    def schedule(step):
        step = tf.cast(step, tf.float32)
        warmup = step / max(num_warmup_steps, 1)
        decay = tf.maximum(1 - step / num_train_steps, 0)
        return learning_rate * tf.where(step < num_warmup_steps, warmup, decay)

    return schedule


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
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )
