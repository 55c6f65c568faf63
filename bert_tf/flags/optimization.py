"""Flags of the optimizer and its schedule, which the training scripts share.

A script adopts them with `flags.adopt_module_key_flags(optimization_flags)`;
`setup.run.recipe` makes a recipe of them in `main`.
"""

from bert_tf import options
from bert_tf.flags import sections as flag_sections

_OPTIMIZER = flag_sections.Section("Optimizer", only_with="do_train")

LEARNING_RATE = _OPTIMIZER.number(
    "learning_rate", 5e-5, "Peak learning rate.", least=0
)
OPTIMIZER = _OPTIMIZER.choice(
    "optimizer",
    "adamw",
    options.OPTIMIZERS,
    "adamw is the original's, without Adam's bias correction; "
    "adamw_bias_corrected, that of other libraries, takes shorter first steps, "
    "for few examples; lamb is for batches of thousands.",
)
LR_SCHEDULE = _OPTIMIZER.choice(
    "lr_schedule",
    "linear",
    options.SCHEDULES,
    "After the warm-up. linear is the original's, whose line starts at step "
    "0; polynomial and cosine fall from the peak; constant stays there until "
    "the cooldown.",
)
END_LEARNING_RATE = _OPTIMIZER.number(
    "end_learning_rate", 0.0, "Where the schedule ends.", least=0
)
LR_POWER = _OPTIMIZER.number(
    "lr_power",
    1.0,
    "Of --lr_schedule=polynomial.",
    above=0,
    only_with="lr_schedule=polynomial",
    rare=True,
)
NUM_COOLDOWN_STEPS = _OPTIMIZER.integer(
    "num_cooldown_steps",
    0,
    "Of --lr_schedule=constant: steps at the end in which the rate falls.",
    least=0,
    only_with="lr_schedule=constant",
    rare=True,
)
WEIGHT_DECAY_RATE = _OPTIMIZER.number(
    "weight_decay_rate",
    0.01,
    "Of all weights but layer norms and biases.",
    least=0,
)
ADAM_BETA_1 = _OPTIMIZER.number(
    "adam_beta_1",
    0.9,
    "Share of the first moment that a step keeps.",
    above=0,
    most=options.LARGEST_BETA,
    rare=True,
)
ADAM_BETA_2 = _OPTIMIZER.number(
    "adam_beta_2",
    0.999,
    "Share of the second moment that a step keeps. 0.999 is the original's; "
    "RoBERTa has 0.98.",
    above=0,
    most=options.LARGEST_BETA,
    rare=True,
)
ADAM_EPSILON = _OPTIMIZER.number(
    "adam_epsilon",
    1e-6,
    "Added to the root of the second moment. 1e-6 is the original's; PyTorch "
    "and transformers have 1e-8.",
    above=0,
    rare=True,
)
CLIP_NORM = _OPTIMIZER.number(
    "clip_norm", 1.0, "Longest norm of the gradients.", above=0
)
CLIPPING = _OPTIMIZER.choice(
    "clipping",
    "global",
    options.CLIPPING,
    "What is clipped: the gradient of the whole batch, or that of each "
    "replica's rows before they are added up, as the original did on TPUs.",
    rare=True,
)
LAYER_DECAY = _OPTIMIZER.number(
    "layer_decay",
    1.0,
    "Each layer's learning rate is so much of that of the layer above it.",
    above=0,
    most=1,
)
PRUNE_TO = _OPTIMIZER.number(
    "prune_to",
    0.0,
    "Share of the weights in the kernels of the encoder's layers that are zero "
    "at the end, the smallest ones. They take no less time.",
    least=0,
    most=0.999,
)
PRUNE_UNTIL = _OPTIMIZER.number(
    "prune_until",
    0.5,
    "Share of the steps in which --prune_to is reached; in the others the "
    "weights that are left learn.",
    above=0,
    most=1,
    only_with="prune_to",
    rare=True,
)
PRUNE_EVERY = _OPTIMIZER.integer(
    "prune_every",
    10,
    "Steps from one choice of weights to prune to the next.",
    least=1,
    only_with="prune_to",
    rare=True,
)
