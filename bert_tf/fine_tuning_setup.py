"""What the flags of `fine_tuning_flags` ask for: files, folder, weights, plan.

Called from the `main` of the fine-tuning scripts only.
"""

import dataclasses
import os
import tempfile

from bert_tf import (
    checkpoints,
    command_line,
    common_flags,
    common_setup,
    devices,
    distribution,
    fine_tuned,
    fine_tuning,
    fine_tuning_flags,
    flagfiles,
    optimization_flags,
    tokenization,
)
from bert_tf.interop import formats, opened

import tensorflow as tf
from absl import logging

# ---- The work ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Work:
    """What is asked for; the flags of the same names."""

    train: bool
    evaluate: bool
    predict: bool
    export: bool


def work() -> Work:
    """Returns what is asked for.

    Raises:
        ValueError: Nothing is; or there is no trained model, and none is to be
            trained.
    """
    asked = Work(
        fine_tuning_flags.DO_TRAIN.value,
        fine_tuning_flags.DO_EVAL.value,
        fine_tuning_flags.DO_PREDICT.value,
        fine_tuning_flags.DO_EXPORT.value,
    )
    if not any(dataclasses.astuple(asked)):
        raise ValueError(
            "At least one of --do_train, --do_eval, --do_predict and "
            "--do_export must be true."
        )
    if not asked.train:
        common_setup.own_weights(_own_weights())
    return asked


def load_files() -> fine_tuned.ModelFiles:
    """Reads config and vocabulary, and checks them against each other.

    Raises:
        ValueError: They can't be read, or contradict each other.
    """
    lower = fine_tuning_flags.DO_LOWER_CASE.value
    tokenization.validate_case_matches_checkpoint(
        lower, common_flags.INIT_CHECKPOINT.value
    )
    files = fine_tuned.ModelFiles.load(
        common_flags.BERT_CONFIG_FILE.value,
        fine_tuning_flags.VOCAB_FILE.value,
        lower,
        common_setup.find_source(),
    )
    devices.check_room_for_weights(files.config)
    return files


def set_up_distribution() -> tf.distribute.Strategy:
    """Returns the strategy; the batch sizes that the run takes fit it."""
    strategy = common_setup.set_up_distribution()
    if fine_tuning_flags.DO_TRAIN.value:
        distribution.check_batch_size(
            strategy,
            fine_tuning_flags.TRAIN_BATCH_SIZE.name,
            fine_tuning_flags.TRAIN_BATCH_SIZE.value,
            fine_tuning_flags.ACCUMULATE.value,
        )
    for work, flag in (
        (fine_tuning_flags.DO_EVAL, fine_tuning_flags.EVAL_BATCH_SIZE),
        (fine_tuning_flags.DO_PREDICT, fine_tuning_flags.PREDICT_BATCH_SIZE),
    ):
        if work.value:
            distribution.check_batch_size(strategy, flag.name, flag.value)
    return strategy


def plan(strategy: tf.distribute.Strategy) -> fine_tuning.Plan:
    """Returns how to train."""
    own = fine_tuning_flags
    if own.GROUP_BY_LENGTH.value and distribution.is_tpu(strategy):
        raise ValueError(
            "--group_by_length gives batches of many shapes, and a TPU would "
            "compile each: leave it out."
        )
    return fine_tuning.Plan(
        batch_size=own.TRAIN_BATCH_SIZE.value,
        learning_rate=optimization_flags.LEARNING_RATE.value,
        num_train_epochs=own.NUM_TRAIN_EPOCHS.value,
        warmup_proportion=own.WARMUP_PROPORTION.value,
        accumulate=own.ACCUMULATE.value,
        seed=common_flags.SEED.value,
        iterations_per_loop=common_flags.ITERATIONS_PER_LOOP.value,
        save_checkpoints_steps=common_flags.SAVE_CHECKPOINTS_STEPS.value,
        keep_checkpoint_max=common_flags.KEEP_CHECKPOINT_MAX.value,
        log_steps=common_setup.log_steps(),
        group_by_length=own.GROUP_BY_LENGTH.value,
        recipe=common_setup.recipe(),
        peak_flops=common_flags.PEAK_FLOPS.value,
        profile_steps=common_setup.profile_steps(),
        remat=common_flags.REMAT.value,
        check_only=common_flags.CHECK_ONLY.value,
    )


