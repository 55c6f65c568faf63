"""The training loop: inner on the device, outer in Python.

It knows no task. An objective says what is minimized, hooks say what happens
between blocks of steps. One replica and several make the same update from the
same batch: gradients and losses are sums, divided by weights that are summed
over all replicas first.
"""

import contextlib
import dataclasses
import functools
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import distribution, optimization, phases

import keras
import tensorflow as tf
from absl import logging

Batch = dict[str, tf.Tensor]
Scalars = dict[str, float]
# What it returns says whether the run is to end there; None: no.
Hook = Callable[[int, Scalars], bool | None]
# A hook is due at the multiples of a number and at the end, or at these steps.
Due = int | tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Objective:
    """What is trained, as sums over a part of a batch.

    Both functions are traced without AutoGraph: what depends on tensors needs
    TensorFlow's own control flow.

    Args:
        weights: batch -> {loss name: float32 scalar}, what each loss is to be
            divided by. It is summed over replicas before the forward pass.
        sums: (model, batch, dropout seed or None) -> {loss name: {metric:
            float32 scalar}}. The metric "loss" of every loss is minimized;
            the others are reported, divided by the same weight.
    """

    weights: Callable[[Batch], dict[str, tf.Tensor]]
    sums: Callable[
        [keras.Model, Batch, tf.Tensor | None],
        dict[str, dict[str, tf.Tensor]],
    ]


# ---- Inner loop: on the device ----------------------------------------------


def make_train_steps(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    optimizer: optimization.Optimizer,
    objective: Objective,
    dataset: tf.distribute.DistributedDataset,
    seed: int,
    accumulate: int = 1,
    use_xla: bool = False,
) -> Callable[[int, int], Scalars]:
    """Returns a function that trains: (first step, number of steps) -> means.

    Args:
        strategy: the one under whose scope model and optimizer were made.
        model: called by the objective only.
        optimizer: built.
        objective: what to minimize.
        dataset: distributed and endless; consumed in order, a batch a step.
        seed: of dropout. The masks of a step are a function of (seed, step,
            replica, micro-batch).
        accumulate: micro-batches per step and replica; they save memory and
            leave the update the same.
        use_xla: whether to compile the passes with XLA, once for every shape.
            For TPUs it is always done.
    """
    iterator = iter(dataset)
    is_tpu = distribution.is_tpu(strategy)
    passes = passes_of(strategy, use_xla)

    def replica_step(step, batch):
        context = tf.distribute.get_replica_context()
        counts = sizes(batch)
        totals, counts = context.all_reduce(
            tf.distribute.ReduceOp.SUM, (objective.weights(batch), counts)
        )
        key = tf.random.fold_in(tf.constant([seed, 0]), step)
        replica = context.replica_id_in_sync_group
        # The same for all replicas up to here, different from here on.
        key = tf.random.fold_in(key, tf.cast(replica, tf.int64))

        gradients, sums = add_up(
            lambda i, part: passes(
                model,
                optimizer,
                objective,
                part,
                totals,
                tf.random.fold_in(key, i),
            ),
            batch,
            accumulate,
        )
        if optimizer.loss_scale is not None:
            # A power of two: nothing is rounded.
            scale = tf.convert_to_tensor(optimizer.loss_scale.scale)
            gradients = [gradient / scale for gradient in gradients]
        gradients = optimizer.clip_own(gradients, strategy.num_replicas_in_sync)
        # One reduction for everything.
        gradients, sums = context.all_reduce(
            tf.distribute.ReduceOp.SUM, (gradients, sums)
        )
        report = optimizer.apply(gradients, step)
        if "skipped_steps" in report:
            counts["skipped_steps"] = report.pop("skipped_steps")
        return {"sums": sums, "weights": totals, "counts": counts}, report

    # Without AutoGraph, which would double the time to trace it.
    @tf.function(autograph=False)
    def compute(step, batch):
        results = strategy.run(replica_step, (step, batch))
        return first_replica(strategy, results)

    # A function of its own, so that it is traced once and called twice.
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
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] * 2)
    def steps(first, count):
        began = tf.zeros([], tf.float64)
        if not is_tpu:
            began = _time_after([first])
        total, last, done = one_step(first, began)
        for step in tf.range(first + 1, first + count):
            more, last, done = one_step(step, done)
            total = tf.nest.map_structure(tf.add, total, more)
        return total, last

    def train(first: int, count: int) -> Scalars:
        total, last = steps(
            tf.constant(first, tf.int64), tf.constant(count, tf.int64)
        )
        weights = total["weights"].items()
        return (
            divide(total["sums"], total["weights"])
            | _floats(last)
            | _floats(total["counts"])
            | _floats({f"{name}_weight": value for name, value in weights})
            # Not known on TPUs.
            | ({} if is_tpu else {"input_seconds": float(total["waited"])})
        )

    return train


