"""Optimizers, clipping and loss scaling.

AdamWeightDecay's numbers are the original's (google-research/bert,
optimization.py): no bias correction, epsilon outside the root, decoupled weight
decay on everything except layer norms and biases, linear warm-up and linear
decay. LAMB is for batches of thousands.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import compiled, options, recipe_options, weight_pruning
from bert_tf.errors import InputError

import keras
import numpy as np
import tensorflow as tf

Schedule = Callable[[tf.Tensor], tf.Tensor]

# The flags have the same bounds.
_FIELDS = {x.name: x for x in dataclasses.fields(recipe_options.RecipeOptions)}

# Matched anywhere in a variable's name, as in the original.
NO_DECAY = ("LayerNorm", "layer_norm", "batch_norm", "bias")


def full_rate(name: str) -> float:
    """The default share of the learning rate for a variable: all of it."""
    del name
    return 1.0


def first_step(name: str) -> int:
    """The default step from which a variable is trained."""
    del name
    return 0


def _state(name: str, value: tf.Tensor) -> tf.Variable:
    """Creates a variable of the optimizer's state, with its checkpoint name."""
    # Aggregation NONE: replicas assign equal values independently, which,
    # unlike a merge call, is possible inside a loop.
    return tf.Variable(
        value,
        trainable=False,
        name=name,
        aggregation=tf.VariableAggregation.NONE,
    )


# ---- Clipping ---------------------------------------------------------------


