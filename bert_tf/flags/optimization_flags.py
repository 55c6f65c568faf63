"""Flags of the optimizer and its schedule, shared by the training scripts.

A script adopts them with `flags.adopt_module_key_flags(optimization_flags)`;
`flag_sections.read(recipes.Recipe)` makes a recipe of them in `main`.
"""

from bert_tf import recipe_options
from bert_tf.flags import flag_sections

_OPTIMIZER = flag_sections.Section("Optimizer", only_with="do_train")

LEARNING_RATE = _OPTIMIZER.number(
    "learning_rate", 5e-5, "Peak learning rate.", min=0
)
_OPTIMIZER.define(recipe_options.RecipeOptions)
