"""Wrong flags and clusters of run_multiple_choice.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.multiple_choice.inputs import WORKER, Case, cluster, train

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to do": Case(
        {"do_train": "false", "do_eval": "false"},
        "At least one of --do_train, --do_eval, --do_predict and",
    ),
    "no training file": train("none.jsonl", "There is no such file"),
    "train_file not given": Case(
        {"train_file": None}, "Give --train_file, the train set."
    ),
    "dev_file not given": Case(
        {"dev_file": None}, "Give --dev_file, the dev set."
    ),
    "dev_file empty": Case({"dev_file": ""}, "--dev_file is empty"),
    "too few examples": Case(
        {"train_batch_size": "1000"},
        "There are too few examples for one training step",
    ),
    "longer than positions": Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions",
    ),
    "flagfile of SWAG": Case(
        {"max_seq_length": "128"},
        "`max_seq_length` is more than the model has positions",
    ),
    "texts of what is not predicted": Case(
        {"predictions_with_texts": "perhaps"},
        "--predictions_with_texts must be true or false",
    ),
    "optimizer unknown": Case(
        {"optimizer": "adam"},
        "--optimizer must be one of adamw, adamw_bias_corrected,",
    ),
    "schedule unknown": Case(
        {"lr_schedule": "step"},
        "--lr_schedule must be one of linear, polynomial, cosine,",
    ),
    "end above the peak": Case(
        {"end_learning_rate": "1"},
        "`end_learning_rate` must be between 0 and the peak",
    ),
    "power of a linear schedule": Case(
        {"lr_power": "2"},
        "--lr_power goes with --lr_schedule=polynomial: leave it",
    ),
    "cooldown of a linear schedule": Case(
        {"num_cooldown_steps": "2"},
        "--num_cooldown_steps goes with --lr_schedule=constant:",
    ),
    "cooldown of more than all": Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "10"},
        "Warm-up and cooldown must not take more than all steps",
    ),
    "weight decay 1e39": Case(
        {"weight_decay_rate": "1e39"},
        "--weight_decay_rate must be a number, at least 0, at most",
    ),
    "clip norm 0": Case(
        {"clip_norm": "0"}, "--clip_norm must be a number, above 0"
    ),
    "seed 2**31": Case(
        {"seed": str(2**31)},
        "--seed must be a whole number, at least 0 and at most",
    ),
    "keep none": Case(
        {"keep_checkpoint_max": "0"},
        "--keep_checkpoint_max must be a whole number, at least 1",
    ),
    "save each 0 steps": Case(
        {"save_checkpoints_steps": "0"},
        "--save_checkpoints_steps must be a whole number, at least",
    ),
    "trace in words": Case(
        {"profile_steps": "first"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST,",
    ),
    "trace backwards": Case(
        {"profile_steps": "7:3"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST,",
    ),
    "trace beyond the end": Case(
        {"profile_steps": "3:700"},
        "--profile_steps must end by the last step of the run, 9",
    ),
    "peak flops nan": Case(
        {"peak_flops": "nan"}, "--peak_flops must be a number, at least 1"
    ),
    "dtype of 16 bits on a CPU": Case(
        {"dtype": "float16"}, "float16 needs a GPU"
    ),
    "dtype unknown": Case(
        {"dtype": "half"}, "--dtype must be one of float32, bfloat16, float16"
    ),
    "strategy unknown": Case(
        {"distribution_strategy": "parallel"},
        "--distribution_strategy must be one of default, mirrored,",
    ),
    "TPU and mirrored": Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu",
    ),
    "no TPU": Case({"use_tpu": "true"}, "No TPU was found"),
    "a TPU elsewhere and local files": Case(
        {"use_tpu": "true", "tpu_name": "mine"},
        "The hosts of a TPU elsewhere can't read local files: put",
    ),
    "master": Case(
        {"master": "grpc://10.0.0.2:8470"}, "--master belonged to TF1 sessions"
    ),
    "CPUs that do not share the batch": Case(
        {"distribution_strategy": "mirrored", "logical_cpus": "3"},
        "--train_batch_size must be a multiple of 3 replicas times",
    ),
    "CPUs that do not share the evaluation": Case(
        {
            "distribution_strategy": "mirrored",
            "logical_cpus": "4",
            "eval_batch_size": "6",
        },
        "--eval_batch_size must be a multiple of 4 replicas times",
    ),
    "CPUs 0": Case(
        {"logical_cpus": "0"},
        "--logical_cpus must be a whole number, at least 1",
    ),
    "two flagfiles of which one is not there": Case(
        {"flagfile": "{data}/good.flags,{data}/none.flags"},
        "A flagfile, or one that it names, can't be read: No such",
    ),
    "flagfile with a flag of others": Case(
        {"flagfile": "{data}/bad.flags"}, "There is no flag --doc_stride"
    ),
    "flagfile binary": Case(
        {"flagfile": "{data}/binary.jsonl"},
        "A flagfile, or one that it names, can't be read: it is",
    ),
    # ---- Clusters
    "cluster not given": Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "The strategy multi_worker_mirrored reads the cluster from",
    ),
    "cluster not JSON": cluster(
        "TF_CONFIG does not describe a cluster, such as",
        "worker0:2222,worker1:2222",
    ),
    "cluster empty": cluster(
        "TF_CONFIG does not describe a cluster, such as", ""
    ),
    "cluster a list": cluster(
        "TF_CONFIG does not describe a cluster, such as", []
    ),
    "cluster without this task": cluster(
        "TF_CONFIG does not describe a cluster, such as",
        {"cluster": {"worker": ["localhost:4242"]}},
    ),
    "cluster of one, and this is the second": cluster(
        "TF_CONFIG contradicts itself: this is worker 1, of which",
        {
            "cluster": {"worker": ["localhost:4242"]},
            "task": {"type": "worker", "index": 1},
        },
    ),
    "cluster with a parameter server": cluster(
        "TF_CONFIG contradicts itself: it names ps, and only chief",
        {"cluster": {"ps": ["localhost:1"]}, "task": WORKER},
    ),
    "cluster without ports": cluster(
        "TF_CONFIG contradicts itself: localhost is not HOST:PORT",
        {"cluster": {"worker": ["localhost"]}, "task": WORKER},
    ),
    "cluster with a port of 99999": cluster(
        "TF_CONFIG contradicts itself: localhost:99999 is not",
        {"cluster": {"worker": ["localhost:99999"]}, "task": WORKER},
    ),
    "cluster of one address twice": cluster(
        "TF_CONFIG contradicts itself: two processes have the same",
        {"cluster": {"worker": ["localhost:1"] * 2}, "task": WORKER},
    ),
}
