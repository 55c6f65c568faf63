"""The loss of a classifier, compared with NumPy in float64."""

from bert_tf.tasks import tables
from bert_tf.tasks.classification import objective, own_files

import numpy as np
import pytest
import tensorflow as tf
from sklearn.utils import class_weight


def _task(labels, is_regression=False, separator=None):
    columns = own_files.Columns("t", None, "y")
    return own_files.custom(columns, {}, labels, is_regression, separator)


def _loss(task, class_weights, logits, **batch):
    tensors = {name: tf.constant(x) for name, x in batch.items()}
    of_task = objective.make_objective(task, class_weights)
    found = of_task.sums(lambda *_: tf.constant(logits), tensors, None)
    return float(found["label"]["loss"])


def test_each_row_of_a_loss_is_weighted():
    """For cross entropy, sigmoid cross entropy and squared error."""
    rng = np.random.default_rng(0)
    rows = np.array([1, 0.5, 1, 0], np.float32)
    windows = np.array([1, 1, 0.25, 1], np.float32)
    weights = np.float64(rows) * windows
    logits = rng.normal(size=(4, 2)).astype(np.float32)
    shared = {"row_weights": rows, "window_weights": windows}
    shared["is_real_example"] = np.array([1, 1, 1, 1], np.int32)

    labels = np.array([0, 1, 1, 0], np.int32)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    entropy = -logs[np.arange(4), labels]
    task = _task(("a", "b"))
    found = _loss(task, None, logits, label_ids=labels, **shared)
    assert found == pytest.approx((weights * entropy).sum(), rel=1e-5)
    found = _loss(task, (2.0, 3.0), logits, label_ids=labels, **shared)
    scaled = weights * np.array([2, 3, 3, 2])
    assert found == pytest.approx((scaled * entropy).sum(), rel=1e-5)

    several = np.array([[0, 1], [1, 1], [0, 0], [1, 0]], np.int32)
    signs = np.where(several, -1, 1)
    entropy = np.log1p(np.exp(signs * np.float64(logits))).mean(axis=1)
    task = _task(("a", "b"), separator=",")
    found = _loss(task, None, logits, label_ids=several, **shared)
    assert found == pytest.approx((weights * entropy).sum(), rel=1e-5)

    scores = np.array([0.5, 2, -1, 3], np.float32)
    squares = (np.float64(logits[:, 0]) - scores) ** 2
    task = _task(None, is_regression=True)
    found = _loss(task, None, logits[:, :1], label_ids=scores, **shared)
    assert found == pytest.approx((weights * squares).sum(), rel=1e-5)


def test_weights_of_classes_in_the_loss():
    """The weighted mean equals PyTorch's CrossEntropyLoss(weight=...)."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 2)).astype(np.float32)
    labels = np.array([0, 1, 1, 0, 1], np.int32)
    windows = np.array([1, 0.5, 0.5, 1, 1], np.float32)
    batch = {
        "label_ids": labels,
        "is_real_example": np.array([1, 1, 1, 1, 0], np.int32),
        "row_weights": np.ones([5], np.float32),
        "window_weights": windows,
    }
    task = _task(("a", "b"))
    tensors = {name: tf.constant(x) for name, x in batch.items()}
    weights = np.array([2, 3, 3, 2, 0]) * windows
    found = objective.make_objective(task, (2.0, 3.0)).weights(tensors)
    assert float(found["label"]) == weights.sum()
    log_shares = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -(weights * log_shares[np.arange(5), labels]).sum()
    found = _loss(task, (2.0, 3.0), logits, **batch)
    assert found == pytest.approx(expected, rel=1e-5)


def _examples(labels):
    return (tables.Example("", "x", label=label) for label in labels)


def test_balanced_is_scikit_learns():
    given = ["a"] * 7 + ["b"] + ["c"] * 4
    found = objective.balanced_class_weights(_examples(given), ("a", "b", "c"))
    expected = class_weight.compute_class_weight(
        "balanced", classes=np.array(["a", "b", "c"]), y=given
    )
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="no examples of d, e"):
        objective.balanced_class_weights(_examples(given), ("a", "d", "b", "e"))


def test_balanced_labels_for_themselves():
    given = [("a",), ("a", "b"), (), ("a",), ("a", "c")]
    found = objective.balanced_class_weights(_examples(given), ("a", "b", "c"))
    # For each label, the ratio of the weights of its two classes.
    weights = [
        class_weight.compute_class_weight(
            "balanced", classes=np.array([0, 1]), y=[x in own for own in given]
        )
        for x in "abc"
    ]
    assert found == pytest.approx([yes / no for no, yes in weights])
    assert objective.balanced_class_weights(
        _examples([("a",)] * 2), ("a",)
    ) == (0.5,)


def test_given_weights():
    labels = ("x=1", "b", "c")
    assert objective.parse_class_weights(["b=2.5", "x=1=3"], labels) == (
        3,
        2.5,
        1,
    )
    for bad in ("b", "d=1", "b=0", "b=-1", "b=nan", "b=inf", "b=1e9", "b=x"):
        with pytest.raises(ValueError, match=f"x=1, b, c.*Received.*{bad}"):
            objective.parse_class_weights([bad], labels)
    with pytest.raises(ValueError, match=r"x=1, b, c.*Received.*b=3"):
        objective.parse_class_weights(["b=2", "b=3"], labels)
