"""Answers from logits, compared with the original's algorithm as loops."""

import json
import math

from bert_tf.tasks.squad import (
    squad_answers,
    squad_options,
    squad_questions,
    squad_threshold,
    squad_windows,
)
from bert_tf.vocabularies import word_pieces

import numpy as np
import pytest

_PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c ##a ##b d e , é"
_CUTTER = squad_windows.Cutter(
    word_pieces.WordPiece(tuple(_PIECES.split()), True),
    squad_options.Layout(12, 3, 4),
)


def cut(context, text="a b"):
    return _CUTTER.cut(squad_questions.Question("q", text, context))


def search(n_best_size=20, max_answer_length=30, version_2=False):
    return squad_options.Search(n_best_size, max_answer_length, version_2)


@pytest.mark.parametrize(
    ("version_2", "text", "probability"), [(False, "empty", 1), (True, "", 0.5)]
)
def test_an_empty_context_has_the_answer_of_the_original(
    version_2, text, probability
):
    """It adds "empty" to an empty n-best list, and no answer in SQuAD 2.0."""
    answer = squad_answers.of_empty_context(version_2)
    threshold = 0.0 if version_2 else None
    assert squad_answers.texts({"q": answer}, threshold) == {"q": text}
    (first, *others) = answer.n_best
    assert first == {
        "text": "empty",
        "probability": probability,
        "start_logit": 0.0,
        "end_logit": 0.0,
    }
    assert [x["text"] for x in others] == [""] * version_2


def logits(windows, rng):
    """Returns random start and end logits; those of padding are the lowest."""
    values = rng.normal(size=(2, len(windows.starts), 12))
    used = windows.head + windows.lengths + 1
    values[:, np.arange(12) >= used[:, np.newaxis]] = -99
    return values.astype(np.float32)


def original(windows, starts, ends, how):
    """Returns the original's candidates: (start logit, end logit, text)."""
    found = []
    most_context = windows.has_most_context()
    for window, (offset, length) in enumerate(windows.spans):
        best = [
            sorted(range(12), key=lambda i: -values[window][i])
            for values in (starts.tolist(), ends.tolist())
        ]
        for i in best[0][: how.n_best_size]:
            for j in best[1][: how.n_best_size]:
                first, last = i - windows.head, j - windows.head
                if not (0 <= first <= last < length):
                    continue
                if not most_context[window][first]:
                    continue
                if last - first + 1 > how.max_answer_length:
                    continue
                pair = float(starts[window, i]), float(ends[window, j])
                text = windows.text(first + offset, last + offset)
                found.append((*pair, text))
    return found


def expected(windows, starts, ends, how):
    """Returns the original's n-best list and its null score."""
    nulls = zip(starts[:, 0].tolist(), ends[:, 0].tolist(), strict=True)
    null = min(nulls, key=sum)
    pairs = original(windows, starts, ends, how)
    if how.version_2_with_negative:
        pairs.append((*null, ""))
    pairs.sort(key=lambda pair: pair[0] + pair[1], reverse=True)
    n_best: list[tuple[float, float, str]] = []
    for start, end, text in pairs:
        if len(n_best) == how.n_best_size:
            break
        if text not in [row[2] for row in n_best]:
            n_best.append((start, end, text))
    if how.version_2_with_negative and "" not in [row[2] for row in n_best]:
        n_best.append((*null, ""))
    total = sum(math.exp(start + end) for start, end, _ in n_best)
    rows = [
        {
            "text": text,
            "probability": pytest.approx(math.exp(start + end) / total),
            "start_logit": start,
            "end_logit": end,
        }
        for start, end, text in n_best
    ]
    return rows, sum(null)


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize(
    ("n_best_size", "max_answer_length"), [(20, 30), (4, 3), (7, 2)]
)
def test_answers_are_the_originals(n_best_size, max_answer_length, version_2):
    how = search(n_best_size, max_answer_length, version_2)
    rng = np.random.default_rng(0)
    listed = 0
    for context in ("a b", "ab dé, e a b ab, ca, d", "e\u0301 " * 30):
        windows = cut(context)
        for _ in range(10):
            starts, ends = logits(windows, rng)
            rows, null_score = expected(windows, starts, ends, how)
            if not any(row["text"] for row in rows):
                continue  # See the test below.
            answer = squad_answers.find(windows, starts, ends, how)
            assert answer.n_best == rows
            assert answer.null_score == null_score
            best = next(row for row in rows if row["text"])
            assert answer.text == best["text"]
            assert answer.text == context[answer.start : answer.end]
            assert answer.score == best["start_logit"] + best["end_logit"]
            assert answer.null_odds == null_score - answer.score
            listed += len(rows)
    assert listed > 50


def test_where_no_pair_fits_the_best_piece_is_taken():
    windows = cut("a b c")
    starts, ends = np.zeros([2, 1, 12])
    starts[0, 0] = ends[0, 1] = 5  # A start and an end that form no answer.
    ends[0, 5] = 2
    for version_2 in (False, True):
        how = search(1, 30, version_2)
        answer = squad_answers.find(windows, starts, ends, how)
        assert (answer.text, answer.start, answer.end) == ("b", 2, 3)
        assert (answer.score, answer.null_score) == (2.0, 5.0)
    assert [row["text"] for row in answer.n_best] == [""]


