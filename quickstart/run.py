"""The quickstart: BERT learns from real text, on a laptop, in minutes.

    make quickstart

Every step but the first and the last is a script that people run on their own
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

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_FOLDER = "runs/quickstart"
_FLAGS = "--flagfile=configs/quickstart"

# What is done, its name in the report, and the command that does it.
_STEPS = (
    (
        "Writing texts out of Python's own documentation",
        "texts",
        f"quickstart/make_data.py {_FOLDER}/data",
    ),
    (
        "Learning a vocabulary from them",
        "vocabulary",
        f"learn_vocabulary.py {_FLAGS}/learn_vocabulary.flags",
    ),
    (
        "Making pre-training records",
        "records",
        f"create_pretraining_data.py {_FLAGS}/create_pretraining_data.flags",
    ),
    (
        "Making records of text that is held out",
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
        "Fine-tuning the same from random weights, to compare",
        "fine-tuning, random",
        f"run_classifier.py {_FLAGS}/fine_tune_random.flags",
    ),
    (
        "Predicting raw sentences with the exported SavedModel",
        "prediction",
        f"quickstart/predict.py {_FOLDER}/fine_tuned/export",
    ),
)


def run(number: int, title: str, command: str) -> float:
    """Runs one step from the repository's root; returns its seconds."""
    print(f"\n== {number}/{len(_STEPS)} {title}", flush=True)
    print(f"   python {command}", flush=True)
    start = time.monotonic()
    code = subprocess.run(
        [sys.executable, *command.split()],
        cwd=_ROOT,
        # Without TensorFlow's start-up notes between our lines.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    ).returncode
    if code:
        sys.exit(
            f"error: step {number}, {title.lower()}, ended with exit code "
            f"{code}; the lines above say why. It can be run alone: "
            f"{sys.executable} {command}"
        )
    return time.monotonic() - start


def main() -> None:
    """Runs all steps and the report."""
    folder = _ROOT / _FOLDER
    if folder.exists():
        print(f"== Removing the last quickstart's results in {_FOLDER}")
        shutil.rmtree(folder)
    seconds = {
        name: run(number, title, command)
        for number, (title, name, command) in enumerate(_STEPS, 1)
    }
    (folder / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")
    print("\n== What was measured", flush=True)
    subprocess.run(
        [sys.executable, "quickstart/report.py", _FOLDER],
        cwd=_ROOT,
        check=True,
    )


if __name__ == "__main__":
    main()