def _time_after(values: Any) -> tf.Tensor:
    """The time in seconds, float64, when all the values are there."""
    tensors = tf.nest.flatten(values, expand_composites=True)
    with tf.control_dependencies(tensors):
        # Not tf.timestamp, which refuses to run with deterministic ops. The
        # call into Python takes some 50 microseconds.
        now = tf.numpy_function(time.monotonic, [], tf.float64)
    return tf.ensure_shape(now, [])


def gradients_and_sums(
    model: keras.Model,
    optimizer: optimization.Optimizer,
    objective: Objective,
    part: Batch,
    totals: Mapping[str, tf.Tensor],
    dropout_seed: tf.Tensor,
) -> tuple[list[tf.Tensor], dict[str, dict[str, tf.Tensor]]]:
    """Returns a micro-batch's gradients and its objective's sums.

    The gradients are those of the sum of the losses, each divided by its total
    and all multiplied by the optimizer's loss scale, where it has one.
    """
    with tf.GradientTape() as tape:
        sums = objective.sums(model, part, dropout_seed)
        losses = [
            tf.math.divide_no_nan(metrics["loss"], totals[name])
            for name, metrics in sums.items()
        ]
        loss = functools.reduce(tf.add, losses)
        if optimizer.loss_scale is not None:
            loss *= optimizer.loss_scale.scale
    variables = [v.value for v in optimizer.variables]
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    return gradients, sums


def passes_of(
    strategy: tf.distribute.Strategy, use_xla: bool
) -> Callable[..., Any]:
    """Returns `gradients_and_sums`, compiled if asked for and not on TPUs."""
    if not use_xla or distribution.is_tpu(strategy):
        return gradients_and_sums

    def compiled(model, optimizer, objective, *tensors):
        # One for each replica that calls: each has variables of its own.
        function = tf.function(
            functools.partial(gradients_and_sums, model, optimizer, objective),
            autograph=False,
            jit_compile=True,
        )
        return function(*tensors)

    return compiled


