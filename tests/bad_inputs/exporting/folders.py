"""Wrong outputs, runs and models of export_saved_model.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.exporting.inputs import MODELS, RUNS, model, out, run

CASES: dict[str, matrix.Case] = {
    # ---- Output
    "output empty": out(
        "", "--export_dir is empty. Is a variable of the shell not set? Give"
    ),
    "output is the run": out(
        "{data}/run",
        "--export_dir would be written over what --model_dir reads:",
    ),
    "output is the run, overwriting": out(
        "{data}/run",
        "--export_dir would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output holds the run": out(
        "{data}",
        "--export_dir would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is the root": out(
        "/",
        "--export_dir would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is the run by ..": out(
        "{data}/model/../run",
        "--export_dir would be written over what --model_dir reads:",
    ),
    "output is the run by a link": out(
        "{data}/linked",
        "--export_dir would be written over what --model_dir reads:",
    ),
    "output is the model": model(
        "model",
        "--export_dir would be written over what --init_checkpoint reads:",
        export_dir="{data}/model",
        overwrite="true",
    ),
    "output is the vocabulary": out(
        "{data}/notes",
        "--export_dir would be written over what --vocab_file reads:",
        vocab_file="{data}/notes/vocab.txt",
        overwrite="true",
    ),
    "output is there": out(
        "{data}/exported",
        "{data}/exported holds saved_model.pb, and must be new or empty:",
    ),
    "output is of others": out(
        "{data}/notes",
        "{data}/notes holds vocab.txt, and must be new or empty: choose",
    ),
    "output is of others, overwriting": out(
        "{data}/notes",
        "{data}/notes holds vocab.txt, and must be new or empty: choose",
        overwrite="true",
    ),
    "output is a SavedModel and more": out(
        "{data}/more",
        "{data}/more holds warmup.txt, and must be new or empty: choose",
        overwrite="true",
    ),
    "output is a file": out(
        "{data}/notes.txt",
        "--export_dir must be a new folder, and this is a file. Received:",
        overwrite="true",
    ),
    "output below a file": out(
        "{data}/notes.txt/1",
        "--export_dir can't be made: {data}/notes.txt is no folder.",
    ),
    "output dangles": out(
        "{data}/dangling",
        "--export_dir can't be made: {data}/dangling is a link to what is",
    ),
    "output of an unknown file system": out(
        "s4://bucket/1",
        "There is no file system s4:// here. Give a local path, or one of",
    ),
    "output's name too long": out(
        "{out}/" + "x" * 260,
        "--export_dir can't be made: a name has at most 251 bytes there.",
    ),
    "output of two lines": out(
        "{out}/a\nb",
        "--export_dir holds a line end, which flags.txt can't keep.",
    ),
    # ---- Run
    "run empty": run(
        "",
        "--model_dir is empty. Is a variable of the shell not set? Give a",
        model_dir="",
    ),
    "run is not there": run(
        "none", "There is no such folder. --model_dir is the --output_dir of a"
    ),
    "run is a file": run(
        "notes.txt",
        "This is a file. --model_dir is the --output_dir of a training; a",
    ),
    "run has no weights": run(
        "runs/untrained",
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    **{
        f"run: {name}": run(f"runs/{name}", line) for name, line in RUNS.items()
    },
    "config of another": matrix.Case(
        {"bert_config_file": "{data}/runs/config_heads/bert_config.json"},
        "bert_config.json: `hidden_size` must be a multiple of",
    ),
    "vocabulary of another": matrix.Case(
        {"vocab_file": "{data}/runs/vocab_long/vocab.txt"},
        "{data}/runs/vocab_long/vocab.txt is not the vocabulary of",
    ),
    "vocabulary is not there": matrix.Case(
        {"vocab_file": "{data}/none"},
        "There is no such file. Received: vocab_file={data}/none",
    ),
    "vocabulary is a folder": matrix.Case(
        {"vocab_file": "{data}/model"},
        "This is a folder: give a file. Received: vocab_file={data}/model",
    ),
    "uncased vocabulary": matrix.Case(
        {"do_lower_case": "false"},
        "{data}/run/vocab.txt is uncased: none of its 31 pieces with",
    ),
    # ---- Other models
    "model empty": model(
        "",
        "--init_checkpoint is empty. Is a variable of the shell not set?",
        init_checkpoint="",
    ),
    "model is not there": model(
        "none", "There is no checkpoint {data}/none: {data}/none.index does not"
    ),
    "model of the Hub": model(
        "",
        "There is no folder bert-base-uncased here. A Hugging Face model",
        init_checkpoint="bert-base-uncased",
    ),
    **{
        f"model: {name}": model(f"models/{name}", line)
        for name, line in MODELS.items()
    },
}
