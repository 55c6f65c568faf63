"""Gradient clipping, compared with NumPy and TensorFlow."""

from bert_tf import optimization
from tests import test_optimization

import numpy as np
import pytest
import tensorflow as tf


class TestClipping:
    def _optimizer(self, **options):
        optimizer = optimization.AdamWeightDecay(
            lambda step: tf.constant(0.0), **options
        )
        make = test_optimization.make_variable
        optimizer.build([make("a", [0.0]), make("b", [0.0, 0.0])])
        return optimizer

    def test_per_replica_is_the_sum_of_clipped_gradients(self):
        optimizer = self._optimizer(clipping="per_replica", clip_norm=1.0)
        # Gradients of two replicas, each over its own rows: norms 5 and 0.5.
        own = [([3.0], [4.0, 0.0]), ([0.3], [0.0, 0.4])]
        shares = [
            optimizer.clip_own([tf.constant(g) / 2 for g in gradients], 2)
            for gradients in own
        ]
        total = [a + b for a, b in zip(*shares, strict=True)]
        np.testing.assert_allclose(total[0], [0.6 + 0.3], rtol=1e-6)
        np.testing.assert_allclose(total[1], [0.8, 0.4], rtol=1e-6)

    def test_the_sum_is_not_clipped_again(self):
        for clipping, expected in (("per_replica", 3.0), ("global", 0.6)):
            optimizer = self._optimizer(clipping=clipping)
            gradients = [tf.constant([3.0]), tf.constant([4.0, 0.0])]
            report = optimizer.apply(gradients, tf.constant(0, tf.int64))
            moment = optimizer.slots["a/adam_m"].numpy()
            np.testing.assert_allclose(moment, [0.1 * expected], rtol=1e-5)
            assert float(report["gradient_norm"]) == pytest.approx(5)

    def test_global_leaves_shares_alone(self):
        gradients = [tf.constant([30.0]), tf.constant([4.0, 0.0])]
        (left, _) = self._optimizer().clip_own(gradients, 2)
        np.testing.assert_array_equal(left, [30.0])

    def test_unknown(self):
        with pytest.raises(ValueError, match="clipping='value'"):
            optimization.AdamWeightDecay(lambda step: 0.1, clipping="value")


class TestClipByGlobalNorm:
    @pytest.mark.parametrize("scale", [0, 1e-3, 0.1, 1.0, 1e3])
    @pytest.mark.parametrize("limit", [0.5, 1.0, 20.0])
    def test_equals_tensorflows_and_the_formula(self, scale, limit):
        rng = np.random.default_rng(0)
        gradients = [
            np.float32(scale * rng.normal(size=size))
            for size in ((3, 4), (5,), (1,), (2, 2, 2))
        ]
        got, norm = optimization.clip_by_global_norm(
            [tf.constant(g) for g in gradients], limit
        )
        theirs, their_norm = tf.clip_by_global_norm(gradients, limit)
        by_name = dict(enumerate(np.float64(g) for g in gradients))
        formula, expected_norm = test_optimization.clip(by_name, limit)
        np.testing.assert_allclose(norm, expected_norm, rtol=1e-6)
        np.testing.assert_allclose(norm, their_norm, rtol=1e-6)
        for i, left in enumerate(got):
            np.testing.assert_allclose(left, formula[i], rtol=1e-6)
            np.testing.assert_allclose(left, theirs[i], rtol=1e-6)
            if norm < limit:  # Unchanged, bit for bit.
                np.testing.assert_array_equal(left, gradients[i])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_what_is_not_finite_shows_in_the_norm(self, bad):
        _, norm = optimization.clip_by_global_norm(
            [tf.constant([1.0, bad]), tf.constant([1.0])], 1.0
        )
        assert not np.isfinite(norm)
