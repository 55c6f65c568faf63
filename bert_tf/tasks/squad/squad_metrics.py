"""Exact match and F1 by the rules of SQuAD's official scripts.

evaluate-v1.1.py and evaluate-v2.0.py return the same results, except for
scripts without spaces. If neither text has a word, F1 is 0 in version 1.1 and 1
in version 2.0.

Chinese, Japanese and Thai are written without spaces. In answers to questions
about such a context, each of their characters is a word, punctuation of all
scripts is removed and articles are not, as in MLQA's script for Chinese.
"""

import collections
import functools
import re
import string
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from bert_tf import characters
from bert_tf.tasks.squad import squad_questions

Scores = dict[str, float]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Share of the letters from which a context is in a script without spaces. A
# word of it has about two letters; English contexts have some in names.
_UNSPACED = 0.2
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@functools.cache
def _all_punctuation() -> dict[int, None]:
    """Returns a table that removes punctuation of all scripts."""
    return dict.fromkeys(
        code
        for code in range(sys.maxunicode)
        if chr(code) in string.punctuation
        or unicodedata.category(chr(code)).startswith("P")
    )


@functools.lru_cache(maxsize=1)  # Consecutive questions share a context.
def is_unspaced(context: str) -> bool:
    """Returns whether a context is written in a script without spaces."""
    letters = sum(map(str.isalpha, context))
    return len(characters.UNSPACED.findall(context)) > _UNSPACED * letters


def normalize(text: str, unspaced: bool = False) -> str:
    """Lower-cases; removes punctuation, articles and extra white space.

    Args:
        text: An answer.
        unspaced: Whether the context is Chinese, Japanese or Thai. Its answers
            can be names and numbers without any of their characters.

    Returns:
        The words, joined by spaces. Only ASCII punctuation is removed, unless
        `unspaced`.
    """
    text = text.lower()
    if unspaced:
        text = text.translate(_all_punctuation())
        return " ".join(characters.UNSPACED.sub(r" \g<0> ", text).split())
    text = text.translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, gold: str, unspaced: bool = False) -> float:
    """Returns 1 if both texts are equal once normalized, else 0."""
    return float(normalize(prediction, unspaced) == normalize(gold, unspaced))


def f1(prediction: str, gold: str, unspaced: bool = False) -> float:
    """Returns the F1 of the words, as in version 1.1."""
    predicted, expected = (
        normalize(text, unspaced).split() for text in (prediction, gold)
    )
    common = collections.Counter(predicted) & collections.Counter(expected)
    same = sum(common.values())
    if not same:
        return 0.0
    precision, recall = same / len(predicted), same / len(expected)
    return 2 * precision * recall / (precision + recall)


def f1_or_no_answer(
    prediction: str, gold: str, unspaced: bool = False
) -> float:
    """Returns the F1 of the words, as in version 2.0: 1 if both have none."""
    if normalize(prediction, unspaced) and normalize(gold, unspaced):
        return f1(prediction, gold, unspaced)
    return exact_match(prediction, gold, unspaced)


# ---- SQuAD 1.1 --------------------------------------------------------------


def evaluate(
    questions: Sequence[squad_questions.Question],
    predictions: Mapping[str, str],
) -> Scores:
    """Scores predictions like evaluate-v1.1.py: exact_match and f1, in percent.

    Each question must have an answer; a missing prediction scores 0.
    """
    totals = {"exact_match": 0.0, "f1": 0.0}
    for question in questions:
        if question.key not in predictions:
            continue
        text = predictions[question.key]
        golds = [answer.text for answer in question.answers]
        unspaced = is_unspaced(question.context)
        for name, score in (("exact_match", exact_match), ("f1", f1)):
            totals[name] += max(score(text, gold, unspaced) for gold in golds)
    return {
        name: 100.0 * total / len(questions) for name, total in totals.items()
    }


# ---- SQuAD 2.0 --------------------------------------------------------------


def evaluate_2(
    questions: Sequence[squad_questions.Question],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> Scores:
    """Scores predictions like evaluate-v2.0.py; ignores missing predictions.

    `null_odds` are the odds that a question has no answer (the script's
    --na-prob-file); above `threshold` (--na-prob-thresh) the answer is "".

    Returns:
        "exact", "f1" and "total"; the same after "HasAns_" and "NoAns_"; with
        null odds also the best possible over all thresholds. In percent.
    """
    exact = _raw_scores(questions, predictions, exact_match)
    words = _raw_scores(questions, predictions, f1_or_no_answer)
    has_answer = {q.key: bool(q.answers) for q in questions}

    def thresholded(scores: Scores) -> Scores:
        if null_odds is None:
            return scores
        return {
            key: float(not has_answer[key])
            if null_odds[key] > threshold
            else score
            for key, score in scores.items()
        }

    groups = (
        ("", list(exact)),
        ("HasAns_", [key for key in exact if has_answer[key]]),
        ("NoAns_", [key for key in exact if not has_answer[key]]),
    )
    results: Scores = {}
    for prefix, keys in groups:
        if not keys:
            continue
        for name, scores in (("exact", exact), ("f1", words)):
            total = sum(map(thresholded(scores).__getitem__, keys))
            results[prefix + name] = 100.0 * total / len(keys)
        results[prefix + "total"] = len(keys)
    if null_odds is not None:
        for name, scores in (("exact", exact), ("f1", words)):
            best, best_threshold = best_null_threshold(
                predictions, scores, null_odds, has_answer
            )
            results[f"best_{name}"] = best
            results[f"best_{name}_thresh"] = best_threshold
    return results


def _raw_scores(
    questions: Sequence[squad_questions.Question],
    predictions: Mapping[str, str],
    function: Callable[[str, str, bool], float],
) -> Scores:
    scores = {}
    for question in questions:
        if question.key in predictions:
            unspaced = is_unspaced(question.context)
            golds = [
                answer.text
                for answer in question.answers
                if normalize(answer.text, unspaced)
            ]
            text = predictions[question.key]
            scores[question.key] = max(
                function(text, gold, unspaced) for gold in golds or [""]
            )
    return scores


def best_null_threshold(
    predictions: Mapping[str, str],
    scores: Scores,
    null_odds: Mapping[str, float],
    has_answer: Mapping[str, bool],
) -> tuple[float, float]:
    """Finds the threshold of null odds that gives the best mean score.

    All arguments are keyed by question id. The score is in percent.
    """
    # At first no question is answered; then questions are answered one by one,
    # from the lowest null odds to the highest.
    current = best = float(sum(not has for has in has_answer.values()))
    threshold = 0.0
    for key in sorted(null_odds, key=null_odds.__getitem__):
        if key not in scores:
            continue
        if has_answer[key]:
            current += scores[key]
        elif predictions[key]:
            current -= 1
        if current > best:
            best, threshold = current, null_odds[key]
    return 100.0 * best / len(scores), threshold
