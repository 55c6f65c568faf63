"""SQuAD's metrics, compared with the output of the official scripts."""

import collections
import re
import string
import unicodedata

from bert_tf.tasks.squad import squad_metrics, squad_questions

import pytest


def question(key, *golds, context="context"):
    answers = tuple(squad_questions.Answer(gold, None) for gold in golds)
    return squad_questions.Question(key, "?", context, answers)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The Cat, the cat.", "cat cat"),
        ("a.an.the", "aanthe"),  # Punctuation is removed first.
        ("U.S.", "us"),
        ("theatre an\tAnt\n", "theatre ant"),
        ("the\u00a0dog", "dog"),
        # Only ASCII punctuation; no Unicode normalization.
        ("«the» – “a” café", "« » – “ ” café"),
        ("CAFE\u0301", "cafe\u0301"),
        ("İ the", "i\u0307"),
        ("a", ""),
        ("?!", ""),
        ("", ""),
    ],
)
def test_normalization(text, normalized):
    assert squad_metrics.normalize(text) == normalized


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "f1", "f1_2"),
    [
        ("The cat", "cat!", 1, 1, 1),
        ("black cat", "a cat", 0, 2 / 3, 2 / 3),
        ("b b c", "b c c", 0, 2 / 3, 2 / 3),
        ("dog", "cat", 0, 0, 0),
        ("", "cat", 0, 0, 0),
        ("cat", "", 0, 0, 0),
        # The scripts differ if no word is left.
        ("", "", 1, 0, 1),
        ("the", "", 1, 0, 1),
        ("The", "a!", 1, 0, 1),
    ],
)
def test_one_answer(prediction, gold, exact, f1, f1_2):
    assert squad_metrics.exact_match(prediction, gold) == exact
    assert squad_metrics.f1(prediction, gold) == pytest.approx(f1)
    found = squad_metrics.f1_or_no_answer(prediction, gold)
    assert found == pytest.approx(f1_2)


def test_version_1_1():
    questions = [
        question("1", "the black cat", "cat", "black"),
        question("2", "dog"),
        question("3", "bird"),
        question("4", "the"),
    ]
    predictions = {"1": "Black Cat", "2": "big dog", "4": "", "9": "x"}
    # 1: exact. 2: half of the words. 3: missing, which counts as wrong.
    # 4: both sides are empty, which matches exactly without common words.
    assert squad_metrics.evaluate(questions, predictions) == {
        "exact_match": 50.0,
        "f1": pytest.approx(100 * (1 + 2 / 3) / 4),
    }


_QUESTIONS = [
    question("1", "black cat", "cat"),
    question("2", "dog", "the"),
    question("3"),
    question("4"),
    question("5", "the"),
]
_PREDICTIONS = {"1": "cat", "2": "big dog", "3": "", "4": "bird", "5": "a"}


def test_version_2_0():
    # 5: a gold answer of articles only counts as no answer, but its question
    # as one with an answer; predicting an article is right.
    assert squad_metrics.evaluate_2(_QUESTIONS, _PREDICTIONS) == {
        "exact": 60.0,
        "f1": pytest.approx(100 * (1 + 2 / 3 + 1 + 1) / 5),
        "total": 5,
        "HasAns_exact": pytest.approx(200 / 3),
        "HasAns_f1": pytest.approx(100 * (1 + 2 / 3 + 1) / 3),
        "HasAns_total": 3,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
    }


def test_version_2_0_with_null_odds():
    odds = {"1": -2.0, "2": 1.5, "3": 0.0, "4": 1.25, "5": -1.0}
    results = squad_metrics.evaluate_2(_QUESTIONS, _PREDICTIONS, odds)
    # Above 1.0: 2 and 4 count as "".
    assert results["exact"] == results["f1"] == 80.0
    assert results["HasAns_f1"] == pytest.approx(200 / 3)
    assert results["NoAns_exact"] == 100.0
    # The 2 without an answer, then: 3 after "1", 4 after "5", 4 after "3"
    # (which is ""), 3 after "4", and 3 2/3 after "2".
    assert results["best_exact"] == results["best_f1"] == 80.0
    assert results["best_exact_thresh"] == results["best_f1_thresh"] == -1.0
    odds_3 = squad_metrics.evaluate_2(_QUESTIONS, _PREDICTIONS, odds, -3)
    assert odds_3["exact"] == 40.0


