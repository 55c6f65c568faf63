"""The quickstart: BERT learns from real text, on a laptop, in minutes.

    make quickstart

Every step but the first and the last is a script that users run on their own
files, with its flags in configs/quickstart/. Each command is printed and can
be run again by hand. The results are in runs/quickstart/.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_FOLDER = "runs/quickstart"
_FLAGS = "--flagfile=configs/quickstart"

# Messages that TensorFlow prints on import, at any log level.
_START_UP_NOTES = (
    "before absl::InitializeLog()",
    "oneDNN custom operations are on",
    "Could not find cuda drivers",
    "failed call to cuInit",
)

# For each step its title, its name in the report, and its command.
STEPS = (
    (
        "Extracting texts from Python's own documentation",
        "texts",
        f"examples/quickstart/make_data.py {_FOLDER}/data",
    ),
    (
        "Learning a vocabulary from them",
        "vocabulary",
        f"learn_vocabulary.py {_FLAGS}/learn_vocabulary.flags",
    ),
    (
        "Creating pre-training records",
        "records",
        f"create_pretraining_data.py {_FLAGS}/create_pretraining_data.flags",
    ),
    (
        "Creating records of held-out text",
        "held-out records",
        f"create_pretraining_data.py {_FLAGS}/create_evaluation_data.flags",
    ),
    (
        "Pre-training BERT on masked words and next sentences",
        "pre-training",
        f"run_pretraining.py {_FLAGS}/run_pretraining.flags",
    ),
    (
        "Evaluating it on the held-out text",
        "evaluation",
        f"run_pretraining.py {_FLAGS}/evaluate_pretraining.flags",
    ),
    (
        "Fine-tuning a classifier from the pre-trained weights",
        "fine-tuning, pre-trained",
        f"run_classifier.py {_FLAGS}/fine_tune_pretrained.flags",
    ),
    (
        "Fine-tuning the same classifier from random weights, to compare",
        "fine-tuning, random",
        f"run_classifier.py {_FLAGS}/fine_tune_random.flags",
    ),
    (
        "Predicting raw sentences with the exported SavedModel",
        "prediction",
        f"examples/quickstart/predict.py {_FOLDER}/fine_tuned/export",
    ),
)


_NEXT = """
== What to try next
Classify a sentence of yours:
    echo "Open a socket and wait for a connection." | \\
      {python} run_prediction.py --model_dir={folder}/fine_tuned
Predict a masked word with the pre-trained model:
    echo "Return a new [MASK] with the same items." | \\
      {python} run_prediction.py --init_checkpoint={folder}/pretrained
To classify your own table of texts, read docs/your_own_csv.md."""


def _python() -> str:
    """Returns the shortest command that runs this Python."""
    path = pathlib.Path(sys.executable)
    if path.is_relative_to(_ROOT):
        return str(path.relative_to(_ROOT))
    return sys.executable


def execute(command: str) -> int:
    """Runs `python COMMAND` at the repository's root; returns its exit code."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, *command.split()],
        cwd=_ROOT,
        env={**quiet, **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in process.stdout or ():
        if not any(note in line for note in _START_UP_NOTES):
            print(line, end="", flush=True)
    return process.wait()


def run(number: int, total: int, title: str, command: str) -> float:
    """Runs one step; returns its seconds. A failure ends the program.

    Args:
        number: Number of the step, from 1.
        total: Number of steps.
        title: Purpose of the step.
        command: Arguments of `python`.
    """
    print(f"\n== {number}/{total} {title}", flush=True)
    print(f"   python {command}", flush=True)
    start = time.monotonic()
    code = execute(command)
    if code:
        sys.exit(
            f"error: step {number} ended with exit code {code}; the lines "
            f"above say why. To run it alone: {sys.executable} {command}"
        )
    return time.monotonic() - start


def main() -> None:
    """Runs all steps and the report."""
    folder = _ROOT / _FOLDER
    if folder.exists():
        print(f"== Removing the results of the last quickstart in {_FOLDER}")
        shutil.rmtree(folder)
    seconds = {
        name: run(number, len(STEPS), title, command)
        for number, (title, name, command) in enumerate(STEPS, 1)
    }
    (folder / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")
    print("\n== Results", flush=True)
    code = execute(f"examples/quickstart/report.py {_FOLDER}")
    if not code:
        print(_NEXT.format(python=_python(), folder=_FOLDER))
    sys.exit(code)


if __name__ == "__main__":
    main()
