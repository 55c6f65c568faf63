"""The inner training loop: on the device. run.py has the outer one, in Python.

It knows no task. An objective says what is minimized. One replica and several
make the same update from the same batch: gradients and losses are sums,
divided by weights that are summed over all replicas first.
"""

import dataclasses
import functools
import numbers
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from bert_tf import optimization
from bert_tf.errors import InputError
from bert_tf.training import distribution, replica_step

import keras
import tensorflow as tf

Batch = dict[str, tf.Tensor]
Scalars = dict[str, float]


def sizes_of(lengths: tf.Tensor, sequences: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns what a meter asks of a batch, float32 scalars.

    The lengths are the real tokens of each sequence, float32. Returned are
    `sequences`, `tokens`, and `pairs` of tokens that attend to each other.
    """
    return {
        "sequences": sequences,
        "tokens": tf.reduce_sum(lengths),
        "pairs": tf.reduce_sum(lengths**2),
    }


def sizes_of_rows(batch: Batch) -> dict[str, tf.Tensor]:
    """Returns the sizes of a batch with one sequence per row.

    As in models, the mask may be `attention_mask`, and without one all
    positions are tokens.
    """
    mask = batch.get("input_mask", batch.get("attention_mask"))
    if mask is None and "input_ids" not in batch:
        raise InputError(
            "The sizes of batches are counted in `input_mask` or `input_ids`. "
            "For other batches, pass Objective(..., sizes=...). "
            f"Received: {', '.join(batch)}"
        )
    if mask is None:
        mask = tf.ones_like(batch["input_ids"])
    lengths = tf.reduce_sum(tf.cast(mask, tf.float32), -1)
    # Without weights each row counts once.
    weights = batch.get("row_weights", tf.ones_like(lengths, tf.float32))
    return sizes_of(lengths, tf.reduce_sum(weights))


@dataclasses.dataclass(frozen=True)
class Objective:
    """The objective of training, as sums over a part of a batch.

    Its functions are traced without AutoGraph: control flow that depends on
    tensors needs TensorFlow's ops.

    Args:
        weights: Batch -> {loss name: float32 scalar}, the divisor of each loss.
            It is summed over replicas before the forward pass.
        sums: (model, batch, dropout seed or None) -> {loss name: {metric:
            float32 scalar}}. The metric "loss" of every loss is minimized; the
            others are reported, divided by the same weight.
        factors: Loss name -> its factor in the total loss, by default 1. The
            losses are reported without it.
        sizes: Batch -> its sizes for the meter, as `sizes_of`.
        trained: The variables of the model that are trained, if these are not
            just the variables that the model's outputs depend on.
        own: Additional variables to train, named `objective/...`. Only training
            needs them: its checkpoints have them, exports and `best/` do not.
        derived: Metrics -> the metrics to report instead, such as quotients of
            two of them. It must keep the losses.
        teacher: Identifies the teacher, if the workers of a cluster have one.
    """

    weights: Callable[[Batch], dict[str, tf.Tensor]]
    sums: Callable[
        [keras.Model, Batch, tf.Tensor | None],
        dict[str, dict[str, tf.Tensor]],
    ]
    factors: Mapping[str, float] = dataclasses.field(default_factory=dict)
    sizes: Callable[[Batch], dict[str, tf.Tensor]] = sizes_of_rows
    trained: Sequence[keras.Variable] | None = None
    own: Sequence[keras.Variable] = ()
    derived: Callable[[Scalars], Scalars] = lambda scalars: scalars
    teacher: str = ""

    def total(self, losses: Mapping[str, Any]) -> Any:
        """Returns the total loss: the sum of losses times their factors."""
        if unknown := sorted(self.factors.keys() - losses.keys()):
            raise InputError(
                f"The factors are of losses: {', '.join(losses)}. "
                f"Received: factors={', '.join(unknown)}"
            )
        factors = {name: self.factors.get(name, 1) for name in losses}
        parts = [
            loss if factors[name] == 1 else factors[name] * loss
            for name, loss in losses.items()
        ]
        return functools.reduce(operator.add, parts)


@dataclasses.dataclass(frozen=True)
class Block:
    """Metrics summed over consecutive steps.

    Attributes:
        objective: The objective that computed the sums.
        sums: Loss name -> its metrics, not yet divided.
        weights: Loss name -> the divisor of its metrics.
        counts: Sums for the meter, such as tokens and seconds.
        last: Values of the last step only, such as learning rates.
    """

    objective: Objective
    sums: Mapping[str, Mapping[str, float]]
    weights: Mapping[str, float]
    counts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    last: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __add__(self, later: Self) -> Self:
        """Returns the block of these steps and those that follow them."""
        sums = {
            name: _added(self.sums.get(name, {}), metrics)
            for name, metrics in later.sums.items()
        }
        return dataclasses.replace(
            later,
            sums=sums,
            weights=_added(self.weights, later.weights),
            counts=_added(self.counts, later.counts),
        )

    def scalars(self) -> Scalars:
        """Returns means, counts and the values of the last step."""
        means = divide(self.objective, self.sums, self.weights)
        return means | {**self.last, **self.counts}

    def without_speeds(self) -> Self:
        """Returns the block without the counts that measure speed."""
        kept = {x: y for x, y in self.counts.items() if x in _KEPT}
        return dataclasses.replace(self, counts=kept)

    # ---- For a run that resumes after these steps ----

    def kept(self) -> dict[str, float]:
        """Returns the sums that means need, as a flat dict; no speeds."""
        sums = {
            f"sums/{name}/{metric}": value
            for name, metrics in self.sums.items()
            for metric, value in metrics.items()
        }
        weights = {f"weights/{name}": x for name, x in self.weights.items()}
        counts = self.without_speeds().counts
        skipped = {f"counts/{name}": x for name, x in counts.items()}
        return sums | weights | skipped

    @classmethod
    def of_kept(cls, objective: Objective, kept: Mapping[str, float]) -> Self:
        """Returns the block of steps whose sums were `kept`."""
        sums: dict[str, dict[str, float]] = {}
        others: dict[str, dict[str, float]] = {"weights": {}, "counts": {}}
        for path, value in kept.items():
            kind, name, *metric = path.split("/")
            if metric:
                sums.setdefault(name, {})[metric[0]] = value
            else:
                others[kind][name] = value
        return cls(objective, sums, **others)


# The counts that do not measure speed.
_KEPT = {"skipped_steps"}


def _added(
    one: Mapping[str, float], other: Mapping[str, float]
) -> dict[str, float]:
    """Returns the sums of the values of the other's names."""
    return {name: one.get(name, 0) + value for name, value in other.items()}


def make_train_steps(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    optimizer: optimization.Optimizer,
    objective: Objective,
    dataset: tf.distribute.DistributedDataset,
    seed: int,
    accumulate: int = 1,
    use_xla: bool = False,
) -> Callable[[int, int], Block]:
    """Returns a function that trains: (first step, number of steps) -> block.

    Model and optimizer, built, were made in the strategy's scope. The dataset
    is distributed and endless, consumed in order, a batch a step. The dropout
    masks of a step are a function of (seed, step, replica, micro-batch), except
    for those that cuDNN draws in fused attention: see cudnn_attention.py.
    `accumulate` micro-batches per step and replica save memory and leave the
    update the same. With `use_xla` XLA compiles the passes and the update, once
    for every shape of a batch; for TPUs it always compiles the whole step.
    """
    if not optimizer.variables:
        raise InputError(
            "The optimizer has no variables to train: call optimizer.build("
            "model.trainable_variables) in the strategy's scope first. "
            "Received: optimizer.variables=[]"
        )
    _check_count("accumulate", accumulate)
    is_tpu = distribution.is_tpu(strategy)
    compiler = replica_step.compiler_of(strategy, use_xla)
    step = replica_step.ReplicaStep(
        model, optimizer, objective, compiler, seed, accumulate
    )
    steps = _steps(strategy, step, iter(dataset))

    def train(first: int, count: int) -> Block:
        _check_count("count", count)
        total, last = steps(
            tf.constant(first, tf.int64), tf.constant(count, tf.int64)
        )
        total, last = tf.nest.map_structure(float, (total, last))
        if not is_tpu:  # There they are not known.
            total["counts"]["input_seconds"] = total["waited"]
            total["counts"]["step_seconds"] = total["lasted"]
        return block_of(objective, total, last)

    return train


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(
            f"`{name}` must be a whole number, at least 1. "
            f"Received: {name}={value!r}"
        )


def block_of(
    objective: Objective, total: Mapping[str, Any], last: Scalars
) -> Block:
    """Returns the block of steps, from their added-up sums and last report."""
    weights = total["weights"]
    counts = total["counts"] | {f"{x}_weight": weights[x] for x in weights}
    return Block(objective, total["sums"], weights, counts, last)


def _steps(
    strategy: tf.distribute.Strategy,
    step_of_replica: Callable[..., Any],
    iterator: tf.distribute.DistributedIterator,
) -> Callable[[tf.Tensor, tf.Tensor], Any]:
    """Returns the loop on the device: (first step, number) -> (total, last).

    The total is of sums, of seconds of waiting for input and of all seconds;
    last is a report.
    """
    is_tpu = distribution.is_tpu(strategy)

    # Without AutoGraph, which would double the time to trace it.
    @tf.function(autograph=False)
    def compute(step, batch):
        results = strategy.run(step_of_replica, (step, batch))
        return first_replica(strategy, results)

    # A separate function, so that it is traced once and called twice.
    @tf.function(
        input_signature=[
            tf.TensorSpec([], tf.int64),
            tf.TensorSpec([], tf.float64),
        ],
        autograph=False,
    )
    def one_step(step, ready):
        batch = next(iterator)
        if is_tpu:  # Its hosts have no Python to ask for the time.
            sums, last = compute(step, batch)
            return sums | {"waited": tf.zeros_like(ready)}, last, ready
        # Input that came while the step before was computed was not waited
        # for. The clock is read before the step starts: where one thread does
        # everything, it would else be read when the step is done.
        came = _time_after(batch)
        with tf.control_dependencies([came]):
            sums, last = compute(step, batch)
        waited = tf.maximum(came - ready, 0)
        return sums | {"waited": waited}, last, _time_after(last)

    # `count` is a tensor: a Python number would trace the graph again.
    @tf.function(
        input_signature=[tf.TensorSpec([], tf.int64)] * 2, autograph=False
    )
    def steps(first, count):
        def add_step(step, total, last, done):
            del last
            more, last, done = one_step(step, done)
            total = tf.nest.map_structure(tf.add, total, more)
            return step + 1, total, last, done

        began = tf.zeros([], tf.float64)
        if not is_tpu:
            began = _time_after([first])
        _, total, last, done = tf.while_loop(
            lambda step, *_: step < first + count,
            add_step,
            (first + 1, *one_step(first, began)),
        )
        return total | {"lasted": done - began}, last

    return steps


def _time_after(values: Any) -> tf.Tensor:
    """The time in seconds, float64, when all the values are there."""
    tensors = tf.nest.flatten(values, expand_composites=True)
    with tf.control_dependencies(tensors):
        # tf.timestamp raises an error with deterministic ops. The call into
        # Python takes about 50 microseconds.
        now = tf.numpy_function(time.monotonic, [], tf.float64)
    return tf.ensure_shape(now, [])


def first_replica(strategy: tf.distribute.Strategy, values: Any) -> Any:
    """One replica's values, where all replicas have the same."""
    return tf.nest.map_structure(
        lambda value: strategy.experimental_local_results(value)[0], values
    )


def divide(
    objective: Objective,
    sums: Mapping[str, Mapping[str, Any]],
    weights: Mapping[str, Any],
) -> Scalars:
    """Divides sums by their weights, and adds up the losses by factors."""
    scalars: Scalars = {}
    for name, metrics in sums.items():
        weight = float(weights[name])
        for metric, value in metrics.items():
            mean = float(value) / weight if weight else 0.0
            scalars[f"{name}_{metric}"] = mean
    losses = {name: scalars[f"{name}_loss"] for name in sums}
    return {"loss": objective.total(losses)} | objective.derived(scalars)
