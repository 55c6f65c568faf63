"""Flags shared by the training scripts: paths, intervals and devices.

A script adopts them with `flags.adopt_module_key_flags(run_flags)`;
`setup.run_setup` implements them. They are read in `main` only.
"""

from bert_tf import options
from bert_tf.flags import flag_sections, shared_flags

_MODEL = flag_sections.Section("Model")
_OUTPUT = flag_sections.Section("Output")
_WORK = flag_sections.Section("What to do")
_TRAINING = flag_sections.Section("Training", only_with="do_train")
_DEVICES = flag_sections.Section("Devices")
_TPU = flag_sections.Section(
    "Devices", only_with=("use_tpu", "distribution_strategy=tpu")
)
_ORIGINAL = flag_sections.Section("Flags of the original")

# ---- Inputs and outputs -----------------------------------------------------

BERT_CONFIG_FILE = shared_flags.bert_config_file(
    _MODEL,
    "The bert_config.json of the model's architecture. By default the config "
    "that comes with init_checkpoint or belongs to the run in output_dir.",
)
INIT_CHECKPOINT = shared_flags.init_checkpoint(
    _MODEL,
    "Checkpoint to start from: a TF1 checkpoint such as .../bert_model.ckpt, "
    "the folder of a run, the folder or Hub name of a Hugging Face model, or "
    "the folder or name of a KerasHub preset. Ignored if output_dir has "
    "checkpoints of this run.",
)
OUTPUT_DIR = _OUTPUT.output_path(
    "output_dir",
    "Folder for checkpoints and results. To resume a run, run the same command "
    "with the same folder.",
    required=True,
    holds=flag_sections.RUN,
)
OVERWRITE = _OUTPUT.boolean(
    "overwrite",
    False,
    "Replaces files in output_dir that no run wrote.",
    rare=True,
)
SEED = flag_sections.Section("Training").integer(
    "seed",
    12345,
    "Random seed of weight initialization, data order and dropout.",
    min=0,
    max=2**31 - 1,
)
CHECK_ONLY = _WORK.boolean(
    "check_only",
    False,
    "Checks all data, weights and flags and stops before the first step. "
    "Writes nothing to output_dir.",
)

# ---- Intervals --------------------------------------------------------------

SAVE_CHECKPOINTS_STEPS = _TRAINING.integer(
    "save_checkpoints_steps", 1000, "Steps between checkpoints.", min=1
)
KEEP_CHECKPOINT_MAX = _TRAINING.integer(
    "keep_checkpoint_max", 5, "Number of newest checkpoints to keep.", min=1
)
LOG_STEPS = _TRAINING.integer(
    "log_steps",
    None,
    "Steps between log lines, which also go to metrics.jsonl and TensorBoard. "
    "By default 10, on TPUs 100. In a terminal, the progress bar is updated "
    "as often, and log lines appear at most every ten seconds.",
    min=1,
)
REPORT_TO = _TRAINING.words(
    "report_to",
    None,
    "Experiment trackers that get the same numbers as TensorBoard.",
    kind="wandb,mlflow",
)
ITERATIONS_PER_LOOP = _TRAINING.integer(
    "iterations_per_loop",
    1000,
    "Max steps on the device between returns to Python.",
    min=1,
    rare=True,
)
PROFILE_STEPS = _TRAINING.string(
    "profile_steps",
    None,
    "Writes a trace of these steps for TensorBoard, such as 100:110.",
    kind="FIRST:LAST",
    rare=True,
)
PEAK_FLOPS = _TRAINING.number(
    "peak_flops",
    None,
    "Peak FLOP/s of one device, to log the share that is used. By default the "
    "value of the GPU's data sheet; required on TPUs and CPUs.",
    min=1,
    rare=True,
)

# ---- Devices ----------------------------------------------------------------

DISTRIBUTION_STRATEGY = _DEVICES.choice(
    "distribution_strategy",
    None,
    options.STRATEGIES,
    "Devices: one device, all local GPUs, the workers in TF_CONFIG, or a TPU. "
    "By default one device, or a TPU with --use_tpu.",
)
DTYPE = shared_flags.dtype(
    _DEVICES,
    "Number format of activations. Weights and statistics stay in float32. "
    "float16 needs GPUs and uses loss scaling.",
)
REMAT = _TRAINING.boolean(
    "remat",
    False,
    "Gradient checkpointing: the backward pass recomputes each layer instead "
    "of storing its activations. Less memory, the same update, a third more "
    "time.",
)
USE_XLA = _TRAINING.boolean(
    "use_xla",
    None,
    "Compiles the training step with XLA: faster on GPUs, slower on CPUs. "
    "Compiling takes up to a minute. Draws other dropout masks. By default "
    "true on GPUs; TPUs always compile.",
    rare=True,
)
FUSED_ATTENTION = _TRAINING.boolean(
    "fused_attention",
    None,
    "Computes attention with cuDNN's fused kernel, in compiled pre-training in "
    "bfloat16 or float16 on NVIDIA GPUs of compute capability 8.0 or higher. "
    "A resumed run draws other dropout masks in attention. By default, used "
    "where it works.",
    rare=True,
)
LOGICAL_CPUS = _DEVICES.integer(
    "logical_cpus",
    1,
    "Splits the CPU into this number of devices, to test "
    "--distribution_strategy=mirrored without GPUs.",
    min=1,
    only_with="distribution_strategy=mirrored",
    harmless=True,
    rare=True,
)
DETERMINISTIC_OPS = _DEVICES.boolean(
    "deterministic_ops",
    True,
    "Uses only kernels that return the same bits each time. Some are slower on "
    "GPUs; without them, a resumed run may differ in the last bits.",
    rare=True,
)
USE_TPU = shared_flags.use_tpu(_DEVICES)
TPU_NAME = shared_flags.tpu_name(_TPU)
TPU_ZONE = _TPU.string("tpu_zone", None, "Zone of the TPU.", rare=True)
GCP_PROJECT = _TPU.string("gcp_project", None, "Project of the TPU.", rare=True)
NUM_TPU_CORES = shared_flags.num_tpu_cores(_TPU)
MASTER = _ORIGINAL.string(
    "master",
    None,
    "A TF1 flag that is not supported. Use --tpu_name or TF_CONFIG.",
)
