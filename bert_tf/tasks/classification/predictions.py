"""Converts a classifier's logits to predictions, results and files.

Shapes: B examples, C classes (1 for a score).
"""

import itertools
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from bert_tf import files
from bert_tf.tasks import tables
from bert_tf.tasks.classification import (
    classification_metrics,
    classification_task,
)

import numpy as np
import scipy.special


def predicted(task: classification_task.Task, logits: np.ndarray) -> np.ndarray:
    """Returns scores [B], class indices [B], or labels [B, C].

    In multi-label tasks, a label is 1 if its probability is above 0.5, else 0.
    """
    if task.labels is None:
        return logits[:, 0]
    if task.is_multi_label:
        return (logits > 0).astype(np.int64)
    return logits.argmax(axis=1)


def probabilities(
    task: classification_task.Task, logits: np.ndarray
) -> np.ndarray:
    """Returns probabilities of classes, or of independent labels, [B, C]."""
    if task.is_multi_label:
        return scipy.special.expit(logits)
    return scipy.special.softmax(logits, axis=1)


def results(
    task: classification_task.Task, logits: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Computes the task's metrics and the mean loss of logits [B, C].

    `labels` are as for `classification_metrics.compute`. The names of the
    results begin with "eval_"; one is "eval_loss".
    """
    logits = logits.astype(np.float64)
    if task.labels is None:
        losses = (logits[:, 0] - labels) ** 2
    elif task.is_multi_label:
        losses = np.logaddexp(0, logits) - labels * logits
    else:
        log_probabilities = scipy.special.log_softmax(logits, axis=1)
        losses = -log_probabilities[np.arange(len(labels)), labels]
    values = classification_metrics.compute(
        task.metrics, labels, predicted(task, logits)
    )
    values["loss"] = float(losses.mean())
    return {f"eval_{name}": value for name, value in values.items()}


# ---- Files ------------------------------------------------------------------


def write_probabilities(
    path: str, logits: np.ndarray, is_multi_label: bool = False
) -> None:
    """Writes test_results.tsv as the original does: a row per example."""
    if is_multi_label:
        logits = scipy.special.expit(logits)
    elif logits.shape[1] > 1:
        logits = scipy.special.softmax(logits, axis=1)
    files.write_lines(path, ("\t".join(map(str, row)) for row in logits))


def write_named(
    path: str,
    task: classification_task.Task,
    keys: Iterable[str],
    logits: np.ndarray,
    examples: Iterable[tables.Example] | None = None,
) -> None:
    """Writes predictions as JSON lines with labels, from logits [B, C].

    `keys` are the texts' ids. `examples`, read one at a time, add the texts and
    any labels (as `gold`).
    """
    beside: Iterable[dict[str, Any]] = itertools.repeat({}, len(logits))
    if examples is not None:
        beside = (_texts(task, example) for example in examples)
    rows = zip(keys, beside, _named(task, logits), strict=True)
    files.write_lines(
        path,
        (
            json.dumps({"id": key} | texts | row, ensure_ascii=False)
            for key, texts, row in rows
        ),
    )


def _texts(
    task: classification_task.Task, example: tables.Example
) -> dict[str, Any]:
    found: dict[str, Any] = {"text_a": example.text_a}
    if task.takes_pairs:
        found["text_b"] = example.text_b
    if example.label is not None:
        found["gold"] = example.label
    return found


def _named(
    task: classification_task.Task, logits: np.ndarray
) -> Iterator[dict[str, Any]]:
    if task.labels is None:
        yield from ({"score": float(score)} for score in logits[:, 0])
        return
    for row, best in zip(
        probabilities(task, logits), predicted(task, logits), strict=True
    ):
        by_label = dict(zip(task.labels, map(float, row), strict=True))
        if task.is_multi_label:
            found = sorted(np.flatnonzero(best), key=lambda i: -row[i])
            own: dict[str, Any] = {"labels": [task.labels[i] for i in found]}
        else:
            own = {"label": task.labels[best], "probability": float(row[best])}
        yield own | {"probabilities": by_label}


def write_server_file(
    path: str, task: classification_task.Task, logits: np.ndarray
) -> None:
    """Writes predictions in the format of the GLUE server."""
    if task.labels is None:
        lowest, highest = task.score_range or (-math.inf, math.inf)
        scores = logits[:, 0].clip(lowest, highest)
        texts = [f"{score:.3f}" for score in scores]
    else:
        texts = [task.labels[i] for i in logits.argmax(axis=1)]
    rows = (f"{i}\t{text}" for i, text in enumerate(texts))
    files.write_lines(path, ["index\tprediction", *rows])
