"""From a classifier's logits to scores, results and prediction files.

Shapes: B examples, C classes (1 for a score).
"""

from bert_tf.tasks import classification, common, metrics

import numpy as np
import scipy.special

# What the human annotators of STS-B could give.
_STS_B_RANGE = (0.0, 5.0)


def results(
    task: classification.Task, logits: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Scores predictions by the task's metrics and by the mean loss.

    Args:
        task: Says which metrics.
        logits: [B, C].
        labels: Class indices or scores, [B].

    Returns:
        "eval_" + name of metric -> value, and "eval_loss".
    """
    logits = logits.astype(np.float64)
    if task.labels is None:
        predicted = logits[:, 0]
        losses = (predicted - labels) ** 2
    else:
        predicted = logits.argmax(axis=1)
        log_probabilities = scipy.special.log_softmax(logits, axis=1)
        losses = -log_probabilities[np.arange(len(labels)), labels]
    values = metrics.compute(task.metrics, labels, predicted)
    values["loss"] = float(losses.mean())
    return {f"eval_{name}": value for name, value in values.items()}


def write_probabilities(path: str, logits: np.ndarray) -> None:
    """Writes test_results.tsv as the original: a row of classes per example.

    A score, which has one column, is written as it is.
    """
    if logits.shape[1] > 1:
        logits = scipy.special.softmax(logits, axis=1)
    common.write_lines(path, ("\t".join(map(str, row)) for row in logits))


def write_server_file(
    path: str, task: classification.Task, logits: np.ndarray
) -> None:
    """Writes predictions in the format of the GLUE server."""
    if task.labels is None:
        scores = logits[:, 0].clip(*_STS_B_RANGE)
        predicted = [f"{score:.3f}" for score in scores]
    else:
        predicted = [task.labels[i] for i in logits.argmax(axis=1)]
    rows = (f"{i}\t{label}" for i, label in enumerate(predicted))
    common.write_lines(path, ["index\tprediction", *rows])
