"""Recipes for weight updates: optimizer, schedule, clipping, rates."""

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
    """How weights are updated; the fields are the flags of the same names.

    Attributes:
        lr_schedule: One of SCHEDULES, all with a linear warm-up.
        lr_power: Exponent of the polynomial schedule.
        num_cooldown_steps: Last steps of the constant schedule.
        weight_decay_rate: For all variables but layer norms and biases.
        adam_beta_1: Decay rate of the first moment; LAMB's too.
        adam_beta_2: Decay rate of the second moment; LAMB's too.
        adam_epsilon: Added to the root of the second moment; LAMB's too.
        clipping: One of optimization.CLIPPING.
        layer_decay: Factor of each layer's rate, relative to the layer above.
        layer_decay_form: One of options.LAYER_DECAY_FORMS: see `layer_rates`.
        prune_to: The final share of zeros in the encoder's kernels.
        prune_until: The share of the steps after which `prune_to` is reached.
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
        """Returns the learning rate schedule; InputError for wrong steps."""
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
        if self.lr_schedule == "inverse_sqrt":
            return schedules.inverse_sqrt(*steps, end)
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
        """Returns an unbuilt optimizer for an encoder with a head.

        Pruning needs the number of steps of the run.
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
        """Returns the pruning of weights, or None without pruning."""
        if not self.prune_to:
            return None
        family = families.find(config)
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
    """Whether a variable is a matrix, including `recurrent_kernel` of LSTMs."""
    return name.rpartition("/")[2] in ("kernel", "recurrent_kernel")


def layer_rates(
    decay: float, config: configuration.BertConfig, form: str = "paper"
) -> Callable[[str], float]:
    """Returns a function from a variable's name to its learning rate factor.

    Heads and the pooler learn at the full rate, the last layer at `decay` times
    it, each layer below at `decay` times the rate of the layer above, and the
    embeddings at the lowest rate (Clark et al., 2020,
    https://arxiv.org/abs/2003.10555). The form `code` follows the authors'
    code: the exponent is larger by one for everything below the heads. A
    generator's layers count from its own last layer.
    """
    family = families.find(config)
    more = 1 if form == "code" else 0

    def rate_of(name: str) -> float:
        depth = family.depth(name, config)
        if family.generator and not family.has(name, config):
            alone = family.generator.alone(name)
            if alone is not None:
                other = family.generator.config(config)
                depth = families.find(other).depth(alone, other)
        return decay ** (depth + more) if depth else 1.0

    return rate_of
