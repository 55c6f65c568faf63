"""Flags that specify the model to serve, and its settings from training.

A script adopts them with `flags.adopt_module_key_flags(model_flags)`;
`model_setup.load`, called from `main`, reads them. Settings that are stored in
a run's folder can be omitted.
"""

from bert_tf import options
from bert_tf.flags import flag_sections, shared_flags
from bert_tf.tasks.classification import glue
from bert_tf.tasks.squad import squad_options
from bert_tf.tasks.tagging import schemes

# For run_prediction.py: a SavedModel contains its export settings.
_NO_EXPORT = "!saved_model"
_MODEL = flag_sections.Section("Model")
_OF_MODEL = flag_sections.Section("Model", only_with=_NO_EXPORT, harmless=False)
_HEADS = {
    head: flag_sections.Section(title, only_with=_NO_EXPORT, harmless=False)
    for head, title in (
        ("encoder", "Vectors (--head=encoder)"),
        (
            "masked_lm",
            "Masked words and next tokens (--head=masked_lm, next_piece)",
        ),
        ("classification", "Classifiers (--head=classification)"),
        ("tagging", "Taggers (--head=tagging)"),
        ("span", "Question answering (--head=span)"),
    )
}

# ---- Which model ------------------------------------------------------------

MODEL_DIR = _MODEL.input_path(
    "model_dir",
    "The output_dir of a run, which has the settings of the flags below.",
    holds=flag_sections.MODEL,
)
USE_CHECKPOINT = _MODEL.choice(
    "use_checkpoint",
    "best",
    options.USE_CHECKPOINT,
    "Which checkpoint of --model_dir: the one with the best dev score, if "
    "available, or the last.",
    only_with="model_dir",
)
INIT_CHECKPOINT = shared_flags.init_checkpoint(
    _MODEL, "A trained checkpoint of any format. Replaces --model_dir."
)
HEAD = _OF_MODEL.choice(
    "head",
    None,
    options.SERVED_HEADS,
    "Head to use. By default the trained head of the checkpoint; masked_lm for "
    "a pre-trained model, next_piece for a left-to-right model, and otherwise "
    "encoder, which returns vectors.",
)
BERT_CONFIG_FILE = shared_flags.bert_config_file(_OF_MODEL)
VOCAB_FILE = shared_flags.vocab_file(_OF_MODEL)
DO_LOWER_CASE = _OF_MODEL.boolean(
    "do_lower_case",
    None,
    "Whether to lower-case, as in training. By default the setting of the run "
    "or of the Hugging Face folder, or else true.",
)
MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _OF_MODEL,
    None,
    "Max number of tokens that the model reads at a time. By default as in "
    "training or as in the checkpoint, otherwise 128, or 384 for question "
    "answering.",
    min=4,
)

# ---- Settings of its head ---------------------------------------------------

TASK_NAME = _HEADS["classification"].string(
    "task_name",
    None,
    f"Task whose labels to use. One of {', '.join(glue.NAMES)}.",
    only_with="head=classification",
)
LABELS = _HEADS["classification"].words(
    "labels",
    None,
    "The labels, in the order of training, also for taggers. Replaces "
    "--task_name.",
    only_with=("head=classification", "head=tagging"),
)
REGRESSION = _HEADS["classification"].boolean(
    "regression",
    False,
    "Whether the classifier predicts a score instead of a label.",
    only_with="head=classification",
)
PAIRS = _HEADS["classification"].boolean(
    "pairs",
    None,
    "Whether the classifier takes a second text, text_b. By default as in the "
    "task; true if it is unknown.",
    only_with="head=classification",
)
SCHEME = _HEADS["tagging"].choice(
    "scheme",
    None,
    (*schemes.SCHEMES, schemes.NO_SCHEME),
    "How labels mark entities. By default detected from the labels.",
    only_with="head=tagging",
)
_ANSWER_HEADS = tuple(f"head={x}" for x in options.ANSWER_HEADS.values())
for _made in (squad_options.Layout, squad_options.Search):
    for _name in options.names(_made):
        if _name == "max_seq_length":  # A flag of all heads.
            continue
        _usual = str(getattr(_made, _name)).lower()
        _HEADS["span"].define(
            _made,
            _name,
            default=None,
            text=f"As in run_squad.py; by default {_usual}.",
            only_with=_ANSWER_HEADS,
        )
NULL_SCORE_DIFF_THRESHOLD = _HEADS["span"].number_or(
    "null_score_diff_threshold",
    None,
    "auto",
    "As in run_squad.py: a number, or auto for the tuned value in --model_dir.",
    only_with=_ANSWER_HEADS,
)
TOP_K = _HEADS["masked_lm"].integer(
    "top_k",
    5,
    "Number of predictions for a masked word, or for the next token.",
    min=1,
    only_with=("head=masked_lm", "head=next_piece"),
)
FEATURES = _HEADS["encoder"].choice(
    "features",
    "last",
    [name for name in options.FEATURES if name != "layers"],
    "How layers are combined into a vector.",
    only_with="head=encoder",
)
UNIT = _HEADS["encoder"].choice(
    "unit",
    "mean",
    ("mean", "cls"),
    "The vector of a text: the mean over its tokens, or the vector of [CLS].",
    only_with="head=encoder",
)
NORMALIZE = _HEADS["encoder"].boolean(
    "normalize",
    False,
    "Scales each vector to length 1. A folder of sentence-transformers sets "
    "the defaults of this flag, --unit and --max_seq_length.",
    only_with="head=encoder",
)
