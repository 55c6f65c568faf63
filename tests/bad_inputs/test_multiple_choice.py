"""Bad inputs of run_multiple_choice.py."""

import dataclasses
import json
import os
import pathlib
import shutil
from typing import Any

from bert_tf import heads, run_lock
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest
import small_disks

SCRIPT = matrix.Script(
    "run_multiple_choice",
    {
        "do_train": "true",
        "do_eval": "true",
        "train_file": "{data}/train.jsonl",
        "dev_file": "{data}/train.jsonl",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "train_batch_size": "4",
    },
    has_check_only=True,
)
Case = matrix.Case

_WORKER = {"type": "worker", "index": 0}


def _train(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a training file that is wrong."""
    return Case({"train_file": f"{{data}}/{name}", **flags}, line)


def _out(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be worked in."""
    return Case({"output_dir": f"{{data}}/{name}", **flags}, line)


def _predict(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a prediction with the trained."""
    given = {
        "do_train": None,
        "do_eval": None,
        "do_predict": "true",
        "test_file": "{data}/train.jsonl",
        "init_checkpoint": "{data}/chooser",
    }
    return Case({**given, **flags}, line)


def _cluster(line: str, config: Any) -> matrix.Case:
    """Returns a case of a TF_CONFIG."""
    text = config if isinstance(config, str) else json.dumps(config)
    return Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        line,
        {"TF_CONFIG": text.replace("{", "{{").replace("}", "}}")},
    )


CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to do": Case({"do_train": "false", "do_eval": "false"}, ""),
    "no training file": _train("none.jsonl", ""),
    "train_file not given": Case({"train_file": None}, ""),
    "dev_file not given": Case({"dev_file": None}, ""),
    "dev_file empty": Case({"dev_file": ""}, ""),
    "too few examples": Case({"train_batch_size": "1000"}, ""),
    "longer than positions": Case({"max_seq_length": "33"}, ""),
    "flagfile of SWAG": Case({"max_seq_length": "128"}, ""),
    "texts of what is not predicted": Case(
        {"predictions_with_texts": "perhaps"}, ""
    ),
    "optimizer unknown": Case({"optimizer": "adam"}, ""),
    "schedule unknown": Case({"lr_schedule": "step"}, ""),
    "end above the peak": Case({"end_learning_rate": "1"}, ""),
    "power of a linear schedule": Case({"lr_power": "2"}, ""),
    "cooldown of a linear schedule": Case({"num_cooldown_steps": "2"}, ""),
    "cooldown of more than all": Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "10"}, ""
    ),
    "weight decay 1e39": Case({"weight_decay_rate": "1e39"}, ""),
    "clip norm 0": Case({"clip_norm": "0"}, ""),
    "seed 2**31": Case({"seed": str(2**31)}, ""),
    "keep none": Case({"keep_checkpoint_max": "0"}, ""),
    "save each 0 steps": Case({"save_checkpoints_steps": "0"}, ""),
    "trace in words": Case({"profile_steps": "first"}, ""),
    "trace backwards": Case({"profile_steps": "7:3"}, ""),
    "trace beyond the end": Case({"profile_steps": "3:700"}, ""),
    "peak flops nan": Case({"peak_flops": "nan"}, ""),
    "dtype of 16 bits on a CPU": Case({"dtype": "float16"}, ""),
    "dtype unknown": Case({"dtype": "half"}, ""),
    "strategy unknown": Case({"distribution_strategy": "parallel"}, ""),
    "TPU and mirrored": Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"}, ""
    ),
    "no TPU": Case({"use_tpu": "true"}, ""),
    "a TPU elsewhere and local files": Case(
        {"use_tpu": "true", "tpu_name": "mine"}, ""
    ),
    "master": Case({"master": "grpc://10.0.0.2:8470"}, ""),
    "CPUs that do not share the batch": Case(
        {"distribution_strategy": "mirrored", "logical_cpus": "3"}, ""
    ),
    "CPUs that do not share the evaluation": Case(
        {
            "distribution_strategy": "mirrored",
            "logical_cpus": "4",
            "eval_batch_size": "6",
        },
        "",
    ),
    "CPUs 0": Case({"logical_cpus": "0"}, ""),
    "two flagfiles of which one is not there": Case(
        {"flagfile": "{data}/good.flags,{data}/none.flags"}, ""
    ),
    "flagfile with a flag of others": Case(
        {"flagfile": "{data}/bad.flags"}, ""
    ),
    "flagfile binary": Case({"flagfile": "{data}/binary.jsonl"}, ""),
    # ---- Clusters
    "cluster not given": Case(
        {"distribution_strategy": "multi_worker_mirrored"}, ""
    ),
    "cluster not JSON": _cluster("", "worker0:2222,worker1:2222"),
    "cluster empty": _cluster("", ""),
    "cluster a list": _cluster("", []),
    "cluster without this task": _cluster(
        "", {"cluster": {"worker": ["localhost:4242"]}}
    ),
    "cluster of one, and this is the second": _cluster(
        "",
        {
            "cluster": {"worker": ["localhost:4242"]},
            "task": {"type": "worker", "index": 1},
        },
    ),
    "cluster with a parameter server": _cluster(
        "", {"cluster": {"ps": ["localhost:1"]}, "task": _WORKER}
    ),
    "cluster without ports": _cluster(
        "", {"cluster": {"worker": ["localhost"]}, "task": _WORKER}
    ),
    "cluster with a port of 99999": _cluster(
        "", {"cluster": {"worker": ["localhost:99999"]}, "task": _WORKER}
    ),
    "cluster of one address twice": _cluster(
        "", {"cluster": {"worker": ["localhost:1"] * 2}, "task": _WORKER}
    ),
    # ---- Problems
    "empty": _train("empty.jsonl", ""),
    "blank": _train("blank.jsonl", ""),
    "a folder": _train("folder.jsonl", ""),
    "no ending": _train("problems", ""),
    "text": _train("problems.txt", ""),
    "compressed": _train("train.jsonl.gz", ""),
    "gzip by another name": _train("gzip.jsonl", ""),
    "lfs": _train("lfs.jsonl", ""),
    "html": _train("page.jsonl", ""),
    "binary": _train("binary.jsonl", ""),
    "latin-1": _train("latin_1.jsonl", ""),
    "UTF-16": _train("utf_16.jsonl", ""),
    "cut": _train("cut.jsonl", ""),
    "one object over lines": _train("indented.jsonl", ""),
    "a list of all": _train("list.jsonl", ""),
    "deep": _train("deep.jsonl", ""),
    "no prompt": _train("no_prompt.jsonl", ""),
    "prompt null": _train("prompt_null.jsonl", ""),
    "choices a text": _train("choices_text.jsonl", ""),
    "choices of numbers": _train("choices_numbers.jsonl", ""),
    "one choice": _train("one.jsonl", ""),
    "no choice": _train("none_of.jsonl", ""),
    "choice empty": _train("choice_empty.jsonl", ""),
    "no label": _train("no_label.jsonl", ""),
    "label true": _train("label_true.jsonl", ""),
    "label a text": _train("label_text.jsonl", ""),
    "label beyond": _train("label_beyond.jsonl", ""),
    "label -1": _train("label_hidden.jsonl", ""),
    "half a surrogate": _train("surrogate.jsonl", ""),
    "RACE, answer beyond": _train("race_beyond.jsonl", ""),
    "RACE, answer a number": _train("race_number.jsonl", ""),
    "RACE, answers too few": _train("race_few.jsonl", ""),
    "RACE, option empty": _train("race_empty.jsonl", ""),
    "SWAG, no header": _train("no_header.csv", ""),
    "SWAG, header alone": _train("header.csv", ""),
    "SWAG, by tabs": _train("tabs.csv", ""),
    "SWAG, label in words": _train("label_words.csv", ""),
    "SWAG, label 4": _train("label_4.csv", ""),
    "SWAG, ending empty": _train("ending_empty.csv", ""),
    "SWAG, a quote open": _train("quote.csv", ""),
    "SWAG, a column too many": _train("ragged.csv", ""),
    "SWAG, a column twice": _train("twice.csv", ""),
    "dev with hidden labels": Case(
        {"dev_file": "{data}/label_hidden.jsonl"}, ""
    ),
    "test with one choice": _predict("", test_file="{data}/one.jsonl"),
    "test not given": _predict("", test_file=None),
    # ---- Models
    "predicting with the untrained": _predict(
        "", init_checkpoint="{data}/model"
    ),
    "predicting with nothing": _predict("", init_checkpoint=None),
    "cut weights": Case({"init_checkpoint": "{data}/models/cut_data"}, ""),
    "flipped weights": Case(
        {"init_checkpoint": "{data}/models/flipped_data_model"}, ""
    ),
    "weights of another size": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/models/config_wide/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "",
    ),
    "weights of fewer layers": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/models/config_deep/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "",
    ),
    "a vocabulary of 10": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/short.txt",
        },
        "",
    ),
    "vocabulary without [SEP]": Case(
        {"init_checkpoint": "{data}/models/vocab_no_sep"}, ""
    ),
    # ---- Folders
    "out of the original's model": _out("model", ""),
    "out of another script": _out("others", ""),
    "out of a result of others": _out("foreign", ""),
    "out a pipe": _out("pipe", ""),
    "other data": _out("run", "", train_file="{data}/other.jsonl"),
    "other batch": _out("run", "", train_batch_size="2"),
    "grouped by length": _out("run", "", group_by_length="true"),
    "cased now": _out("run", "", do_lower_case="false"),
    "other weights to predict with": _predict("", output_dir="{data}/run"),
    "changed data": _out("runs/data", ""),
    "no checkpoint can be read": _out("runs/cut", ""),
    "a checkpoint of other things": _out("runs/of_squad", ""),
    "flags binary": _out("runs/flags", ""),
    "metrics cut": _out("runs/metrics", ""),
    "metrics of another kind": _out("runs/metrics_list", ""),
    "best cut": _out("runs/best", ""),
    "best of another kind": _out("runs/best_list", ""),
    "examples cut": _out("runs/examples", ""),
    "examples of another kind": _out("runs/examples_other", ""),
    "config gone wrong": _out("runs/config", "", init_checkpoint=None),
    "predicting with best cut": _predict(
        "", output_dir="{data}/runs/best", init_checkpoint=None
    ),
    "predicting with best gone": _predict(
        "", output_dir="{data}/runs/best_gone", init_checkpoint=None
    ),
    "predicting with best damaged": _predict(
        "", output_dir="{data}/runs/best_cut", init_checkpoint=None
    ),
}


# What rightly works.
GOOD: dict[str, matrix.Case] = {
    "SWAG": _train("good.csv", ""),
    "SWAG with an ending in capitals": _train("GOOD.CSV", ""),
    "RACE": _train("race.jsonl", ""),
    "byte-order mark and CRLF": _train("windows.jsonl", ""),
    "empty lines": _train("gaps.jsonl", ""),
    "a label that is hidden": _predict("", test_file="{data}/no_label.jsonl"),
    "more choices in some": _train("more.jsonl", ""),
    "flagfile of itself": Case({"flagfile": "{data}/loop.flags"}, ""),
    "steps kept for long": Case({"keep_checkpoint_max": str(2**31 - 1)}, ""),
    "a metric cut off by a crash": _out("runs/metrics_open", ""),
    "bfloat16": Case({"dtype": "bfloat16"}, ""),
    "TF_CONFIG that is not used": Case({}, "", {"TF_CONFIG": "none"}),
}


_GOOD = {"prompt": "the cat", "choices": ["sat", "ran"], "label": 0}
_RACE = {
    "article": "the cat sat in rome",
    "questions": ["the cat _ ?", "who ?"],
    "options": [["sat", "ran"], ["cat", "dog"]],
    "answers": ["A", "A"],
}
_HEADER = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
_ROW = "the cat,it,sat,ran,sings,sees,0\n"
# What replaces values of the third problem; None takes one out.
_CHANGES: dict[str, dict[str, Any]] = {
    "no_prompt": {"prompt": None},
    "choices_text": {"choices": "sat or ran"},
    "choices_numbers": {"choices": [1, 2]},
    "one": {"choices": ["sat"]},
    "none_of": {"choices": []},
    "choice_empty": {"choices": ["sat", " "]},
    "no_label": {"label": None},
    "label_true": {"label": True},
    "label_text": {"label": "A"},
    "label_beyond": {"label": 2},
    "label_hidden": {"label": -1},
    "surrogate": {"prompt": "the \ud83d cat"},
}


def _lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    _write_models(folder)
    _write_problems(folder)
    _write_runs(folder)


def _write_models(folder: pathlib.Path) -> None:
    tiny_files.write_model(folder / "model")
    chooser = heads.BertMultipleChoice(tiny_files.CONFIG)
    tiny_files.write_model(folder / "chooser", chooser)
    known = damaged.CONFIGS | damaged.VOCABS
    changes = {x: known[x] for x in ("config_wide", "config_deep")}
    changes["vocab_no_sep"] = known["vocab_no_sep"]
    damaged.write_changed(folder / "model", folder / "models", changes)
    bad_models.write(folder / "models", folder / "model")
    (folder / "bare").mkdir()
    for path in (folder / "model").glob("bert_model.*"):
        shutil.copy(path, folder / "bare")
    pieces = "".join(f"{piece}\n" for piece in tiny_files.VOCAB[:10])
    (folder / "short.txt").write_text(pieces)


def _write_problems(folder: pathlib.Path) -> None:
    good = _lines(*[_GOOD] * 12)
    changed = {
        f"{name}.jsonl": _lines(
            _GOOD,
            _GOOD,
            {k: v for k, v in (_GOOD | change).items() if v is not None},
        )
        for name, change in _CHANGES.items()
    }
    race = {
        "beyond": {"answers": ["A", "C"]},
        "number": {"answers": [0, 1]},
        "few": {"answers": ["A"]},
        "empty": {"options": [["sat", " "], ["cat", "dog"]]},
    }
    for name, change in race.items():
        changed[f"race_{name}.jsonl"] = _lines(_RACE, _RACE | change)
    for name, text in {
        **changed,
        "train.jsonl": good,
        "other.jsonl": good + _lines(_GOOD),
        "problems": good,
        "problems.txt": good,
        "empty.jsonl": "",
        "blank.jsonl": "\n\n",
        "prompt_null.jsonl": _lines(_GOOD | {"prompt": None}),
        "cut.jsonl": good[:-9],
        "indented.jsonl": json.dumps(_GOOD, indent=1),
        "list.jsonl": json.dumps([_GOOD] * 12),
        "deep.jsonl": "[" * 100_000,
        "no_header.csv": _ROW * 12,
        "header.csv": _HEADER,
        "tabs.csv": (_HEADER + _ROW * 12).replace(",", "\t"),
        "label_words.csv": _HEADER + _ROW.replace("0", "first"),
        "label_4.csv": _HEADER + _ROW.replace("0", "4"),
        "ending_empty.csv": _HEADER + _ROW.replace("sings", ""),
        "quote.csv": _HEADER + _ROW + _ROW.replace("sat", '"sat'),
        "ragged.csv": _HEADER + _ROW.replace("ran", "ran,away"),
        "twice.csv": _HEADER.replace("ending1", "ending0") + _ROW,
        "train.jsonl.gz": damaged.GZIP,
        "gzip.jsonl": damaged.GZIP,
        "lfs.jsonl": bad_models.LFS,
        "page.jsonl": damaged.HTML,
        "binary.jsonl": damaged.BINARY,
        "latin_1.jsonl": good.encode() + b'{"prompt": "\xe9"}\n',
        "utf_16.jsonl": good.encode("utf-16"),
        "good.csv": _HEADER + _ROW * 12,
        "GOOD.CSV": _HEADER + _ROW * 12,
        "race.jsonl": _lines(*[_RACE] * 6),
        "windows.jsonl": "\ufeff" + good.replace("\n", "\r\n"),
        "gaps.jsonl": good.replace("\n", "\n\n"),
        "more.jsonl": good + _lines(_GOOD | {"choices": ["sat", "a", "b"]}),
        "loop.flags": f"--flagfile={folder}/loop.flags\n",
        "good.flags": "--max_seq_length=16\n",
        "bad.flags": "--max_seq_length=16\n--doc_stride=8\n",
    }.items():
        data = text.encode() if isinstance(text, str) else text
        (folder / name).write_bytes(data)
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "others").mkdir()
    (folder / "others/flags.txt").write_text("# python run_classifier.py\n")
    (folder / "foreign").mkdir()
    (folder / "foreign/eval_results.txt").write_text("mine\n")


def _write_runs(folder: pathlib.Path) -> None:
    """Makes a run, and copies of it that are wrong in one way each."""
    matrix.make(
        *(SCRIPT, folder, folder / "run"),
        *("--num_train_epochs=2", "--save_checkpoints_steps=3"),
    )
    in_run = damaged.bytes_in
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "cut": lambda run: _cut_all(run, "model.ckpt-*.data*"),
            "of_squad": lambda run: damaged.rename_tensors(
                run, lambda name: name.replace("multiple_choice", "squad")
            ),
            "data": in_run(
                "train_examples.json", b'{"records": 7, "sha256": "0"}'
            ),
            "flags": in_run("flags.txt", damaged.BINARY),
            "metrics": in_run("metrics.jsonl", b'{"step": 1\n{"step": 2}\n'),
            "metrics_open": in_run("metrics.jsonl", b'{"step": 1}\n{"ste'),
            "metrics_list": in_run("metrics.jsonl", b"[1]\n"),
            "best": in_run("best/results.json", b'{"eval_acc'),
            "best_list": in_run("best/results.json", b"[]"),
            "best_gone": _best_gone,
            "best_cut": lambda run: _cut_all(run, "best/*.data*"),
            "examples": in_run("train_examples.json", b'{"rec'),
            "examples_other": in_run("train_examples.json", b'{"a": 1}'),
            "config": in_run("bert_config.json", b"{"),
        },
    )


def _best_gone(run: pathlib.Path) -> None:
    for path in run.glob("best/model.ckpt-*"):
        path.unlink()


def _cut_all(run: pathlib.Path, pattern: str) -> None:
    for path in run.glob(pattern):
        bad_models.cut(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


@pytest.mark.parametrize("name", ["lock", "evaluation.lock"])
def test_a_folder_that_another_process_holds(name, data, tmp_path):
    if name == "lock":
        case = Case({}, "{out} is in use: process ")
    else:
        case = _predict("{out} is in use: process ")
    with run_lock.hold(tmp_path / "out", name, "trains", renew=600):
        matrix.check(SCRIPT, case, data, tmp_path)


def test_a_disk_too_small_for_checkpoints(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 96) as disk:
        line = f"The disk of {disk}/out has "
        # How much is free it says otherwise: the run has written its records.
        case = Case({"output_dir": f"{disk}/out"}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
        case = dataclasses.replace(case, arguments=("--check_only",))
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not list(disk.iterdir())


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", GOOD)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path, GOOD[name])
