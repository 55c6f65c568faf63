"""Flags that the training scripts share: where, how often, on what.

A script adopts them with `flags.adopt_module_key_flags(common_flags)`. They
are read in `main` only; the functions here are called from there.
"""

import math
import os
from collections.abc import Callable, Mapping

from bert_tf import (
    checkpoints,
    command_line,
    devices,
    distribution,
    modeling,
)
from bert_tf.interop import formats, model_files, opened, tf1

import keras
import tensorflow as tf
from absl import flags, logging

BERT_CONFIG_FILE = flags.DEFINE_string(
    "bert_config_file",
    None,
    "The bert_config.json of the model's architecture. By default the config "
    "that comes with init_checkpoint, or that of the run in output_dir.",
)
OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    None,
    "Folder for checkpoints and results. The same command with the same "
    "folder goes on where it stopped.",
    required=True,
)
INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint",
    None,
    "Checkpoint to start from: of the original or ours, such as "
    ".../bert_model.ckpt, the folder of a Hugging Face model, the folder or "
    "the name of a KerasHub preset. Not used when output_dir already holds "
    "checkpoints of this run.",
)
SEED = flags.DEFINE_integer(
    "seed",
    12345,
    "Of the initial weights, the data order and dropout.",
    lower_bound=0,
    upper_bound=2**31 - 1,
)

CHECK_ONLY = flags.DEFINE_bool(
    "check_only",
    False,
    "Whether to stop before any work, when vocabulary, config, checkpoint, "
    "data, labels, batch and paths have been looked at. Writes nothing.",
)

# ---- How often --------------------------------------------------------------

SAVE_CHECKPOINTS_STEPS = flags.DEFINE_integer(
    "save_checkpoints_steps",
    1000,
    "Steps between checkpoints.",
    lower_bound=1,
)
KEEP_CHECKPOINT_MAX = flags.DEFINE_integer(
    "keep_checkpoint_max", 5, "Newest checkpoints to keep.", lower_bound=1
)
LOG_STEPS = flags.DEFINE_integer(
    "log_steps",
    None,
    "Steps between lines on screen, in metrics.jsonl and in TensorBoard. "
    "By default 10, on TPUs 100.",
    lower_bound=1,
)
ITERATIONS_PER_LOOP = flags.DEFINE_integer(
    "iterations_per_loop",
    1000,
    "At most so many steps run on the device between returns to Python.",
    lower_bound=1,
)

PROFILE_STEPS = flags.DEFINE_string(
    "profile_steps",
    None,
    "Such as 100:110: writes a trace of the steps between for TensorBoard.",
)
PEAK_FLOPS = flags.DEFINE_float(
    "peak_flops",
    None,
    "FLOP/s of one device at their most, to say which share is used. By "
    "default of the GPU's data sheet; needed for TPUs and CPUs.",
    lower_bound=1,
)

# ---- On what ----------------------------------------------------------------

DISTRIBUTION_STRATEGY = flags.DEFINE_enum(
    "distribution_strategy",
    None,
    distribution.STRATEGIES,
    "What to compute on: one device, all local GPUs, the workers of "
    "TF_CONFIG, a TPU. By default one device, or a TPU with --use_tpu.",
)
DTYPE = flags.DEFINE_enum(
    "dtype",
    "float32",
    distribution.DTYPES,
    "Number format of activations. Weights and statistics are float32. "
    "float16 needs GPUs, and scales the loss.",
)
REMAT = flags.DEFINE_bool(
    "remat",
    False,
    "Whether the backward pass computes each layer again instead of keeping "
    "what is inside it: less memory, the same update, a third more time.",
)
LOGICAL_CPUS = flags.DEFINE_integer(
    "logical_cpus",
    1,
    "Splits the CPU into so many devices, to try "
    "--distribution_strategy=mirrored without GPUs.",
    lower_bound=1,
)
DETERMINISTIC_OPS = flags.DEFINE_bool(
    "deterministic_ops",
    True,
    "Uses only kernels that give the same bits each time. On GPUs some are "
    "slower; without them a resumed run may differ in the last bits.",
)
USE_TPU = flags.DEFINE_bool(
    "use_tpu", False, "The same as --distribution_strategy=tpu."
)
TPU_NAME = flags.DEFINE_string(
    "tpu_name", None, "Name or grpc:// address of the TPU; none on its host."
)
TPU_ZONE = flags.DEFINE_string("tpu_zone", None, "Zone of the TPU.")
GCP_PROJECT = flags.DEFINE_string("gcp_project", None, "Project of the TPU.")
NUM_TPU_CORES = flags.DEFINE_integer(
    "num_tpu_cores",
    None,
    "If given, the run stops unless the TPU has so many cores.",
    lower_bound=1,
)
MASTER = flags.DEFINE_string(
    "master", None, "Of TF1. Refused; see --tpu_name and TF_CONFIG."
)


