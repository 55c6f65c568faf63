"""Bad inputs of run_multiple_choice.py."""

import dataclasses
import json
import os
import pathlib
import shutil
from typing import Any

from bert_tf import heads, run_lock
from tests import small_disks, tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest

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
    "nothing to do": Case(
        {"do_train": "false", "do_eval": "false"},
        "At least one of --do_train, --do_eval, --do_predict and",
    ),
    "no training file": _train("none.jsonl", "There is no such file"),
    "train_file not given": Case(
        {"train_file": None}, "Give --train_file, the train set."
    ),
    "dev_file not given": Case(
        {"dev_file": None}, "Give --dev_file, the dev set."
    ),
    "dev_file empty": Case({"dev_file": ""}, "--dev_file is empty"),
    "too few examples": Case(
        {"train_batch_size": "1000"},
        "There are too few examples for one training step",
    ),
    "longer than positions": Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions",
    ),
    "flagfile of SWAG": Case(
        {"max_seq_length": "128"},
        "`max_seq_length` is more than the model has positions",
    ),
    "texts of what is not predicted": Case(
        {"predictions_with_texts": "perhaps"},
        "--predictions_with_texts must be true or false",
    ),
    "optimizer unknown": Case(
        {"optimizer": "adam"},
        "--optimizer must be one of adamw, adamw_bias_corrected,",
    ),
    "schedule unknown": Case(
        {"lr_schedule": "step"},
        "--lr_schedule must be one of linear, polynomial, cosine,",
    ),
    "end above the peak": Case(
        {"end_learning_rate": "1"},
        "`end_learning_rate` must be between 0 and the peak",
    ),
    "power of a linear schedule": Case(
        {"lr_power": "2"},
        "--lr_power goes with --lr_schedule=polynomial: leave it",
    ),
    "cooldown of a linear schedule": Case(
        {"num_cooldown_steps": "2"},
        "--num_cooldown_steps goes with --lr_schedule=constant:",
    ),
    "cooldown of more than all": Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "10"},
        "Warm-up and cooldown must not take more than all steps",
    ),
    "weight decay 1e39": Case(
        {"weight_decay_rate": "1e39"},
        "--weight_decay_rate must be a number, at least 0, at most",
    ),
    "clip norm 0": Case(
        {"clip_norm": "0"}, "--clip_norm must be a number, above 0"
    ),
    "seed 2**31": Case(
        {"seed": str(2**31)},
        "--seed must be a whole number, at least 0 and at most",
    ),
    "keep none": Case(
        {"keep_checkpoint_max": "0"},
        "--keep_checkpoint_max must be a whole number, at least 1",
    ),
    "save each 0 steps": Case(
        {"save_checkpoints_steps": "0"},
        "--save_checkpoints_steps must be a whole number, at least",
    ),
    "trace in words": Case(
        {"profile_steps": "first"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST,",
    ),
    "trace backwards": Case(
        {"profile_steps": "7:3"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST,",
    ),
    "trace beyond the end": Case(
        {"profile_steps": "3:700"},
        "--profile_steps must end by the last step of the run, 9",
    ),
    "peak flops nan": Case(
        {"peak_flops": "nan"}, "--peak_flops must be a number, at least 1"
    ),
    "dtype of 16 bits on a CPU": Case(
        {"dtype": "float16"}, "float16 needs a GPU"
    ),
    "dtype unknown": Case(
        {"dtype": "half"}, "--dtype must be one of float32, bfloat16, float16"
    ),
    "strategy unknown": Case(
        {"distribution_strategy": "parallel"},
        "--distribution_strategy must be one of default, mirrored,",
    ),
    "TPU and mirrored": Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu",
    ),
    "no TPU": Case({"use_tpu": "true"}, "No TPU was found"),
    "a TPU elsewhere and local files": Case(
        {"use_tpu": "true", "tpu_name": "mine"},
        "The hosts of a TPU elsewhere can't read local files: put",
    ),
    "master": Case(
        {"master": "grpc://10.0.0.2:8470"}, "--master belonged to TF1 sessions"
    ),
    "CPUs that do not share the batch": Case(
        {"distribution_strategy": "mirrored", "logical_cpus": "3"},
        "--train_batch_size must be a multiple of 3 replicas times",
    ),
    "CPUs that do not share the evaluation": Case(
        {
            "distribution_strategy": "mirrored",
            "logical_cpus": "4",
            "eval_batch_size": "6",
        },
        "--eval_batch_size must be a multiple of 4 replicas times",
    ),
    "CPUs 0": Case(
        {"logical_cpus": "0"},
        "--logical_cpus must be a whole number, at least 1",
    ),
    "two flagfiles of which one is not there": Case(
        {"flagfile": "{data}/good.flags,{data}/none.flags"},
        "A flagfile, or one that it names, can't be read: No such",
    ),
    "flagfile with a flag of others": Case(
        {"flagfile": "{data}/bad.flags"}, "There is no flag --doc_stride"
    ),
    "flagfile binary": Case(
        {"flagfile": "{data}/binary.jsonl"},
        "A flagfile, or one that it names, can't be read: it is",
    ),
    # ---- Clusters
    "cluster not given": Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "The strategy multi_worker_mirrored reads the cluster from",
    ),
    "cluster not JSON": _cluster(
        "TF_CONFIG does not describe a cluster, such as",
        "worker0:2222,worker1:2222",
    ),
    "cluster empty": _cluster(
        "TF_CONFIG does not describe a cluster, such as", ""
    ),
    "cluster a list": _cluster(
        "TF_CONFIG does not describe a cluster, such as", []
    ),
    "cluster without this task": _cluster(
        "TF_CONFIG does not describe a cluster, such as",
        {"cluster": {"worker": ["localhost:4242"]}},
    ),
    "cluster of one, and this is the second": _cluster(
        "TF_CONFIG contradicts itself: this is worker 1, of which",
        {
            "cluster": {"worker": ["localhost:4242"]},
            "task": {"type": "worker", "index": 1},
        },
    ),
    "cluster with a parameter server": _cluster(
        "TF_CONFIG contradicts itself: it names ps, and only chief",
        {"cluster": {"ps": ["localhost:1"]}, "task": _WORKER},
    ),
    "cluster without ports": _cluster(
        "TF_CONFIG contradicts itself: localhost is not HOST:PORT",
        {"cluster": {"worker": ["localhost"]}, "task": _WORKER},
    ),
    "cluster with a port of 99999": _cluster(
        "TF_CONFIG contradicts itself: localhost:99999 is not",
        {"cluster": {"worker": ["localhost:99999"]}, "task": _WORKER},
    ),
    "cluster of one address twice": _cluster(
        "TF_CONFIG contradicts itself: two processes have the same",
        {"cluster": {"worker": ["localhost:1"] * 2}, "task": _WORKER},
    ),
    # ---- Problems
    "empty": _train("empty.jsonl", "holds no problem"),
    "blank": _train("blank.jsonl", "holds no problem"),
    "a folder": _train("folder.jsonl", "This is a folder: give a file"),
    "no ending": _train(
        "problems", "The name of a file of problems must end in .csv (SWAG's),"
    ),
    "text": _train(
        "problems.txt",
        "The name of a file of problems must end in .csv (SWAG's),",
    ),
    "compressed": _train(
        "train.jsonl.gz",
        "The name of a file of problems must end in .csv (SWAG's),",
    ),
    "gzip by another name": _train(
        "gzip.jsonl", "can't be read: it is compressed (gzip). Unpack it."
    ),
    "lfs": _train(
        "lfs.jsonl", "can't be read: it is a pointer of git-lfs, not the file"
    ),
    "html": _train(
        "page.jsonl", "line 1: the line is not JSON (it is a web page, saved in"
    ),
    "binary": _train(
        "binary.jsonl",
        "line 1: the text is not UTF-8 (invalid start byte at byte",
    ),
    "latin-1": _train(
        "latin_1.jsonl",
        "line 13: the text is not UTF-8 (invalid continuation byte",
    ),
    "UTF-16": _train("utf_16.jsonl", "can't be read: it is UTF-16, not UTF-8"),
    "cut": _train(
        "cut.jsonl", "line 12: the line is not JSON (Unterminated string"
    ),
    "one object over lines": _train(
        "indented.jsonl",
        "line 1: the line is not JSON (Expecting property name",
    ),
    "a list of all": _train("list.jsonl", "line 1: expected a JSON object"),
    "deep": _train(
        "deep.jsonl", "line 1: the line is not JSON (maximum recursion depth"
    ),
    "no prompt": _train(
        "no_prompt.jsonl", "line 3: expected 'prompt' of type str"
    ),
    "prompt null": _train(
        "prompt_null.jsonl", "line 1: expected 'prompt' of type str"
    ),
    "choices a text": _train(
        "choices_text.jsonl", "line 3: expected 'choices' of type list"
    ),
    "choices of numbers": _train(
        "choices_numbers.jsonl", "line 3: expected 'choices' of type str"
    ),
    "one choice": _train(
        "one.jsonl", "line 3: expected two choices or more, none of them empty"
    ),
    "no choice": _train(
        "none_of.jsonl",
        "line 3: expected two choices or more, none of them empty",
    ),
    "choice empty": _train(
        "choice_empty.jsonl",
        "line 3: expected two choices or more, none of them empty",
    ),
    "no label": _train(
        "no_label.jsonl", "line 3: expected 'label' of type int"
    ),
    "label true": _train(
        "label_true.jsonl", "line 3: expected 'label' of type int"
    ),
    "label a text": _train(
        "label_text.jsonl", "line 3: expected 'label' of type int"
    ),
    "label beyond": _train(
        "label_beyond.jsonl", "line 3: the label must be from 0 to 1"
    ),
    "label -1": _train(
        "label_hidden.jsonl", "line 3: the label must be from 0 to 1"
    ),
    "half a surrogate": _train(
        "surrogate.jsonl", "line 3: a text holds half a surrogate pair (such as"
    ),
    "RACE, answer beyond": _train(
        "race_beyond.jsonl", "line 2: the label must be from 0 to 1"
    ),
    "RACE, answer a number": _train(
        "race_number.jsonl", "line 2: expected 'answers' of type str"
    ),
    "RACE, answers too few": _train(
        "race_few.jsonl",
        "line 2: expected as many options and answers as questions",
    ),
    "RACE, option empty": _train(
        "race_empty.jsonl", "line 2: option 2 is empty"
    ),
    "SWAG, no header": _train(
        "no_header.csv", "line 1: the column 'sent1' is missing from the header"
    ),
    "SWAG, header alone": _train("header.csv", "the file has no rows"),
    "SWAG, by tabs": _train(
        "tabs.csv", "line 1: the column 'sent1' is missing from the header"
    ),
    "SWAG, label in words": _train(
        "label_words.csv",
        "line 2: the label must be the number of the right choice,",
    ),
    "SWAG, label 4": _train(
        "label_4.csv", "line 2: the label must be from 0 to 3"
    ),
    "SWAG, ending empty": _train(
        "ending_empty.csv", "line 2: ending2 is empty"
    ),
    "SWAG, a quote open": _train(
        "quote.csv", "line 3: the row is not valid CSV (unexpected end of"
    ),
    "SWAG, a column too many": _train(
        "ragged.csv", "line 2: more columns than the first row"
    ),
    "SWAG, a column twice": _train(
        "twice.csv", "line 1: the column 'ending0' appears twice in the header"
    ),
    "dev with hidden labels": Case(
        {"dev_file": "{data}/label_hidden.jsonl"},
        "line 3: the label must be from 0 to 1",
    ),
    "test with one choice": _predict(
        "line 3: expected two choices or more, none of them empty",
        test_file="{data}/one.jsonl",
    ),
    "test not given": _predict(
        "Give --test_file, the test set.", test_file=None
    ),
    # ---- Models
    "predicting with the untrained": _predict(
        "is not fine-tuned: it has no multiple_choice head",
        init_checkpoint="{data}/model",
    ),
    "predicting with nothing": _predict(
        "There is no trained model: --output_dir={out} holds no",
        init_checkpoint=None,
    ),
    "cut weights": Case(
        {"init_checkpoint": "{data}/models/cut_data"},
        "can't be read, it is truncated, corrupt or not all there:",
    ),
    "flipped weights": Case(
        {"init_checkpoint": "{data}/models/flipped_data_model"},
        "There is no checkpoint {data}/models/flipped_data_model:",
    ),
    "weights of another size": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/models/config_wide/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "has other shapes than this model:",
    ),
    "weights of fewer layers": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/models/config_deep/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "does not fit this model",
    ),
    "a vocabulary of 10": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/short.txt",
        },
        "does not belong to this BERT config: it has 10 pieces,",
    ),
    "vocabulary without [SEP]": Case(
        {"init_checkpoint": "{data}/models/vocab_no_sep"},
        "lacks the piece '[SEP]', which the model reads beside",
    ),
    # ---- Folders
    "out of the original's model": _out(
        "model", "holds a model (bert_model.ckpt.data-00000-of-00001), and"
    ),
    "out of another script": _out(
        "others", "holds a run of run_classifier.py, not of"
    ),
    "out of a result of others": _out(
        "foreign", "holds eval_results.txt, which this run would replace and"
    ),
    "out a pipe": _out(
        "pipe", "--output_dir must be a folder, and this is a file"
    ),
    "other data": _out(
        "run",
        "holds another run: train_file was {data}/train.jsonl and",
        train_file="{data}/other.jsonl",
    ),
    "other batch": _out(
        "run",
        "holds another run: train_batch_size was 4 and is 2",
        train_batch_size="2",
    ),
    "grouped by length": _out(
        "run",
        "holds another run: group_by_length was false and is true",
        group_by_length="true",
    ),
    "cased now": _out(
        "run",
        "is uncased: none of its 31 pieces with letters has an",
        do_lower_case="false",
    ),
    "other weights to predict with": _predict(
        "--output_dir={data}/run holds a run, whose weights are",
        output_dir="{data}/run",
    ),
    "changed data": _out(
        "runs/data", "The run in {data}/runs/data was trained on other"
    ),
    "no checkpoint can be read": _out(
        "runs/cut", "None of the checkpoints in {data}/runs/cut can be read"
    ),
    "a checkpoint of other things": _out(
        "runs/of_squad", "can't be gone on with"
    ),
    "flags binary": _out(
        "runs/flags",
        "is damaged: it keeps the flags of a run, and is not UTF-8",
    ),
    "metrics cut": _out(
        "runs/metrics", "{data}/runs/metrics/metrics.jsonl, line 1, is no JSON"
    ),
    "metrics of another kind": _out(
        "runs/metrics_list",
        "{data}/runs/metrics_list/metrics.jsonl, line 1, is no",
    ),
    "best cut": _out(
        "runs/best", "is not JSON: Unterminated string starting at: line 1"
    ),
    "best of another kind": _out("runs/best_list", "must hold one JSON object"),
    "examples cut": _out(
        "runs/examples", "is not JSON: Unterminated string starting at: line 1"
    ),
    "examples of another kind": _out(
        "runs/examples_other",
        "The run in {data}/runs/examples_other was trained on",
    ),
    "config gone wrong": _out(
        "runs/config",
        "is not JSON: Expecting property name enclosed in double",
        init_checkpoint=None,
    ),
    "predicting with best cut": _predict(
        "is not JSON: Unterminated string starting at: line 1",
        output_dir="{data}/runs/best",
        init_checkpoint=None,
    ),
    "predicting with best gone": _predict(
        "says that the best weights are",
        output_dir="{data}/runs/best_gone",
        init_checkpoint=None,
    ),
    "predicting with best damaged": _predict(
        "can't be read, it is truncated, corrupt or not all there:",
        output_dir="{data}/runs/best_cut",
        init_checkpoint=None,
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
_RACE: dict[str, Any] = {
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
    race: dict[str, dict[str, Any]] = {
        "beyond": {"answers": ["A", "C"]},
        "number": {"answers": [0, 1]},
        "few": {"answers": ["A"]},
        "empty": {"options": [["sat", " "], ["cat", "dog"]]},
    }
    for name, change in race.items():
        changed[f"race_{name}.jsonl"] = _lines(_RACE, _RACE | change)
    files: dict[str, str | bytes] = {
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
    }
    damaged.write_files(folder, files)
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
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
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
    with small_disks.mounted(tmp_path / "disk", 48) as disk:
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