def add_up(
    function: Callable[[Any, Batch], Any], batch: Batch, count: int
) -> Any:
    """Sums what `function` returns for `count` equal parts of a batch.

    Args:
        function: (number of the part, part) -> structure of tensors.
        batch: a replica's.
        count: how many micro-batches, computed one after the other: only one
            needs memory at a time.
    """
    rows = batch["row_weights"].shape[0]
    if rows % count:
        raise ValueError(
            "The batch of a replica must be a multiple of the number of "
            f"micro-batches. Received: rows={rows}, accumulate={count}"
        )
    if count == 1:
        return function(tf.constant(0), batch)
    parts = {
        # Only the length of trimmed sequences is open.
        name: tf.reshape(
            x, [count, rows // count, *(d or -1 for d in x.shape[1:])]
        )
        for name, x in batch.items()
    }

    def compute(i):
        return function(i, {name: x[i] for name, x in parts.items()})

    def add(i, total):
        return i + 1, tf.nest.map_structure(tf.add, total, compute(i))

    total = compute(tf.constant(0))
    # A loop: parts beside each other in the graph would run at the same time.
    # So would the first one and the loop's first.
    with tf.control_dependencies(tf.nest.flatten(total)):
        _, total = tf.while_loop(
            lambda i, total: i < count,
            add,
            (tf.constant(1), total),
            parallel_iterations=1,
        )
    return total


def sizes(batch: Batch) -> dict[str, tf.Tensor]:
    """What a meter asks of a batch, float32 scalars.

    Returns:
        `sequences`, real `tokens`, and `pairs` of tokens that attend to each
        other.
    """
    if "sequence_ids" in batch:  # Rows of several sequences.
        numbers = 1 + tf.range(batch["cls_positions"].shape[1])  # [K]
        own = batch["sequence_ids"][:, :, tf.newaxis] == numbers  # [B, S, K]
        lengths = tf.reduce_sum(tf.cast(own, tf.float32), axis=1)  # [B, K]
        sequences = tf.math.count_nonzero(lengths, dtype=tf.float32)
    else:
        lengths = tf.reduce_sum(tf.cast(batch["input_mask"], tf.float32), -1)
        sequences = tf.reduce_sum(batch["row_weights"])
    return {
        "sequences": sequences,
        "tokens": tf.reduce_sum(lengths),
        "pairs": tf.reduce_sum(lengths**2),
    }


def first_replica(strategy: tf.distribute.Strategy, values: Any) -> Any:
    """One replica's values, where all replicas have the same."""
    return tf.nest.map_structure(
        lambda value: strategy.experimental_local_results(value)[0], values
    )


def divide(
    sums: Mapping[str, Mapping[str, Any]], weights: Mapping[str, Any]
) -> Scalars:
    """Divides sums by their weights, and adds up the losses."""
    scalars: Scalars = {}
    for name, metrics in sums.items():
        weight = float(weights[name])
        for metric, value in metrics.items():
            mean = float(value) / weight if weight else 0.0
            scalars[f"{name}_{metric}"] = mean
    losses = [scalars[f"{name}_loss"] for name in sums]
    return {"loss": sum(losses)} | scalars


def _floats(tensors: Mapping[str, Any]) -> Scalars:
    return {name: float(value) for name, value in tensors.items()}


# ---- Outer loop: in Python --------------------------------------------------


def run(
    train: Callable[[int, int], Scalars],
    start: int,
    stop: int,
    every: int,
    save: tuple[int, Hook],
    hooks: Sequence[tuple[Due, Hook]] = (),
    agree: Callable[[bool], bool] = lambda yes: yes,
) -> int:
    """Trains in blocks of at most `every` steps and calls the hooks between.

    Args:
        train: from `make_train_steps`.
        start: steps made before.
        stop: steps to have made at the end.
        every: longest block. On TPUs 100 to 1000, since each block costs a
            round trip; elsewhere short blocks cost nothing.
        save: (period in steps, hook that saves the state). Called after the
            other hooks, and where a signal or a hook's error ends the run.
        hooks: (period in steps, hook), or (steps, hook). A hook is due at the
            multiples of its period and at the end, or at these steps; it takes
            the step and the block's scalars, with the block's number of
            `steps` and its `seconds`. All workers of a cluster need hooks due
            at the same steps: a reduction of one worker's block finds its
            partners in the same block of the others. Where one says that the
            run is to end, all workers' must.
        agree: from `distribution.agreement`: all workers of a cluster stop
            after the same block when one of them gets a signal.

    Returns:
        The step where the run ended.

    Raises:
        FloatingPointError: a loss is not finite. Nothing is saved after that.
        SystemExit: SIGTERM came, or Ctrl-C; the state is saved.
        ConnectionError: another worker of the cluster is gone.
    """
    dues = [every, save[0], *(due for due, _ in hooks)]
    with _Signals() as signals, distribution.cluster_watched():
        step = start
        # Of the first block the graph is built, which may take a minute.
        phase: contextlib.AbstractContextManager[None] = phases.lasting(
            "The first steps, and their graph"
        )
        while step < stop:
            end = int(min(stop, *(_next(step, due) for due in dues)))
            began = time.monotonic()
            with phase:
                scalars = train(step, end - step)
            phase = contextlib.nullcontext()
            _check_finite(scalars, step, end)
            scalars["steps"] = end - step
            scalars["seconds"] = time.monotonic() - began
            step = end
            is_over = False
            try:
                for due, hook in hooks:
                    if _is_due(step, due, stop):
                        is_over |= bool(hook(step, scalars))
            except Exception:  # of an evaluation, say: the steps are made
                save[1](step, scalars)
                raise
            if _is_due(step, save[0], stop):
                save[1](step, scalars)
            is_stopped = agree(signals.received is not None)
            if not (is_over or is_stopped):
                continue
            if step < stop and step % save[0]:
                save[1](step, scalars)
            if is_stopped:
                agree(True)  # Waits for the one that writes.
                number = signals.received or signal.SIGTERM
                logging.warning("%s: saved step %d; ending.", number.name, step)
                sys.exit(128 + number)
            break
    return step


def _next(step: int, due: Due) -> float:
    """The first step after `step` where something is due."""
    if isinstance(due, tuple):
        return min((s for s in due if s > step), default=math.inf)
    return (step // due + 1) * due


def _is_due(step: int, due: Due, stop: int) -> bool:
    if isinstance(due, tuple):
        return step in due
    return step % due == 0 or step == stop


def _check_finite(scalars: Scalars, step: int, end: int) -> None:
    bad = [name for name, value in scalars.items() if not math.isfinite(value)]
    if bad:
        raise FloatingPointError(
            f"Not a finite number in steps {step + 1} to {end}: "
            f"{', '.join(bad)}. Nothing was saved after that. Try a lower "
            "learning rate or more warm-up steps."
        )


class _Signals:
    """Notes that SIGTERM or Ctrl-C came, instead of ending the process.

    A second Ctrl-C ends it at once.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            # As a shell leaves it to what runs in the background of a script.
            if signal.getsignal(number) == signal.SIG_IGN:
                continue
            # Signals of other threads than the main one are left alone.
            with contextlib.suppress(ValueError):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_):
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number, _):
        self.received = signal.Signals(number)
        if number == signal.SIGINT:
            signal.signal(number, self._previous[number])
            # Not by logging, which may be at work where the signal came.
            os.write(2, b"Saving, then ending. Ctrl-C again ends at once.\n")
