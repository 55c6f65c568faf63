"""Tests of multiple-choice files, in the formats they are published in."""

import json

from bert_tf.tasks.multiple_choice import choice_problems

import numpy as np
import pytest

_SWAG = """\
,video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,\
ending2,ending3,label
0,lsmdc1,1,"A dog, old. It","A dog, old.",It,gold,barks.,"sings, too.",\
flies.,reads.,0
1,lsmdc2,2,She sits. He,She sits.,He,gen,stands.,falls.,runs.,"says ""no"".",3
"""
_RACE = {
    "id": "high7.txt",
    "article": "Ann went\nhome.",
    "questions": ["Ann went _ .", "Who went home?"],
    "options": [["up", "home"], ["Ann", "Bob"]],
    "answers": ["B", "A"],
}
_OWN = {"prompt": "p", "choices": ["b", "c"], "label": 1}
_ASKED = {"article": "A.", "question": "Who?", "options": ["b", "c"]}


def jsonl(path, *rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(path)


def test_swag(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(_SWAG)
    first = ("It barks.", "It sings, too.", "It flies.", "It reads.")
    second = ("He stands.", "He falls.", "He runs.", 'He says "no".')
    assert choice_problems.read(str(path), with_labels=True) == [
        choice_problems.Problem("2", "A dog, old.", first, 0),
        choice_problems.Problem("3", "She sits.", second, 3),
    ]
    # Its test set has no labels.
    rows = _SWAG.splitlines()
    path.write_text("\n".join(row.rpartition(",")[0] for row in rows) + "\n")
    found = choice_problems.read(str(path), with_labels=False)
    assert [problem.label for problem in found] == [None, None]
    with pytest.raises(ValueError, match="'label' is missing from the header"):
        choice_problems.read(str(path), with_labels=True)


def test_race_s_own_objects(tmp_path):
    path = jsonl(tmp_path / "race.jsonl", _RACE)
    first = ("Ann went up .", "Ann went home .")
    second = ("Who went home? Ann", "Who went home? Bob")
    article = "Ann went\nhome."
    assert choice_problems.read(path, with_labels=True) == [
        choice_problems.Problem("high7.txt-0", article, first, 1),
        choice_problems.Problem("high7.txt-1", article, second, 0),
    ]


def test_a_folder_of_race(tmp_path, caplog):
    """As RACE.tar.gz has them: RACE/train/high/1.txt and so on."""
    caplog.set_level("INFO", "absl")
    names = ("high/2.txt", "high/10.txt", "middle/1.txt")
    train = tmp_path / "[train]\\"
    for name in names:
        path = train / name
        path.parent.mkdir(parents=True, exist_ok=True)
        row = _RACE | {"id": name.replace("/", "")}
        path.write_text(json.dumps(row) + "\n")
    (train / "README").write_text("no problem")
    found = choice_problems.read(str(train), with_labels=True)
    assert [problem.key for problem in found] == [
        f"{name.replace('/', '')}-{i}" for name in names for i in (0, 1)
    ]
    assert [problem.label for problem in found] == [1, 0] * 3
    # RACE has 25,137 files to train on: none gets its own line.
    assert "Reading" not in caplog.text
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no problem"):
        choice_problems.read(str(tmp_path / "empty"), with_labels=True)


def test_one_question_of_race_a_line_and_lines_of_ones_own(tmp_path):
    one = _ASKED | {"example_id": "m1", "answer": "B"}
    path = jsonl(tmp_path / "one.jsonl", one)
    choices = ("Who? b", "Who? c")
    assert choice_problems.read(path, with_labels=True) == [
        choice_problems.Problem("m1", "A.", choices, 1)
    ]
    path = jsonl(tmp_path / "own.jsonl", _OWN, _OWN | {"id": 5})
    assert choice_problems.read(path, with_labels=True) == [
        choice_problems.Problem("1", "p", ("b", "c"), 1),
        choice_problems.Problem("5", "p", ("b", "c"), 1),
    ]
    assert choice_problems.read(path, with_labels=False)[0].label is None


def test_equal_ids_are_numbered(tmp_path):
    rows = [_ASKED | {"example_id": x} for x in ("m1", "m2", "m1")]
    path = jsonl(tmp_path / "questions.jsonl", *rows)
    found = choice_problems.read(path, with_labels=False)
    assert [x.key for x in found] == ["m1-0", "m2", "m1-1"]
    # The questions of an article without an id have the same line.
    row = {x: _RACE[x] for x in _RACE if x != "id"}
    path = jsonl(tmp_path / "article.jsonl", row, _OWN)
    found = choice_problems.read(path, with_labels=False)
    assert [x.key for x in found] == ["1-0", "1-1", "2"]
    # As have the first lines of several files.
    for name in ("1.txt", "2.txt"):
        (tmp_path / name).write_text(json.dumps(_ASKED) + "\n")
    found = choice_problems.read(str(tmp_path), with_labels=False)
    assert [x.key for x in found] == ["1-0", "1-1"]


@pytest.mark.parametrize("key", ["", '"id": null,', '"id": NaN,'])
def test_an_id_that_is_missing_or_null(key, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{{key} "prompt": "a", "choices": ["b", "c"]}}\n')
    (found,) = choice_problems.read(str(path), with_labels=False)
    assert found.key == "1"


def test_a_blank_of_several_underscores_is_filled_once(tmp_path):
    row = {
        "article": "A.",
        "question": "____ met __ , and _",
        "options": [r"\1 \g<0>", "b_c"],
    }
    path = jsonl(tmp_path / "race.jsonl", row)
    (problem,) = choice_problems.read(path, with_labels=False)
    assert problem.choices == (
        r"\1 \g<0> met \1 \g<0> , and \1 \g<0>",
        "b_c met b_c , and b_c",
    )


def _labels(path, with_labels):
    return [x.label for x in choice_problems.read(str(path), with_labels)]


def test_labels_where_a_test_file_has_them(tmp_path):
    rows = [
        _OWN,
        *(_OWN | {"label": x} for x in (0, -1, 2, None, "B", True)),
        {"prompt": "p", "choices": ["b", "c"]},
        _ASKED,
        _ASKED | {"answer": "B"},
        _RACE,
        _RACE | {"answers": ["", "A"]},
    ]
    path = jsonl(tmp_path / "test.jsonl", *rows)
    found = _labels(path, None)
    hidden = [None] * 5
    assert found == [1, 0, *hidden, None, None, 1, 1, 0, None, None]
    assert set(_labels(path, False)) == {None}
    path = tmp_path / "test.csv"
    path.write_text(_SWAG.replace("reads.,0", "reads.,-1"))
    assert _labels(path, None) == [None, 3]
    table = [row.rpartition(",")[0] for row in _SWAG.splitlines()]
    path.write_text("\n".join(table) + "\n")
    assert _labels(path, None) == [None, None]
    # The other checks are unchanged.
    path = jsonl(tmp_path / "bad.jsonl", _OWN | {"choices": ["b"]})
    with pytest.raises(ValueError, match="line 1: expected two choices"):
        choice_problems.read(path, with_labels=None)


def test_a_name_that_does_not_say_the_format(tmp_path):
    path = tmp_path / "1.txt"  # as RACE's own files are called
    path.write_text(json.dumps(_RACE) + "\n")
    problems = choice_problems.read(str(path), with_labels=True)
    path.rename(tmp_path / "1.jsonl")
    assert problems == choice_problems.read(
        str(tmp_path / "1.jsonl"), with_labels=True
    )
    path.write_text("prompt\tchoices\tlabel\n")
    with pytest.raises(ValueError, match=r"end in .*\.jsonl .*: .*1\.txt"):
        choice_problems.read(str(path), with_labels=True)


def test_choices(tmp_path):
    path = tmp_path / "test_predictions.jsonl"
    problems = [
        choice_problems.Problem("1", "Él", ("a", "b", "c"), 2),
        choice_problems.Problem("2", "p", ("a", "b"), None),
    ]
    logits = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, -1e9]])
    exponentials = np.exp(logits)
    shares = exponentials / exponentials.sum(axis=1, keepdims=True)
    for with_texts in (False, True):
        choice_problems.write_predictions(
            str(path), problems, logits, with_texts
        )
        first, second = map(json.loads, path.read_text().splitlines())
        assert first.pop("probabilities") == pytest.approx(shares[0])
        assert second.pop("probabilities") == pytest.approx(shares[1, :2])
        more: list[dict] = [{}, {}]
        if with_texts:
            more = [
                {"prompt": "Él", "choices": ["a", "b", "c"], "gold": 2},
                {"prompt": "p", "choices": ["a", "b"]},
            ]
        assert first == {"id": "1", "choice": 0, **more[0]}
        assert second == {"id": "2", "choice": 1, **more[1]}
