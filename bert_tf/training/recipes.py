"""How a run updates its weights: optimizer, schedule, clipping, rates."""

import dataclasses
import math
from collections.abc import Callable

from bert_tf import configuration, optimization, options, weight_pruning
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.training import schedules

OPTIMIZERS = options.OPTIMIZERS
SCHEDULES = options.SCHEDULES
LARGEST_BETA = options.LARGEST_BETA


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How weights are updated; the flags of the same names.

    Attributes:
        lr_schedule: One of SCHEDULES, all with a linear warm-up.
        lr_power: Of the polynomial schedule.
        num_cooldown_steps: Of the constant schedule.
        weight_decay_rate: Of all but layer norms and biases.
        adam_beta_1: Share of the first moment that is kept; LAMB's too.
        adam_beta_2: Share of the second moment that is kept; LAMB's too.
        adam_epsilon: Added to the root of the second moment; LAMB's too.
        clipping: One of optimization.CLIPPING.
        layer_decay: Each layer's rate is so much of that of the layer above.
        layer_decay_form: Of options.LAYER_DECAY_FORMS: see `layer_rates`.
        prune_to: The share of the encoder's kernels that is zero at last.
        prune_until: The share of the steps after which that is so.
        prune_every: Steps from one choice of weights to the next.
        dtype: float16 scales the loss.
    """

    optimizer: str = "adamw"
    lr_schedule: str = "linear"
    end_learning_rate: float = 0.0
    lr_power: float = 1.0
    num_cooldown_steps: int = 0
    weight_decay_rate: float = 0.01
    adam_beta_1: float = 0.9
    adam_beta_2: float = 0.999
    adam_epsilon: float = 1e-6
    clip_norm: float = 1.0
    clipping: str = "global"
    layer_decay: float = 1.0
    layer_decay_form: str = "paper"
    prune_to: float = 0.0
    prune_until: float = 0.5
    prune_every: int = 10
    dtype: str = "float32"

    def __post_init__(self):
        for name, allowed in (
            ("optimizer", OPTIMIZERS),
            ("lr_schedule", SCHEDULES),
            ("clipping", optimization.CLIPPING),
            ("layer_decay_form", options.LAYER_DECAY_FORMS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(
                    f"`{name}` must be one of {', '.join(allowed)}. "
                    f"Received: {name}={value!r}"
                )
        if not 0 < self.layer_decay <= 1:
            raise InputError(
                "`layer_decay` must be above 0 and at most 1. "
                f"Received: layer_decay={self.layer_decay}"
            )
        for name in ("adam_beta_1", "adam_beta_2"):
            value = getattr(self, name)
            if not 0 < value <= LARGEST_BETA:
                raise InputError(
                    f"`{name}` must be above 0 and at most {LARGEST_BETA}. "
                    f"Received: {name}={value}"
                )
        if not 0 <= self.prune_to < 1:
            raise InputError(
                "`prune_to` must be a share, at least 0 and below 1. "
                f"Received: prune_to={self.prune_to}"
            )
        for name in ("lr_power", "adam_epsilon", "clip_norm"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(
                    f"`{name}` must be a positive number. "
                    f"Received: {name}={value}"
                )
        for name, default, schedule in (
            ("lr_power", 1.0, "polynomial"),
            ("num_cooldown_steps", 0, "constant"),
        ):
            value = getattr(self, name)
            if value != default and self.lr_schedule != schedule:
                raise InputError(
                    f"`{name}` belongs to the schedule {schedule}. Received: "
                    f"{name}={value}, lr_schedule={self.lr_schedule}"
                )

    def schedule(
        self, learning_rate: float, num_warmup_steps: int, num_train_steps: int
    ) -> optimization.Schedule:
        """Returns the learning rate; InputError if the steps don't fit."""
        if not 0 <= self.end_learning_rate <= learning_rate:
            raise InputError(
                "`end_learning_rate` must be between 0 and the peak. "
                f"Received: end_learning_rate={self.end_learning_rate}, "
                f"learning_rate={learning_rate}"
            )
        steps = (learning_rate, num_warmup_steps, num_train_steps)
        end = self.end_learning_rate
        if self.lr_schedule == "polynomial":
            return schedules.polynomial_decay(*steps, self.lr_power, end)
        if self.lr_schedule == "linear_times_warmup":
            return schedules.linear_warmup_times_decay(*steps, end)
        if self.lr_schedule == "cosine":
            return schedules.cosine_decay(*steps, end)
        if self.lr_schedule == "constant":
            cooldown = self.num_cooldown_steps
            return schedules.constant(*steps, cooldown, end)
        return schedules.linear_warmup_decay(*steps, end)

    def make_optimizer(
        self,
        schedule: optimization.Schedule,
        config: configuration.BertConfig,
        num_train_steps: int | None = None,
    ) -> optimization.Optimizer:
        """Returns the optimizer of an encoder with a head, to be built.

        The steps of the run are needed to prune.
        """
        kind = optimization.OPTIMIZERS[self.optimizer]
        is_scaled = self.dtype == "float16"
        return kind(
            schedule,
            weight_decay_rate=self.weight_decay_rate,
            beta_1=self.adam_beta_1,
            beta_2=self.adam_beta_2,
            epsilon=self.adam_epsilon,
            clip_norm=self.clip_norm,
            clipping=self.clipping,
            rate_of=layer_rates(
                self.layer_decay, config, self.layer_decay_form
            ),
            loss_scale=optimization.LossScale() if is_scaled else None,
            pruning=self.pruning(config, num_train_steps or 1),
        )

    def pruning(
        self, config: configuration.BertConfig, num_train_steps: int
    ) -> weight_pruning.Pruning | None:
        """Returns how weights become zero, or None."""
        if not self.prune_to:
            return None
        family = families.of(config)
        kernels = [x for x in family.variables if _is_kernel(x)]
        if not any("{}" in name for name in kernels):
            raise InputError(
                "Pruned are kernels of layers, and this encoder has none: "
                f"leave out --prune_to. Received: prune_to={self.prune_to}"
            )
        return weight_pruning.Pruning(
            share=self.prune_to,
            end=max(1, round(self.prune_until * num_train_steps)),
            every=self.prune_every,
            prunes=lambda name: (
                family.layer(name) is not None and _is_kernel(name)
            ),
        )


def _is_kernel(name: str) -> bool:
    """Whether a variable is a matrix; LSTMs have `recurrent_kernel`, too."""
    return name.rpartition("/")[2] in ("kernel", "recurrent_kernel")


def layer_rates(
    decay: float, config: configuration.BertConfig, form: str = "paper"
) -> Callable[[str], float]:
    """Returns the factor of the learning rate by a variable's name.

    Heads and the pooler learn at the full rate, the last layer at `decay` of
    it, each layer below at `decay` of the next, the embeddings at the least
    (Clark et al., 2020, https://arxiv.org/abs/2003.10555). The form `code`
    follows the authors' code: the exponent of everything below the heads is
    larger by one. A generator's layers count from its own last one.
    """
    family = families.of(config)
    more = 1 if form == "code" else 0

    def rate_of(name: str) -> float:
        depth = family.depth(name, config)
        if family.generator and not family.has(name, config):
            alone = family.generator.alone(name)
            if alone is not None:
                other = family.generator.config(config)
                depth = families.of(other).depth(alone, other)
        return decay ** (depth + more) if depth else 1.0

    return rate_of
