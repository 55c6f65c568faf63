"""Bad inputs of run_glue.py."""

import pathlib
import shutil

from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest

SCRIPT = matrix.Script(
    "run_glue",
    {
        "data_dir": "{data}/glue",
        "tasks": "RTE",
        "seeds": "1",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "train_batch_size": "4",
        "num_train_epochs": "1",
    },
    has_check_only=True,
)


def _data(name: str, line: str) -> matrix.Case:
    """Returns a case of another folder of all tasks."""
    return matrix.Case({"data_dir": f"{{data}}/{name}"}, line)


def _model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return matrix.Case(
        {"init_checkpoint": f"{{data}}/models/{name}", **flags}, line
    )


CASES: dict[str, matrix.Case] = {
    # ---- Tasks
    "unknown task": matrix.Case({"tasks": "RTE,SST2"}, ""),
    "no task": matrix.Case({"tasks": ""}, ""),
    "AX as a task": matrix.Case({"tasks": "AX"}, ""),
    "task in small letters": matrix.Case({"tasks": "rte"}, ""),
    "task without a folder": matrix.Case({"tasks": "RTE,CoLA"}, ""),
    "task_dirs without a folder": matrix.Case({"task_dirs": "RTE"}, ""),
    "task_dirs of a stranger": matrix.Case({"task_dirs": "SST2:x"}, ""),
    "task_dirs twice": matrix.Case({"task_dirs": "RTE:RTE,RTE:WNLI"}, ""),
    "task_dirs of nothing": matrix.Case({"task_dirs": "RTE:none"}, ""),
    "intermediate task of nothing": matrix.Case(
        {"tasks": "WNLI", "intermediate_task": "RTE"}, ""
    ),
    "unknown intermediate task": matrix.Case({"intermediate_task": "NLI"}, ""),
    # ---- Numbers
    "seeds": matrix.Case({"seeds": "1,x"}, ""),
    "no seeds": matrix.Case({"seeds": ""}, ""),
    "seeds twice": matrix.Case({"seeds": "1,1"}, ""),
    "seed below 0": matrix.Case({"seeds": "0,-1"}, ""),
    "seed 2**63": matrix.Case({"seeds": str(2**63)}, ""),
    "epochs -1": matrix.Case({"num_train_epochs": None, "epochs": "-1"}, ""),
    "epochs 0": matrix.Case({"num_train_epochs": None, "epochs": "3,0"}, ""),
    "epochs nan": matrix.Case({"num_train_epochs": None, "epochs": "nan"}, ""),
    "epochs inf": matrix.Case({"num_train_epochs": None, "epochs": "inf"}, ""),
    "epochs 1e99": matrix.Case(
        {"num_train_epochs": None, "epochs": "1e99"}, ""
    ),
    "epochs of both": matrix.Case({"epochs": "1,2"}, ""),
    "batch 0": matrix.Case({"train_batch_size": None, "batch_sizes": "0"}, ""),
    "batch 2.5": matrix.Case(
        {"train_batch_size": None, "batch_sizes": "4,2.5"}, ""
    ),
    "second batch too large": matrix.Case(
        {"train_batch_size": None, "batch_sizes": "4,1000"}, ""
    ),
    "second batch of micro-batches": matrix.Case(
        {
            "train_batch_size": None,
            "batch_sizes": "4,6",
            "gradient_accumulation_steps": "4",
        },
        "",
    ),
    "too few examples for a task": matrix.Case(
        {"tasks": "RTE,WNLI", "train_batch_size": "8"}, ""
    ),
    "rates 0": matrix.Case({"learning_rates": "0.0"}, ""),
    "rates inf": matrix.Case({"learning_rates": "1e-5,inf"}, ""),
    "rate nan": matrix.Case({"learning_rate": "nan"}, ""),
    "length": matrix.Case({"max_seq_length": "33"}, ""),
    "length 3": matrix.Case({"max_seq_length": "3"}, ""),
    "cooldown of all": matrix.Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "100"}, ""
    ),
    "trace": matrix.Case({"profile_steps": "5:3"}, ""),
    "trace behind the end": matrix.Case({"profile_steps": "500:510"}, ""),
    # ---- Flags that have no place
    "seed": matrix.Case({"seed": "1"}, ""),
    "do_train": matrix.Case({"do_train": "true"}, ""),
    "do_eval": matrix.Case({"do_eval": "false"}, ""),
    "do_export": matrix.Case({"do_export": "true"}, ""),
    "a flag of run_classifier.py": matrix.Case({"task_name": "RTE"}, ""),
    "master": matrix.Case({"master": "grpc://x"}, ""),
    "a batch to predict": matrix.Case({"predict_batch_size": "0"}, ""),
    # ---- Data
    "no data_dir": matrix.Case({"data_dir": None}, ""),
    "data_dir empty": matrix.Case({"data_dir": ""}, ""),
    "data_dir is not there": _data("none", ""),
    "data_dir is a file": _data("glue/RTE/train.tsv", ""),
    "data_dir of a task": _data("glue/RTE", ""),
    "no dev.tsv": _data("no_dev", ""),
    "empty train.tsv": _data("empty", ""),
    "header only": _data("header_only", ""),
    "a column is missing": _data("no_column", ""),
    "unknown label": _data("label", ""),
    "train.tsv is a folder": _data("folder", ""),
    "train.tsv of Latin-1": _data("latin_1", ""),
    "train.tsv of UTF-16": _data("utf_16", ""),
    "train.tsv of git-lfs": _data("lfs", ""),
    "train.tsv is a page": _data("html", ""),
    "train.tsv is compressed": _data("gzip", ""),
    "train.tsv cut": _data("cut", ""),
    "train.tsv dangles": _data("dangling", ""),
    "train.tsv is CSV": _data("csv", ""),
    "not the test set": matrix.Case({"do_predict": "true"}, ""),
    # ---- Model
    "no model": matrix.Case({"init_checkpoint": "{data}/none"}, ""),
    "model empty": matrix.Case({"init_checkpoint": ""}, ""),
    "model of the Hub": matrix.Case(
        {"init_checkpoint": "google-bert/bert-base-uncased"}, ""
    ),
    "data flipped": _model("flipped_data_model", ""),
    "data cut": _model("cut_data", ""),
    "index only": _model("index_only", ""),
    "config of another": _model("config_deep", ""),
    "no config": _model("no_config", ""),
    "config cut": _model("config_cut", ""),
    "vocabulary short": _model("vocab_short", ""),
    "no vocabulary": _model("no_vocab", ""),
    "cased vocabulary": _model("vocab_cased", ""),
    "no [CLS]": _model("vocab_no_cls", ""),
    "uncased vocabulary": matrix.Case({"do_lower_case": "false"}, ""),
    "another vocabulary": matrix.Case(
        {"vocab_file": "{data}/models/vocab_long/vocab.txt"}, ""
    ),
    "another config": matrix.Case(
        {"bert_config_file": "{data}/models/config_wide/bert_config.json"}, ""
    ),
    "weights of another shape": _model("narrow", ""),
    # ---- Folder
    "no output_dir": matrix.Case({"output_dir": None}, ""),
    "output_dir empty": matrix.Case({"output_dir": ""}, ""),
    "output_dir in a bucket": matrix.Case({"output_dir": "gs://bucket/x"}, ""),
    "output_dir is a file": matrix.Case(
        {"output_dir": "{data}/glue/RTE/train.tsv"}, ""
    ),
    "output_dir below a file": matrix.Case(
        {"output_dir": "{data}/glue/RTE/train.tsv/x"}, ""
    ),
    "output_dir is the model": matrix.Case({"output_dir": "{data}/model"}, ""),
    "output_dir is the data": matrix.Case({"output_dir": "{data}/glue"}, ""),
    "output_dir of another script": matrix.Case(
        {"output_dir": "{data}/other_run"}, ""
    ),
    "output_dir of TF1": matrix.Case({"output_dir": "{data}/tf1_run"}, ""),
    "table of somebody": matrix.Case({"output_dir": "{data}/table"}, ""),
    "results broken": matrix.Case({"output_dir": "{data}/results"}, ""),
    "results binary": matrix.Case({"output_dir": "{data}/binary"}, ""),
    "results are a folder": matrix.Case({"output_dir": "{data}/nested"}, ""),
    # ---- Devices
    "float16 on a CPU": matrix.Case({"dtype": "float16"}, ""),
    "a TPU by two names": matrix.Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"}, ""
    ),
    "bad TF_CONFIG": matrix.Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "",
        environment={"TF_CONFIG": "{{"},
    ),
    "replicas that do not share a batch": matrix.Case(
        {"distribution_strategy": "mirrored", "logical_cpus": "3"}, ""
    ),
}


