"""Recipes for weight updates: optimizer, schedule, clipping, rates."""

import dataclasses
import fractions
from collections.abc import Callable, Mapping

from bert_tf import (
    configuration,
    optimization,
    options,
    recipe_options,
    weight_pruning,
)
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.training import schedules

# By their names in options.SCHEDULES.
_SCHEDULES: Mapping[str, Callable[..., optimization.Schedule]] = {
    "linear": schedules.linear_warmup_decay,
    "linear_times_warmup": schedules.linear_warmup_times_decay,
    "polynomial": schedules.polynomial_decay,
    "cosine": schedules.cosine_decay,
    "constant": schedules.constant,
    "inverse_sqrt": schedules.inverse_sqrt,
    "slanted_triangular": schedules.slanted_triangular,
}


@dataclasses.dataclass(frozen=True)
class Recipe(recipe_options.RecipeOptions):
    """How weights are updated; the fields are the flags of the same names.

    The `dtype` float16 scales the loss. `unfreeze` is one of
    options.UNFREEZING: see `unfreezing`.
    """

    dtype: str = "float32"
    unfreeze: str = options.option("none", choices=options.UNFREEZING)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, off in (("clipping", "global"), ("prune_to", 0)):
            value = getattr(self, name)
            if self.unfreeze != "none" and value != off:
                raise InputError(
                    f"`unfreeze` goes with {name}={off} only: other values "
                    "would also act on frozen weights. Received: "
                    f"unfreeze={self.unfreeze}, {name}={value}"
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
        end, cooldown = self.end_learning_rate, self.num_cooldown_steps
        own: dict[str, float] = {}
        if self.lr_schedule == "polynomial":
            own["power"] = self.lr_power
        if self.lr_schedule == "constant":
            if end and not cooldown:
                raise InputError(
                    "A constant rate has no end without a cooldown: give "
                    "--num_cooldown_steps, or leave out --end_learning_rate. "
                    f"Received: lr_schedule=constant, end_learning_rate={end}"
                )
            own["num_cooldown_steps"] = cooldown
        return _SCHEDULES[self.lr_schedule](
            *(learning_rate, num_warmup_steps, num_train_steps),
            end_learning_rate=end,
            **own,
        )

    def make_optimizer(
        self,
        schedule: optimization.Schedule,
        config: configuration.BertConfig,
        num_train_steps: int | None = None,
        epoch_steps: fractions.Fraction | None = None,
    ) -> optimization.Optimizer:
        """Returns an unbuilt optimizer for an encoder with a head.

        Pruning needs the number of steps of the run, and unfreezing the number
        of an epoch.
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
            starts_at=unfreezing(
                config, epoch_steps if self.unfreeze == "gradual" else None
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
    decay: float, config: configuration.BertConfig, form: str | None = None
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


def unfreezing(
    config: configuration.BertConfig, epoch_steps: fractions.Fraction | None
) -> Callable[[str], int]:
    """Returns a function from a variable's name to the first step to train it.

    Heads and the pooler are trained from the first epoch on, the last layer
    from the second, each layer below one epoch later than the layer above, and
    the embeddings last (Howard & Ruder, 2018, https://arxiv.org/abs/1801.06146,
    section 3.3). An epoch that ends within a step ends before it. Without
    `epoch_steps`, everything is trained from step 0 on.
    """
    family = families.find(config)
    return lambda name: int(family.depth(name, config) * (epoch_steps or 0))