# ---- The folder -------------------------------------------------------------


def make_folder(
    strategy: tf.distribute.Strategy, identity: tuple[str, ...]
) -> str:
    """Makes output_dir, unless it holds another run to train.

    Args:
        strategy: The run's.
        identity: Flags that a run in progress can't change.

    Returns:
        Where this process writes its records: output_dir for a run that
        begins, else a folder that goes at the end. Those in output_dir may be
        of a training that is under way, and each worker reads its own.
    """
    trains = fine_tuning_flags.DO_TRAIN.value
    folder = common_flags.OUTPUT_DIR.value
    if common_flags.CHECK_ONLY.value:
        common_setup.check_output_dir(identity if trains else None)
        return _removed_at_end(tempfile.mkdtemp())
    common_setup.claim_output_dir(strategy, identity if trains else None)
    if not distribution.is_chief(strategy):
        return _removed_at_end(tempfile.mkdtemp())
    if trains and not checkpoints.latest(folder):
        return folder
    folder = os.path.join(folder, common_setup.records_folder(trains))
    tf.io.gfile.makedirs(folder)
    return _removed_at_end(folder)


def _removed_at_end(folder: str) -> str:
    """Returns the folder, which goes when the script ends."""

    def remove():
        try:
            tf.io.gfile.rmtree(folder)
        except tf.errors.OpError as error:
            logging.warning("%s could not be removed: %s", folder, error)

    command_line.at_end(remove)
    command_line.unwind_at_sigterm()
    return folder


# ---- The weights ------------------------------------------------------------

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
    if fine_tuning_flags.DO_TRAIN.value or not _own_weights():
        return {}
    return flagfiles.read_if_there(common_setup.flags_file())


def known_labels() -> tuple[str, ...] | None:
    """Returns the labels of output_dir, or of the weights to predict with."""
    labels = fine_tuned.read_labels(common_flags.OUTPUT_DIR.value)
    if labels or fine_tuning_flags.DO_TRAIN.value:
        return labels
    source = common_setup.open_init_checkpoint()
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
    changed = flagfiles.changes(before) if before else {}
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
    own = _own_weights()
    if not own or not fine_tuning_flags.DO_TRAIN.value:
        own = common_setup.own_weights(own)
    return fine_tuned.with_trained_head(formats.open_checkpoint(own), head)


def _own_weights() -> str | None:
    """Returns the weights that the run in output_dir ended with, if any."""
    return fine_tuned.own_checkpoint(
        common_flags.OUTPUT_DIR.value,
        fine_tuning_flags.USE_CHECKPOINT.value == "best",
    )


def restore_trained(run: fine_tuning.Run, head: str) -> int:
    """Sets the model to fine-tuned weights, and returns their step."""
    source = find_trained(head)
    with run.strategy.scope():
        return fine_tuned.restore(run.model, source, head)


def report_check(
    run: fine_tuning.Run, head: str, max_seq_length: int, rows: int = 1
) -> None:
    """Says what --check_only found, at its end.

    Args:
        run: What would be trained; else its weights are read.
        head: As of `find_trained`.
        max_seq_length: Of its sequences.
        rows: Sequences of an example.
    """
    if fine_tuning_flags.DO_TRAIN.value:
        common_setup.report_model(
            run.strategy,
            run.model,
            fine_tuning_flags.TRAIN_BATCH_SIZE.value * rows,
            fine_tuning_flags.ACCUMULATE.value,
            {"S": max_seq_length},
        )
    else:
        restore_trained(run, head)
    common_setup.report_no_problem()