def _rows(count: int, labels: tuple[str, ...]) -> str:
    rows = "".join(
        f"{i}\tthe cat\ta dog\t{labels[i % len(labels)]}\n"
        for i in range(count)
    )
    return f"index\tsentence1\tsentence2\tlabel\n{rows}"


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    tiny_files.write_model(folder / "model")
    text = _rows(12, ("entailment", "not_entailment"))
    rte = folder / "glue" / "RTE"
    rte.mkdir(parents=True)
    for name in ("train", "dev"):
        (rte / f"{name}.tsv").write_text(text)
    (rte / "test.tsv").write_text("index\tsentence1\tsentence2\n0\ta\tthe\n")
    wnli = folder / "glue" / "WNLI"
    wnli.mkdir()
    for name in ("train", "dev"):
        (wnli / f"{name}.tsv").write_text(_rows(4, ("0", "1")))
    _write_wrong_data(folder, text)
    damaged.write_changed(
        folder / "model", folder / "models", damaged.CONFIGS | damaged.VOCABS
    )
    bad_models.write(folder / "models", folder / "model")
    _write_folders(folder)


def _write_wrong_data(folder: pathlib.Path, text: str) -> None:
    rows = text.splitlines()
    for name, data in {
        "empty": b"",
        "header_only": rows[0].encode() + b"\n",
        "no_column": text.replace("sentence2", "sentence3").encode(),
        "label": text.replace("not_entailment", "maybe").encode(),
        "latin_1": text.replace("cat", "caté").encode("latin-1"),
        "utf_16": text.encode("utf-16"),
        "lfs": bad_models.LFS,
        "html": damaged.HTML,
        "gzip": damaged.GZIP,
        "cut": text[:-30].encode(),
        "csv": text.replace("\t", ",").encode(),
    }.items():
        shutil.copytree(folder / "glue" / "RTE", folder / name / "RTE")
        (folder / name / "RTE" / "train.tsv").write_bytes(data)
    for name in ("no_dev", "folder", "dangling"):
        shutil.copytree(folder / "glue" / "RTE", folder / name / "RTE")
    (folder / "no_dev" / "RTE" / "dev.tsv").unlink()
    for name in ("folder", "dangling"):
        (folder / name / "RTE" / "train.tsv").unlink()
    (folder / "folder" / "RTE" / "train.tsv").mkdir()
    (folder / "dangling" / "RTE" / "train.tsv").symlink_to("none")


def _write_folders(folder: pathlib.Path) -> None:
    for name, (file, data) in {
        "other_run": ("flags.txt", b"# python run_classifier.py --x\n"),
        "tf1_run": ("model.ckpt-5.index", b"x"),
        "table": ("table.md", b"mine"),
        "results": ("results.jsonl", b'{"key": "x"}\n'),
        "binary": ("results.jsonl", damaged.BINARY),
    }.items():
        (folder / name).mkdir()
        (folder / name / file).write_bytes(data)
    (folder / "nested" / "results.jsonl").mkdir(parents=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    build(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)