def test_probabilities_of_logits_whose_exponentials_are_infinite():
    n_best = {"a": np.array([500.0, 400.0]), "b": np.array([500.0, 399.0])}
    found = [row["probability"] for row in squad_answers.listed(n_best)]
    sigmoid = 1 / (1 + math.exp(-1))
    np.testing.assert_allclose(found, [sigmoid, 1 - sigmoid], rtol=1e-12)


def test_equal_answers_stay_in_order():
    windows = cut("a b c d e a b c d e")
    starts, ends = np.zeros([2, len(windows.starts), 12])
    answer = squad_answers.find(windows, starts, ends, search())
    # All logits are equal: the first token is the first start and end.
    assert [row["text"] for row in answer.n_best][:3] == ["a", "a b", "a b c"]


def _answer(text, null_odds):
    n_best = [
        {"text": text, "probability": 1.0, "start_logit": 0.5, "end_logit": 1}
    ]
    return squad_answers.Answer(text, 0, 1, 1.0, 1.0 + null_odds, n_best)


def _questions(*golds):
    """Returns questions with ids 0, 1 ..., each with its gold answers."""
    answers = [[squad_questions.Answer(x, None) for x in own] for own in golds]
    return [
        squad_questions.Question(str(i), "?", "x", tuple(own))
        for i, own in enumerate(answers)
    ]


def test_scores():
    questions = _questions(["é"], [], ["d"], ["e"])
    answers = {
        "0": _answer("é", -1.0),
        "1": _answer("b", 2.0),
        "2": _answer("d", 1.5),
        "3": _answer("c", 3.0),
    }
    results, threshold = squad_answers.score(questions, answers, True, 0.0)
    assert threshold == 0.0
    assert results["exact"] == 50
    assert results["HasAns_exact"] == pytest.approx(100 / 3)
    assert (results["best_f1"], results["best_f1_thresh"]) == (75, 1.5)
    results, threshold = squad_answers.score(questions, answers, True, None)
    assert (results["f1"], threshold) == (75, 1.5)
    results, threshold = squad_answers.score(
        [q for q in questions if q.answers], answers, False, 0.0
    )
    assert results == {
        "exact_match": pytest.approx(200 / 3),
        "f1": pytest.approx(200 / 3),
    }
    assert threshold is None


@pytest.mark.parametrize(
    ("golds", "null_odds", "f1", "official", "used"),
    [
        # No question has an answer; the official script returns 0.0 here.
        ([[], []], [-0.5, 0.5], 100.0, 0.0, -1.5),
        # 0.0 would wrongly answer both.
        ([[], ["x"]], [-5.0, -4.0], 50.0, 0.0, -6.0),
        # All null odds are above 0.0: no question is answered.
        ([[], []], [0.25, 0.5], 100.0, 0.0, 0.0),
        ([["cat"], []], [-0.5, 0.5], 100.0, -0.5, -0.5),
    ],
)
def test_the_tuned_threshold_gives_the_best_f1(
    golds, null_odds, f1, official, used
):
    questions = _questions(*golds)
    answers = {
        "0": _answer("cat", null_odds[0]),
        "1": _answer("dog", null_odds[1]),
    }
    results, threshold = squad_answers.score(questions, answers, True, None)
    assert threshold == used
    assert (results["best_f1"], results["best_f1_thresh"]) == (f1, official)
    assert results["f1"] == f1


def test_files(tmp_path):
    answers = {"1": _answer("é", -1.0), "2": _answer("b", 2.0)}
    squad_answers.write(str(tmp_path), answers, None)
    names = ["nbest_predictions.json", "predictions.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "predictions.json").read_text() == (
        '{\n    "1": "\\u00e9",\n    "2": "b"\n}\n'
    )
    squad_answers.write(str(tmp_path), answers, 1.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(names[0], "null_odds.json", names[1])
    ]
    found = {
        path.stem: json.loads(path.read_text()) for path in tmp_path.iterdir()
    }
    assert found == {
        "predictions": {"1": "é", "2": ""},
        "null_odds": {"1": -1.0, "2": 2.0},
        "nbest_predictions": {
            "1": answers["1"].n_best,
            "2": answers["2"].n_best,
        },
    }
    assert squad_answers.texts(answers, 2.0) == {"1": "é", "2": "b"}


def test_given_tuned_and_not_used(tmp_path):
    folder = str(tmp_path)
    assert squad_threshold.find("1.5", True, folder).known() == 1.5
    assert squad_threshold.find("1.5", False, folder).known() is None
    assert squad_threshold.find("auto", False, folder).known() is None
    tuned = squad_threshold.find("auto", True, folder)
    with pytest.raises(ValueError, match="needs questions with answers"):
        tuned.known()
    tuned.note(-2.1875)
    assert tuned.known() == -2.1875
    (file,) = tmp_path.iterdir()
    assert file.read_text() == "-2.1875\n"
    file.unlink()
    # A threshold that is passed needs no file.
    squad_threshold.find("1.5", True, folder).note(1.5)
    squad_threshold.find("auto", False, folder).note(None)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"number or auto.*=high"):
        squad_threshold.find("high", True, folder)
