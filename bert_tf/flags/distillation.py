"""Flags of a teacher, which the training scripts share.

A script adopts them with `flags.adopt_module_key_flags(distillation_flags)`;
`setup.distillation` opens the teacher in `main`.
"""

from bert_tf import options
from bert_tf.flags import sections as flag_sections

_TEACHER = flag_sections.Section("Distillation", only_with="do_train")
_LEARNING = flag_sections.Section(
    "Distillation", only_with=("teacher", "!do_train"), harmless=False
)
# Those of --distillation's kinds that compare logits; without it they are.
BY_LOGITS = ("distillation=logits", "!distillation")

TEACHER = _TEACHER.input_path(
    "teacher",
    "A trained model to learn from: the folder of a run or of a checkpoint of "
    "any format, with the same vocabulary.",
    holds=flag_sections.MODEL,
)
# No defaults: what is not given is not kept, and runs of before go on.
DISTILLATION = _LEARNING.choice(
    "distillation",
    None,
    options.DISTILLATIONS,
    "What is learned from the teacher. logits, the default: what it says, "
    "beside the labels. tinybert_layers: its attention and hidden states, "
    "minilm: the relations of its last layer, both before a run that learns "
    "its logits. distilbert, of pre-training: words and last hidden states.",
)
TEMPERATURE = _LEARNING.number(
    "temperature",
    None,
    "Divides logits before they are compared; 2 by default. Higher ones tell "
    "more of what the teacher takes for unlikely.",
    above=0,
    only_with=("distillation=distilbert", *BY_LOGITS),
)
HARD_LABEL_WEIGHT = _LEARNING.number(
    "hard_label_weight",
    None,
    "How much the labels count, and the teacher the rest to 1; 0.5 by default.",
    least=0,
    most=1,
    only_with=BY_LOGITS,
)
RELATION_HEADS = _LEARNING.integer(
    "relation_heads",
    None,
    "Slices of hidden states whose relations are compared. By default the most "
    "up to 48 that divide both widths.",
    least=1,
    only_with="distillation=minilm",
)

# What a run in progress can't change.
IDENTITY = (
    TEACHER.name,
    DISTILLATION.name,
    TEMPERATURE.name,
    HARD_LABEL_WEIGHT.name,
    RELATION_HEADS.name,
)
