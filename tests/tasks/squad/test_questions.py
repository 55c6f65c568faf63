import json
import pathlib
import re

from bert_tf.errors import InputError
from bert_tf.tasks.squad import squad_questions

import pytest


def question(key="q1", answers=((("Paris"), 0),), **changes):
    """Returns one question in the format of the files."""
    return {
        "id": key,
        "question": "Where?",
        "answers": [{"text": t, "answer_start": s} for t, s in answers],
    } | changes


def store(path, *questions, context="Paris is in France ."):
    """Writes a file of one paragraph and returns its path."""
    paragraph = {"context": context, "qas": list(questions)}
    content = {"version": "x", "data": [{"paragraphs": [paragraph]}]}
    path.write_text(json.dumps(content))
    return str(path)


def test_questions_are_read_in_order(tmp_path):
    second = question("2", [], is_impossible=True)
    hidden = {"id": "3", "question": "Hidden?"}
    paragraphs = [
        {"context": "a b", "qas": [question("1", [("b", 2), ("a", 0)])]},
        {"context": "c", "qas": [second, hidden]},
    ]
    content = {"data": [{"paragraphs": [x]} for x in paragraphs]}
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(content).encode())
    answers = (squad_questions.Answer("b", 2), squad_questions.Answer("a", 0))
    assert squad_questions.read(str(path)) == [
        squad_questions.Question("1", "Where?", "a b", answers),
        squad_questions.Question("2", "Where?", "c", (), True),
        squad_questions.Question("3", "Hidden?", "c"),
    ]


def test_a_key_that_appears_twice(tmp_path):
    path = pathlib.Path(store(tmp_path / "x.json", question()))
    path.write_text(path.read_text().replace('"id":', '"id": "q0", "id":'))
    message = r"x\.json: the key 'id' appears twice\. Remove one\. Received: {"
    with pytest.raises(InputError, match=message):
        squad_questions.read(str(path))


def test_rows_of_the_library_datasets(tmp_path):
    answers = {"text": ["Paris"], "answer_start": [0]}
    row = json.dumps({"id": "1", "context": "Paris", "answers": answers})
    path = tmp_path / "x.json"
    for text in (row, f"{row}\n{row}", f"[\n {row}]", f'{{"data": [{row}]}}'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"x\.json has a row for each que"):
            squad_questions.read(str(path))


def learned(path, version_2_with_negative=False):
    found = squad_questions.with_one_answer(
        path, squad_questions.read(path), version_2_with_negative
    )
    return [q.answers for q in found]


def test_the_first_answer_is_learned(tmp_path, caplog):
    two = question("a", [("Paris", 0), ("France", 12)])
    path = store(tmp_path / "x.json", two, question("b", [("France", 12)]))
    assert learned(path) == [
        (squad_questions.Answer("Paris", 0),),
        (squad_questions.Answer("France", 12),),
    ]
    assert "1 questions have several answers; the first is learned: a." in (
        caplog.text
    )


def test_a_misplaced_answer_is_found_nearby(tmp_path, caplog):
    path = store(
        tmp_path / "x.json",
        question("a", [("in France", 8)]),
        question("b", [("Paris", 14)]),
        context="Paris is in \n France , not Paris in France",
    )
    assert learned(path) == [
        (squad_questions.Answer("in \n France", 9),),
        (squad_questions.Answer("Paris", 27),),
    ]
    assert "2 questions have an answer that is not at its" in caplog.text
    # "in France" moves by 1 character, "Paris" from 14 to 27.
    assert "is taken, up to 13 characters away: a and others." in caplog.text
    squad_questions.with_one_answer(
        path, squad_questions.read(path), False, verbose=True
    )
    assert "13 characters away: a, b." in caplog.text


def test_a_misplaced_answer_at_the_end_of_the_context(tmp_path):
    context = "It is in France"
    places = [("in France", 7), ("France", 10), ("e", len(context))]
    asked = (question(str(i), [x]) for i, x in enumerate(places))
    path = store(tmp_path / "x.json", *asked, context=context)
    assert learned(path) == [
        (squad_questions.Answer("in France", 6),),
        (squad_questions.Answer("France", 9),),
        (squad_questions.Answer("e", len(context) - 1),),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        # As in the data sets of Hugging Face.
        {"answers": {"text": ["Paris"], "answer_start": [0]}},
        {"answers": None},
        {"is_impossible": 1},
        {"answers": ["Paris"]},
    ],
)
def test_errors_show_the_form_of_the_files(tmp_path, changes):
    path = store(tmp_path / "x.json", question() | changes)
    with pytest.raises(InputError) as caught:
        squad_questions.read(path)
    shown = re.search(r"\{.*\}(?=\. Received)", str(caught.value))
    assert shown is not None
    # What is shown is itself valid.
    (tmp_path / "x.json").write_text(shown[0])
    (found,) = squad_questions.read(path)
    assert found.answers == (squad_questions.Answer("...", 0),)


def test_questions_as_published_sets_have_them(tmp_path):
    context = "Paris is in France . It is 65 ."
    path = store(
        tmp_path / "x.json",
        question(3, [("paris", "0")], is_impossible="false"),
        question("b", [("IN \n france", 9)]),
        question("c", [(65, 27)]),
        question("d", [], is_impossible="True"),
        context=context,
    )
    found = squad_questions.read_to_train(path, True, False, seed=1)
    assert {q.key: [(x.text, x.start) for x in q.answers] for q in found} == {
        "3": [("Paris", 0)],
        "b": [("in France", 9)],
        "c": [("65", 27)],
        "d": [],
    }


