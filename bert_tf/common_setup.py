"""What the flags of `common_flags` ask for: devices, folder, weights, checks.

Called from the `main` of the training scripts only.
"""

import fnmatch
import math
import os
from collections.abc import Callable, Mapping

from bert_tf import (
    best,
    checkpoints,
    command_line,
    common_flags,
    devices,
    distribution,
    files,
    flagfiles,
    modeling,
    optimization_flags,
    output_paths,
    progress,
    recipes,
    run_lock,
)
from bert_tf.interop import formats, model_files, opened, tf1

import keras
import tensorflow as tf
from absl import flags, logging

# ---- On what ----------------------------------------------------------------


def set_up_distribution(*inputs: flags.FlagHolder) -> tf.distribute.Strategy:
    """Returns the strategy that the flags ask for.

    Args:
        inputs: paths of records, if they are not made in --output_dir.
    """
    if common_flags.MASTER.value:
        raise ValueError(
            "--master belonged to TF1 sessions. Give the address of a TPU as "
            "--tpu_name, or describe the workers in TF_CONFIG and use "
            "--distribution_strategy=multi_worker_mirrored."
        )
    name = common_flags.DISTRIBUTION_STRATEGY.value
    if common_flags.USE_TPU.value and name not in (None, "tpu"):
        raise ValueError(
            "--use_tpu means --distribution_strategy=tpu. "
            f"Received: distribution_strategy={name}"
        )
    if is_remote():
        _check_remote(
            common_flags.OUTPUT_DIR, common_flags.INIT_CHECKPOINT, *inputs
        )
    if common_flags.DETERMINISTIC_OPS.value:
        # On GPUs deterministic scatters go through the host. Ours write to no
        # place twice, so they are deterministic as they are.
        os.environ.setdefault("TF_DISABLE_SCATTER_OP_DETERMINISM", "1")
        tf.config.experimental.enable_op_determinism()
    strategy = distribution.set_up(
        "tpu" if on_tpu() else name or "default",
        common_flags.DTYPE.value,
        common_flags.SEED.value,
        common_flags.LOGICAL_CPUS.value,
        common_flags.TPU_NAME.value,
        common_flags.TPU_ZONE.value,
        common_flags.GCP_PROJECT.value,
    )
    output_paths.check_remote(flags.FLAGS, of_runs=True)
    cores = strategy.num_replicas_in_sync
    wanted = common_flags.NUM_TPU_CORES.value
    if distribution.is_tpu(strategy) and wanted not in (None, cores):
        raise ValueError(
            f"The TPU has another number of cores. Received: "
            f"num_tpu_cores={wanted}, the TPU has {cores}"
        )
    return strategy


def on_tpu() -> bool:
    """Whether a TPU is asked for."""
    name = common_flags.DISTRIBUTION_STRATEGY.value
    return common_flags.USE_TPU.value or name == "tpu"


def is_remote() -> bool:
    """Whether other hosts read the records than this one."""
    return on_tpu() and common_flags.TPU_NAME.value not in (None, "local")


def _check_remote(*paths: flags.FlagHolder) -> None:
    """Raises ValueError unless the hosts of a remote TPU can read the paths."""
    for flag in paths:
        given = [flag.value] if isinstance(flag.value, str) else flag.value
        for path in given or ():
            if "://" not in path:
                raise ValueError(
                    "The hosts of a TPU elsewhere can't read local files: put "
                    "them in a bucket, such as gs://bucket/folder. Received: "
                    f"{flag.name}={path}, "
                    f"tpu_name={common_flags.TPU_NAME.value}"
                )


# ---- How --------------------------------------------------------------------


def recipe() -> recipes.Recipe:
    """Returns what the flags of the optimizer say, checked."""
    return recipes.Recipe(
        optimizer=optimization_flags.OPTIMIZER.value,
        lr_schedule=optimization_flags.LR_SCHEDULE.value,
        end_learning_rate=optimization_flags.END_LEARNING_RATE.value,
        lr_power=optimization_flags.LR_POWER.value,
        num_cooldown_steps=optimization_flags.NUM_COOLDOWN_STEPS.value,
        weight_decay_rate=optimization_flags.WEIGHT_DECAY_RATE.value,
        adam_epsilon=optimization_flags.ADAM_EPSILON.value,
        clip_norm=optimization_flags.CLIP_NORM.value,
        clipping=optimization_flags.CLIPPING.value,
        layer_decay=optimization_flags.LAYER_DECAY.value,
        dtype=common_flags.DTYPE.value,
    )


def profile_steps() -> tuple[int, int] | None:
    """The steps after which a trace begins and ends."""
    text = common_flags.PROFILE_STEPS.value
    if text is None:
        return None
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and 0 < int(first) < int(last)):
        raise ValueError(
            "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST, such as "
            f"100:110. Received: profile_steps={text!r}"
        )
    return int(first), int(last)


def log_steps() -> int:
    """Steps between log lines."""
    return common_flags.LOG_STEPS.value or (100 if on_tpu() else 10)


