"""Training setup from `flags.run_flags`: devices, folder, weights, checks.

Called from the `main` of the training scripts only.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from bert_tf import modeling
from bert_tf.checkpoints import (
    formats,
    model_files,
    opened,
    original,
    restoring,
    runs,
    tf1_files,
)
from bert_tf.errors import InputError
from bert_tf.flags import (
    flag_sections,
    flagfiles,
    optimization_flags,
    output_paths,
    run_flags,
)
from bert_tf.setup import run_folder
from bert_tf.storage import kept_flags
from bert_tf.training import (
    accelerators,
    distribution,
    memory_use,
    recipes,
    run_report,
    session,
    trackers,
    training_state,
)

import keras
import tensorflow as tf
from absl import flags, logging

# ---- Devices ----------------------------------------------------------------


def check_master() -> None:
    """Raises InputError for --master, which belonged to sessions of TF1."""
    if run_flags.MASTER.value:
        raise InputError(
            "--master belonged to TF1 sessions. Give the address of a TPU as "
            "--tpu_name, or describe the workers in TF_CONFIG and use "
            "--distribution_strategy=multi_worker_mirrored."
        )


def set_up_distribution(*inputs: flags.FlagHolder) -> tf.distribute.Strategy:
    """Returns the strategy that the flags request.

    Args:
        inputs: Flags with paths of records, if not created in --output_dir.
    """
    check_master()
    name = distribution.asked_for(
        run_flags.DISTRIBUTION_STRATEGY.value, run_flags.USE_TPU.value
    )
    if is_remote():
        _check_remote(run_flags.OUTPUT_DIR, run_flags.INIT_CHECKPOINT, *inputs)
    if run_flags.DETERMINISTIC_OPS.value:
        # On GPUs, deterministic scatters are computed on the host. Ours never
        # write to a position twice, so they are deterministic anyway.
        os.environ.setdefault("TF_DISABLE_SCATTER_OP_DETERMINISM", "1")
        tf.config.experimental.enable_op_determinism()
    strategy = distribution.set_up(
        name,
        run_flags.DTYPE.value,
        run_flags.SEED.value,
        run_flags.LOGICAL_CPUS.value,
        run_flags.TPU_NAME.value,
        run_flags.TPU_ZONE.value,
        run_flags.GCP_PROJECT.value,
    )
    output_paths.check_remote(of_runs=True)
    distribution.check_cores(strategy, run_flags.NUM_TPU_CORES.value)
    # Checked before anything is written.
    distribution.compiles(strategy, run_flags.USE_XLA.value)
    if not distribution.is_alone(strategy):
        distribution.check_alike(
            distribution.agreement(strategy), _flags_of_objective()
        )
    return strategy


def _flags_of_objective() -> dict[str, str | None]:
    """Returns the flags of the objective that all workers must have alike.

    Compared before the first variable: workers would wait for each other if
    only one of them had the variables of a teacher.
    """
    names = ("auxiliary_lm_weight", "class_weights", "label_smoothing")
    told = flagfiles.told((*names, "teacher"))
    # Each worker may have its own copy of the teacher.
    teacher = "given" if "teacher" in told else None
    return {**{name: told.get(name) for name in names}, "teacher": teacher}


def on_tpu() -> bool:
    """Whether a TPU is requested."""
    name = run_flags.DISTRIBUTION_STRATEGY.value
    return run_flags.USE_TPU.value or name == "tpu"


def is_remote() -> bool:
    """Whether other hosts than this one read the records."""
    return on_tpu() and run_flags.TPU_NAME.value not in (None, "local")


def _check_remote(*paths: flags.FlagHolder) -> None:
    """Raises InputError unless remote TPU hosts can read the paths."""
    for flag in paths:
        given = [flag.value] if isinstance(flag.value, str) else flag.value
        for path in given or ():
            if "://" not in path:
                raise InputError(
                    "The hosts of a TPU elsewhere can't read local files: put "
                    "them in a bucket, such as gs://bucket/folder. Received: "
                    f"{flag.name}={path}, "
                    f"tpu_name={run_flags.TPU_NAME.value}"
                )


# ---- The plan ---------------------------------------------------------------


_Plan = TypeVar("_Plan", bound=session.Plan)


def make_plan(made: type[_Plan], **own: Any) -> _Plan:
    """Returns a plan from the flags; `own` are fields of one script."""
    report_to = tuple(run_flags.REPORT_TO.value or ())
    trackers.check(report_to)
    return flag_sections.read(
        made,
        learning_rate=optimization_flags.LEARNING_RATE.value,
        log_steps=run_flags.LOG_STEPS.value or (100 if on_tpu() else 10),
        recipe=flag_sections.read(recipes.Recipe),
        profile_steps=profile_steps(),
        report_to=report_to,
        flags=flagfiles.told(flags.FLAGS),
        **own,
    )


def profile_steps() -> tuple[int, int] | None:
    """Returns the steps after which a trace begins and ends."""
    text = run_flags.PROFILE_STEPS.value
    if text is None:
        return None
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and 0 < int(first) < int(last)):
        raise InputError(
            "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST, such as "
            f"100:110. Received: profile_steps={text!r}"
        )
    return int(first), int(last)


# ---- The weights ------------------------------------------------------------


def open_init_checkpoint() -> opened.Checkpoint | None:
    """Opens the initial checkpoint; None if resuming, or without one."""
    path = run_flags.INIT_CHECKPOINT.value
    if not path or tf1_files.latest(run_flags.OUTPUT_DIR.value):
        return None
    return formats.open_checkpoint(path)


def find_source(own: str | None = None) -> model_files.Source | None:
    """Returns the source that config and vocabulary must match.

    It is the run in output_dir, if any, or else the initial checkpoint.

    Args:
        own: Weights of the run that will be restored, if any. A search, and a
            run whose checkpoints are gone, have best weights only.
    """
    folder = run_flags.OUTPUT_DIR.value
    if tf1_files.latest(folder):
        return original.read_files(folder)
    if own:
        return original.read_files(os.path.dirname(own))
    return open_init_checkpoint()


def find_config(trains: bool) -> modeling.BertConfig:
    """Returns the config of a run's model; `trains` if it is trained."""
    path = run_flags.BERT_CONFIG_FILE.value
    config = model_files.find_config(path, find_source(), trains)
    memory_use.check_room_for_weights(config)
    return config