def test_no_threshold_is_better_than_none():
    questions = [question("1"), question("2", "x")]
    scores = {"1": 0.0, "2": 0.0}
    odds = {"1": -5.0, "2": -4.0}
    found = squad_metrics.best_null_threshold(
        {"1": "a", "2": "b"}, scores, odds, {"1": False, "2": True}
    )
    assert found == (50.0, 0.0)
    # All questions have an answer, or no question has.
    results = squad_metrics.evaluate_2(questions[:1], {"1": ""})
    assert results.keys() == {
        *("exact", "f1", "total"),
        *("NoAns_exact", "NoAns_f1", "NoAns_total"),
    }


# ---- Scripts without spaces -------------------------------------------------


def _mlqa(text):
    """Returns the words of a Chinese text by the rules of MLQA's script."""
    kept = [
        char
        for char in text.lower()
        if not unicodedata.category(char).startswith("P")
        and char not in string.punctuation
    ]
    words: list[str] = []
    for part in re.split("([\u4e00-\u9fa5])", "".join(kept)):
        words += part.split()
    return words


def _f1(left, right):
    same = collections.Counter(left) & collections.Counter(right)
    return 2 * sum(same.values()) / (len(left) + len(right))


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("北京大", "北京大学"),
        ("北京大学。", "北京大学"),
        ("《红楼梦》", "红楼梦"),
        ("1949年 10 月", "1949年10月"),
        ("the Beatles乐队", "披头士(The Beatles)乐队"),
        ("上海", "北京"),
    ],
)
def test_chinese_as_mlqas_script(prediction, gold):
    words, wanted = _mlqa(prediction), _mlqa(gold)
    exact = squad_metrics.exact_match(prediction, gold, unspaced=True)
    assert exact == float(words == wanted)
    f1 = squad_metrics.f1(prediction, gold, unspaced=True)
    assert f1 == pytest.approx(_f1(words, wanted))


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "f1"),
    [
        ("東京タワー", "東京タワーは", 0, 10 / 11),
        ("กรุงเทพ", "กรุงเทพฯ", 0, 14 / 15),
    ],
)
def test_characters_are_words(prediction, gold, exact, f1):
    found = squad_metrics.exact_match(prediction, gold, unspaced=True)
    assert found == exact
    found = squad_metrics.f1(prediction, gold, unspaced=True)
    assert found == pytest.approx(f1)


@pytest.mark.parametrize(
    ("prediction", "gold", "chinese"),
    [
        # Names and numbers in a Chinese context.
        ("《L2》", "L2", 1),
        ("1949。", "1949", 1),
        ("World Cup", "A World Cup", 0),
        ("北京大学。", "北京大学", 1),
    ],
)
def test_the_context_decides(prediction, gold, chinese):
    words, wanted = _mlqa(prediction), _mlqa(gold)
    assert float(words == wanted) == chinese
    context = "他在L2的A World Cup中，1949年在北京大学。"
    questions = [question("1", gold, context=context)]
    predictions = {"1": prediction}
    found = squad_metrics.evaluate(questions, predictions)
    assert found == {
        "exact_match": 100 * chinese,
        "f1": pytest.approx(100 * _f1(words, wanted)),
    }
    second = squad_metrics.evaluate_2(questions, predictions)
    assert (second["exact"], second["f1"]) == tuple(found.values())


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "f1"),
    [
        # By evaluate-v1.1.py: articles and ASCII punctuation are removed.
        ("the Peking University (北京大学)", "Peking University", 0, 4 / 5),
        ("the 北京大学", "北京大学", 1, 1),
        ("北京大", "北京大学", 0, 0),
        ("the “Peking”", "“Peking”", 1, 1),
        ("“Peking”", "Peking", 0, 0),
    ],
)
def test_english_contexts_are_scored_as_by_squad(prediction, gold, exact, f1):
    context = "Peking University (北京大学) is in Beijing, China, since 1898."
    questions = [question("1", gold, context=context)]
    assert squad_metrics.evaluate(questions, {"1": prediction}) == {
        "exact_match": 100 * exact,
        "f1": pytest.approx(100 * f1),
    }
