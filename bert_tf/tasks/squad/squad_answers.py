"""Turns the logits of starts and ends into answers, scores and files.

The n-best lists equal the output of the original's write_predictions, except
that each answer is a slice of the context, and padding is not a candidate.

Shapes: W windows of a question, S sequence length.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence

from bert_tf import files
from bert_tf.tasks.squad import (
    squad_metrics,
    squad_options,
    squad_questions,
    squad_windows,
)

import numpy as np

# The original's answer where there is no candidate, and its score of none.
EMPTY = "empty"
_NULL_SCORE = 1_000_000.0


@dataclasses.dataclass(frozen=True)
class Answer:
    """The best non-empty answer of a model, and its characters.

    `score` is the sum of its start and end logits, `null_score` the min score
    of [CLS] in any window. `n_best` has answers, each with `text`,
    `probability` among them, `start_logit` and `end_logit`. `odds` are set if
    the model has a separate score for no answer.
    """

    text: str
    start: int
    end: int
    score: float
    null_score: float
    n_best: list[dict]
    odds: float | None = None

    @property
    def null_odds(self) -> float:
        """How much better no answer is than the best one."""
        if self.odds is not None:
            return self.odds
        return self.null_score - self.score


def find(
    windows: squad_windows.Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    search: squad_options.Search,
) -> Answer:
    """Finds the best answers to a question by logits [W, S]."""
    logits = np.stack([start_logits, end_logits], -1).astype(np.float64)
    null_logits = logits[:, windows.template.pooled]  # [W, 2]
    null = null_logits[null_logits.sum(-1).argmin()]  # [2]
    spans, span_logits = _spans(windows, logits, search)
    if search.version_2_with_negative:
        spans = np.concatenate([spans, [[-1, -1]]])
        span_logits = np.concatenate([span_logits, [null]])
    # Equal ones stay in the order of windows, starts and ends.
    order = np.argsort(-span_logits.sum(-1), kind="stable")
    best = next(i for i in order if spans[i, 0] >= 0)
    first, last = spans[best]
    found = n_best(windows, spans, span_logits, order, search)
    if search.version_2_with_negative:
        found.setdefault("", null)
    return Answer(
        windows.text(first, last),
        int(windows.pieces.starts[first]),
        int(windows.pieces.ends[last]),
        float(span_logits[best].sum()),
        float(null.sum()),
        listed(found),
    )


def of_empty_context(version_2_with_negative: bool) -> Answer:
    """Returns the answer where there is no candidate, as in the original."""
    found = [EMPTY, ""] if version_2_with_negative else [EMPTY]
    listing = listed(dict.fromkeys(found, np.zeros(2)))
    return Answer(EMPTY, 0, 0, 0.0, _NULL_SCORE, listing)


def n_best(
    windows: squad_windows.Windows,
    spans: np.ndarray,
    span_logits: np.ndarray,
    order: np.ndarray,
    search: squad_options.Search,
) -> dict[str, np.ndarray]:
    """Returns text -> logits of the first spans in this order, each text once.

    A span from -1 is no answer.
    """
    found: dict[str, np.ndarray] = {}
    for i in order:
        if len(found) == search.n_best_size:
            break
        text = windows.text(*spans[i]) if spans[i, 0] >= 0 else ""
        found.setdefault(text, span_logits[i])
    return found


def _spans(
    windows: squad_windows.Windows,
    logits: np.ndarray,
    search: squad_options.Search,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs the best starts and ends of each window, [W, S, 2].

    Returns:
        First and last token of each pair in the context [pairs, 2], and their
        logits [pairs, 2].
    """
    head = windows.head
    spans, span_logits, single = [], [], []
    most_context = windows.has_most_context()
    for row, (offset, length) in enumerate(windows.spans):
        may_start = np.zeros(windows.used[row], bool)
        may_start[head : head + length] = most_context[row]
        here = logits[row, : len(may_start)]
        starts, ends = np.argsort(-here, axis=0, kind="stable")[
            : search.n_best_size
        ].T
        start, end = starts[:, np.newaxis], ends[np.newaxis, :]
        fits = may_start[start] & (end < head + length)
        fits &= search.allows(start, end)
        i, j = np.nonzero(fits)
        spans.append(np.stack([starts[i], ends[j]], -1) + offset - head)
        span_logits.append(np.stack([here[starts[i], 0], here[ends[j], 1]], -1))
        place = np.flatnonzero(may_start)
        single += [(place + offset - head, here[place])]
    if sum(map(len, spans)):
        return np.concatenate(spans), np.concatenate(span_logits)
    # No pair fits: the best single token. The original answers "empty".
    places = np.concatenate([place for place, _ in single])
    values = np.concatenate([value for _, value in single])
    best = values.sum(-1).argmax()
    return np.full([1, 2], places[best]), values[[best]]