# Selects the weights of an initial checkpoint to restore.
Select = Callable[[opened.Checkpoint], opened.Checkpoint]


def restore(
    state: training_state.TrainState,
    select: Select = lambda source: source,
    begin: Callable[[keras.Model], None] = lambda model: None,
) -> None:
    """Restores the state of a training run.

    It resumes from output_dir, or else starts from init_checkpoint, or else
    from random weights; `begin` may set some of them.
    """
    folder = run_flags.OUTPUT_DIR.value
    init_checkpoint = run_flags.INIT_CHECKPOINT.value
    if state.resume(folder):
        logging.info("Resuming from step %d in %s.", state.step, folder)
    elif init_checkpoint:
        report = restoring.restore_weights(
            state.model.variables,
            select(formats.open_checkpoint(init_checkpoint)),
        )
        for line in str(report).splitlines():
            logging.info("%s", line)
    else:
        logging.info("Starting from random weights.")
        begin(state.model)


def keep_flags() -> None:
    """Writes the flags of a training run to output_dir.

    Call it last before the first step: a run that fails to start must not
    replace the flags of the one in the folder.
    """
    flagfiles.write_flagfile(run_folder.flags_file())


def own_weights(own: str | None) -> str:
    """Returns the weights to use if nothing is trained.

    Args:
        own: Weights of the run in output_dir, if any.

    Raises:
        InputError: There are none, or --init_checkpoint differs from the
            weights of output_dir, so results would be attributed to the wrong
            run.
    """
    folder = run_flags.OUTPUT_DIR.value
    given = run_flags.INIT_CHECKPOINT.value
    if not own and not given:
        raise InputError(
            f"There is no trained model: --output_dir={folder} holds no "
            "checkpoint. Train one with --do_train=true, or give one by "
            "--init_checkpoint."
        )
    if not own or not given:
        return own or given
    if is_same_path(given, folder):
        return own
    if any(is_same_path(place, folder) for place in runs.places(given)):
        return given  # a specific checkpoint of the run
    started_from = kept_flags.of_folder(folder).get("init_checkpoint")
    if started_from and is_same_path(given, started_from):
        return own
    raise InputError(
        f"--output_dir={folder} holds a run, whose weights are used, and "
        "--init_checkpoint names others. Leave it out, or choose another "
        f"--output_dir for theirs. Received: init_checkpoint={given}"
    )


