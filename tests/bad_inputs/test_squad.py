"""Bad inputs of run_squad.py."""

import copy
import json
import pathlib
import shutil
from typing import Any

from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest

SCRIPT = matrix.Script(
    "run_squad",
    {
        "do_train": "true",
        "do_eval": "true",
        "train_file": "{data}/train.json",
        "predict_file": "{data}/dev.json",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "max_query_length": "4",
        "doc_stride": "4",
        "train_batch_size": "4",
    },
    has_check_only=True,
)


def _train(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a training file that is wrong."""
    return matrix.Case({"train_file": f"{{data}}/{name}", **flags}, line)


def _model(name: str, line: str) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return matrix.Case({"init_checkpoint": f"{{data}}/models/{name}"}, line)


def _out(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be worked in."""
    return matrix.Case({"output_dir": f"{{data}}/{name}", **flags}, line)


CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to do": matrix.Case({"do_train": None, "do_eval": None}, ""),
    "no output_dir": matrix.Case({"output_dir": None}, ""),
    "no train_file": matrix.Case({"train_file": None}, ""),
    "no predict_file": matrix.Case({"predict_file": None}, ""),
    "unknown flag": matrix.Case({"max_sequence_length": "16"}, ""),
    "a value behind a blank": matrix.Case({}, "", arguments=("true",)),
    "rate nan": matrix.Case({"learning_rate": "nan"}, ""),
    "rate inf": matrix.Case({"learning_rate": "inf"}, ""),
    "rate 1e99": matrix.Case({"learning_rate": "1e99"}, ""),
    "epochs nan": matrix.Case({"num_train_epochs": "nan"}, ""),
    "epochs 0": matrix.Case({"num_train_epochs": "0"}, ""),
    "epochs 1e12": matrix.Case({"num_train_epochs": "1e12"}, ""),
    "epochs 1e99": matrix.Case({"num_train_epochs": "1e99"}, ""),
    "epsilon 1e-99": matrix.Case({"adam_epsilon": "1e-99"}, ""),
    "epochs empty": matrix.Case({"num_train_epochs": ""}, ""),
    "batch 0": matrix.Case({"train_batch_size": "0"}, ""),
    "batch 2.5": matrix.Case({"train_batch_size": "2.5"}, ""),
    "batch 1e3": matrix.Case({"train_batch_size": "1000"}, ""),
    "batch 2**63": matrix.Case({"train_batch_size": str(2**63)}, ""),
    "eval batch 2**63": matrix.Case({"eval_batch_size": str(2**63)}, ""),
    "stride 0": matrix.Case({"doc_stride": "0"}, ""),
    "no room for the context": matrix.Case({"max_query_length": "13"}, ""),
    "longer than positions": matrix.Case({"max_seq_length": "33"}, ""),
    "n_best 0": matrix.Case({"n_best_size": "0"}, ""),
    "answers of length -1": matrix.Case({"max_answer_length": "-1"}, ""),
    "warm-up of more than all": matrix.Case({"warmup_proportion": "1.5"}, ""),
    "threshold for version 1": matrix.Case(
        {"null_score_diff_threshold": "auto"}, ""
    ),
    "threshold is a word": matrix.Case(
        {
            "null_score_diff_threshold": "high",
            "version_2_with_negative": "true",
        },
        "",
    ),
    "threshold nan": matrix.Case(
        {"null_score_diff_threshold": "nan", "version_2_with_negative": "true"},
        "",
    ),
    "threshold not known": matrix.Case(
        {
            "null_score_diff_threshold": "auto",
            "version_2_with_negative": "true",
            "do_eval": None,
            "do_export": "true",
        },
        "",
    ),
    "a boolean that is none": matrix.Case({"do_train": "perhaps"}, ""),
    "no such flagfile": matrix.Case({"flagfile": "{data}/none.flags"}, ""),
    "predicting with the untrained": matrix.Case(
        {"do_train": None, "do_eval": None, "do_predict": "true"}, ""
    ),
    "predicting with nothing": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": None,
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "",
    ),
    "predicting with a classifier": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": "{data}/models/strangers",
        },
        "",
    ),
    # ---- Questions
    "none": _train("none.json", ""),
    "empty": _train("empty.json", ""),
    "folder": _train("model", ""),
    "dangling link": _train("dangling.json", ""),
    "cut in the middle": _train("cut.json", ""),
    "cut by one byte": _train("cut_1.json", ""),
    "html": _train("page.json", ""),
    "lfs": _train("lfs.json", ""),
    "gzip": _train("train.json.gz", ""),
    "binary": _train("binary.json", ""),
    "latin-1": _train("latin_1.json", ""),
    "csv": _train("table.json", ""),
    "JSON lines": _train("lines.json", ""),
    "deep": _train("deep.json", ""),
    "a list": _train("list.json", ""),
    "a number": _train("number.json", ""),
    "no data": _train("no_data.json", ""),
    "data is a text": _train("data_text.json", ""),
    "article is a list": _train("article_list.json", ""),
    "no paragraphs": _train("no_paragraphs.json", ""),
    "no context": _train("no_context.json", ""),
    "empty context": _train("empty_context.json", ""),
    "context without a word": _train("no_word.json", ""),
    "no qas": _train("no_qas.json", ""),
    "no questions": _train("no_questions.json", ""),
    "question is a number": _train("question_number.json", ""),
    "question null": _train("question_null.json", ""),
    "question empty": _train("question_empty.json", ""),
    "half a surrogate": _train("surrogate.json", ""),
    "id is a number": _train("id_number.json", ""),
    "id twice": _train("id_twice.json", ""),
    "answers an object": _train("answers_object.json", ""),
    "no answer": _train("no_answer.json", ""),
    "answer empty": _train("answer_empty.json", ""),
    "answer not there": _train("answer_lost.json", ""),
    "answer out of range": _train("answer_out.json", ""),
    "answer before the beginning": _train("answer_negative.json", ""),
    "answer without a start": _train("answer_nowhere.json", ""),
    "start is a text": _train("start_text.json", ""),
    "impossible in words": _train("impossible_text.json", ""),
    "version 2 without saying so": _train("version_2.json", ""),
    "dev without answers": matrix.Case(
        {"predict_file": "{data}/hidden.json"}, ""
    ),
    "dev of version 2": matrix.Case(
        {"predict_file": "{data}/version_2.json"}, ""
    ),
    "dev with a surrogate": matrix.Case(
        {"predict_file": "{data}/surrogate.json"}, ""
    ),
    # ---- Configs and vocabularies
    **{name: _model(name, "") for name in damaged.CONFIGS},
    **{name: _model(name, "") for name in damaged.VOCABS},
    "config not there": matrix.Case({"bert_config_file": "{data}/none"}, ""),
    "config is a folder": matrix.Case({"bert_config_file": "{data}/model"}, ""),
    "config of another": matrix.Case(
        {"bert_config_file": "{data}/models/config_wide/bert_config.json"}, ""
    ),
    "vocabulary not there": matrix.Case({"vocab_file": "{data}/none"}, ""),
    "vocabulary is a folder": matrix.Case({"vocab_file": "{data}/model"}, ""),
    "vocabulary of another": matrix.Case(
        {"vocab_file": "{data}/models/vocab_short/vocab.txt"}, ""
    ),
    "cased said of an uncased": matrix.Case({"do_lower_case": "false"}, ""),
    # ---- Folders
    "out is where the questions are": matrix.Case(
        {
            "predict_file": "{data}/answers/predictions.json",
            "output_dir": "{data}/answers",
        },
        "",
    ),
    "out with a result of others": _out("answers", ""),
    "out with a hard link": _out("hard", "", train_file="{data}/train.json"),
    "out of another script": _out("others", ""),
    "out of the vocabulary": _out(
        "words", "", vocab_file="{data}/words/vocab.txt"
    ),
    "other stride": _out("run", "", doc_stride="5"),
    "other version": _out("run", "", version_2_with_negative="true"),
    "other questions": _out("run", "", train_file="{data}/dev.json"),
    "questions changed": _out("runs/examples", ""),
    "no moments": _out("runs/stripped", ""),
    "a folder for the answers": _out("runs/folder", ""),
    "a file for the best": _out("runs/best_file", ""),
    "predicting with a threshold gone wrong": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_export": "true",
            "version_2_with_negative": "true",
            "null_score_diff_threshold": "auto",
            "init_checkpoint": None,
            "output_dir": "{data}/runs/threshold",
        },
        "",
    ),
    "predicting with other weights": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": "{data}/models/config_wide",
            "output_dir": "{data}/run",
        },
        "",
    ),
}

