"""Wrong tasks and flags of run_glue.py."""

from tests.bad_inputs import matrix

CASES: dict[str, matrix.Case] = {
    # ---- Tasks
    "unknown task": matrix.Case(
        {"tasks": "RTE,SST2"},
        "Unknown tasks. Expected some of CoLA, SST-2, MRPC, STS-B, QQP,",
    ),
    "no task": matrix.Case(
        {"tasks": ""},
        "--tasks must be given or left out, and it is empty. Is a variable",
    ),
    "no teacher of a task": matrix.Case(
        {"teacher": "{data}/models"},
        "--teacher holds no trained model of RTE: give the output_dir of a",
    ),
    "layers, which have no score": matrix.Case(
        {"teacher": "{data}/models", "distillation": "minilm"},
        "--distillation=minilm trains no head, and here every run is",
    ),
    "AX as a task": matrix.Case(
        {"tasks": "AX"},
        "Unknown tasks. Expected some of CoLA, SST-2, MRPC, STS-B, QQP,",
    ),
    "task in small letters": matrix.Case(
        {"tasks": "rte"},
        "Unknown tasks. Expected some of CoLA, SST-2, MRPC, STS-B, QQP,",
    ),
    "task without a folder": matrix.Case(
        {"tasks": "RTE,CoLA"},
        "There are no folders for CoLA in {data}/glue. Name them by",
    ),
    "task_dirs without a folder": matrix.Case(
        {"task_dirs": "RTE"},
        "--task_dirs must be such as MNLI:FOLDER,AX:FOLDER, each task once.",
    ),
    "task_dirs of a stranger": matrix.Case(
        {"task_dirs": "SST2:x"},
        "--task_dirs must be such as MNLI:FOLDER,AX:FOLDER, each task once.",
    ),
    "task_dirs twice": matrix.Case(
        {"task_dirs": "RTE:RTE,RTE:WNLI"},
        "--task_dirs must be such as MNLI:FOLDER,AX:FOLDER, each task once.",
    ),
    "task_dirs of nothing": matrix.Case(
        {"task_dirs": "RTE:none"},
        "There are no folders for RTE in {data}/glue. Name them by",
    ),
    "intermediate task of nothing": matrix.Case(
        {"tasks": "WNLI", "intermediate_task": "RTE"},
        "--intermediate_task is what RTE, MRPC and STS-B start from, and",
    ),
    "unknown intermediate task": matrix.Case(
        {"intermediate_task": "NLI"},
        "Unknown tasks. Expected some of CoLA, SST-2, MRPC, STS-B, QQP,",
    ),
    # ---- Numbers
    "seeds": matrix.Case(
        {"seeds": "1,x"},
        "--seeds must be whole numbers from 0 to 2147483647, each once, such",
    ),
    "no seeds": matrix.Case(
        {"seeds": ""},
        "--seeds must be given or left out, and it is empty. Is a variable",
    ),
    "seeds twice": matrix.Case(
        {"seeds": "1,1"},
        "--seeds must be whole numbers from 0 to 2147483647, each once, such",
    ),
    "seed below 0": matrix.Case(
        {"seeds": "0,-1"},
        "--seeds must be whole numbers from 0 to 2147483647, each once, such",
    ),
    "seed 2**63": matrix.Case(
        {"seeds": str(2**63)},
        "--seeds must be whole numbers from 0 to 2147483647, each once, such",
    ),
    "epochs -1": matrix.Case(
        {"num_train_epochs": None, "epochs": "-1"},
        "--epochs must be numbers above 0, each once, such as 2,3. Received:",
    ),
    "epochs 0": matrix.Case(
        {"num_train_epochs": None, "epochs": "3,0"},
        "--epochs must be numbers above 0, each once, such as 2,3. Received:",
    ),
    "epochs nan": matrix.Case(
        {"num_train_epochs": None, "epochs": "nan"},
        "--epochs must be numbers above 0, each once, such as 2,3. Received:",
    ),
    "epochs inf": matrix.Case(
        {"num_train_epochs": None, "epochs": "inf"},
        "--epochs must be numbers above 0, each once, such as 2,3. Received:",
    ),
    "epochs 1e99": matrix.Case(
        {"num_train_epochs": None, "epochs": "1e99"},
        "A run takes less than 2147483648 steps. Lower --num_train_epochs.",
    ),
    "epochs of both": matrix.Case(
        {"epochs": "1,2"},
        "Leave out --num_train_epochs: --epochs has what to choose from.",
    ),
    "batch 0": matrix.Case(
        {"train_batch_size": None, "batch_sizes": "0"},
        "--batch_sizes must be whole numbers above 0, each once, such as",
    ),
    "batch 2.5": matrix.Case(
        {"train_batch_size": None, "batch_sizes": "4,2.5"},
        "--batch_sizes must be whole numbers above 0, each once, such as",
    ),
    "second batch too large": matrix.Case(
        {"train_batch_size": None, "batch_sizes": "4,1000"},
        "There are too few examples for one training step. Lower",
    ),
    "second batch of micro-batches": matrix.Case(
        {
            "train_batch_size": None,
            "batch_sizes": "4,6",
            "gradient_accumulation_steps": "4",
        },
        "--train_batch_size must be a multiple of 1 replicas times 4",
    ),
    "too few examples for a task": matrix.Case(
        {"tasks": "RTE,WNLI", "train_batch_size": "8"},
        "There are too few examples for one training step. Lower",
    ),
    "rates 0": matrix.Case(
        {"learning_rates": "0.0"},
        "--learning_rates must be numbers above 0, each once, such as",
    ),
    "rates inf": matrix.Case(
        {"learning_rates": "1e-5,inf"},
        "--learning_rates must be numbers above 0, each once, such as",
    ),
    "rate nan": matrix.Case(
        {"learning_rate": "nan"},
        "--learning_rate must be a number, at least 0. Received:",
    ),
    "length": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for: lower it.",
    ),
    "length 3": matrix.Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "cooldown of all": matrix.Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "100"},
        "Warm-up and cooldown must not take more than all steps. Received:",
    ),
    "trace": matrix.Case(
        {"profile_steps": "5:3"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST, such as",
    ),
    "trace behind the end": matrix.Case(
        {"profile_steps": "500:510"},
        "--profile_steps must end by the last step of the run, 3. Received:",
    ),
    "nothing right": matrix.Case(
        {"seeds": "x", "tasks": "y", "data_dir": "{data}/none"},
        "Unknown tasks. Expected some of CoLA, SST-2, MRPC, STS-B, QQP,",
    ),
    "a task in two lines": matrix.Case(
        {"tasks": "RTE\nWNLI"},
        "--tasks must be texts with commas between, in one line; one with a",
    ),
    # ---- Flags that have no place
    "seed": matrix.Case(
        {"seed": "1"}, "Leave out --seed: --seeds has the seeds."
    ),
    "do_train": matrix.Case(
        {"do_train": "true"}, "Leave out --do_train: all runs are trained."
    ),
    "do_eval": matrix.Case(
        {"do_eval": "false"}, "Leave out --do_eval: all runs are evaluated."
    ),
    "do_export": matrix.Case(
        {"do_export": "true"},
        "Leave out --do_export: export with export_saved_model.py.",
    ),
    "a flag of run_classifier.py": matrix.Case(
        {"task_name": "RTE"},
        "There is no flag --task_name. Did you mean --tpu_name? python",
    ),
    "master": matrix.Case(
        {"master": "grpc://x"},
        "--master belonged to TF1 sessions. Give the address of a TPU as",
    ),
    "a batch to predict": matrix.Case(
        {"predict_batch_size": "0"},
        "--predict_batch_size must be a whole number, at least 1. Received:",
    ),
    "no flagfile": matrix.Case(
        {"flagfile": "{data}/none.flags"},
        "A flagfile, or one that it names, can't be read: No such file or",
    ),
    "a value behind a blank": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received: 'RTE'",
        arguments=("RTE",),
    ),
    "flags of warm-up": matrix.Case(
        {"warmup_proportion": "1.5"},
        "--warmup_proportion must be a number, at least 0 and at most 1.",
    ),
    "cooldown of another schedule": matrix.Case(
        {"num_cooldown_steps": "1"},
        "--num_cooldown_steps goes with --lr_schedule=constant: leave it out.",
    ),
}
