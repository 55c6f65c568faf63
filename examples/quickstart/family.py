"""The quickstart with another model of the family: RoBERTa or ALBERT.

    python examples/quickstart/family.py roberta
    python examples/quickstart/family.py albert

It runs the steps of run.py on the same texts, with the flags in
configs/quickstart/roberta_*.flags and albert_*.flags. The results are in
runs/quickstart_roberta/ and runs/quickstart_albert/.
"""

import pathlib
import shutil
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from examples.quickstart import run

FAMILIES = ("roberta", "albert")
_ROOT = pathlib.Path(__file__).resolve().parents[2]


def steps(family: str) -> list[tuple[str, str]]:
    """Returns the title and the command of each step."""
    folder = f"runs/quickstart_{family}"
    flags = f"--flagfile=configs/quickstart/{family}"
    return [
        (
            "Extracting texts from Python's own documentation",
            f"examples/quickstart/make_data.py {folder}/data",
        ),
        (
            "Learning a vocabulary from them",
            f"learn_vocabulary.py {flags}_vocabulary.flags",
        ),
        (
            "Creating pre-training records",
            f"create_pretraining_data.py {flags}_records.flags",
        ),
        (
            "Pre-training",
            f"run_pretraining.py {flags}_pretraining.flags",
        ),
        (
            "Fine-tuning a classifier from the pre-trained weights",
            f"run_classifier.py {flags}_fine_tuning.flags",
        ),
        (
            "Predicting raw sentences with the exported SavedModel",
            f"examples/quickstart/predict.py {folder}/fine_tuned/export",
        ),
    ]


def main(arguments: list[str]) -> None:
    """Runs all steps."""
    if len(arguments) != 1 or arguments[0] not in FAMILIES:
        sys.exit(
            f"error: Give one of {', '.join(FAMILIES)}. "
            f"Received: {' '.join(arguments)}"
        )
    (family,) = arguments
    folder = _ROOT / "runs" / f"quickstart_{family}"
    if folder.exists():
        print(f"== Removing the last results in {folder.relative_to(_ROOT)}")
        shutil.rmtree(folder)
    todo = steps(family)
    for number, (title, command) in enumerate(todo, 1):
        run.run(number, len(todo), title, command)


if __name__ == "__main__":
    main(sys.argv[1:])
