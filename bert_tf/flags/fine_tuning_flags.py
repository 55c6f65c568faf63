"""Flags shared by the fine-tuning scripts: model, run and batches.

A script adopts them with `flags.adopt_module_key_flags(fine_tuning_flags)`;
`setup.fine_tuning_setup` implements them. They are read in `main` only.
"""

from bert_tf import options
from bert_tf.flags import flag_sections, shared_flags

_MODEL = flag_sections.Section("Model")
_NEW_MODEL = flag_sections.Section("Model", only_with=("do_train", "baselines"))
_WORK = flag_sections.Section("What to do")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
# A teacher's logits are also computed in evaluation batches.
_EVALUATION = flag_sections.Section(
    "Evaluation", only_with=("do_eval", "teacher")
)
_PREDICTION = flag_sections.Section("Prediction", only_with="do_predict")

# ---- The model --------------------------------------------------------------

VOCAB_FILE = shared_flags.vocab_file(
    _MODEL,
    "The model's vocabulary. By default the vocabulary that comes with "
    "init_checkpoint or belongs to the run in output_dir.",
)
DO_LOWER_CASE = shared_flags.do_lower_case(_MODEL)
WORD_VECTORS = _NEW_MODEL.input_path(
    "word_vectors",
    "Initial word embeddings of a new model: a text file, such as GloVe's or "
    "word2vec's, or a checkpoint with the same vocabulary.",
    only_with=("baselines", "!init_checkpoint"),
)

# ---- The run ----------------------------------------------------------------

DO_TRAIN = shared_flags.do_train(_WORK)
DO_EVAL = _WORK.boolean(
    "do_eval",
    False,
    "Whether to evaluate on the dev set; with --do_train after each epoch.",
)
DO_PREDICT = _WORK.boolean(
    "do_predict", False, "Whether to predict the test set."
)
DO_EXPORT = _WORK.boolean(
    "do_export", False, "Whether to write a SavedModel to output_dir/export."
)
TRAIN_BATCH_SIZE = shared_flags.train_batch_size(
    _TRAINING, "Examples per step, over all replicas."
)
EVAL_BATCH_SIZE = shared_flags.eval_batch_size(
    _EVALUATION, "Examples per step, over all replicas."
)
PREDICT_BATCH_SIZE = _PREDICTION.integer(
    "predict_batch_size", 8, "Examples per step, over all replicas.", min=1
)
ACCUMULATE = shared_flags.gradient_accumulation_steps(_TRAINING)
NUM_TRAIN_EPOCHS = _TRAINING.number(
    "num_train_epochs", 3.0, "Passes over the training set.", above=0
)
WARMUP_PROPORTION = _TRAINING.number(
    "warmup_proportion",
    0.1,
    "Share of the steps with a linear warm-up of the learning rate.",
    min=0,
    max=1,
)
UNFREEZE = _TRAINING.choice(
    "unfreeze",
    "none",
    options.UNFREEZING,
    "gradual, as in ULMFiT, trains the head in the first epoch, and one more "
    "layer in each further epoch, from the top down. none trains all layers "
    "from the start.",
)
GROUP_BY_LENGTH = _TRAINING.boolean(
    "group_by_length",
    False,
    "Batches examples of similar length, which saves padding. Do not use it if "
    "the labels depend on the length: each batch would then have one label.",
)
USE_CHECKPOINT = _WORK.choice(
    "use_checkpoint",
    "best",
    options.USE_CHECKPOINT,
    "Weights for evaluation, prediction and export after training: the epoch "
    "with the best dev score (the earlier of two equal ones), or the last.",
    only_with=("do_eval", "do_predict", "do_export"),
    harmless=True,
)
