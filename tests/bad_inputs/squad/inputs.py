"""What run_squad.py is given that is wrong: commands and files."""

import copy
import json
import pathlib
import shutil
from typing import Any

from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

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


def train(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a training file that is wrong."""
    return matrix.Case({"train_file": f"{{data}}/{name}", **flags}, line)


def model(name: str, line: str) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return matrix.Case({"init_checkpoint": f"{{data}}/models/{name}"}, line)


def out(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be worked in."""
    return matrix.Case({"output_dir": f"{{data}}/{name}", **flags}, line)


OTHER_TENSORS = "the tensors are not those of the config beside them: "


CONFIGS = {
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
    "config_xlnet": "This is a xlnet model, not BERT",
    "config_decoder": "`is_decoder` must be False. Received: is_decoder=True",
    "config_wide": f"{OTHER_TENSORS}bert/embeddings/word_embeddings is",
    "config_deep": f"{OTHER_TENSORS}bert/encoder/layer_2/",
    "config_shallow": f"{OTHER_TENSORS}bert/encoder/layer_1/",
}


VOCABS = {
    "no_vocab": "The vocabulary is not known: give --vocab_file, or a",
    "vocab_empty": "is not a BERT vocabulary: it is empty. Give the vocab.txt",
    "vocab_lfs": "is a pointer of git-lfs, not the file itself",
    "vocab_binary": "vocab.txt, line 1: a vocabulary must be UTF-8",
    "vocab_utf_16": "vocab.txt can't be read: it is UTF-16, not UTF-8",
    "vocab_short": "it has 43 pieces, the config says vocab_size=44",
    "vocab_long": "it has 45 pieces, the config says vocab_size=44",
    "vocab_no_unk": "lacks the piece '[UNK]', which stands for unknown words",
    "vocab_no_cls": "lacks the piece '[CLS]', which the model reads beside",
    "vocab_no_sep": "lacks the piece '[SEP]', which the model reads beside",
    "vocab_twice": "line 9: this piece is already on line 8. The original",
    "vocab_hole": "line 8: a vocabulary must not hold empty lines",
    "vocab_cased": "is cased: lower-casing and accent stripping change 31 of",
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