def set_up_distribution(*inputs: flags.FlagHolder) -> tf.distribute.Strategy:
    """Returns the strategy that the flags ask for.

    Args:
        inputs: paths of records, if they are not made in --output_dir.
    """
    if MASTER.value:
        raise ValueError(
            "--master belonged to TF1 sessions. Give the address of a TPU as "
            "--tpu_name, or describe the workers in TF_CONFIG and use "
            "--distribution_strategy=multi_worker_mirrored."
        )
    name = DISTRIBUTION_STRATEGY.value
    if USE_TPU.value and name not in (None, "tpu"):
        raise ValueError(
            "--use_tpu means --distribution_strategy=tpu. "
            f"Received: distribution_strategy={name}"
        )
    if is_remote():
        _check_remote(OUTPUT_DIR, INIT_CHECKPOINT, *inputs)
    if DETERMINISTIC_OPS.value:
        # On GPUs deterministic scatters go through the host. Ours write to no
        # place twice, so they are deterministic as they are.
        os.environ.setdefault("TF_DISABLE_SCATTER_OP_DETERMINISM", "1")
        tf.config.experimental.enable_op_determinism()
    strategy = distribution.set_up(
        "tpu" if USE_TPU.value else name or "default",
        DTYPE.value,
        SEED.value,
        LOGICAL_CPUS.value,
        TPU_NAME.value,
        TPU_ZONE.value,
        GCP_PROJECT.value,
    )
    cores = strategy.num_replicas_in_sync
    wanted = NUM_TPU_CORES.value
    if distribution.is_tpu(strategy) and wanted not in (None, cores):
        raise ValueError(
            f"The TPU has another number of cores. Received: "
            f"num_tpu_cores={wanted}, the TPU has {cores}"
        )
    return strategy


def is_remote() -> bool:
    """Whether other hosts read the records than this one."""
    return TPU_NAME.value not in (None, "local")


def _check_remote(*paths: flags.FlagHolder) -> None:
    """Raises ValueError unless the hosts of a remote TPU can read the paths."""
    for flag in paths:
        given = [flag.value] if isinstance(flag.value, str) else flag.value
        for path in given or ():
            if "://" not in path:
                raise ValueError(
                    "The hosts of a TPU elsewhere can't read local files: put "
                    "them in a bucket, such as gs://bucket/folder. Received: "
                    f"{flag.name}={path}, tpu_name={TPU_NAME.value}"
                )


def profile_steps() -> tuple[int, int] | None:
    """The steps after which a trace begins and ends."""
    text = PROFILE_STEPS.value
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
    on_tpu = USE_TPU.value or DISTRIBUTION_STRATEGY.value == "tpu"
    return LOG_STEPS.value or (100 if on_tpu else 10)


def prepare_output_dir(
    strategy: tf.distribute.Strategy, identity: tuple[str, ...]
) -> None:
    """Makes the folder of a training run, unless it holds another run.

    Args:
        strategy: its chief writes.
        identity: flags that a run in progress can't change.
    """
    _check_output_dir(identity)
    if distribution.is_chief(strategy):
        make_output_dir()


def _check_output_dir(identity: tuple[str, ...]) -> None:
    if checkpoints.latest(OUTPUT_DIR.value):
        command_line.check_same_run(flags_file(), identity)


def make_output_dir() -> None:
    """Makes the folder of a run, unless it is there."""
    folder = OUTPUT_DIR.value
    if "[" in folder:
        raise ValueError(
            "TensorFlow takes the name of a checkpoint for a glob, so it would "
            "not find those of a folder with a bracket in its name. "
            f"Received: output_dir={folder!r}"
        )
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise OSError(
            f"Cannot make the folder --output_dir={folder}: {error.message}"
        ) from error


def flags_file() -> str:
    """The file that keeps the flags of output_dir's training."""
    return os.path.join(OUTPUT_DIR.value, "flags.txt")


