"""The options of recipes for weight updates, which are also flags."""

import dataclasses

from bert_tf import options


@dataclasses.dataclass(frozen=True)
class RecipeOptions(options.Options):
    """How weights are updated; all schedules begin with a linear warm-up."""

    optimizer: str = options.option(
        "adamw",
        "adamw is the original's, without bias correction. "
        "adamw_bias_corrected is the usual AdamW, whose first steps are "
        "smaller: better with few examples. lamb is for batches of thousands. "
        "lamb_uncorrected is ALBERT's LAMB, without bias correction.",
        choices=options.OPTIMIZERS,
    )
    lr_schedule: str = options.option(
        "linear",
        "Learning rate after the warm-up. linear is the original's decay, a "
        "line from step 0; linear_times_warmup, as in ELECTRA, multiplies this "
        "line by the warm-up; polynomial and cosine decay from the peak; "
        "constant stays at the peak until the cooldown; inverse_sqrt, as in "
        "the Transformer, decays as the inverse square root of the step; "
        "slanted_triangular, as in ULMFiT, rises from 1/32 of the peak and "
        "falls back to it.",
        choices=options.SCHEDULES,
    )
    end_learning_rate: float = options.option(
        0.0, "Learning rate at the end of the schedule.", min=0
    )
    lr_power: float = options.option(
        1.0,
        "Power of --lr_schedule=polynomial.",
        above=0,
        only_with="lr_schedule=polynomial",
        rare=True,
    )
    num_cooldown_steps: int = options.option(
        0,
        "Steps at the end of --lr_schedule=constant in which the learning rate "
        "decays.",
        min=0,
        only_with="lr_schedule=constant",
        rare=True,
    )
    weight_decay_rate: float = options.option(
        0.01,
        "Weight decay of all weights except layer norms and biases.",
        min=0,
    )
    adam_beta_1: float = options.option(
        0.9,
        "Decay of the first moment.",
        above=0,
        max=options.LARGEST_BETA,
        rare=True,
    )
    adam_beta_2: float = options.option(
        0.999,
        "Decay of the second moment. 0.999 is the original's; RoBERTa uses "
        "0.98.",
        above=0,
        max=options.LARGEST_BETA,
        rare=True,
    )
    adam_epsilon: float = options.option(
        1e-6,
        "Added to the root of the second moment. 1e-6 is the original's; "
        "PyTorch and transformers use 1e-8.",
        above=0,
        rare=True,
    )
    clip_norm: float = options.option(
        1.0, "Max global norm of the gradients.", above=0
    )
    clipping: str = options.option(
        "global",
        "What to clip: the gradient of the whole batch, or the gradient of "
        "each replica before the sum, as the original does on TPUs.",
        choices=options.CLIPPING,
        rare=True,
    )
    layer_decay: float = options.option(
        1.0,
        "Multiplies the learning rate of the last layer by this factor, and of "
        "each layer below once more. Heads have the full rate. 1 is off.",
        above=0,
        max=1,
    )
    layer_decay_form: str | None = options.option(
        None,
        "paper, the default: the learning rate of the last layer is multiplied "
        "by --layer_decay, as in ELECTRA's paper. code: by its square, and in "
        "each lower layer by one more power, as in the ELECTRA code that "
        "produced the published results.",
        choices=options.LAYER_DECAY_FORMS,
        rare=True,
    )
    prune_to: float = options.option(
        0.0,
        "Magnitude pruning: share of zeros in the kernels of the encoder "
        "layers at the end. Does not save time.",
        min=0,
        max=0.999,
    )
    prune_until: float = options.option(
        0.5,
        "Share of the steps after which --prune_to is reached. The remaining "
        "steps train the remaining weights.",
        above=0,
        max=1,
        only_with="prune_to",
        rare=True,
    )
    prune_every: int = options.option(
        10,
        "Steps between updates of the pruned weights.",
        min=1,
        only_with="prune_to",
        rare=True,
    )
