"""Wrong flags, devices and clusters of run_pretraining.py."""

from tests.bad_inputs.matrix import Case
from tests.bad_inputs.pretraining_runs.inputs import RANDOM, TWO_CPUS, WORKERS

# Flag, value, what it must be.
_VALUES = (
    ("num_train_steps", "0", "a whole number, at least 1"),
    ("num_train_steps", "-1", "a whole number, at least 1"),
    ("num_train_steps", "1.5", "a whole number, at least 1"),
    ("num_train_steps", "1e5", "a whole number, at least 1"),
    ("num_train_steps", "", "a whole number, at least 1"),
    (
        "num_train_steps",
        str(2**63),
        "a whole number, at least 1, at most 2147483647",
    ),
    ("num_warmup_steps", "-1", "a whole number, at least 0"),
    ("train_batch_size", "0", "a whole number, at least 1"),
    ("learning_rate", "nan", "a number, at least 0"),
    ("learning_rate", "inf", "a number, at least 0"),
    ("learning_rate", "-1e-4", "a number, at least 0"),
    ("learning_rate", "1,5", "a number, at least 0"),
    ("learning_rate", "1e99", "a number, at least 0, at most 3.4e+38"),
    ("weight_decay_rate", "inf", "a number, at least 0"),
    ("adam_epsilon", "0", "a number, above 0"),
    ("adam_beta_1", "0", "a number, above 0 and at most 0.999999"),
    ("adam_beta_2", "1", "a number, above 0 and at most 0.999999"),
    ("adam_beta_2", "nan", "a number, above 0 and at most 0.999999"),
    (
        "adam_epsilon",
        "1e-99",
        "a number, above 0, at least 1.2e-38 unless it is 0",
    ),
    ("clip_norm", "0", "a number, above 0"),
    ("layer_decay", "2", "a number, above 0 and at most 1"),
    ("seed", "-1", "a whole number, at least 0 and at most 2147483647"),
    ("seed", str(2**31), "a whole number, at least 0 and at most 2147483647"),
    ("max_seq_length", "0", "a whole number, at least 1"),
    ("max_predictions_per_seq", "-4", "a whole number, at least 1"),
    ("keep_checkpoint_max", "0", "a whole number, at least 1"),
    ("log_steps", "-1", "a whole number, at least 1"),
    ("gradient_accumulation_steps", "0", "a whole number, at least 1"),
    ("peak_flops", "0", "a number, at least 1"),
    ("eval_steps", "0", "a whole number, at least 1"),
    ("do_train", "maybe", "true or false"),
    ("dtype", "float8", "one of float32, bfloat16, float16"),
    ("distribution_strategy", "multi", "one of default, mirrored, multi"),
    ("optimizer", "sgd", "one of adamw, adamw_bias_corrected, lamb"),
    ("lr_schedule", "step", "one of linear, polynomial, cosine, constant"),
)