def test_bad_questions_are_left_out_of_training(tmp_path, caplog):
    bad = (
        question("e", question=""),
        question("n", [("YES", -1)]),
        question("a", question="The id comes twice?"),
        question("l", [("Rome", 0)]),
        question("o", [("Paris", 999)]),
    )
    path = store(tmp_path / "x.json", question("a"), *bad, question("b"))

    def read(strict, verbose=False):
        return squad_questions.read_to_train(path, False, verbose, 1, strict)

    assert sorted(q.key for q in read(strict=False)) == ["a", "b"]
    first = (
        f"{path}: left out 5 of 7 questions: question a: the id comes twice; "
        "question e: the question is empty; question n: the answer is out of "
        "range; the context has 20 characters"
    )
    stop = ". --strict stops at the first."
    assert f"{first}; and others{stop}" in caplog.text
    read(strict=False, verbose=True)
    others = (
        "question l: the answer is not in the context; question o: the answer "
        "is out of range; the context has 20 characters"
    )
    assert f"{first}; {others}{stop}" in caplog.text
    with pytest.raises(ValueError, match="question a: the id comes twice"):
        read(strict=True)
    # Without questions, or with a missing flag, no single question is bad.
    path = store(tmp_path / "x.json", *bad[:2])
    with pytest.raises(ValueError, match="question e: the question is empty"):
        read(strict=False)
    path = store(
        tmp_path / "x.json",
        question("a"),
        question("b", [], is_impossible=True),
    )
    with pytest.raises(ValueError, match=r"b: .*--version_2_with"):
        read(strict=False)


def test_every_question_to_predict_is_kept(tmp_path, caplog):
    path = store(tmp_path / "x.json", question("a", question=""), question("b"))
    found, _ = squad_questions.read_to_answer(path, False, True)
    assert [q.key for q in found] == ["a", "b"]
    assert "1 questions are empty, and answered all the same: a" in caplog.text


def test_predictions_that_cannot_be_scored(tmp_path, caplog):
    """They are written all the same, as by the original."""
    path = store(
        tmp_path / "x.json",
        question("a"),
        question("b", [], is_impossible=True),
    )
    with caplog.at_level("INFO", logger="absl"):
        found, is_scorable = squad_questions.read_to_answer(path, False, False)
    assert ([q.key for q in found], is_scorable) == (["a", "b"], False)
    assert "not scored: " in caplog.text
    assert "question b: there is no answer" in caplog.text
    with pytest.raises(ValueError, match=r"b: .*--version_2_with_negative"):
        squad_questions.read_to_answer(path, False, True)


def test_an_empty_context(tmp_path):
    path = store(tmp_path / "x.json", question("a", []), context=" ")
    (found,), _ = squad_questions.read_to_answer(path, False, False)
    assert (found.key, found.context) == ("a", " ")
    with pytest.raises(ValueError, match="question a: the context is empty"):
        squad_questions.read_to_train(path, False, False, 1)


def test_questions_without_an_answer(tmp_path):
    impossible = question("b", [], is_impossible=True)
    path = store(tmp_path / "x.json", question("a"), impossible)
    assert learned(path, True) == [(squad_questions.Answer("Paris", 0),), ()]
    with pytest.raises(ValueError, match="question b: there is no answer"):
        learned(path)
    path = store(tmp_path / "y.json", question("c", []))
    with pytest.raises(ValueError, match="question c: there is no answer"):
        learned(path, True)
    unplaced = question("d", is_impossible=False)
    del unplaced["answers"][0]["answer_start"]
    path = store(tmp_path / "z.json", unplaced)
    with pytest.raises(ValueError, match="d: the answer has no 'answer_start"):
        learned(path)


def test_whether_predictions_can_be_scored(tmp_path):
    def check(version_2_with_negative, *questions):
        path = store(tmp_path / "x.json", *questions)
        return squad_questions.check_scorable(
            path, squad_questions.read(path), version_2_with_negative
        )

    hidden = question("b", [])
    assert check(False, question())
    assert not check(False, hidden)
    assert check(True, question(), hidden)
    impossible = question("c", [], is_impossible=True)
    assert check(True, impossible)
    assert not check(True, hidden, question("c", [], is_impossible=False))
    assert not check(True, hidden, impossible)
    with pytest.raises(ValueError, match="question c: there is no answer, as"):
        check(False, impossible)
    with pytest.raises(ValueError, match="question b: there is no answer, as"):
        check(False, question(), hidden)


def test_answers_that_no_prediction_can_be(tmp_path, caplog):
    path = store(
        tmp_path / "x.json",
        question("a", [("Paris", 999)]),  # Scores ignore the position.
        question("b", [("Paris", 0), ("Rome", 0)]),
        question("c", [("Berlin", 0)]),
    )
    found, is_scorable = squad_questions.read_to_answer(path, False, True)
    assert (len(found), is_scorable) == (3, True)
    assert (
        "x.json: 2 questions have an answer that is not in the context: b and "
        "others." in caplog.text
    )