# What rightly works.
GOOD: dict[str, matrix.Case] = {
    "byte-order mark": _train("bom.json", ""),
    "UTF-16": _train("utf_16.json", ""),
    "CRLF and indented": _train("indented.json", ""),
    "by ..": _train("model/../train.json", ""),
    "by a link": _train("link.json", ""),
    "with blanks": _train("a b c.json", ""),
    "other scripts": _train("\u8cea\u554f \U0001f600.json", ""),
    "config again": matrix.Case(
        {
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "",
    ),
    "flags of what is not done": matrix.Case(
        {"predict_batch_size": "7", "tpu_zone": "here"},
        "Not used, as they go with --do_predict: --predict_batch_size.",
    ),
    "a flag twice": matrix.Case({}, "", arguments=("--doc_stride=3",)),
    "CPUs of one device": matrix.Case(
        {"logical_cpus": "2"}, "--distribution_strategy=mirrored: --logical"
    ),
    "a bad MPLBACKEND": matrix.Case({}, "", {"MPLBACKEND": "none of them"}),
}


def _changed(store: Any, *place: Any, to: Any = None) -> Any:
    """Returns a copy with a value changed at a place; None takes it out."""
    store = copy.deepcopy(store)
    inside = store
    for key in place[:-1]:
        inside = inside[key]
    if to is None:
        del inside[place[-1]]
    else:
        inside[place[-1]] = to
    return store


def _store() -> dict:
    """Returns twelve questions, an article of one paragraph each."""
    context = "the cat sat in rome . anna sees the red bird in paris"
    data = []
    for i, text in enumerate(["cat", "anna", "rome", "red"] * 3):
        answer = {"text": text, "answer_start": context.index(text)}
        qa = {"id": f"q{i}", "question": f"the {text} ?", "answers": [answer]}
        data.append({"paragraphs": [{"context": context, "qas": [qa]}]})
    return {"version": "1.1", "data": data}


_PARAGRAPHS = ("data", 3, "paragraphs")
_PARAGRAPH = (*_PARAGRAPHS, 0)
_QA = (*_PARAGRAPH, "qas", 0)
_ANSWER = (*_QA, "answers", 0)
# File -> where a value of a good one is another, and which.
_CHANGES: dict[str, tuple[Any, ...]] = {
    "no_data": ("data", None),
    "data_text": ("data", "none"),
    "article_list": ("data", 3, [1]),
    "no_paragraphs": (*_PARAGRAPHS, None),
    "no_context": (*_PARAGRAPH, "context", None),
    "empty_context": (*_PARAGRAPH, "context", " "),
    "no_word": (*_PARAGRAPH, "context", "\u0301" * 60),
    "no_qas": (*_PARAGRAPH, "qas", None),
    "no_questions": ("data", []),
    "question_number": (*_QA, "question", 7),
    "question_null": (*_QA, "question", None),
    "question_empty": (*_QA, "question", " "),
    "surrogate": (*_QA, "question", "who \ud83d ?"),
    "id_number": (*_QA, "id", 7),
    "id_twice": (*_QA, "id", "q1"),
    "answers_object": (*_QA, "answers", {"text": ["cat"]}),
    "no_answer": (*_QA, "answers", []),
    "answer_empty": (*_ANSWER, "text", " "),
    "answer_lost": (*_ANSWER, "text", "berlin"),
    "answer_out": (*_ANSWER, "answer_start", 10**9),
    "answer_negative": (*_ANSWER, "answer_start", -5),
    "answer_nowhere": (*_ANSWER, "answer_start", None),
    "start_text": (*_ANSWER, "answer_start", "4"),
    "impossible_text": (*_QA, "is_impossible", "false"),
}


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    tiny_files.write_model(folder / "model")
    for changes in (damaged.CONFIGS, damaged.VOCABS):
        damaged.write_changed(folder / "model", folder / "models", changes)
    bad_models.write(folder / "models", folder / "model")
    store = _store()
    good = json.dumps(store).encode()
    hidden = copy.deepcopy(store)
    for article in hidden["data"]:
        del article["paragraphs"][0]["qas"][0]["answers"]
    version_2 = _changed(store, *_QA, "answers", to=[])
    version_2 = _changed(version_2, *_QA, "is_impossible", to=True)
    stores: dict[str, Any] = {
        "train": store,
        "dev": store,
        "list": store["data"],
        "number": 7,
        "hidden": hidden,
        "version_2": version_2,
        **{
            name: _changed(store, *place, to=value)
            for name, (*place, value) in _CHANGES.items()
        },
    }
    for name, values in stores.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    for name, data in {
        "empty.json": b"",
        "cut.json": good[: len(good) // 2],
        "cut_1.json": good[:-1],
        "page.json": damaged.HTML,
        "lfs.json": bad_models.LFS,
        "train.json.gz": damaged.GZIP,
        "binary.json": damaged.BINARY,
        "latin_1.json": good.replace(b"anna", b"ann\xe9"),
        "table.json": b"id,question\n1,who\n",
        "lines.json": b'{"id": "a", "question": "b"}\n' * 2,
        "bom.json": b"\xef\xbb\xbf" + good,
        "utf_16.json": good.decode().encode("utf-16"),
        "indented.json": json.dumps(store, indent=1)
        .replace("\n", "\r\n")
        .encode(),
        "a b c.json": good,
        "\u8cea\u554f \U0001f600.json": good,
        "deep.json": b"[" * 100_000,
    }.items():
        (folder / name).write_bytes(data)
    (folder / "dangling.json").symlink_to(folder / "gone.json")
    (folder / "link.json").symlink_to("train.json")
    for place, name in (
        ("answers", "predictions.json"),
        ("hard", "eval.tf_record"),
        ("words", "vocab.txt"),
    ):
        (folder / place).mkdir()
        source = "model/vocab.txt" if place == "words" else "dev.json"
        (folder / place / name).hardlink_to(folder / source)
    (folder / "others").mkdir()
    (folder / "others/flags.txt").write_text("# python run_ner.py\n")
    _write_runs(folder)


def _write_runs(folder: pathlib.Path) -> None:
    """Makes a run, and copies of it that are wrong in one way each."""
    matrix.make(SCRIPT, folder, folder / "run", "--num_train_epochs=1")
    in_run = damaged.bytes_in
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "examples": in_run(
                "train_examples.json", b'{"records": 7, "sha256": "0"}'
            ),
            "stripped": lambda run: damaged.rename_tensors(
                run, lambda name: "" if "/adam_" in name else name
            ),
            "folder": lambda run: (run / "nbest_predictions.json").mkdir(),
            "best_file": _file_for_best,
            "threshold": in_run("null_score_diff_threshold.txt", b"high\n"),
        },
    )


def _file_for_best(run: pathlib.Path) -> None:
    shutil.rmtree(run / "best")
    (run / "best").write_text("")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", GOOD)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path, GOOD[name])


def test_another_backend_of_keras_is_not_used(data, tmp_path):
    flags = matrix.command(SCRIPT, matrix.Case({}, ""), data, tmp_path / "out")
    done = matrix.in_a_shell(
        SCRIPT, [*flags, "--check_only"], {"KERAS_BACKEND": "torch"}
    )
    assert done.returncode == 0, done.stderr
    assert "KERAS_BACKEND=torch is not used" in done.stderr