_FLAGS: dict[str, Case] = {
    **{
        f"{name}={value or 'nothing'}": Case(
            {name: value}, f"--{name} must be {expected}"
        )
        for name, value, expected in _VALUES
    },
    "misspelt": Case(
        {"do_trian": "true"}, "no flag --do_trian. Did you mean --do_train?"
    ),
    "of another script": Case(
        {"num_train_epochs": "3"}, "There is no flag --num_train_epochs."
    ),
    "positional": Case({}, "Received: 'true'", arguments=("true",)),
    "nothing to do": Case(
        {"do_train": "false"}, "At least one of --do_train and --do_eval must"
    ),
    "neither input nor output": Case(
        {"input_file": None, "output_dir": None},
        "Give --input_file (TFRecord files or globs, comma separated), --outp",
    ),
    "several mistakes": Case(
        {"learning_rate": "nan", "seed": "-1", "output_dir": ""},
        "--learning_rate must be a number",
    ),
    "flagfile missing": Case(
        {"flagfile": "{data}/none.flags"},
        "can't be read: No such file or directory. Give a text with a flag a "
        "line. Received: --flagfile={data}/none.flags",
    ),
    "flagfile a folder": Case(
        {"flagfile": "{data}"},
        "A flagfile, or one that it names, can't be read: Is a directory.",
    ),
    "flagfile with another flag": Case(
        {"flagfile": "{data}/unknown.flags"}, "There is no flag --colour."
    ),
    "flagfile in UTF-16": Case(
        {"flagfile": "{data}/utf16.flags"},
        "can't be read: it is not UTF-8 text, invalid start byte. Give a text",
    ),
    "teacher of unknown pieces": Case(
        {
            "teacher": "{data}/model",
            "init_checkpoint": None,
            "vocab_file": None,
            "bert_config_file": "{data}/model/bert_config.json",
        },
        "that of the records is not known: give it by --vocab_file.",
    ),
    "teacher of replaced tokens": Case(
        {
            **RANDOM,
            "teacher": "{data}/model",
            "bert_config_file": "{data}/configs/electra.json",
        },
        "this one learns something else: leave out --teacher. Received:",
    ),
    "layers with an evaluation": Case(
        {
            "teacher": "{data}/model",
            "distillation": "minilm",
            "do_eval": "true",
        },
        "to ask the model: leave out --do_eval. After it start a run with",
    ),
    "more warm-up than steps": Case(
        {"num_warmup_steps": "9"},
        "Received: num_warmup_steps=9, num_train_steps=2",
    ),
    "more cooldown than steps": Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "2"},
        "Warm-up and cooldown must not take more than all steps.",
    ),
    "cooldown of another schedule": Case(
        {"num_cooldown_steps": "1"},
        "--num_cooldown_steps goes with --lr_schedule=constant: leave it out.",
    ),
    "power of another schedule": Case(
        {"lr_power": "2"}, "--lr_power goes with --lr_schedule=polynomial: le"
    ),
    "power of ALBERT's": Case(
        {"poly_power": "0.5"},
        "--poly_power=1 is --lr_schedule=linear. Give other powers by",
    ),
    "warm-up of ALBERT's": Case(
        {"start_warmup_step": "100"},
        "--start_warmup_step: here the warm-up is at the start of a run.",
    ),
    "end above the peak": Case(
        {"end_learning_rate": "1"},
        "Received: end_learning_rate=1.0, learning_rate=5e-05",
    ),
    "steps to trace backwards": Case(
        {"profile_steps": "10:5"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST",
    ),
    "one step to trace": Case(
        {"profile_steps": "10"}, "Received: profile_steps='10'"
    ),
    "steps to trace behind the end": Case(
        {"profile_steps": "1:3"},
        "must end by the last step of the run, 2. Received: profile_steps=1:3",
    ),
    "nothing to stop early by": Case(
        {"early_stop_evaluations": "2"},
        "--early_stop_evaluations goes with --eval_steps: leave it out.",
    ),
    "two numbers of micro-batches": Case(
        {"auto_batch_size": "true", "gradient_accumulation_steps": "2"},
        "finds the number of micro-batches itself. Received: gradient_accum",
    ),
    "odd batch": Case(
        {**TWO_CPUS, "train_batch_size": "7"},
        "--train_batch_size must be a multiple of 2 replicas times 1 micro",
    ),
    "odd micro-batch": Case(
        {"gradient_accumulation_steps": "3"},
        "multiple of 1 replicas times 3 micro-batches. Received: train_batch",
    ),
    "odd evaluation batch": Case(
        {**TWO_CPUS, "do_eval": "true", "eval_batch_size": "7"},
        "--eval_batch_size must be a multiple of 2 replicas",
    ),
    "batch of millions": Case(
        {"train_batch_size": "2000000000"},
        "than this machine has free. Lower --train_batch_size, raise --gradi",
    ),
    "float16 on a CPU": Case(
        {"dtype": "float16"}, "float16 needs a GPU. TPUs and CPUs have bfloat"
    ),
}

