"""Flags that say what a classifier learns from: a task, or the user's files.

A script adopts them with `flags.adopt_module_key_flags(classification_flags)`;
`setup.classification`, which is called from `main`, makes a task of them.
"""

from bert_tf import options
from bert_tf.flags import sections as flag_sections
from bert_tf.flags import shared

_DATA = flag_sections.Section("Data")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
# What only files of the user's own need to be told.
_OWN_FILES = ("train_file", "dev_file", "test_file")

TASK_NAME = shared.task_name(_DATA)
DATA_DIR = _DATA.input_path(
    "data_dir",
    "Folder of the task's files. Without it a task of GLUE comes from "
    "TensorFlow Datasets (which keeps them in $TFDS_DATA_DIR).",
    only_with="task_name",
)
XNLI_LANGUAGE = shared.xnli_language(_DATA)
TRAIN_FILE = _DATA.input_path(
    "train_file", "Instead of --task_name: your own training file."
)
DEV_FILE = shared.dev_file(_DATA, "Your own file to evaluate on.")
TEST_FILE = shared.test_file(
    _DATA, "Your own file to predict; its labels are not read."
)
DEV_FRACTION = _DATA.number(
    "dev_fraction",
    0.0,
    "Without --dev_file: share of the training file's rows, drawn by --seed, "
    "to evaluate on instead of training on them.",
    least=0,
    most=1,
    only_with="train_file",
)
FILE_FORMAT = shared.file_format(_DATA, only_with=_OWN_FILES)
HAS_HEADER = shared.has_header(_DATA, only_with=_OWN_FILES)
TEXT_A_COLUMN = shared.text_a_column(_DATA, only_with=_OWN_FILES)
TEXT_B_COLUMN = shared.text_b_column(_DATA, only_with=_OWN_FILES)
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
    "Labels of your own files, comma separated. By default those of "
    "--train_file, sorted, or those that output_dir or init_checkpoint was "
    "trained with.",
    only_with=_OWN_FILES,
)
LABEL_SEPARATOR = _DATA.string(
    "label_separator",
    None,
    "What stands between the labels of a text, where it may have several, or "
    "none: each is then predicted for itself. JSON lines may have lists.",
    only_with=_OWN_FILES,
)
ID_COLUMN = _DATA.string(
    "id_column",
    None,
    "Column of the texts' ids, for predictions.jsonl. By default the split "
    "and the line, such as test-12.",
    kind="COLUMN",
    only_with=_OWN_FILES,
)
REGRESSION = _DATA.boolean(
    "regression",
    False,
    "Whether the label of your own files is a score.",
    only_with=_OWN_FILES,
)

# ---- How texts and labels are taken -----------------------------------------

CLASS_WEIGHTS = _TRAINING.words(
    "class_weights",
    None,
    "How much each class counts in training: balanced, all the same however "
    "rare; or such as spam=3,ham=0.5, where others count 1.",
)
LONG_DOCUMENTS = _DATA.choice(
    "long_documents",
    "head",
    options.LONG_DOCUMENTS,
    "What is read of texts longer than --max_seq_length: head, tail, a "
    "quarter of head and three of tail, or all of it in windows, whose logits "
    "are averaged.",
)
WINDOW_STRIDE = _DATA.integer(
    "window_stride",
    None,
    "Pieces from one window of a text to the next; by default half a window.",
    least=1,
    only_with="long_documents=windows",
)
