import dataclasses
import json
import pathlib
import shutil
from typing import Any

from bert_tf import heads, modeling
from tests import small_disks, tiny_files
from tests.bad_inputs import cases, damaged, matrix, surroundings

import pytest

SCRIPT, CASES, RIGHT = cases.read("multiple_choice")
_GOOD = {"prompt": "the cat", "choices": ["sat", "ran"], "label": 0}
_RACE: dict[str, Any] = {
    "article": "the cat sat in rome",
    "questions": ["the cat _ ?", "who ?"],
    "options": [["sat", "ran"], ["cat", "dog"]],
    "answers": ["A", "A"],
}
_HEADER = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
_ROW = "the cat,it,sat,ran,sings,sees,0\n"
# New values in the third problem; None removes the key.
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
    damaged.write_models(folder)
    chooser = heads.BertMultipleChoice(modeling.Bert(tiny_files.CONFIG))
    tiny_files.write_model(folder / "chooser", chooser)
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
    race: dict[str, dict[str, Any]] = {
        "beyond": {"answers": ["A", "C"]},
        "number": {"answers": [0, 1]},
        "few": {"answers": ["A"]},
        "empty": {"options": [["sat", " "], ["cat", "dog"]]},
    }
    for name, change in race.items():
        changed[f"race_{name}.jsonl"] = _lines(_RACE, _RACE | change)
    files: dict[str, object] = {
        **changed,
        "train.jsonl": good,
        "other.jsonl": good + _lines(_GOOD),
        "problems": good,
        "problems.txt": good,
        **{f"{x}.jsonl": data for x, data in damaged.NO_TEXTS.items()},
        "blank.jsonl": "\n\n",
        "prompt_null.jsonl": _lines(_GOOD | {"prompt": None}),
        "indented.jsonl": json.dumps(_GOOD, indent=1),
        "no_header.csv": _ROW * 12,
        "tabs.csv": (_HEADER + _ROW * 12).replace(",", "\t"),
        "label_words.csv": _HEADER + _ROW.replace("0", "first"),
        "label_4.csv": _HEADER + _ROW.replace("0", "4"),
        "ending_empty.csv": _HEADER + _ROW.replace("sings", ""),
        "train.jsonl.gz": damaged.GZIP,
        "latin_1.jsonl": good.encode() + b'{"prompt": "\xe9"}\n',
        "utf_16.jsonl": good.encode("utf-16"),
        "good.csv": _HEADER + _ROW * 12,
        "GOOD.CSV": _HEADER + _ROW * 12,
        "race.jsonl": _lines(*[_RACE] * 6),
        "windows.jsonl": "\ufeff" + good.replace("\n", "\r\n"),
        "gaps.jsonl": good.replace("\n", "\n\n"),
        "more.jsonl": good + _lines(_GOOD | {"choices": ["sat", "a", "b"]}),
        "loop.flags": f"--flagfile={folder}/loop.flags\n",
        "bad.flags": "--max_seq_length=16\n--doc_stride=8\n",
        "folder.jsonl/": None,
        "others/flags.txt": "# python run_classifier.py\n",
    }
    damaged.write_files(folder, files)


def _write_runs(folder: pathlib.Path) -> None:
    """Makes a run, and copies of it with one error each."""
    matrix.make(
        *(SCRIPT, folder, folder / "run"),
        *("--num_train_epochs=1", "--save_checkpoints_steps=2"),
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
        damaged.cut(path)


data = matrix.inputs(write_data)
test_bad_input = matrix.refused(SCRIPT, CASES)
_PREDICTS = {
    "do_train": None,
    "do_eval": None,
    "do_predict": "true",
    "test_file": "{data}/train.jsonl",
    "init_checkpoint": "{data}/chooser",
}


@pytest.mark.parametrize("name", ["lock", "evaluation.lock"])
def test_a_folder_that_another_process_holds(name, data, tmp_path):
    flags = {} if name == "lock" else _PREDICTS
    case = matrix.Case(flags, "{out} is in use: process ")
    with surroundings.held(tmp_path / "out", name):
        matrix.check(SCRIPT, case, data, tmp_path)


def test_a_disk_too_small_for_checkpoints(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 48) as disk:
        line = f"The disk of {disk}/out has "
        # The number of free bytes varies: the run has written its records.
        case = matrix.Case({"output_dir": f"{disk}/out"}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
        case = dataclasses.replace(case, arguments=("--check_only",))
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not list(disk.iterdir())


test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