def is_same_path(left: str, right: str) -> bool:
    """Whether two paths mean the same file, also by links."""
    if "://" in left or "://" in right:
        return left.rstrip("/") == right.rstrip("/")
    return os.path.realpath(left) == os.path.realpath(right)


def restore_trained(model: keras.Model, read: Sequence[keras.Variable]) -> int:
    """Restores the weights of a model that is no longer trained.

    Args:
        model: The model to restore.
        read: The variables that are used; all of them must be present.

    Returns:
        The step of output_dir's newest checkpoint; 0 if output_dir has none and
        the weights come from init_checkpoint.
    """
    newest = tf1_files.latest(run_flags.OUTPUT_DIR.value)
    source = formats.open_checkpoint(own_weights(newest))
    used = "|".join(re.escape(variable.path) for variable in read)
    restoring.restore_weights(model.variables, source, f"^(?:{used})$")
    logging.info("Using the weights of %s.", source.path)
    if not newest:
        return 0
    values = source.read([tf1_files.GLOBAL_STEP])
    return int(values[tf1_files.GLOBAL_STEP])


# ---- Before the first step --------------------------------------------------


def report_model(
    replicas: run_report.Replicas,
    model: keras.Model,
    batch_size: int,
    accumulate: int | None,
    lengths: Mapping[str, int],
) -> None:
    """Logs the size of the model that --check_only would train.

    Args:
        replicas: The run's replicas.
        model: The model to train.
        batch_size: Sequences per step, over all replicas.
        accumulate: Micro-batches per step; None to determine it.
        lengths: Length of sequences, "S", and number of predictions, "P", if
            any.
    """
    rows = batch_size // replicas.number // (accumulate or 1)
    run_report.log_model(replicas, model, rows)
    if not model.has_estimates:
        return

    def memory(rows):
        sizes = (rows, lengths["S"], lengths.get("P", 0))
        how = (
            run_flags.DTYPE.value,
            run_flags.REMAT.value,
            accumulate or 1,
        )
        made_by = model.generator
        generator = None if made_by is None else made_by.config
        own = model.bert.config
        return memory_use.memory_of(
            own, generator, sizes, how, model.reads_all
        ).total

    needed = memory(rows)
    logging.info(
        "Memory: about %s per replica, and the framework's own.",
        f"{needed / 1e9:.1f} GB" if needed >= 1e8 else f"{needed / 1e6:.0f} MB",
    )
    device = accelerators.local()
    if device is not None:
        fits = memory_use.largest(memory, device.memory)
        logging.info(
            "Memory: %s has %.0f GB, enough for about %d sequences at a time.",
            device.name,
            device.memory / 1e9,
            fits,
        )


def report_no_problem() -> None:
    """Logs the success of --check_only."""
    logging.info(
        "Found nothing that would stop this run. Nothing was written to %s.",
        run_flags.OUTPUT_DIR.value,
    )


def report_next(sentence: str) -> None:
    """Logs what to do with the weights, as a training script's last line.

    Args:
        sentence: Text with %s for the folder.
    """
    logging.info(sentence, shlex.quote(run_flags.OUTPUT_DIR.value))
