"""Flags of a teacher, shared by the training scripts.

A script adopts them with `flags.adopt_module_key_flags(distillation_flags)`;
`setup.distillation_setup` opens the teacher in `main`.
"""

from bert_tf import options
from bert_tf.flags import flag_sections

_TEACHER = flag_sections.Section("Distillation", only_with="do_train")
_LEARNING = flag_sections.Section(
    "Distillation", only_with=("teacher", "!do_train"), harmless=False
)
# Condition of the kinds of --distillation that compare logits (the default).
BY_LOGITS = ("distillation=logits", "!distillation")

TEACHER = _TEACHER.input_path(
    "teacher",
    "The teacher: the folder of a run, or a checkpoint of any format with the "
    "same vocabulary.",
    holds=flag_sections.MODEL,
)
# No defaults: omitted flags are not recorded, so earlier runs can resume.
DISTILLATION = _LEARNING.choice(
    "distillation",
    None,
    options.DISTILLATIONS,
    "What the student learns. logits, the default: the teacher's predictions "
    "and the labels. tinybert_layers: attention scores and hidden states. "
    "minilm: the relations of the last layer. After one of these two, train "
    "again with logits. distilbert, for pre-training: predicted words and last "
    "hidden states.",
)
TEMPERATURE = _LEARNING.number(
    "temperature",
    None,
    "Divides the logits before they are compared, by default by 2. Higher "
    "temperatures give more weight to unlikely classes.",
    above=0,
    only_with=("distillation=distilbert", *BY_LOGITS),
)
HARD_LABEL_WEIGHT = _LEARNING.number(
    "hard_label_weight",
    None,
    "Weight of the loss on the labels, by default 0.5. The loss on the "
    "teacher's logits has 1 minus this weight.",
    min=0,
    max=1,
    only_with=BY_LOGITS,
)
RELATION_HEADS = _LEARNING.integer(
    "relation_heads",
    None,
    "Number of slices of the hidden states. By default the largest number up "
    "to 48 that divides both hidden sizes.",
    min=1,
    only_with="distillation=minilm",
)

# Flags that a run in progress can't change.
IDENTITY = (
    TEACHER.name,
    DISTILLATION.name,
    TEMPERATURE.name,
    HARD_LABEL_WEIGHT.name,
    RELATION_HEADS.name,
)
