"""Wrong outputs, runs and other models of run_prediction.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.predicting.inputs import (
    MODELS,
    RUNS,
    SAVED,
    output,
    pretrained,
    run,
    saved,
)

CASES: dict[str, matrix.Case] = {
    # ---- Output
    "output empty": output(
        "", "--output_file is empty. Is a variable of the shell not set? Give"
    ),
    "output is the input": output(
        "{data}/lines.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the input by ..": output(
        "{data}/model/../lines.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the input by a hard link": output(
        "{data}/hard.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the input by a link": output(
        "{data}/link.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the run's vocabulary": output(
        "{data}/run/vocab.txt",
        "--output_file would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is the run's weights": output(
        "{data}/run/model.ckpt-7.index",
        "--output_file would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is a SavedModel's file": saved(
        "right",
        "--output_file would be written over what --saved_model reads:",
        output_file="{data}/saved/right/saved_model.pb",
        overwrite="true",
    ),
    "output is a SavedModel's weights": saved(
        "right",
        "--output_file would be written over what --saved_model reads:",
        output_file="{data}/saved/right/variables/variables.index",
        overwrite="true",
    ),
    "output is there": output(
        "{data}/notes.txt",
        "{data}/notes.txt exists. Choose another --output_file, or",
    ),
    "output is a folder": output(
        "{data}/model",
        "--output_file must name a file, and this is a folder. Received:",
    ),
    "output below a file": output(
        "{data}/notes.txt/x",
        "--output_file can't be made: {data}/notes.txt is no folder.",
    ),
    "output dangles": output(
        "{data}/dangling",
        "--output_file can't be made: {data}/dangling is a link to what",
    ),
    "output of an unknown file system": output(
        "s4://bucket/x",
        "There is no file system s4:// here. Give a local path, or one of",
    ),
    "output's name too long": output(
        "{out}/" + "x" * 260,
        "--output_file can't be made: a name has at most 251 bytes there.",
    ),
    # ---- Run
    "output is -": output(
        "-", "For standard output leave --output_file out. Received:"
    ),
    "run empty": matrix.Case(
        {"model_dir": ""},
        "--model_dir is empty. Is a variable of the shell not set? Give a",
    ),
    "run is not there": matrix.Case(
        {"model_dir": "/nowhere"},
        "There is no such folder. --model_dir is the --output_dir of a",
    ),
    "run is a file": matrix.Case(
        {"model_dir": "{data}/notes.txt"},
        "This is a file. --model_dir is the --output_dir of a training; a",
    ),
    "run is a checkpoint": matrix.Case(
        {"model_dir": "{data}/run/model.ckpt-7"},
        "There is no such folder. --model_dir is the --output_dir of a",
    ),
    "run is an empty folder": matrix.Case(
        {"model_dir": "{data}/empty"},
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    "run is a model": matrix.Case(
        {"model_dir": "{data}/model"},
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    "run is a SavedModel": matrix.Case(
        {"model_dir": "{data}/saved/right"},
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    **{f"run: {name}": run(name, line) for name, line in RUNS.items()},
    # ---- Other models
    **{
        f"model: {name}": pretrained(f"models/{name}", line)
        for name, line in MODELS.items()
    },
    "no labels": pretrained(
        "alone", "The labels are not known. Give --labels, --task_name or"
    ),
    **{
        f"SavedModel: {name}": saved(name, line) for name, line in SAVED.items()
    },
    "a run as a SavedModel": matrix.Case(
        {"model_dir": None, "saved_model": "{data}/run"},
        "The folder holds no SavedModel: saved_model.pb is not there. Write",
    ),
}
