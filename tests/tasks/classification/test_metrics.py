import math

from bert_tf.tasks.classification import classification_metrics

import numpy as np
import pytest


def test_classification_metrics_against_their_definitions():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    predictions = np.where(rng.random(500) < 0.7, labels, 1 - labels)
    tp = sum(labels * predictions)
    tn = sum((1 - labels) * (1 - predictions))
    fp, fn = sum(predictions) - tp, sum(labels) - tp
    f1, other_f1 = (2 * x / (2 * x + fp + fn) for x in (tp, tn))
    product = float((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    expected = {
        "accuracy": (tp + tn) / 500,
        "f1": f1,
        "macro_f1": (f1 + other_f1) / 2,
        "matthews_correlation": (tp * tn - fp * fn) / math.sqrt(product),
    }
    found = classification_metrics.compute(tuple(expected), labels, predictions)
    assert found == pytest.approx(expected, abs=1e-12)


def test_metrics_of_several_labels_against_their_definitions():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, (50, 3))
    predictions = np.where(rng.random((50, 3)) < 0.8, labels, 1 - labels)
    tp = (labels * predictions).sum(axis=0)
    both = labels.sum(axis=0) + predictions.sum(axis=0)
    expected = {
        "micro_f1": 2 * tp.sum() / both.sum(),
        "macro_f1": (2 * tp / both).mean(),
        "subset_accuracy": (labels == predictions).all(axis=1).mean(),
    }
    found = classification_metrics.compute(tuple(expected), labels, predictions)
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="one prediction per label"):
        classification_metrics.compute(
            ["micro_f1"], labels[:, 0], predictions[:, 0]
        )


def test_correlations_against_their_definitions():
    rng = np.random.default_rng(1)
    labels = rng.permutation(200) / 40  # Without ties.
    scores = labels**3 + rng.normal(size=200)
    ranks = [np.argsort(np.argsort(x)) / 1.0 for x in (labels, scores)]
    expected = {
        "pearson": np.corrcoef(labels, scores)[0, 1],
        "spearman": np.corrcoef(ranks[0], ranks[1])[0, 1],
    }
    found = classification_metrics.compute(tuple(expected), labels, scores)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "labels", "predictions"),
    [
        ("pearson", [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]),
        ("spearman", [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]),
        ("pearson", [1.0], [2.0]),
        ("spearman", [1.0], [2.0]),
        ("matthews_correlation", [0, 1, 1], [1, 1, 1]),
        ("matthews_correlation", [1, 1, 1], [0, 1, 1]),
        ("f1", [0, 0], [0, 0]),
    ],
)
def test_undefined_metrics_are_zero_and_said_so(
    name, labels, predictions, caplog
):
    assert classification_metrics.compute([name], labels, predictions) == {
        name: 0.0
    }
    assert f"{name} is undefined" in caplog.text


def test_bad_input():
    with pytest.raises(ValueError, match=r"Unknown metrics.*Received: bleu"):
        classification_metrics.compute(["bleu"], [1], [1])
    for shapes in ((0, 0), (2, 1), ((1, 1), (1, 1))):
        labels, predictions = map(np.zeros, shapes)
        with pytest.raises(ValueError, match="one prediction per label"):
            classification_metrics.compute(["accuracy"], labels, predictions)
    with pytest.raises(ValueError, match="Not a finite number"):
        classification_metrics.compute(["pearson"], [1.0, 2.0], [1.0, math.nan])
