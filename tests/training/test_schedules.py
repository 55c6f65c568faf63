"""Learning-rate schedules against their formulas."""

import math

from bert_tf.errors import InputError
from bert_tf.training import schedules

import numpy as np
import pytest
import tensorflow as tf

_PEAK, _END, _WARMUP, _STEPS = 4e-4, 1e-4, 10, 50


def _rates(schedule, steps):
    return [float(schedule(tf.constant(step, tf.int64))) for step in steps]


def test_cosine_falls_along_half_a_wave():
    schedule = schedules.cosine_decay(_PEAK, _WARMUP, _STEPS, _END)
    steps = [10, 20, 30, 40, 50, 60]
    expected = [
        _END + (_PEAK - _END) * (1 + math.cos(math.pi * min(x, 1))) / 2
        for x in ((step - _WARMUP) / (_STEPS - _WARMUP) for step in steps)
    ]
    np.testing.assert_allclose(_rates(schedule, steps), expected, rtol=1e-6)
    np.testing.assert_allclose(_rates(schedule, [0, 5]), [0, _PEAK / 2])


def test_cooldown_may_take_all_steps_after_the_warm_up():
    schedule = schedules.constant(
        _PEAK, _WARMUP, _STEPS, _STEPS - _WARMUP, _END
    )
    expected = [_PEAK, (_PEAK + _END) / 2, _END]
    np.testing.assert_allclose(
        _rates(schedule, [10, 30, 50]), expected, rtol=1e-6
    )
    with pytest.raises(InputError, match="must not take more than all steps"):
        schedules.constant(_PEAK, _WARMUP, _STEPS, _STEPS - _WARMUP + 1)


@pytest.mark.parametrize(
    "schedule",
    [
        schedules.linear_warmup_decay,
        schedules.polynomial_decay,
        schedules.cosine_decay,
        schedules.constant,
    ],
)
def test_impossible_steps_are_refused(schedule):
    with pytest.raises(InputError, match="num_warmup_steps=51"):
        schedule(_PEAK, _STEPS + 1, _STEPS)
    with pytest.raises(InputError, match="must be positive"):
        schedule(_PEAK, 0, 0)
