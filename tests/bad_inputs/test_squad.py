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


_OTHER_TENSORS = "the tensors are not those of the config beside them: "
_CONFIGS = {
    "no_config": "The model's architecture is not known: give --bert_config_",
    "config_empty": "bert_config.json is not JSON: it is empty. Give the",
    "config_cut": "bert_config.json is not JSON: Unterminated string",
    "config_lfs": "is a pointer of git-lfs, not the file itself",
    "config_html": "is a web page, saved in the place of the file",
    "config_list": "bert_config.json must hold one JSON object",
    "config_binary": "bert_config.json is not JSON: 'utf-8' codec",
    "config_text": "`hidden_size` must be a positive integer. Received: hidd",
    "config_true": "`num_hidden_layers` must be a positive integer. Received",
    "config_nan": "`hidden_dropout_prob` must be a number, at least 0 and",
    "config_heads": "`hidden_size` must be a multiple of `num_attention_heads",
    "config_act": "`hidden_act` must be one of gelu, gelu_erf, relu, tanh",
    "config_key": "unknown keys: hidden_sise (did you mean hidden_size?)",
    "config_no_size": "The BERT config has no `vocab_size`: add the number",
    "config_roberta": "This is a roberta model, not BERT",
    "config_decoder": "`is_decoder` must be False. Received: is_decoder=True",
    "config_wide": f"{_OTHER_TENSORS}bert/embeddings/word_embeddings is",
    "config_deep": f"{_OTHER_TENSORS}bert/encoder/layer_2/",
    "config_shallow": f"{_OTHER_TENSORS}bert/encoder/layer_1/",
}
_VOCABS = {
    "no_vocab": "The vocabulary is not known: give --vocab_file, or a",
    "vocab_empty": "is not a BERT vocabulary: it is empty. Give the vocab.txt",
    "vocab_lfs": "is a pointer of git-lfs, not the file itself",
    "vocab_binary": "vocab.txt is not UTF-8 text: invalid start byte at byte 0",
    "vocab_utf_16": "vocab.txt is not UTF-8 text: it is UTF-16, not UTF-8",
    "vocab_short": "it has 43 pieces, the config says vocab_size=44",
    "vocab_long": "it has 45 pieces, the config says vocab_size=44",
    "vocab_no_unk": "lacks the piece '[UNK]', which stands for unknown words",
    "vocab_no_cls": "lacks the piece '[CLS]', which the model reads beside",
    "vocab_no_sep": "lacks the piece '[SEP]', which the model reads beside",
    "vocab_twice": "line 9: this piece is already on line 8. The original",
    "vocab_hole": "line 8: a vocabulary must not hold empty lines",
    "vocab_cased": "is cased: lower-casing and accent stripping change 31 of",
}
CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to do": matrix.Case(
        {"do_train": None, "do_eval": None},
        "At least one of --do_train, --do_eval, --do_predict and",
    ),
    "no output_dir": matrix.Case(
        {"output_dir": None},
        "Give --output_dir (Folder for checkpoints and results).",
    ),
    "no train_file": matrix.Case(
        {"train_file": None}, "--do_train needs --train_file, such as SQuAD's"
    ),
    "no predict_file": matrix.Case(
        {"predict_file": None},
        "--do_eval and --do_predict need --predict_file, such as",
    ),
    "unknown flag": matrix.Case(
        {"max_sequence_length": "16"}, "There is no flag --max_sequence_length"
    ),
    "a value behind a blank": matrix.Case(
        {}, "Only flags are expected, as --name=value", arguments=("true",)
    ),
    "rate nan": matrix.Case(
        {"learning_rate": "nan"}, "--learning_rate must be a number, at least 0"
    ),
    "rate inf": matrix.Case(
        {"learning_rate": "inf"}, "--learning_rate must be a number, at least 0"
    ),
    "rate 1e99": matrix.Case(
        {"learning_rate": "1e99"},
        "--learning_rate must be a number, at least 0, at most",
    ),
    "epochs nan": matrix.Case(
        {"num_train_epochs": "nan"},
        "--num_train_epochs must be a number, above 0",
    ),
    "epochs 0": matrix.Case(
        {"num_train_epochs": "0"},
        "--num_train_epochs must be a number, above 0",
    ),
    "epochs 1e12": matrix.Case(
        {"num_train_epochs": "1e12"}, "A run takes less than 2147483648 steps"
    ),
    "epochs 1e99": matrix.Case(
        {"num_train_epochs": "1e99"},
        "--num_train_epochs must be a number, above 0, at most",
    ),
    "epsilon 1e-99": matrix.Case(
        {"adam_epsilon": "1e-99"},
        "--adam_epsilon must be a number, above 0, at least",
    ),
    "epochs empty": matrix.Case(
        {"num_train_epochs": ""}, "--num_train_epochs must be a number, above 0"
    ),
    "batch 0": matrix.Case(
        {"train_batch_size": "0"},
        "--train_batch_size must be a whole number, at least 1",
    ),
    "batch 2.5": matrix.Case(
        {"train_batch_size": "2.5"},
        "--train_batch_size must be a whole number, at least 1",
    ),
    "batch 1e3": matrix.Case(
        {"train_batch_size": "1000"},
        "There are too few examples for one training step",
    ),
    "batch 2**63": matrix.Case(
        {"train_batch_size": str(2**63)},
        "--train_batch_size must be a whole number, at least 1, at",
    ),
    "eval batch 2**63": matrix.Case(
        {"eval_batch_size": str(2**63)},
        "--eval_batch_size must be a whole number, at least 1, at",
    ),
    "stride 0": matrix.Case(
        {"doc_stride": "0"}, "--doc_stride must be a whole number, at least 1"
    ),
    "no room for the context": matrix.Case(
        {"max_query_length": "13"},
        "max_seq_length must leave room for the context: be more",
    ),
    "longer than positions": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions",
    ),
    "n_best 0": matrix.Case(
        {"n_best_size": "0"}, "--n_best_size must be a whole number, at least 1"
    ),
    "answers of length -1": matrix.Case(
        {"max_answer_length": "-1"},
        "--max_answer_length must be a whole number, at least 1",
    ),
    "warm-up of more than all": matrix.Case(
        {"warmup_proportion": "1.5"},
        "--warmup_proportion must be a number, at least 0 and at",
    ),
    "threshold for version 1": matrix.Case(
        {"null_score_diff_threshold": "auto"},
        "--null_score_diff_threshold goes with",
    ),
    "threshold is a word": matrix.Case(
        {
            "null_score_diff_threshold": "high",
            "version_2_with_negative": "true",
        },
        "--null_score_diff_threshold must be a number or auto",
    ),
    "threshold nan": matrix.Case(
        {"null_score_diff_threshold": "nan", "version_2_with_negative": "true"},
        "--null_score_diff_threshold must be a number or auto",
    ),
    "threshold not known": matrix.Case(
        {
            "null_score_diff_threshold": "auto",
            "version_2_with_negative": "true",
            "do_eval": None,
            "do_export": "true",
        },
        "--null_score_diff_threshold=auto needs questions with",
    ),
    "a boolean that is none": matrix.Case(
        {"do_train": "perhaps"}, "--do_train must be true or false"
    ),
    "no such flagfile": matrix.Case(
        {"flagfile": "{data}/none.flags"},
        "A flagfile, or one that it names, can't be read: No such",
    ),
    "predicting with the untrained": matrix.Case(
        {"do_train": None, "do_eval": None, "do_predict": "true"},
        "is not fine-tuned: it has no span head",
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
        "There is no trained model: --output_dir={out} holds no",
    ),
    "predicting with a classifier": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": "{data}/models/strangers",
        },
        "the tensors are not those of the config beside them:",
    ),
    # ---- Questions
    "none": _train("none.json", "There is no such file"),
    "empty": _train("empty.json", "is not JSON: it is empty"),
    "folder": _train("model", "This is a folder: give a file"),
    "dangling link": _train("dangling.json", "There is no such file"),
    "cut in the middle": _train(
        "cut.json", "is not JSON: Expecting ':' delimiter: line 1 column 1136"
    ),
    "cut by one byte": _train(
        "cut_1.json", "is not JSON: Expecting ',' delimiter: line 1 column 2271"
    ),
    "html": _train(
        "page.json", "is not JSON: it is a web page, saved in the place of the"
    ),
    "lfs": _train(
        "lfs.json", "is not JSON: it is a pointer of git-lfs, not the file"
    ),
    "gzip": _train(
        "train.json.gz", "is not JSON: it is compressed (gzip). Unpack it"
    ),
    "binary": _train(
        "binary.json", "is not JSON: 'utf-8' codec can't decode byte 0x80 in"
    ),
    "latin-1": _train(
        "latin_1.json", "is not JSON: 'utf-8' codec can't decode byte 0xe9 in"
    ),
    "csv": _train(
        "table.json", "is not JSON: Expecting value: line 1 column 1 (char 0)."
    ),
    "JSON lines": _train(
        "lines.json", "is not JSON: Extra data: line 2 column 1 (char 29)."
    ),
    "deep": _train(
        "deep.json", "is not JSON: maximum recursion depth exceeded while"
    ),
    "a list": _train(
        "list.json", "expected a JSON object with 'data', as in SQuAD's files"
    ),
    "a number": _train(
        "number.json", "expected a JSON object with 'data', as in SQuAD's files"
    ),
    "no data": _train("no_data.json", "'data' is missing"),
    "data is a text": _train("data_text.json", "'data' must be of type list"),
    "article is a list": _train(
        "article_list.json",
        "article 4: expected a JSON object with 'paragraphs', as",
    ),
    "no paragraphs": _train(
        "no_paragraphs.json", "article 4: 'paragraphs' is missing"
    ),
    "no context": _train(
        "no_context.json", "article 4, paragraph 1: 'context' is missing"
    ),
    "empty context": _train(
        "empty_context.json", "question q3: the context is empty"
    ),
    "context without a word": _train(
        "no_word.json", "question q3: the answer is not in the context"
    ),
    "no qas": _train("no_qas.json", "article 4, paragraph 1: 'qas' is missing"),
    "no questions": _train("no_questions.json", "holds no question."),
    "question is a number": _train(
        "question_number.json", "question q3: 'question' must be of type str"
    ),
    "question null": _train(
        "question_null.json", "question q3: 'question' is missing"
    ),
    "question empty": _train(
        "question_empty.json", "question q3: the question is empty"
    ),
    "half a surrogate": _train(
        "surrogate.json",
        "article 4, paragraph 1: a text holds half a surrogate",
    ),
    "id is a number": _train(
        "id_number.json", "article 4, paragraph 1: 'id' must be of type str"
    ),
    "id twice": _train("id_twice.json", "question q1: the id comes twice."),
    "answers an object": _train(
        "answers_object.json", "question q3: 'answers' must be of type list"
    ),
    "no answer": _train(
        "no_answer.json", "question q3: there is no answer to learn"
    ),
    "answer empty": _train(
        "answer_empty.json", "question q3: the answer is empty"
    ),
    "answer not there": _train(
        "answer_lost.json", "question q3: the answer is not in the context"
    ),
    "answer out of range": _train(
        "answer_out.json",
        "question q3: the answer is out of range; the context has",
    ),
    "answer before the beginning": _train(
        "answer_negative.json",
        "question q3: the answer is out of range; the context has",
    ),
    "answer without a start": _train(
        "answer_nowhere.json",
        "question q3: the answer has no 'answer_start'. Correct",
    ),
    "start is a text": _train(
        "start_text.json", "question q3: 'answer_start' must be of type int"
    ),
    "impossible in words": _train(
        "impossible_text.json",
        "question q3: 'is_impossible' must be of type bool",
    ),
    "version 2 without saying so": _train(
        "version_2.json", "question q3: there is no answer to learn"
    ),
    "dev without answers": matrix.Case(
        {"predict_file": "{data}/hidden.json"},
        "--do_eval needs answers, and {data}/hidden.json has none",
    ),
    "dev of version 2": matrix.Case(
        {"predict_file": "{data}/version_2.json"},
        "question q3: there is no answer, as for 1 of 12 questions",
    ),
    "dev with a surrogate": matrix.Case(
        {"predict_file": "{data}/surrogate.json"},
        "article 4, paragraph 1: a text holds half a surrogate",
    ),
    # ---- Configs and vocabularies
    **{name: _model(name, line) for name, line in _CONFIGS.items()},
    **{name: _model(name, line) for name, line in _VOCABS.items()},
    "config not there": matrix.Case(
        {"bert_config_file": "{data}/none"}, "There is no such file"
    ),
    "config is a folder": matrix.Case(
        {"bert_config_file": "{data}/model"}, "This is a folder: give a file"
    ),
    "config of another": matrix.Case(
        {"bert_config_file": "{data}/models/config_wide/bert_config.json"},
        "is not the config of {data}/model/bert_model.ckpt:",
    ),
    "vocabulary not there": matrix.Case(
        {"vocab_file": "{data}/none"}, "There is no such file"
    ),
    "vocabulary is a folder": matrix.Case(
        {"vocab_file": "{data}/model"}, "This is a folder: give a file"
    ),
    "vocabulary of another": matrix.Case(
        {"vocab_file": "{data}/models/vocab_short/vocab.txt"},
        "is not the vocabulary of {data}/model/bert_model.ckpt: it",
    ),
    "cased said of an uncased": matrix.Case(
        {"do_lower_case": "false"},
        "is uncased: none of its 31 pieces with letters has an",
    ),
    # ---- Folders
    "out is where the questions are": matrix.Case(
        {
            "predict_file": "{data}/answers/predictions.json",
            "output_dir": "{data}/answers",
        },
        "The run would write over what --predict_file reads:",
    ),
    "out with a result of others": _out(
        "answers", "holds predictions.json, which this run would replace and"
    ),
    "out with a hard link": _out(
        "hard",
        "holds eval.tf_record, which this run would replace and no",
        train_file="{data}/train.json",
    ),
    "out of another script": _out(
        "others", "holds a run of run_ner.py, not of run_squad.py: choose"
    ),
    "out of the vocabulary": _out(
        "words",
        "holds vocab.txt, which this run would replace and no run",
        vocab_file="{data}/words/vocab.txt",
    ),
    "other stride": _out(
        "run", "holds another run: doc_stride was 4 and is 5", doc_stride="5"
    ),
    "other version": _out(
        "run",
        "holds another run: version_2_with_negative was false and",
        version_2_with_negative="true",
    ),
    "other questions": _out(
        "run",
        "holds another run: train_file was {data}/train.json and",
        train_file="{data}/dev.json",
    ),
    "questions changed": _out(
        "runs/examples", "The run in {data}/runs/examples was trained on other"
    ),
    "no moments": _out("runs/stripped", "can't be gone on with"),
    "a folder for the answers": _out(
        "runs/folder", "is a folder, and the run writes a file of that name:"
    ),
    "a file for the best": _out(
        "runs/best_file",
        "is no folder, and the run writes one of that name: remove",
    ),
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
        "must hold the threshold that was tuned",
    ),
    "predicting with other weights": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": "{data}/models/config_wide",
            "output_dir": "{data}/run",
        },
        "--output_dir={data}/run holds a run, whose weights are",
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
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
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
