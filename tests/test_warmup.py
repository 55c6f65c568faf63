"""The original's learning rate, in closed form."""

from bert_tf.training import schedules

import numpy as np
import pytest
import tensorflow as tf


class TestLinearWarmupDecay:
    @pytest.mark.parametrize(
        ("warmup", "steps"), [(0, 50), (1, 50), (10, 50), (50, 50), (0, 1)]
    )
    def test_closed_form_at_every_step(self, warmup, steps):
        schedule = schedules.linear_warmup_decay(3e-4, warmup, steps)
        for step in range(steps + 10):
            share = step / warmup if step < warmup else 1 - step / steps
            rate = schedule(tf.constant(step, tf.int64))
            assert rate.dtype == tf.float32
            np.testing.assert_allclose(
                rate, 3e-4 * max(share, 0), rtol=1e-5, atol=1e-12
            )

    def test_landmarks(self):
        # The original's numbers: no rate in the first step; after the warm-up
        # the line from step 0, so it drops from 0.99 to 0.9 of the peak.
        schedule = schedules.linear_warmup_decay(1.0, 100, 1000)
        rates = [
            float(schedule(tf.constant(step, tf.int64)))
            for step in (0, 50, 99, 100, 550, 999, 1000, 5000)
        ]
        expected = [0, 0.5, 0.99, 0.9, 0.45, 0.001, 0, 0]
        np.testing.assert_allclose(rates, expected, rtol=1e-4)
        assert rates[-2:] == [0, 0]

    def test_long_runs_keep_their_precision(self):
        schedule = schedules.linear_warmup_decay(1e-4, 10_000, 1_000_000)
        for step in (9_999, 10_000, 999_999):
            share = step / 1e4 if step < 1e4 else 1 - step / 1e6
            np.testing.assert_allclose(
                schedule(tf.constant(step, tf.int64)), 1e-4 * share, atol=1e-11
            )

    @pytest.mark.parametrize(
        ("warmup", "steps", "words"),
        [
            (0, 0, "num_train_steps=0"),
            (0, -5, "num_train_steps=-5"),
            (11, 10, "num_warmup_steps=11, num_train_steps=10"),
            (-1, 10, "num_warmup_steps=-1"),
        ],
    )
    def test_bad_arguments(self, warmup, steps, words):
        with pytest.raises(ValueError, match=words):
            schedules.linear_warmup_decay(1e-4, warmup, steps)
