"""The commands of run_pretraining.py that are wrong."""

from tests.bad_inputs import matrix

SCRIPT = matrix.Script(
    "run_pretraining",
    {
        "do_train": "true",
        "input_file": "{data}/records/*.tfrecord",
        "init_checkpoint": "{data}/model",
        "vocab_file": "{data}/model/vocab.txt",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "max_predictions_per_seq": "4",
        "train_batch_size": "8",
        "num_train_steps": "2",
        "num_warmup_steps": "1",
    },
    has_check_only=True,
)
# Where what the command must not say is said otherwise.
RANDOM = {"init_checkpoint": None, "vocab_file": None}
BY_MANIFEST = {"max_seq_length": None, "max_predictions_per_seq": None}
TWO_CPUS = {"distribution_strategy": "mirrored", "logical_cpus": "2"}
WORKERS = {"distribution_strategy": "multi_worker_mirrored"}
EVALUATE = {"do_train": None, "do_eval": "true"}
CAN_NOT = "can't be read, it is truncated, corrupt or not all there: "