_DEVICES: dict[str, Case] = {
    "master": Case(
        {"master": "grpc://a:1"}, "--master belonged to TF1 sessions."
    ),
    "two strategies": Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu. Received: distribution",
    ),
    "no TPU": Case({"use_tpu": "true"}, "No TPU was found. On a TPU host lea"),
    "a TPU elsewhere and a folder here": Case(
        {"use_tpu": "true", "tpu_name": "grpc://10.0.0.2:8470"},
        "The hosts of a TPU elsewhere can't read local files: put them in a "
        "bucket, such as gs://bucket/folder. Received: output_dir={out}",
    ),
    "a TPU elsewhere and records here": Case(
        {
            **RANDOM,
            "bert_config_file": "{data}/model/bert_config.json",
            "use_tpu": "true",
            "tpu_name": "grpc://10.0.0.2:8470",
            "output_dir": "gs://bucket/out",
        },
        "such as gs://bucket/folder. Received: input_file={data}/",
    ),
    "a TPU that nobody knows": Case(
        {
            **RANDOM,
            "use_tpu": "true",
            "tpu_name": "unknown",
            "tpu_zone": "here",
            "gcp_project": "none",
            "output_dir": "gs://bucket/out",
            "input_file": "gs://bucket/records",
        },
        "from elsewhere give its name or grpc address. Received: "
        "tpu_name='unknown'",
    ),
    "no cluster": Case(WORKERS, "TF_CONFIG, which is not set, nor are all"),
}

_CLUSTER = (
    '{{"cluster": {{"worker": %s}}, "task": {{"type": "%s", "index": %s}}}}'
)

_SLURM = {
    "SLURM_JOB_ID": "1",
    "SLURM_STEP_NODELIST": "a",
    "SLURM_STEP_TASKS_PER_NODE": "1",
}

_CLUSTERS = {
    f"TF_CONFIG {name}": Case(WORKERS, line, {"TF_CONFIG": text})
    for name, text, line in (
        ("empty", "", "TF_CONFIG does not describe a cluster, such as"),
        ("a word", "worker", "a cluster, such as {{"),
        ("a list", "[]", "Received: '[]'"),
        ("nested", "[" * 9999, "TF_CONFIG does not describe a cluster, such"),
        (
            "without a task",
            '{{"cluster": {{"worker": ["a:1"]}}}}',
            "TF_CONFIG does not describe a cluster",
        ),
        (
            "of a worker too many",
            _CLUSTER % ('["a:1"]', "worker", 1),
            "this is worker 1, of which the cluster has 1, counted from 0",
        ),
        (
            "of worker -1",
            _CLUSTER % ('["a:1"]', "worker", -1),
            "this is worker -1, of which the cluster has 1",
        ),
        (
            "of a text",
            _CLUSTER % ('["a:1"]', "worker", '"x"'),
            "TF_CONFIG does not describe a cluster",
        ),
        (
            "of a server",
            _CLUSTER % ('["a:1"]', "ps", 0),
            "it names ps, and only chief and worker train",
        ),
        (
            "without a port",
            _CLUSTER % ('["a"]', "worker", 0),
            "TF_CONFIG contradicts itself: a is not HOST:PORT.",
        ),
        (
            "of port 99999",
            _CLUSTER % ('["a:99999"]', "worker", 0),
            "a:99999 is not HOST:PORT",
        ),
        (
            "of one address twice",
            _CLUSTER % ('["a:1", "a:1"]', "worker", 0),
            "two processes have the same address",
        ),
    )
} | {
    f"Slurm's rank {rank}": Case(
        WORKERS,
        "The variables of Slurm contradict each other. Start the script by "
        f"srun, or describe the workers in TF_CONFIG. Received: SLURM_JOB_ID=1"
        f", SLURM_PROCID={rank}",
        {**_SLURM, "SLURM_PROCID": rank},
    )
    for rank in ("3", "x")
}

CASES: dict[str, Case] = {
    **_FLAGS,
    **_DEVICES,
    **_CLUSTERS,
}