def listed(n_best: Mapping[str, np.ndarray]) -> list[dict]:
    """Adds probabilities, of the listed answers among each other."""
    scores = [float(logits.sum()) for logits in n_best.values()]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [
        {
            "text": text,
            "probability": weight / sum(weights),
            "start_logit": float(start),
            "end_logit": float(end),
        }
        for (text, (start, end)), weight in zip(
            n_best.items(), weights, strict=True
        )
    ]


def texts(
    answers: Mapping[str, Answer], threshold: float | None
) -> dict[str, str]:
    """Returns the answer to each question; "" where none is likelier.

    It is likelier if its odds are above `threshold`, which is None for SQuAD
    1.1, where there always is an answer.
    """
    return {
        key: ""
        if threshold is not None and answer.null_odds > threshold
        else answer.text
        for key, answer in answers.items()
    }


# ---- Scores -----------------------------------------------------------------


def score(
    questions: Sequence[squad_questions.Question],
    answers: Mapping[str, Answer],
    version_2_with_negative: bool,
    threshold: float | None,
) -> tuple[dict[str, float], float | None]:
    """Scores answers by the official rules, of SQuAD 1.1 or 2.0.

    A `threshold` None is the one that gives the best F1.

    Returns:
        The results of evaluate-v1.1.py or evaluate-v2.0.py, the latter with the
        best that another threshold could give; and the threshold used, None for
        SQuAD 1.1.
    """
    always = texts(answers, None)
    if not version_2_with_negative:
        return squad_metrics.evaluate(questions, always), None
    null_odds = {key: answer.null_odds for key, answer in answers.items()}
    results = squad_metrics.evaluate_2(questions, always, null_odds)
    best = {k: v for k, v in results.items() if k.startswith("best_")}
    if threshold is None:
        threshold = _tuned(questions, answers, best["best_f1_thresh"])
    results = squad_metrics.evaluate_2(questions, texts(answers, threshold))
    return results | best, threshold


def _tuned(
    questions: Sequence[squad_questions.Question],
    answers: Mapping[str, Answer],
    official: float,
) -> float:
    """Returns the threshold that gives the best F1.

    Where it is best to answer nothing the official script says 0.0, which means
    that only if all null odds are above.
    """
    nothing = min(answer.null_odds for answer in answers.values()) - 1.0

    def f1(threshold: float) -> float:
        predictions = texts(answers, threshold)
        return squad_metrics.evaluate_2(questions, predictions)["f1"]

    # The official one, if both are as good.
    return max((official, nothing), key=f1)


# ---- Files ------------------------------------------------------------------


def write(
    folder: str, answers: Mapping[str, Answer], threshold: float | None
) -> None:
    """Writes predictions.json, nbest_predictions.json and null_odds.json.

    Without a threshold, as of `texts`, there is no null_odds.json.
    """
    contents = {
        "predictions": texts(answers, threshold),
        "nbest_predictions": {k: a.n_best for k, a in answers.items()},
    }
    if threshold is not None:
        contents["null_odds"] = {k: a.null_odds for k, a in answers.items()}
    for name, content in contents.items():
        path = os.path.join(folder, f"{name}.json")
        files.write_text(path, f"{json.dumps(content, indent=4)}\n")
