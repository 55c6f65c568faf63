"""Flags that the fine-tuning scripts share: the model, the run, its batches.

A script adopts them with `flags.adopt_module_key_flags(fine_tuning_flags)`.
They are read in `main` only; the functions here are called from there.
"""

import dataclasses
import os
import tempfile
import uuid

from bert_tf import (
    checkpoints,
    command_line,
    common_flags,
    distribution,
    fine_tuned,
    fine_tuning,
    optimization_flags,
    tokenization,
)
from bert_tf.interop import opened

import keras
import tensorflow as tf
from absl import flags, logging

# ---- The model --------------------------------------------------------------

VOCAB_FILE = flags.DEFINE_string(
    "vocab_file",
    None,
    "The model's vocabulary. By default what comes with init_checkpoint, or "
    "that of the run in output_dir.",
)
DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case", True, "True for uncased models, False for cased ones."
)

# ---- The run ----------------------------------------------------------------

DO_TRAIN = flags.DEFINE_bool("do_train", False, "Whether to train.")
DO_EVAL = flags.DEFINE_bool(
    "do_eval",
    False,
    "Whether to evaluate on the dev set; with --do_train after each epoch.",
)
DO_PREDICT = flags.DEFINE_bool(
    "do_predict", False, "Whether to predict the test set."
)
DO_EXPORT = flags.DEFINE_bool(
    "do_export", False, "Whether to write a SavedModel to output_dir/export."
)
TRAIN_BATCH_SIZE = flags.DEFINE_integer(
    "train_batch_size", 32, "Examples per step, over all replicas.", 1
)
EVAL_BATCH_SIZE = flags.DEFINE_integer(
    "eval_batch_size", 8, "Examples per step, over all replicas.", 1
)
PREDICT_BATCH_SIZE = flags.DEFINE_integer(
    "predict_batch_size", 8, "Examples per step, over all replicas.", 1
)
ACCUMULATE = flags.DEFINE_integer(
    "gradient_accumulation_steps",
    1,
    "Micro-batches per step: less memory, the same update.",
    1,
)
NUM_TRAIN_EPOCHS = flags.DEFINE_float(
    "num_train_epochs", 3.0, "Passes over the training set.", 0
)
WARMUP_PROPORTION = flags.DEFINE_float(
    "warmup_proportion", 0.1, "Share of the steps that warm up.", 0, 1
)
GROUP_BY_LENGTH = flags.DEFINE_bool(
    "group_by_length",
    False,
    "Whether examples of about one length share a batch, which leaves little "
    "padding to compute. Where long texts have other labels than short ones, "
    "such batches have one label each, and little is learned.",
)
USE_CHECKPOINT = flags.DEFINE_enum(
    "use_checkpoint",
    "best",
    ("best", "last"),
    "What to evaluate, predict and export with after training: the epoch "
    "with the best dev score (ties to the earlier), or the last.",
)


@dataclasses.dataclass(frozen=True)
class Work:
    """What is asked for; the flags of the same names."""

    train: bool
    evaluate: bool
    predict: bool
    export: bool


def work() -> Work:
    """Returns what is asked for; ValueError if nothing is."""
    asked = Work(
        DO_TRAIN.value, DO_EVAL.value, DO_PREDICT.value, DO_EXPORT.value
    )
    if not any(dataclasses.astuple(asked)):
        raise ValueError(
            "At least one of --do_train, --do_eval, --do_predict and "
            "--do_export must be true."
        )
    return asked


def load_files() -> fine_tuned.ModelFiles:
    """Reads config and vocabulary, and checks them against each other."""
    lower = DO_LOWER_CASE.value
    tokenization.validate_case_matches_checkpoint(
        lower, common_flags.INIT_CHECKPOINT.value
    )
    return fine_tuned.ModelFiles.load(
        common_flags.BERT_CONFIG_FILE.value or None,
        VOCAB_FILE.value or None,
        lower,
        common_flags.find_source(),
    )


def set_up_distribution() -> tf.distribute.Strategy:
    """Returns the strategy; the batch sizes that the run takes fit it."""
    strategy = common_flags.set_up_distribution()
    if DO_TRAIN.value:
        distribution.check_batch_size(
            strategy,
            TRAIN_BATCH_SIZE.name,
            TRAIN_BATCH_SIZE.value,
            ACCUMULATE.value,
        )
    for work, flag in (
        (DO_EVAL, EVAL_BATCH_SIZE),
        (DO_PREDICT, PREDICT_BATCH_SIZE),
    ):
        if work.value:
            distribution.check_batch_size(strategy, flag.name, flag.value)
    return strategy


def check_only(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    identity: tuple[str, ...],
    max_seq_length: int,
    rows: int = 1,
    select: common_flags.Select | None = None,
) -> None:
    """Looks at what is left to look at before training, and says what it is.

    Args:
        strategy: The run's.
        model: The one to train, with random weights.
        identity: Flags that a run in progress can't change.
        max_seq_length: Of its sequences.
        rows: Sequences of an example.
        select: What of the checkpoint to start from; by default all.
    """
    common_flags.check_only(
        strategy,
        model,
        identity if DO_TRAIN.value else None,
        TRAIN_BATCH_SIZE.value * rows,
        ACCUMULATE.value,
        {"S": max_seq_length},
        *([select] if select else []),
    )