# ---- The folder -------------------------------------------------------------

# The folder's locks: a training may be looked at by one evaluation.
_TRAINING_LOCK, _EVALUATION_LOCK = "lock", "evaluation.lock"
_FLAGS = "flags.txt"


def claim_output_dir(
    strategy: tf.distribute.Strategy,
    identity: tuple[str, ...] | None,
) -> None:
    """Makes output_dir this run's own, unless it is another's.

    The chief locks it until the script ends, and removes what a killed run
    left there half-written.

    Args:
        strategy: Its chief writes.
        identity: Flags that a run in progress can't change; None where
            nothing is trained.
    """
    if identity is not None:
        check_same_run(identity)
    if not distribution.is_chief(strategy):
        return
    folder = common_flags.OUTPUT_DIR.value
    trains = identity is not None
    if trains:
        hold_output_dir()
    else:
        hold_output_dir(_EVALUATION_LOCK, "evaluates or predicts")
    if identity is not None:
        check_same_run(identity)  # which another may just have begun
    names = output_paths.RUN_FILES if trains else output_paths.RESULT_FILES
    files.remove_leftovers(folder, names)
    leftovers = os.path.join(folder, records_folder(trains))
    if tf.io.gfile.exists(leftovers):
        tf.io.gfile.rmtree(leftovers)
    if not tf.io.gfile.exists(flags_file()):
        # By which the next command knows the folder for a run's.
        flagfiles.write_flagfile(flags_file())


def hold_output_dir(
    name: str = _TRAINING_LOCK, what: str = "trains"
) -> run_lock.Lock:
    """Makes output_dir and locks it until the script ends.

    Args:
        name: Of the lock.
        what: This process does there.
    """
    folder = common_flags.OUTPUT_DIR.value
    before = None
    if tf.io.gfile.exists(folder):
        before = set(tf.io.gfile.listdir(folder))
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise OSError(
            f"Cannot make the folder --output_dir={folder}: {error.message}"
        ) from error
    command_line.at_end(lambda: _remove_if_useless(folder, before))
    lock = run_lock.hold(folder, name, what)
    command_line.at_end(lock.release)
    # Training has handlers of its own while it makes steps.
    command_line.unwind_at_sigterm()
    return lock


# What a run has written when it has not made a step yet.
_BEFORE_STEPS = (_FLAGS, "*.tf_record", tf1.CONFIG, tf1.VOCAB, tf1.LABELS)


def _remove_if_useless(folder: str, before: set[str] | None) -> None:
    """Removes what a run left that failed before it had made anything.

    Args:
        folder: Of the run.
        before: What was there before; None if there was no folder.
    """
    new = set(tf.io.gfile.listdir(folder)) - (before or set())
    for name in new:
        if not any(fnmatch.fnmatchcase(name, x) for x in _BEFORE_STEPS):
            return
    for name in new:
        tf.io.gfile.remove(os.path.join(folder, name))
    if before is None:
        tf.io.gfile.rmtree(folder)


def check_output_dir(identity: tuple[str, ...] | None) -> None:
    """Raises what `claim_output_dir` would, and changes nothing."""
    trains = identity is not None
    if identity is not None:
        check_same_run(identity)
    run_lock.check_free(
        common_flags.OUTPUT_DIR.value,
        _TRAINING_LOCK if trains else _EVALUATION_LOCK,
    )


def records_folder(trains: bool) -> str:
    """The name, in output_dir, of a folder for records that are not kept."""
    return "records.tmp" if trains else "evaluation.tmp"


def check_same_run(identity: tuple[str, ...]) -> None:
    """Raises ValueError if output_dir holds another run, or a damaged one."""
    folder = common_flags.OUTPUT_DIR.value
    if checkpoints.latest(folder):
        flagfiles.check_same_run(flags_file(), identity)
        best.checkpoint(folder)
        progress.check_lines(folder)


def flags_file() -> str:
    """The file that keeps the flags of output_dir's run."""
    return os.path.join(common_flags.OUTPUT_DIR.value, _FLAGS)


# ---- The weights ------------------------------------------------------------


def open_init_checkpoint() -> opened.Checkpoint | None:
    """Opens what the run starts from, unless it goes on or has nothing."""
    path = common_flags.INIT_CHECKPOINT.value
    if not path or checkpoints.latest(common_flags.OUTPUT_DIR.value):
        return None
    return formats.open_checkpoint(path)


def find_source() -> model_files.Source | None:
    """Returns what config and vocabulary must agree with.

    That is the run in output_dir if there is one, or what a run starts from.
    """
    folder = common_flags.OUTPUT_DIR.value
    if checkpoints.latest(folder):
        return tf1.read_files(folder)
    return open_init_checkpoint()


def find_config() -> modeling.BertConfig:
    """Returns the config of the model that the run starts from."""
    path = common_flags.BERT_CONFIG_FILE.value
    config = model_files.find_config(path, find_source())
    devices.check_room_for_weights(config)
    return config


