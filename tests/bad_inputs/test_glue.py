"""Bad inputs of run_glue.py."""

import dataclasses
import os
import pathlib
import shutil

from bert_tf import run_lock
from tests import small_disks, tiny_files
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
    "unknown task": matrix.Case(
        {"tasks": "RTE,SST2"},
        "Unknown tasks. Expected some of CoLA, SST-2, MRPC, STS-B, QQP,",
    ),
    "no task": matrix.Case(
        {"tasks": ""},
        "--tasks must be given or left out, and it is empty. Is a variable",
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
    # ---- Data
    "no data_dir": matrix.Case(
        {"data_dir": None},
        "Give --data_dir (Folder with a folder for each task). python",
    ),
    "data_dir empty": matrix.Case(
        {"data_dir": ""},
        "--data_dir is empty. Is a variable of the shell not set? Give a",
    ),
    "data_dir is not there": _data(
        "none",
        "There is no such folder. --data_dir holds a folder for each task.",
    ),
    "data_dir is a file": _data(
        "glue/RTE/train.tsv",
        "There is no such folder. --data_dir holds a folder for each task.",
    ),
    "data_dir of a task": _data(
        "glue/RTE",
        "There are no folders for RTE in {data}/glue/RTE. Name them by",
    ),
    "no dev.tsv": _data(
        "no_dev", "There is no such file. Received: {data}/no_dev/RTE/dev.tsv"
    ),
    "empty train.tsv": _data(
        "empty",
        "{data}/empty/RTE/train.tsv: the file has no rows. Expected at least",
    ),
    "header only": _data(
        "header_only",
        "{data}/header_only/RTE/train.tsv: the file has no rows. Expected at",
    ),
    "a column is missing": _data(
        "no_column",
        "{data}/no_column/RTE/train.tsv, line 1: the column 'sentence2' is",
    ),
    "unknown label": _data(
        "label",
        "{data}/label/RTE/train.tsv, line 3: unknown label. Expected one of",
    ),
    "train.tsv is a folder": _data(
        "folder",
        "This is a folder: give a file. Received: {data}/folder/RTE/train.tsv",
    ),
    "train.tsv of Latin-1": _data(
        "latin_1",
        "{data}/latin_1/RTE/train.tsv, line 2: the text is not UTF-8 (invalid",
    ),
    "train.tsv of UTF-16": _data(
        "utf_16",
        "{data}/utf_16/RTE/train.tsv can't be read: it is UTF-16, not UTF-8.",
    ),
    "train.tsv of git-lfs": _data(
        "lfs",
        "{data}/lfs/RTE/train.tsv can't be read: it is a pointer of git-lfs,",
    ),
    "train.tsv is a page": _data(
        "html",
        "{data}/html/RTE/train.tsv, line 1: the column 'sentence1' is",
    ),
    "train.tsv is compressed": _data(
        "gzip",
        "{data}/gzip/RTE/train.tsv can't be read: it is compressed (gzip).",
    ),
    "train.tsv cut": _data(
        "cut",
        "{data}/cut/RTE/train.tsv, line 13: a column is missing. Expected at",
    ),
    "train.tsv dangles": _data(
        "dangling",
        "There is no such file. Received: {data}/dangling/RTE/train.tsv",
    ),
    "train.tsv is CSV": _data(
        "csv",
        "{data}/csv/RTE/train.tsv, line 1: the column 'sentence1' is missing",
    ),
    "not the test set": matrix.Case(
        {"do_predict": "true"},
        "{data}/glue/RTE/test.tsv is not GLUE's test set, so the server",
    ),
    # ---- Model
    "no model": matrix.Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index does not",
    ),
    "model empty": matrix.Case(
        {"init_checkpoint": ""},
        "--init_checkpoint is empty. Is a variable of the shell not set?",
    ),
    "model of the Hub": matrix.Case(
        {"init_checkpoint": "google-bert/bert-base-uncased"},
        "There is no folder google-bert/bert-base-uncased here. A Hugging",
    ),
    "data flipped": _model(
        "flipped_data",
        "The checkpoint {data}/models/flipped_data/bert_model.ckpt can't be",
    ),
    "index flipped": _model(
        "flipped_index",
        "The checkpoint {data}/models/flipped_index/bert_model.ckpt can't be",
    ),
    "index cut": _model(
        "cut_index",
        "The checkpoint {data}/models/cut_index/bert_model.ckpt can't be",
    ),
    "index of git-lfs": _model(
        "lfs_index",
        "{data}/models/lfs_index/bert_model.ckpt.index can't be read: it is a",
    ),
    "SavedModel": _model(
        "saved_model",
        "The folder {data}/models/saved_model is a SavedModel, which can be",
    ),
    "ALBERT": _model(
        "albert",
        "{data}/models/albert/bert_model.ckpt is no BERT: by its names it is",
    ),
    "Hugging Face, cut": _model(
        "hf_cut",
        "{data}/models/hf_cut/model.safetensors can't be read, it is",
    ),
    "empty folder": _model(
        "empty_folder",
        "The folder {data}/models/empty_folder holds no checkpoint. Looked",
    ),
    "data cut": _model(
        "cut_data",
        "The checkpoint {data}/models/cut_data/bert_model.ckpt can't be",
    ),
    "index only": _model(
        "index_only",
        "The checkpoint {data}/models/index_only/bert_model.ckpt has an",
    ),
    "config of another": _model(
        "config_deep",
        "{data}/models/config_deep/bert_model.ckpt: the tensors are not",
    ),
    "no config": _model(
        "no_config",
        "The model's architecture is not known: give --bert_config_file, or a",
    ),
    "config cut": _model(
        "config_cut",
        "{data}/models/config_cut/bert_config.json is not JSON: Unterminated",
    ),
    "vocabulary short": _model(
        "vocab_short",
        "The vocabulary of {data}/models/vocab_short/bert_model.ckpt does",
    ),
    "no vocabulary": _model(
        "no_vocab",
        "The vocabulary is not known: give --vocab_file, or a checkpoint",
    ),
    "cased vocabulary": _model(
        "vocab_cased",
        "The vocabulary of {data}/models/vocab_cased/bert_model.ckpt is",
    ),
    "no [CLS]": _model(
        "vocab_no_cls",
        "The vocabulary of {data}/models/vocab_no_cls/bert_model.ckpt lacks",
    ),
    "uncased vocabulary": matrix.Case(
        {"do_lower_case": "false"},
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
    ),
    "another vocabulary": matrix.Case(
        {"vocab_file": "{data}/models/vocab_long/vocab.txt"},
        "{data}/models/vocab_long/vocab.txt is not the vocabulary of",
    ),
    "another config": matrix.Case(
        {"bert_config_file": "{data}/models/config_wide/bert_config.json"},
        "{data}/models/config_wide/bert_config.json is not the config of",
    ),
    "weights of another shape": _model(
        "no_config",
        "{data}/models/no_config/bert_model.ckpt has other shapes than this",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    # ---- Folder
    "no output_dir": matrix.Case(
        {"output_dir": None},
        "Give --output_dir (Folder for checkpoints and results). python",
    ),
    "output_dir empty": matrix.Case(
        {"output_dir": ""},
        "--output_dir is empty. Is a variable of the shell not set? Give a",
    ),
    "output_dir in a bucket": matrix.Case(
        {"output_dir": "gs://bucket/x"},
        "run_glue.py keeps its runs in a local folder. Received:",
    ),
    "output_dir is a file": matrix.Case(
        {"output_dir": "{data}/glue/RTE/train.tsv"},
        "--output_dir must be a folder, and this is a file. Received:",
    ),
    "output_dir below a file": matrix.Case(
        {"output_dir": "{data}/glue/RTE/train.tsv/x"},
        "--output_dir can't be made: {data}/glue/RTE/train.tsv is no folder.",
    ),
    "output_dir is the model": matrix.Case(
        {"output_dir": "{data}/model"},
        "{data}/model holds a model (bert_model.ckpt.data-00000-of-00001),",
    ),
    "output_dir is the data": matrix.Case(
        {"output_dir": "{data}/glue"},
        "--output_dir would be written over what --data_dir reads: choose",
    ),
    "output_dir of another script": matrix.Case(
        {"output_dir": "{data}/other_run"},
        "{data}/other_run holds a run of run_classifier.py, not of",
    ),
    "output_dir of TF1": matrix.Case(
        {"output_dir": "{data}/tf1_run"},
        "{data}/tf1_run holds the run of another script",
    ),
    "table of somebody": matrix.Case(
        {"output_dir": "{data}/table"},
        "{data}/table holds table.md, which this run would replace and no",
    ),
    "results broken": matrix.Case(
        {"output_dir": "{data}/results"},
        "{data}/results/results.jsonl, line 1 is not the result of a run",
    ),
    "results binary": matrix.Case(
        {"output_dir": "{data}/binary"},
        "{data}/binary/results.jsonl can't be read as the results of runs",
    ),
    "results are a folder": matrix.Case(
        {"output_dir": "{data}/nested"},
        "{data}/nested/results.jsonl can't be read as the results of runs",
    ),
    "output_dir is a dangling link": matrix.Case(
        {"output_dir": "{data}/dangling/RTE/train.tsv"},
        "--output_dir can't be made: {data}/dangling/RTE/train.tsv is a link",
    ),
    # ---- Devices
    "float16 on a CPU": matrix.Case(
        {"dtype": "float16"},
        "float16 needs a GPU. TPUs and CPUs have bfloat16, which needs no",
    ),
    "a TPU by two names": matrix.Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu. Received:",
    ),
    "bad TF_CONFIG": matrix.Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        'TF_CONFIG does not describe a cluster, such as {{"cluster":',
        environment={"TF_CONFIG": "{{"},
    ),
    "replicas that do not share a batch": matrix.Case(
        {"distribution_strategy": "mirrored", "logical_cpus": "3"},
        "--train_batch_size must be a multiple of 3 replicas times 1",
    ),
}

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Found nothing that would stop these runs."),
    "another backend of Keras": matrix.Case(
        {}, "", environment={"KERAS_BACKEND": "torch"}
    ),
    "no backend of matplotlib": matrix.Case(
        {}, "", environment={"MPLBACKEND": "none"}
    ),
    "a C locale": matrix.Case(
        {"output_dir": "{out}/é ü 博", "data_dir": "{data}/dé ta"},
        "é ü 博",
        environment={"LC_ALL": "C"},
    ),
    "the name of a TPU, without one": matrix.Case(
        {"tpu_name": "x"}, "Not used, as they go with --use_tpu or "
    ),
    "a folder of a task that is not trained": matrix.Case(
        {"task_dirs": "MNLI:x"}, "Not used of --task_dirs, as --tasks lacks"
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
    (folder / "dé ta").symlink_to("glue")


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
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    build(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


@pytest.mark.parametrize("name", RIGHT)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path, RIGHT[name])


def test_another_process_works_there(data, tmp_path):
    lock = run_lock.hold(tmp_path / "out", what="trains")
    line = f"{{out}} is in use: process {os.getpid()} on host"
    try:
        # It may end before the run begins.
        case = matrix.Case({}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        lock.release()


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 32):
        case = matrix.Case(
            {"output_dir": f"{tmp_path}/disk/out"},
            "bytes free, and the checkpoints of this run need",
            checked=False,  # A lock takes some of them.
        )
        for more in ((), ("--check_only",)):
            each = dataclasses.replace(case, arguments=more)
            matrix.check(SCRIPT, each, data, tmp_path)
            assert not os.listdir(tmp_path / "disk")
