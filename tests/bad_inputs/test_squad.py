import copy
import json
import pathlib
from typing import Any

from tests.bad_inputs import cases, damaged, matrix

SCRIPT, CASES, RIGHT = cases.read("squad")


def _changed(store: Any, *place: Any, to: Any = None) -> Any:
    """Returns a copy with one value changed; None removes it."""
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
    """Returns twelve questions, one article with one paragraph each."""
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
# Values of other types than SQuAD's, which are taken for those.
_TYPES: dict[tuple[Any, ...], Any] = {
    (*_QA, "question"): 7,
    (*_QA, "id"): 7,
    (*_QA, "is_impossible"): "false",
    (*_ANSWER, "answer_start"): "4",
}
# File -> the value of a good file that is changed, and its new value.
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
    "question_null": (*_QA, "question", None),
    "question_empty": (*_QA, "question", " "),
    "surrogate": (*_QA, "question", "who \ud83d ?"),
    "answers_object": (*_QA, "answers", {"text": ["cat"]}),
    "no_answer": (*_QA, "answers", []),
    "answer_empty": (*_ANSWER, "text", " "),
    "answer_lost": (*_ANSWER, "text", "berlin"),
    "answer_nowhere": (*_ANSWER, "answer_start", None),
}


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    damaged.write_models(folder)
    store = _store()
    good = json.dumps(store).encode()
    hidden = copy.deepcopy(store)
    for article in hidden["data"]:
        del article["paragraphs"][0]["qas"][0]["answers"]
    types = store
    for place, value in _TYPES.items():
        types = _changed(types, *place, to=value)
    version_2 = _changed(store, *_QA, "answers", to=[])
    version_2 = _changed(version_2, *_QA, "is_impossible", to=True)
    stores: dict[str, Any] = {
        "train": store,
        "dev": store,
        "list": store["data"],
        "number": 7,
        "types": types,
        "hidden": hidden,
        "version_2": version_2,
        **{
            name: _changed(store, *place, to=value)
            for name, (*place, value) in _CHANGES.items()
        },
    }
    for name, values in stores.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    files: dict[str, object] = {
        **{f"{x}.json": data for x, data in damaged.NO_TEXTS.items()},
        "cut.json": good[: len(good) // 2],
        "cut_1.json": good[:-1],
        "train.json.gz": damaged.GZIP,
        "latin_1.json": good.replace(b"anna", b"ann\xe9"),
        "table.json": b"id,question\n1,who\n",
        "lines.json": b'{"id": "a", "question": "b"}\n' * 2,
        "bom.json": b"\xef\xbb\xbf" + good,
        "utf_16.json": good.decode().encode("utf-16"),
        "indented.json": json.dumps(store, indent=1).replace("\n", "\r\n"),
        "a b c.json": good,
        "質問 😀.json": good,
        "deep.json": b"[" * 100_000,
        "dangling.json": damaged.Link("gone.json"),
        "link.json": damaged.Link("train.json"),
        "answers/predictions.json": damaged.Same("dev.json"),
        "hard/eval.tf_record": damaged.Same("dev.json"),
        "words/vocab.txt": damaged.Same("model/vocab.txt"),
    }
    damaged.write_files(folder, files)
    _write_runs(folder)


def _write_runs(folder: pathlib.Path) -> None:
    """Makes a run, and copies of it with one error each."""
    flags = ("--num_train_epochs=1", "--do_eval=false")
    matrix.make(SCRIPT, folder, folder / "run", *flags)
    in_run = damaged.bytes_in
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "folder": lambda run: (run / "nbest_predictions.json").mkdir(),
            "best_file": in_run("best", b""),
            "threshold": in_run("null_score_diff_threshold.txt", b"high\n"),
        },
    )


data = matrix.inputs(write_data)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
