"""Scores of answers in scripts without spaces."""

import collections
import re
import string
import unicodedata

from bert_tf.tasks.squad import squad_metrics, squad_questions

import pytest


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
        # Three of four characters; an extra full stop.
        ("北京大", "北京大学", 0, 6 / 7),
        ("北京大学。", "北京大学", 1, 1),
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
    answers = (squad_questions.Answer(gold, None),)
    question = squad_questions.Question(
        *("1", "?", "他在L2的A World Cup中，1949年在北京大学。", answers)
    )
    predictions = {"1": prediction}
    found = squad_metrics.evaluate([question], predictions)
    assert found == {
        "exact_match": 100 * chinese,
        "f1": pytest.approx(100 * _f1(words, wanted)),
    }
    second = squad_metrics.evaluate_2([question], predictions)
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
    question = squad_questions.Question(
        "1",
        "?",
        "Peking University (北京大学) is in Beijing, China, since 1898.",
        (squad_questions.Answer(gold, None),),
    )
    assert squad_metrics.evaluate([question], {"1": prediction}) == {
        "exact_match": 100 * exact,
        "f1": pytest.approx(100 * f1),
    }