def clip_by_global_norm(
    gradients: Sequence[tf.Tensor], limit: float
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Scales down all gradients if their joint norm exceeds `limit`.

    Returns the gradients, and the norm before clipping, a float32 scalar. The
    gradient of embeddings has a row for each token of the batch. When the
    original fine-tunes on CPUs and GPUs, and ALBERT's code also pre-trains
    there, several rows for one token count separately in the norm. Here they
    are summed first, as on TPUs, because the norm should not depend on how the
    gradient is stored.
    """
    # 2 * l2_loss is the sum of squares, without a squared copy.
    halves = [tf.cast(tf.nn.l2_loss(g), tf.float32) for g in gradients]
    # Not tf.add_n: it starts with whichever input buffer can be reused, so the
    # order of the sum, and its last bit, would depend on timing.
    norm = tf.sqrt(2 * tf.reduce_sum(tf.stack(halves)))
    scale = limit / tf.maximum(norm, limit)
    return [g * tf.cast(scale, g.dtype) for g in gradients], norm


# ---- Loss scaling -----------------------------------------------------------
#
# Gradients below 6e-8 are zero in float16. So the loss is multiplied before the
# backward pass, and the gradients are divided after it, in float32. Overflow is
# detected in the gradients summed over all replicas: all replicas get the same
# result, and either all skip the step or none does.

SCALE = "loss_scale/scale"
GOOD_STEPS = "loss_scale/good_steps"
SKIPPED_STEPS = "loss_scale/skipped_steps"


class LossScale:
    """A factor that halves at an overflow and doubles after steps without one.

    It starts at `initial`, a power of two, and doubles after `period` steps
    (Micikevicius et al., 2018, https://arxiv.org/abs/1710.03740, section 3.2).
    """

    def __init__(self, initial: float = 2.0**15, period: int = 2000):
        self.initial = initial
        self.period = period

    def build(self) -> dict[str, tf.Variable]:
        """Creates the state and returns it by its names in checkpoints."""
        self.scale = _state(SCALE, tf.constant(self.initial, tf.float32))
        self.good_steps = _state(GOOD_STEPS, tf.constant(0, tf.int64))
        self.skipped_steps = _state(SKIPPED_STEPS, tf.constant(0, tf.int64))
        return {
            SCALE: self.scale,
            GOOD_STEPS: self.good_steps,
            SKIPPED_STEPS: self.skipped_steps,
        }

    def guard(
        self, norm: tf.Tensor, update: Callable[[], None]
    ) -> dict[str, tf.Tensor]:
        """Calls `update` unless the gradients overflowed; adapts the factor.

        The norm of the gradients must be the same on all replicas. Returns
        `gradient_norm`, 0 if the step is skipped; `loss_scale`, the factor of
        this step; and `skipped_steps`, 0 or 1.
        """
        finite = tf.math.is_finite(norm)

        def apply():
            update()
            return 0.0

        skipped = tf.cond(finite, apply, lambda: 1.0)
        scale = tf.convert_to_tensor(self.scale)
        # If the factor can't be halved any more, the gradients themselves are
        # not finite. The norm stays as it is, and the training loop stops the
        # run.
        hopeless = ~finite & (scale <= 1)
        good = tf.where(finite, self.good_steps + 1, 0)
        grows = good >= self.period
        grown = tf.where(grows, 2 * scale, scale)
        self.scale.assign(tf.where(finite, grown, tf.maximum(scale / 2, 1)))
        self.good_steps.assign(tf.where(grows, tf.zeros_like(good), good))
        self.skipped_steps.assign_add(tf.cast(~finite, tf.int64))
        return {
            "gradient_norm": tf.where(finite | hopeless, norm, 0),
            "loss_scale": scale,
            "skipped_steps": skipped,
        }


# ---- Optimizers -------------------------------------------------------------


# The slots of all optimizers. In checkpoints, the name of a slot variable is
# the variable's name, a slash and the slot.
SLOTS: set[str] = set()


def slot_of(name: str) -> tuple[str, str] | None:
    """Splits output_bias/adam_m into variable and slot; None for a weight."""
    variable, _, slot = name.rpartition("/")
    return (variable, slot) if variable and slot in SLOTS else None


class Optimizer:
    """The base of optimizers: state per variable, weight decay, clipping.

    Subclasses define `slot_names` and how to update one variable. Saving,
    resuming and distinguishing weights from moments follow from these names.

    Args:
        schedule: The learning rate.
        weight_decay_rate: Weight decay of the variables for which `decays`
            holds.
        beta_1: Decay rate of the first moment.
        beta_2: Decay rate of the second moment.
        epsilon: Added to the root of the second moment.
        clip_norm: Max joint norm of the gradients.
        exclude_from_weight_decay: Patterns of names, matched anywhere.
        clipping: "global" clips the gradient of the whole batch. "per_replica"
            clips the gradient of each replica's rows and then sums up, like the
            original on TPUs. (It does not average, because it bypasses
            CrossShardOptimizer.compute_gradients. For Adam and LAMB this only
            changes the size of the sum relative to epsilon.)
        rate_of: Name of a variable -> factor of its learning rate.
        starts_at: Name of a variable -> the first step that updates it. Before,
            it and its moments stay as they are, and the norm is without it.
        loss_scale: Scales the loss of a float16 run; None for others.
        pruning: Which weights are zero after an update; None for no pruning.

    Attributes:
        slot_names: The state of each variable, such as two moments.
        slots: The moments, by their names in checkpoints.
    """

    slot_names: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any):
        """Registers the slots, so that all readers of checkpoints know them."""
        super().__init_subclass__(**options)
        SLOTS.update(cls.slot_names)

    def __init__(
        self,
        schedule: Schedule,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float = 1.0,
        exclude_from_weight_decay: Sequence[str] = NO_DECAY,
        clipping: str = "global",
        rate_of: Callable[[str], float] = full_rate,
        starts_at: Callable[[str], int] = first_step,
        loss_scale: LossScale | None = None,
        pruning: weight_pruning.Pruning | None = None,
    ):
        for name, value in (
            ("weight_decay_rate", weight_decay_rate),
            ("adam_beta_1", beta_1),
            ("adam_beta_2", beta_2),
            ("adam_epsilon", epsilon),
            ("clip_norm", clip_norm),
            ("clipping", clipping),
        ):
            options.check(_FIELDS[name], value, name.removeprefix("adam_"))
        if isinstance(exclude_from_weight_decay, str):
            raise InputError(
                "`exclude_from_weight_decay` must be a list of patterns. "
                "Received: exclude_from_weight_decay="
                f"{exclude_from_weight_decay!r}"
            )
        if not callable(schedule):
            raise InputError(
                "The learning rate must be a function of the step, such as "
                "bert_tf.schedules.linear_warmup_decay(2e-5, 100, 1000). "
                f"Received: schedule={schedule!r}"
            )
        self.schedule = schedule
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.clip_norm = clip_norm
        self.exclude_from_weight_decay = tuple(exclude_from_weight_decay)
        self.clipping = clipping
        self.rate_of = rate_of
        self.starts_at = starts_at
        self.loss_scale = loss_scale
        self.pruning = pruning
        self.variables: list[keras.Variable] = []
        self.slots: dict[str, tf.Variable] = {}  # by name in the checkpoint

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates the moments; call it in the scope that created the model."""
        self.variables = list(variables)
        self.slots = {}
        for variable in self.variables:
            for slot in self.slot_names:
                name = f"{variable.path}/{slot}"
                self.slots[name] = _state(name, tf.zeros(variable.shape))
        if self.loss_scale is not None:
            self.slots |= self.loss_scale.build()

    def decays(self, name: str) -> bool:
        """Returns whether the variable is subject to weight decay."""
        return self.weight_decay_rate != 0 and not self.is_excluded(name)

    def is_excluded(self, name: str) -> bool:
        """Returns whether the variable is excluded from weight decay."""
        return any(re.search(p, name) for p in self.exclude_from_weight_decay)

    @property
    def clips_own(self) -> bool:
        """Whether each replica clips its local gradients."""
        return self.clipping == "per_replica"

    def clip_own(
        self, gradients: Sequence[tf.Tensor], replicas: int
    ) -> list[tf.Tensor]:
        """Clips a replica's share of the gradients if `clips_own`.

        The gradients of all replicas will be summed. If each replica has the
        same number of predictions, `replicas` times its share is the gradient
        of the mean over its own rows.
        """
        if not self.clips_own:
            return list(gradients)
        own = [gradient * replicas for gradient in gradients]
        return clip_by_global_norm(own, self.clip_norm)[0]

    def apply(
        self, gradients: Sequence[tf.Tensor], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Clips the gradients and updates the variables.

        Every replica calls it, in replica context, with the same gradients,
        already summed over replicas. The step, an int64 scalar, is the number
        of previous steps. Returns `learning_rate` and `gradient_norm`, float32
        scalars, and the values that loss scale and pruning add.
        """
        starts = [self.starts_at(v.path) for v in self.variables]
        gradients = [
            tf.where(step >= start, gradient, 0) if start else gradient
            for gradient, start in zip(gradients, starts, strict=True)
        ]
        clipped, norm = clip_by_global_norm(gradients, self.clip_norm)
        if not self.clips_own:
            gradients = clipped
        rate = self.schedule(step)

        pruning = self.pruning
        updates = step
        if self.loss_scale is not None:
            updates = step - self.loss_scale.skipped_steps

        def update():
            nonzero = pruning.nonzero(self.variables) if pruning else {}

            @functools.cache  # Tracing fewer ops takes less time.
            def scalars(factor, start):
                own = rate if factor == 1 else rate * factor
                number = updates
                if start:
                    # With zeros for both, neither it nor its moments change.
                    own = tf.where(step >= start, own, 0)
                    # Most skipped steps are the first of a run.
                    number = tf.clip_by_value(step - start, 0, updates)
                return self._scalars(own, number)

            for variable, gradient, start in zip(
                self.variables, gradients, starts, strict=True
            ):
                factor = self.rate_of(variable.path)
                self._update(variable, gradient, *scalars(factor, start))
            if pruning:
                pruning.apply(self.variables, nonzero, step + 1)

        report = {"learning_rate": rate, "gradient_norm": norm}
        if pruning:
            report["pruned_share"] = pruning.share_after(step + 1)
        if self.loss_scale is None:
            update()
            return report
        return report | self.loss_scale.guard(norm, update)

    def _scalars(self, rate, step):
        """Returns the scalar arguments of `_update` after `step` updates.

        They are computed once for all variables with the same rate.
        """
        return rate, step

    def _update(self, variable, gradient, *scalars):
        """Updates one variable and its moments."""
        raise NotImplementedError


class AdamWeightDecay(Optimizer):
    """Adam with decoupled weight decay and without bias correction.

    One step, for every variable w with gradient g:
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g^2
        w = w - rate * (m / (sqrt(v) + epsilon) + weight_decay_rate * w)
    """

    slot_names = ("adam_m", "adam_v")

    def __init__(self, schedule: Schedule, **options: Any):
        super().__init__(schedule, **options)
        # The original multiplies g^2 by 1 - beta_2, TensorFlow's kernel by 1
        # minus float32's beta_2, which is smaller by 1.3e-5, and so is its v.
        # Multiplying rate and epsilon by the root of this ratio gives the
        # original's updates.
        taken = float(np.float32(1) - np.float32(self.beta_2))
        self._share_of_root_v = math.sqrt(taken / (1 - self.beta_2))

    def _scalars(self, rate, step):
        decay = rate * self.weight_decay_rate
        rate, epsilon = self._corrected(rate, step)
        rate, epsilon = (x * self._share_of_root_v for x in (rate, epsilon))
        others = (epsilon, self.beta_1, self.beta_2, 0.0)
        return decay, rate, *map(tf.convert_to_tensor, others)

    def _update(
        self, variable, gradient, decay, rate, epsilon, beta_1, beta_2, zero
    ):
        path = variable.path
        if self.decays(path):
            # Decay uses the weights from before the step, so it comes first. It
            # is a difference, because 1 - rate * decay is coarse in float32.
            variable.value.assign_sub(decay * variable.value)
        m, v = (self.slots[f"{path}/{name}"] for name in self.slot_names)
        if compiled.is_compiled():
            # As the kernel below rounds: 1 - beta is taken in float32.
            m.assign_add((gradient - m) * (1 - beta_1))
            v.assign_add((tf.square(gradient) - v) * (1 - beta_2))
            variable.value.assign_sub(m * rate / (tf.sqrt(v) + epsilon))
            return
        # With both powers of beta at zero, TensorFlow's Adam kernel computes
        # the formula above, without bias correction, in one pass over memory.
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=zero,
            beta2_power=zero,
            lr=rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            grad=gradient,
        )

    def _corrected(self, rate, step):
        """Returns the rate and the epsilon of the update at this step."""
        del step
        return rate, self.epsilon


class BiasCorrectedAdamW(AdamWeightDecay):
    """Adam with decoupled weight decay and with bias correction.

    Like AdamWeightDecay, but at step t = 1, 2, ... m is divided by 1 - beta_1^t
    and v by 1 - beta_2^t (Kingma & Ba, 2015, algorithm 1), as in PyTorch and
    transformers. The decay is decoupled and multiplied by the rate, as theirs:
    w loses rate * weight_decay_rate * w. RoBERTa's optimizer in fairseq adds
    epsilon to the root before the correction, and also applies decay to layer
    norms and biases. Without bias correction the first steps are larger: 6.5
    times at t = 10, 3.2 at 100, 1.3 at 1,000, which can hurt on small data sets
    (Zhang et al., 2020, https://arxiv.org/abs/2006.05987; Mosbach et al., 2020,
    https://arxiv.org/abs/2006.04884).
    """

    def _corrected(self, rate, step):
        # Section 2 of the paper: the correction as a rate and an epsilon.
        root = tf.sqrt(_share_so_far(self.beta_2, step))
        rate *= root / _share_so_far(self.beta_1, step)
        return rate, self.epsilon * root


class Lamb(Optimizer):
    """LAMB (You et al., 2019, https://arxiv.org/abs/1904.00962).

    Algorithm 2, for every variable w with gradient g at step t = 1, 2, ...:
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g^2
        r = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
        u = r + weight_decay_rate * w
        w = w - rate * |w| / |u| * u
    The ratio |w| / |u| is 1 where either norm is 0. NVIDIA's code for
    TensorFlow 2 does the same. Their code for PyTorch sets the ratio to 1 for
    layer norms and biases.
    """

    slot_names = ("lamb_m", "lamb_v")

    def _update(self, variable, gradient, rate, step):
        path, weights = variable.path, variable.value
        m, v = (self.slots[f"{path}/{name}"] for name in self.slot_names)
        m.assign(self.beta_1 * m + (1 - self.beta_1) * gradient)
        v.assign(self.beta_2 * v + (1 - self.beta_2) * tf.square(gradient))
        m_hat, v_hat = self._corrected(m, v, step)
        update = m_hat / (tf.sqrt(v_hat) + self.epsilon)
        if self.decays(path):
            update += self.weight_decay_rate * weights
        weights.assign_sub(rate * self._ratio(path, weights, update) * update)

    def _corrected(self, m, v, step):
        """Returns both moments, corrected for their start at 0."""
        return (
            m / _share_so_far(self.beta_1, step),
            v / _share_so_far(self.beta_2, step),
        )

    def _ratio(self, path, weights, update):
        """Returns the trust ratio of a variable."""
        del path
        norm, update_norm = tf.norm(weights), tf.norm(update)
        return tf.where((norm > 0) & (update_norm > 0), norm / update_norm, 1.0)


class UncorrectedLamb(Lamb):
    """LAMB as ALBERT was trained (google-research/albert, lamb_optimizer.py).

    Like Lamb, but without the correction of m and v by 1 - beta^t, and with a
    ratio of 1 for variables that are excluded from weight decay: layer norms
    and biases. The moments have the names of Adam's, so ALBERT's checkpoints
    can be resumed.
    """

    slot_names = ("adam_m", "adam_v")

    def _corrected(self, m, v, step):
        del step
        return m, v

    def _ratio(self, path, weights, update):
        if self.is_excluded(path):
            return 1.0
        return super()._ratio(path, weights, update)


# By their names in `--optimizer`.
OPTIMIZERS: dict[str, type[Optimizer]] = {
    "adamw": AdamWeightDecay,
    "adamw_bias_corrected": BiasCorrectedAdamW,
    "lamb": Lamb,
    "lamb_uncorrected": UncorrectedLamb,
}


def _share_so_far(beta: float, step: tf.Tensor) -> tf.Tensor:
    """Returns 1 - beta^t, the sum of the weights of all gradients so far."""
    t = tf.cast(step, tf.float32) + 1
    return -tf.math.expm1(t * math.log(beta))