def open_init_checkpoint() -> opened.Checkpoint | None:
    """Opens what the run starts from, unless it goes on or has nothing."""
    if not INIT_CHECKPOINT.value or checkpoints.latest(OUTPUT_DIR.value):
        return None
    return formats.open_checkpoint(INIT_CHECKPOINT.value)


def find_source() -> model_files.Source | None:
    """Returns what config and vocabulary must agree with.

    That is the run in output_dir if there is one, or what a run starts from.
    """
    if checkpoints.latest(OUTPUT_DIR.value):
        return tf1.read_files(OUTPUT_DIR.value)
    return open_init_checkpoint()


def find_config() -> modeling.BertConfig:
    """Returns the config of the model that the run starts from."""
    return model_files.find_config(
        BERT_CONFIG_FILE.value or None, find_source()
    )


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
    if state.resume(OUTPUT_DIR.value):
        logging.info(
            "Going on from step %d in %s.", state.step, OUTPUT_DIR.value
        )
    elif INIT_CHECKPOINT.value:
        report = checkpoints.restore_weights(
            state.model.variables,
            select(formats.open_checkpoint(INIT_CHECKPOINT.value)),
        )
        for line in str(report).splitlines():
            logging.info("%s", line)
    else:
        logging.info("Starting from random weights.")
    if state.write:
        command_line.write_flagfile(flags_file())
        opened.write_text(
            os.path.join(OUTPUT_DIR.value, tf1.CONFIG),
            state.model.bert.config.to_json(),
        )


def check_only(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    identity: tuple[str, ...] | None,
    batch_size: int,
    accumulate: int | None,
    lengths: Mapping[str, int],
    select: Select = _all,
) -> None:
    """Looks at what is left to look at before training, and says what it is.

    Args:
        strategy: the run's.
        model: the one to train, with random weights.
        identity: flags that a run in progress can't change; None where
            nothing is to be trained, so that no run goes on.
        batch_size: sequences per step, over all replicas.
        accumulate: micro-batches per step; None if it is to be found.
        lengths: of sequences, "S", and of their predictions, "P", if any.
        select: what of the checkpoint to start from.
    """
    if identity is not None:
        _check_output_dir(identity)
    newest = checkpoints.latest(OUTPUT_DIR.value)
    source = open_init_checkpoint()
    if newest:
        logging.info("Checkpoint: would go on from %s.", newest)
    elif source:
        report = checkpoints.compare(model.variables, select(source))
        logging.info("Checkpoint: %s, format %s.", source.path, source.format)
        for line in str(report).splitlines():
            logging.info("Would be: %s", line)
    else:
        logging.info("Checkpoint: none, would start from random weights.")
    parameters = sum(math.prod(v.shape) for v in model.trainable_variables)
    logging.info("Model: %.1f million parameters.", parameters / 1e6)
    rows = batch_size // strategy.num_replicas_in_sync // (accumulate or 1)
    logging.info(
        "Devices: %d replicas of %d sequences at a time, %s; %d GPUs here.",
        strategy.num_replicas_in_sync,
        rows,
        DTYPE.value,
        len(tf.config.list_physical_devices("GPU")),
    )

    def memory(rows):
        return devices.training_memory(
            model.bert.config,
            rows,
            lengths["S"],
            lengths.get("P", 0),
            DTYPE.value,
            REMAT.value,
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
    logging.info("Found nothing that would stop this run. Nothing was written.")


def restore_trained(model: keras.Model) -> int:
    """Sets all weights of a model that is not trained any more.

    Returns:
        The step of output_dir's newest checkpoint; 0 where output_dir has
        none and the weights come from init_checkpoint.
    """
    newest = checkpoints.latest(OUTPUT_DIR.value)
    path = newest or INIT_CHECKPOINT.value
    if not path:
        raise ValueError(
            "There is no trained model: --output_dir="
            f"{OUTPUT_DIR.value} holds no checkpoint. Train one with "
            "--do_train=true, or give one by --init_checkpoint."
        )
    source = formats.open_checkpoint(path)
    checkpoints.restore_weights(model.variables, source, required="")
    logging.info("Using the weights of %s.", source.path)
    if not newest:
        return 0
    values = source.read([checkpoints.GLOBAL_STEP])
    return int(values[checkpoints.GLOBAL_STEP])