# What of a checkpoint to start from: all of it, or without some.
Select = Callable[[opened.Checkpoint], opened.Checkpoint]


def _all(source: opened.Checkpoint) -> opened.Checkpoint:
    return source


def restore(state: checkpoints.TrainState, select: Select = _all) -> None:
    """Sets the state of a training run, then writes its flags and config.

    1. Goes on in output_dir, 2. starts from init_checkpoint, 3. from random
    weights. The flags come last: a run that can't start must not replace
    those of the run that output_dir holds.
    """
    folder = common_flags.OUTPUT_DIR.value
    init_checkpoint = common_flags.INIT_CHECKPOINT.value
    if state.resume(folder):
        logging.info("Going on from step %d in %s.", state.step, folder)
    elif init_checkpoint:
        report = checkpoints.restore_weights(
            state.model.variables,
            select(formats.open_checkpoint(init_checkpoint)),
        )
        for line in str(report).splitlines():
            logging.info("%s", line)
    else:
        logging.info("Starting from random weights.")
    if state.write:
        flagfiles.write_flagfile(flags_file())
        files.write_text(
            os.path.join(folder, tf1.CONFIG), state.model.bert.config.to_json()
        )


def own_weights(own: str | None) -> str:
    """Returns which weights to use where nothing is trained.

    Args:
        own: Those of the run in output_dir, if there are any.

    Raises:
        ValueError: There are none; or there are some, and --init_checkpoint
            names others, whose results would be taken for the run's.
    """
    folder = common_flags.OUTPUT_DIR.value
    given = common_flags.INIT_CHECKPOINT.value
    if not own and not given:
        raise ValueError(
            f"There is no trained model: --output_dir={folder} holds no "
            "checkpoint. Train one with --do_train=true, or give one by "
            "--init_checkpoint."
        )
    if not own or not given:
        return own or given
    if _is_same_path(given, folder):
        return own
    if _is_same_path(os.path.dirname(given), folder):
        return given  # a certain checkpoint of the run
    started_from = flagfiles.read_if_there(flags_file()).get("init_checkpoint")
    if started_from and _is_same_path(given, started_from):
        return own
    raise ValueError(
        f"--output_dir={folder} holds a run, whose weights are used, and "
        "--init_checkpoint names others. Leave it out, or choose another "
        f"--output_dir for theirs. Received: init_checkpoint={given}"
    )


def _is_same_path(left: str, right: str) -> bool:
    if "://" in left or "://" in right:
        return left.rstrip("/") == right.rstrip("/")
    return os.path.realpath(left) == os.path.realpath(right)


def restore_trained(model: keras.Model) -> int:
    """Sets all weights of a model that is not trained any more.

    Returns:
        The step of output_dir's newest checkpoint; 0 where output_dir has
        none and the weights come from init_checkpoint.
    """
    newest = checkpoints.latest(common_flags.OUTPUT_DIR.value)
    source = formats.open_checkpoint(own_weights(newest))
    checkpoints.restore_weights(model.variables, source, required="")
    logging.info("Using the weights of %s.", source.path)
    if not newest:
        return 0
    values = source.read([checkpoints.GLOBAL_STEP])
    return int(values[checkpoints.GLOBAL_STEP])


# ---- Before the first step --------------------------------------------------


def report_model(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    batch_size: int,
    accumulate: int | None,
    lengths: Mapping[str, int],
) -> None:
    """Says how large the model is that --check_only would train.

    Args:
        strategy: the run's.
        model: the one to train.
        batch_size: sequences per step, over all replicas.
        accumulate: micro-batches per step; None if it is to be found.
        lengths: of sequences, "S", and of their predictions, "P", if any.
    """
    parameters = sum(math.prod(v.shape) for v in model.trainable_variables)
    logging.info("Model: %.1f million parameters.", parameters / 1e6)
    rows = batch_size // strategy.num_replicas_in_sync // (accumulate or 1)
    logging.info(
        "Devices: %d replicas of %d sequences at a time, %s; %d GPUs here.",
        strategy.num_replicas_in_sync,
        rows,
        common_flags.DTYPE.value,
        len(tf.config.list_physical_devices("GPU")),
    )

    def memory(rows):
        return devices.training_memory(
            model.bert.config,
            rows,
            lengths["S"],
            lengths.get("P", 0),
            common_flags.DTYPE.value,
            common_flags.REMAT.value,
            accumulate or 1,
            model.reads_all,
        ).total

    logging.info(
        "Memory: about %.1f GB per replica, and the framework's own.",
        memory(rows) / 1e9,
    )
    device = devices.local()
    if device is not None:
        fits = devices.largest(memory, device.memory)
        logging.info(
            "Memory: %s has %.0f GB, enough for about %d sequences at a time.",
            device.name,
            device.memory / 1e9,
            fits,
        )


def report_no_problem() -> None:
    """Ends --check_only."""
    logging.info(
        "Found nothing that would stop this run. Nothing was written to %s.",
        common_flags.OUTPUT_DIR.value,
    )
