"""Flags for a classifier's training data: a task, or the user's files.

A script adopts them with `flags.adopt_module_key_flags(classification_flags)`;
`setup.classification_setup`, called from `main`, builds a task from them.
"""

from bert_tf import options
from bert_tf.flags import flag_sections, shared_flags

_DATA = flag_sections.Section("Data")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
# Conditions of flags that apply only to the user's own files.
_OWN_FILES = ("train_file", "dev_file", "test_file")

TASK_NAME = shared_flags.task_name(_DATA)
DATA_DIR = _DATA.input_path(
    "data_dir",
    "Folder of the task's files. By default GLUE tasks come from TensorFlow "
    "Datasets, which stores them in $TFDS_DATA_DIR.",
    only_with="task_name",
)
XNLI_LANGUAGE = shared_flags.xnli_language(_DATA)
TRAIN_FILE = _DATA.input_path(
    "train_file", "Your own training file. Replaces --task_name."
)
DEV_FILE = shared_flags.dev_file(_DATA, "Your own file for evaluation.")
TEST_FILE = shared_flags.test_file(
    _DATA, "Your own file for prediction. Labels are optional."
)
DEV_FRACTION = _DATA.number(
    "dev_fraction",
    0.0,
    "Share of the training file's rows, drawn by --seed, to hold out for "
    "evaluation, such as 0.1. Replaces --dev_file.",
    min=0,
    max=1,
    only_with="train_file",
)
FILE_FORMAT = shared_flags.file_format(_DATA, only_with=_OWN_FILES)
HAS_HEADER = shared_flags.has_header(_DATA, only_with=_OWN_FILES)
STRICT = shared_flags.strict(
    _DATA,
    "row",
    "with a wrong number of columns, without a label, or not in UTF-8",
    " An unknown label, or a score that is not a number, always stops.",
    only_with=_OWN_FILES,
)
TEXT_A_COLUMN = shared_flags.text_a_column(_DATA, only_with=_OWN_FILES)
TEXT_B_COLUMN = shared_flags.text_b_column(_DATA, only_with=_OWN_FILES)
LABEL_COLUMN = _DATA.string(
    "label_column",
    "label",
    "Column of the label: name, or number from 0.",
    kind="COLUMN",
    only_with=_OWN_FILES,
)
LABELS = _DATA.words(
    "labels",
    None,
    "Labels of your own files, comma separated. By default the sorted labels "
    "of --train_file, or the labels of the model in output_dir or "
    "init_checkpoint.",
    only_with=_OWN_FILES,
)
LABEL_SEPARATOR = _DATA.string(
    "label_separator",
    None,
    "Multi-label classification: the separator between the labels of a text. A "
    "text can have any number of labels. In JSON lines, labels can be lists.",
    only_with=_OWN_FILES,
)
ID_COLUMN = _DATA.string(
    "id_column",
    None,
    "Column of the IDs in predictions.jsonl. By default, IDs are the split "
    "and the line, such as test-12.",
    kind="COLUMN",
    only_with=_OWN_FILES,
)
REGRESSION = _DATA.boolean(
    "regression",
    False,
    "Whether the labels of your own files are scores (regression).",
    only_with=_OWN_FILES,
)

# ---- How texts and labels are used ------------------------------------------

CLASS_WEIGHTS = _TRAINING.words(
    "class_weights",
    None,
    "Weight of each class in the loss: balanced, which gives all classes the "
    "same total weight, or a list such as spam=3,ham=0.5; other classes have "
    "1.",
)
LONG_DOCUMENTS = _DATA.choice(
    "long_documents",
    "head",
    options.LONG_DOCUMENTS,
    "What to read of texts longer than --max_seq_length: the head, the tail, "
    "a quarter from the head and three quarters from the tail, or the whole "
    "text in windows, whose logits are averaged.",
)
WINDOW_STRIDE = _DATA.integer(
    "window_stride",
    None,
    "Tokens from the start of one window to the start of the next. By default "
    "half a window.",
    min=1,
    only_with="long_documents=windows",
)