def make_folder(
    strategy: tf.distribute.Strategy, identity: tuple[str, ...]
) -> str:
    """Makes output_dir, unless it holds another run to train.

    Args:
        strategy: The run's.
        identity: Flags that a run in progress can't change.

    Returns:
        Where this process writes its records.
    """
    if DO_TRAIN.value:
        common_flags.prepare_output_dir(strategy, identity)
    if not distribution.is_chief(strategy):
        # Each worker reads records of its own.
        return _removed_at_end(tempfile.mkdtemp())
    common_flags.make_output_dir()
    folder = common_flags.OUTPUT_DIR.value
    if DO_TRAIN.value and not checkpoints.latest(folder):
        return folder
    # Those in output_dir may be of a training that is under way, and of other
    # examples.
    folder = os.path.join(folder, f"records.tmp{uuid.uuid4().hex}")
    tf.io.gfile.makedirs(folder)
    # Training has handlers of its own while it makes steps.
    command_line.unwind_at_sigterm()
    return _removed_at_end(folder)


def _removed_at_end(folder: str) -> str:
    """Returns the folder, which goes when the script ends."""

    def remove():
        try:
            tf.io.gfile.rmtree(folder)
        except tf.errors.OpError as error:
            logging.warning("%s could not be removed: %s", folder, error)

    command_line.at_end(remove)
    return folder


# What of a run's identity does not change how a text is read: which data it
# has, how it trains, and labels, which are checked by themselves.
_NOT_OF_READING = frozenset(
    {
        *("task_name", "data_dir", "train_file", "dev_fraction", "seed"),
        *("label_column", "labels", "scheme", "regression", "class_weights"),
        *("train_batch_size", "group_by_length"),
    }
)


def flags_of_training() -> dict[str, str]:
    """Returns the flags, as text, that output_dir's weights were trained with.

    There are none while the run itself trains, nor of weights from elsewhere.
    """
    path = common_flags.flags_file()
    own = fine_tuned.own_checkpoint(
        common_flags.OUTPUT_DIR.value, USE_CHECKPOINT.value == "best"
    )
    if DO_TRAIN.value or not own or not tf.io.gfile.exists(path):
        return {}
    return command_line.read_flagfile(path)


def known_labels() -> tuple[str, ...] | None:
    """Returns the labels of output_dir, or of the weights to predict with."""
    labels = fine_tuned.read_labels(common_flags.OUTPUT_DIR.value)
    if labels or DO_TRAIN.value:
        return labels
    source = common_flags.open_init_checkpoint()
    return source.labels if source else None


def check_trained(
    head: str, identity: tuple[str, ...], of_hold_out: tuple[str, ...] = ()
) -> opened.Checkpoint:
    """Looks at the weights and flags of a training that this run follows.

    Args:
        head: What the weights must have: a key of interop.names.HEADS.
        identity: Flags that a run in progress can't change. Of those that say
            how texts are read a change is logged.
        of_hold_out: Flags that must not change, as they say which rows were
            not trained on.

    Returns:
        The weights.
    """
    source = find_trained(head)
    before = flags_of_training()
    changed = command_line.changes(before) if before else {}
    fatal = [changed[name] for name in of_hold_out if name in changed]
    if fatal:
        raise ValueError(
            "The rows to evaluate on would not be those that were held out of "
            "training: give the flags of training, or a --dev_file. "
            f"Received: {'; '.join(fatal)}"
        )
    for name in identity:
        if name in changed and name not in _NOT_OF_READING:
            logging.warning(
                "Texts are read in another way than in the training of %s: %s",
                source.path,
                changed[name],
            )
    return source


def find_trained(head: str) -> opened.Checkpoint:
    """Opens the fine-tuned weights to evaluate, predict and export with.

    Args:
        head: What they must have: a key of interop.names.HEADS.
    """
    return fine_tuned.trained_checkpoint(
        common_flags.OUTPUT_DIR.value,
        common_flags.INIT_CHECKPOINT.value,
        USE_CHECKPOINT.value == "best",
        head,
    )


def restore_trained(run: fine_tuning.Run, head: str) -> int:
    """Sets the model to fine-tuned weights, and returns their step."""
    source = find_trained(head)
    with run.strategy.scope():
        return fine_tuned.restore(run.model, source, head)


def plan(strategy: tf.distribute.Strategy) -> fine_tuning.Plan:
    """Returns how to train."""
    if GROUP_BY_LENGTH.value and distribution.is_tpu(strategy):
        raise ValueError(
            "--group_by_length gives batches of many shapes, and a TPU would "
            "compile each: leave it out."
        )
    return fine_tuning.Plan(
        batch_size=TRAIN_BATCH_SIZE.value,
        learning_rate=optimization_flags.LEARNING_RATE.value,
        num_train_epochs=NUM_TRAIN_EPOCHS.value,
        warmup_proportion=WARMUP_PROPORTION.value,
        accumulate=ACCUMULATE.value,
        seed=common_flags.SEED.value,
        iterations_per_loop=common_flags.ITERATIONS_PER_LOOP.value,
        save_checkpoints_steps=common_flags.SAVE_CHECKPOINTS_STEPS.value,
        keep_checkpoint_max=common_flags.KEEP_CHECKPOINT_MAX.value,
        log_steps=common_flags.log_steps(),
        group_by_length=GROUP_BY_LENGTH.value,
        recipe=optimization_flags.recipe(),
        peak_flops=common_flags.PEAK_FLOPS.value,
        profile_steps=common_flags.profile_steps(),
        remat=common_flags.REMAT.value,
    )
