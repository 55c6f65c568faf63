"""Flags of the optimizer and its schedule, shared by the training scripts.

A script adopts them with `flags.adopt_module_key_flags(optimization_flags)`;
`setup.run_setup.recipe` converts them to a recipe in `main`.
"""

from bert_tf import options
from bert_tf.flags import flag_sections

_OPTIMIZER = flag_sections.Section("Optimizer", only_with="do_train")

LEARNING_RATE = _OPTIMIZER.number(
    "learning_rate", 5e-5, "Peak learning rate.", least=0
)
OPTIMIZER = _OPTIMIZER.choice(
    "optimizer",
    "adamw",
    options.OPTIMIZERS,
    "adamw is the original's, without bias correction. adamw_bias_corrected "
    "is the usual AdamW, whose first steps are smaller: better with few "
    "examples. lamb is for batches of thousands. lamb_uncorrected is ALBERT's "
    "LAMB, without bias correction.",
)
LR_SCHEDULE = _OPTIMIZER.choice(
    "lr_schedule",
    "linear",
    options.SCHEDULES,
    "Learning rate after the warm-up. linear is the original's decay, a line "
    "from step 0; linear_times_warmup, as in ELECTRA, multiplies this line by "
    "the warm-up; polynomial and cosine decay from the peak; constant stays at "
    "the peak until the cooldown; inverse_sqrt, as in the Transformer, decays "
    "as the inverse square root of the step.",
)
END_LEARNING_RATE = _OPTIMIZER.number(
    "end_learning_rate",
    0.0,
    "Learning rate at the end of the schedule.",
    least=0,
)
LR_POWER = _OPTIMIZER.number(
    "lr_power",
    1.0,
    "Power of --lr_schedule=polynomial.",
    above=0,
    only_with="lr_schedule=polynomial",
    rare=True,
)
NUM_COOLDOWN_STEPS = _OPTIMIZER.integer(
    "num_cooldown_steps",
    0,
    "Steps at the end of --lr_schedule=constant in which the learning rate "
    "decays.",
    least=0,
    only_with="lr_schedule=constant",
    rare=True,
)
WEIGHT_DECAY_RATE = _OPTIMIZER.number(
    "weight_decay_rate",
    0.01,
    "Weight decay of all weights except layer norms and biases.",
    least=0,
)
ADAM_BETA_1 = _OPTIMIZER.number(
    "adam_beta_1",
    0.9,
    "Decay of the first moment.",
    above=0,
    most=options.LARGEST_BETA,
    rare=True,
)
ADAM_BETA_2 = _OPTIMIZER.number(
    "adam_beta_2",
    0.999,
    "Decay of the second moment. 0.999 is the original's; RoBERTa uses 0.98.",
    above=0,
    most=options.LARGEST_BETA,
    rare=True,
)
ADAM_EPSILON = _OPTIMIZER.number(
    "adam_epsilon",
    1e-6,
    "Added to the root of the second moment. 1e-6 is the original's; PyTorch "
    "and transformers use 1e-8.",
    above=0,
    rare=True,
)
CLIP_NORM = _OPTIMIZER.number(
    "clip_norm", 1.0, "Max global norm of the gradients.", above=0
)
CLIPPING = _OPTIMIZER.choice(
    "clipping",
    "global",
    options.CLIPPING,
    "What to clip: the gradient of the whole batch, or the gradient of each "
    "replica before the sum, as the original did on TPUs.",
    rare=True,
)
LAYER_DECAY = _OPTIMIZER.number(
    "layer_decay",
    1.0,
    "Multiplies the learning rate by this factor for each layer below the top "
    "one. 1 is off.",
    above=0,
    most=1,
)
LAYER_DECAY_FORM = _OPTIMIZER.choice(
    "layer_decay_form",
    None,
    options.LAYER_DECAY_FORMS,
    "paper, the default: the last layer has --layer_decay of the rate, as in "
    "ELECTRA's paper. code: the last layer has its square, and all below one "
    "more power, as in ELECTRA's code, which its published results are from.",
    rare=True,
)
PRUNE_TO = _OPTIMIZER.number(
    "prune_to",
    0.0,
    "Magnitude pruning: share of zeros in the kernels of the encoder layers at "
    "the end. Does not save time.",
    least=0,
    most=0.999,
)
PRUNE_UNTIL = _OPTIMIZER.number(
    "prune_until",
    0.5,
    "Share of the steps after which --prune_to is reached. The remaining steps "
    "train the remaining weights.",
    above=0,
    most=1,
    only_with="prune_to",
    rare=True,
)
PRUNE_EVERY = _OPTIMIZER.integer(
    "prune_every",
    10,
    "Steps between updates of the pruned weights.",
    least=1,
    only_with="prune_to",
    rare=True,
)
