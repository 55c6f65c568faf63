"""Losses as sums, compared with NumPy and SciPy."""

from bert_tf import losses

import numpy as np
import pytest
import scipy.special
import tensorflow as tf


def _values(*shape, classes=7, scale=5.0, seed=0):
    """Returns logits [..., C], labels and weights [...] with some zeros."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=scale, size=(*shape, classes))
    labels = rng.integers(0, classes, shape, np.int32)
    weights = rng.uniform(0, 2, shape) * rng.integers(0, 2, shape)
    return logits.astype(np.float32), labels, weights.astype(np.float32)


def _classification(*values):
    sums = losses.classification(*map(tf.constant, values))
    assert {value.dtype for value in sums.values()} == {tf.float32}
    return {name: value.numpy() for name, value in sums.items()}


class TestClassification:
    @pytest.mark.parametrize("shape", [(6,), (4, 5), (1, 1)])
    @pytest.mark.parametrize("scale", [1.0, 30.0])
    def test_sums(self, shape, scale):
        logits, labels, weights = _values(*shape, scale=scale)
        log_probs = scipy.special.log_softmax(logits.astype(float), axis=-1)
        chosen = np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
        correct = logits.argmax(axis=-1) == labels
        sums = _classification(logits, labels, weights)
        assert sums.keys() == {"loss", "accuracy"}
        np.testing.assert_allclose(
            sums["loss"], -(chosen * weights).sum(), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            sums["accuracy"], (correct * weights).sum(), rtol=1e-6
        )

    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    def test_accuracy_counts_what_is_right(self, dtype):
        logits = 9 * np.eye(4, dtype=np.float32)
        labels = np.array([0, 1, 0, 3], dtype)
        sums = _classification(logits, labels, np.ones(4, np.float32))
        assert sums["accuracy"] == 3

    def test_nothing_adds_nothing(self):
        logits, labels, weights = _values(0, 3)
        sums = _classification(logits, labels, weights)
        assert sums == {"loss": 0, "accuracy": 0}

    def test_large_logits_stay_finite(self):
        logits = np.array([[1e4, -1e4]] * 2, np.float32)
        labels = np.array([0, 1], np.int32)
        sums = _classification(logits, labels, np.ones(2, np.float32))
        assert sums["loss"] == 2e4

    def test_gradient_is_probability_minus_one_hot(self):
        logits, labels, weights = _values(5)
        x = tf.constant(logits)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = losses.classification(
                x, tf.constant(labels), tf.constant(weights)
            )["loss"]
        expected = scipy.special.softmax(logits.astype(float), axis=-1)
        expected -= np.eye(7)[labels]
        np.testing.assert_allclose(
            tape.gradient(loss, x), expected * weights[:, None], atol=1e-6
        )


class TestRegression:
    def test_sum(self):
        rng = np.random.default_rng(0)
        scores, labels, weights = rng.normal(size=(3, 50)).astype(np.float32)
        sums = losses.regression(*map(tf.constant, (scores, labels, weights)))
        assert sums.keys() == {"loss"}
        difference = scores.astype(float) - labels
        np.testing.assert_allclose(
            sums["loss"], (weights * difference**2).sum(), rtol=1e-5
        )


def test_multi_label_against_the_formula():
    rng = np.random.default_rng(4)
    logits = rng.normal(scale=5, size=(6, 3)).astype(np.float32)
    labels = rng.integers(0, 2, (6, 3), np.int32)
    labels[0] = logits[0] > 0
    weights = np.array([1, 0.5, 0, 2, 1, 1], np.float32)
    scale = np.array([1, 4, 0.25], np.float32)
    for given in (1.0, scale):
        found = losses.multi_label(
            *map(tf.constant, (logits, labels, weights, given))
        )
        log_yes = scipy.special.log_expit(np.float64(logits))
        log_no = scipy.special.log_expit(-np.float64(logits))
        entropy = -(given * labels * log_yes + (1 - labels) * log_no)
        expected = (weights * entropy.mean(axis=1)).sum()
        assert float(found["loss"]) == pytest.approx(expected, rel=1e-5)
        is_right = ((logits > 0) == labels).all(axis=1)
        assert float(found["accuracy"]) == (weights * is_right).sum()


class TestBinary:
    def _values(self):
        rng = np.random.default_rng(0)
        logits = rng.normal(0, 4, (5, 7)).astype(np.float32)
        labels = rng.integers(0, 2, (5, 7)).astype(np.float32)
        weights = rng.uniform(0, 2, (5, 7)) * rng.integers(0, 2, (5, 7))
        return logits, labels, weights.astype(np.float32)

    def test_sums(self):
        logits, labels, weights = self._values()
        found = losses.binary(*map(tf.constant, (logits, labels, weights)))
        probabilities = scipy.special.expit(np.float64(logits))
        of_label = np.where(labels > 0, probabilities, 1 - probabilities)
        says = probabilities > 0.5
        wanted = {
            "loss": -np.log(of_label),
            "accuracy": says == labels,
            "positives": labels,
            "predicted": says,
            "true_positives": says * labels,
        }
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            assert float(found[name]) == pytest.approx(
                (weights * value).sum(), rel=1e-5
            ), name

    def test_large_logits_stay_finite(self):
        logits = tf.constant([200.0, -200.0])
        found = losses.binary(logits, tf.constant([0.0, 1.0]), tf.ones([2]))
        assert float(found["loss"]) == pytest.approx(400)
