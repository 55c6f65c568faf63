"""Learning-rate schedules: the step -> the rate.

A schedule takes an int64 scalar and returns a float32 scalar. The optimizers of
Keras take it as well, as their `learning_rate`.
"""

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from bert_tf.errors import InputError
from bert_tf.optimization import Schedule

import keras
import tensorflow as tf

_P = ParamSpec("_P")
_FUNCTIONS: dict[str, Callable[..., Schedule]] = {}


@keras.saving.register_keras_serializable("bert_tf")
class NamedSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of this module, which `.keras` files can hold."""

    def __init__(self, name: str, arguments: Mapping[str, Any]):
        """Takes the name of the function and its arguments."""
        self.name = name
        self.arguments = dict(arguments)
        self._schedule = _FUNCTIONS[name](**arguments)

    def __call__(self, step):
        """Returns the learning rate, a float32 scalar."""
        return self._schedule(tf.convert_to_tensor(step))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"name": self.name, "arguments": self.arguments}


def _named(function: Callable[_P, Schedule]) -> Callable[_P, Schedule]:
    """Lets a function return a `NamedSchedule`."""
    _FUNCTIONS[function.__name__] = function

    @functools.wraps(function)
    def make(*args: _P.args, **kwargs: _P.kwargs) -> Schedule:
        bound = inspect.signature(function).bind(*args, **kwargs)
        _check(bound.arguments)
        return NamedSchedule(function.__name__, bound.arguments)

    return make


@_named
def linear_warmup_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly from 0, then follows a line to the end.

    As in the original, the falling line starts at step 0: after the warm-up the
    rate is learning_rate * (1 - step / num_train_steps), for an end at 0.
    """

    def decay(step):
        left = tf.maximum(1 - step / num_train_steps, 0)
        return end_learning_rate + (learning_rate - end_learning_rate) * left

    return _warmed_up(learning_rate, num_warmup_steps, decay)


@_named
def linear_warmup_times_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Multiplies the warm-up by the line of `linear_warmup_decay`.

    The rate has no jump after the warm-up, and the peak is below
    `learning_rate`. ELECTRA was trained so (google-research/electra,
    model/optimization.py).
    """
    line = linear_warmup_decay(
        learning_rate, 0, num_train_steps, end_learning_rate
    )

    def schedule(step):
        warmup = tf.cast(step, tf.float32) / num_warmup_steps
        return line(step) * tf.minimum(warmup, 1)

    return schedule if num_warmup_steps else line


@_named
def polynomial_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    power: float = 1.0,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, then falls as a power of the share of steps left.

    Unlike `linear_warmup_decay` the fall starts where the warm-up ends, so
    there is no jump. Large-batch recipes use a power of 0.5; NVIDIA's count it
    from step 0.
    """

    def decay(step):
        left = 1 - _progress(step, num_warmup_steps, num_train_steps)
        span = learning_rate - end_learning_rate
        return end_learning_rate + span * left**power

    return _warmed_up(learning_rate, num_warmup_steps, decay)


@_named
def cosine_decay(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, then falls along half a cosine wave.

    Loshchilov & Hutter, 2017, https://arxiv.org/abs/1608.03983, without
    restarts.
    """

    def decay(step):
        done = _progress(step, num_warmup_steps, num_train_steps)
        span = learning_rate - end_learning_rate
        return end_learning_rate + span * (1 + tf.cos(math.pi * done)) / 2

    return _warmed_up(learning_rate, num_warmup_steps, decay)


@_named
def inverse_sqrt(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, then falls as the inverse square root of the step.

    It is the Transformer's (Vaswani et al., 2017, equation 3) if the peak is
    (hidden_size * num_warmup_steps)^-0.5.
    """

    def decay(step):
        share = max(num_warmup_steps, 1) / tf.maximum(step, 1)
        return tf.maximum(learning_rate * tf.sqrt(share), end_learning_rate)

    return _warmed_up(learning_rate, num_warmup_steps, decay)


@_named
def slanted_triangular(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly from the end's rate to the peak, and falls back linearly.

    The end's rate is 1/32 of the peak if it is 0 (Howard & Ruder, 2018,
    https://arxiv.org/abs/1801.06146, equation 3).
    """
    lowest = end_learning_rate or learning_rate / 32

    def schedule(step):
        step = tf.cast(step, tf.float32)
        up = step / max(num_warmup_steps, 1)
        down = 1 - _progress(step, num_warmup_steps, num_train_steps)
        share = tf.where(step < num_warmup_steps, up, down)
        return lowest + (learning_rate - lowest) * share

    return schedule


@_named
def constant(
    learning_rate: float,
    num_warmup_steps: int,
    num_train_steps: int,
    num_cooldown_steps: int = 0,
    end_learning_rate: float = 0.0,
) -> Schedule:
    """Rises linearly, stays, and falls linearly in the last steps."""
    if not 0 <= num_cooldown_steps <= num_train_steps - num_warmup_steps:
        raise InputError(
            "Warm-up and cooldown must not take more than all steps. "
            f"Received: num_warmup_steps={num_warmup_steps}, "
            f"num_cooldown_steps={num_cooldown_steps}, "
            f"num_train_steps={num_train_steps}"
        )

    def decay(step):
        first = num_train_steps - num_cooldown_steps
        done = _progress(step, first, num_train_steps)
        return learning_rate + (end_learning_rate - learning_rate) * done

    return _warmed_up(learning_rate, num_warmup_steps, decay)


def _check(arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        is_count = name.endswith("_steps")
        kind = numbers.Integral if is_count else numbers.Real
        if not (isinstance(value, kind) and 0 <= float(value) < math.inf):
            raise InputError(
                f"`{name}` must be a {'whole ' * is_count}number, at least 0"
                f"{', not a share of the steps' * is_count}. "
                f"Received: {name}={value!r}"
            )
    num_warmup_steps = arguments["num_warmup_steps"]
    num_train_steps = arguments["num_train_steps"]
    if num_train_steps < 1:
        raise InputError(
            "`num_train_steps` must be positive. "
            f"Received: num_train_steps={num_train_steps}"
        )
    if not 0 <= num_warmup_steps <= num_train_steps:
        raise InputError(
            "`num_warmup_steps` must not exceed `num_train_steps`, or the "
            "learning rate never reaches its peak. A tenth of the steps, "
            f"num_warmup_steps={num_train_steps // 10}, is common. Received: "
            f"num_warmup_steps={num_warmup_steps}, "
            f"num_train_steps={num_train_steps}"
        )


def _progress(step: tf.Tensor, first: int, last: int) -> tf.Tensor:
    """The share of the way from step `first` to `last` that is done."""
    return tf.clip_by_value((step - first) / max(last - first, 1), 0, 1)


def _warmed_up(
    learning_rate: float, num_warmup_steps: int, decay: Schedule
) -> Schedule:
    def schedule(step):
        step = tf.cast(step, tf.float32)
        warmup = learning_rate * (step / max(num_warmup_steps, 1))
        return tf.where(step < num_warmup_steps, warmup, decay(step))

    return schedule
