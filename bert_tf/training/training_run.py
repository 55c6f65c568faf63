"""The outer training loop, in Python: trains in blocks and calls hooks."""

import contextlib
import dataclasses
import functools
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import phases, terminals
from bert_tf.errors import NotFiniteError
from bert_tf.training import distribution, loop

from absl import logging

# Return True to stop training.
Hook = Callable[[int], bool | None]
# Called with the metrics accumulated since the last log line.
Report = Callable[[int, loop.Scalars], None]
# Saves the state, and the metrics of the steps since the last log line.
Save = Callable[[int, loop.Block | None], None]
# A hook is due at the multiples of a number and at the end, or at these steps.
Due = int | tuple[int, ...]

_AT_CTRL_C = b"Saving, then ending. Ctrl-C again ends at once.\n"


def run(
    train: Callable[[int, int], loop.Block],
    start: int,
    stop: int,
    every: int,
    save: tuple[int, Save],
    report: tuple[int, Report] | None = None,
    hooks: Sequence[tuple[Due, Hook]] = (),
    evaluate: tuple[int, Hook] | None = None,
    since: loop.Block | None = None,
    agree: Callable[[bool], bool] = lambda yes: yes,
    finish: Callable[[], None] = lambda: None,
    breaks_off: bool = True,
    compiles: bool = False,
) -> int:
    """Trains in blocks of at most `every` steps and calls the hooks between.

    Blocks of 100 to 1000 steps suit TPUs, where each block costs a round trip;
    on other devices short blocks are free. A hook is due at the multiples of
    its period and at the end, or at given steps. `report` is called first, with
    the metrics of all steps since its last call, including the number of steps,
    `steps`, and their duration, `seconds`, without the time to build the graph;
    if XLA compiles the only step, the counts for speeds are missing. `since`
    are the metrics of steps before `start`. `save` is called after the hooks,
    and before a signal or a hook's error ends the run. `evaluate` is called
    after `save`, so no step is lost if the job is killed during evaluation.
    `finish` waits for writes that `save` left to a thread, before the run ends
    by a signal or an error; at other ends the caller waits.

    All workers of a cluster need hooks that are due at the same steps, since a
    reduction in a block waits for the same block of the other workers. If a
    hook of one worker stops training, the hooks of all workers must. With
    `distribution.agreement` all workers stop after the same block when one of
    them gets a signal. A signal `breaks_off` an evaluation, unless other
    workers would wait for it. If XLA `compiles` the step, the first block is
    one step, so that the log shows the compile time.

    Returns:
        The step where the run ended.

    Raises:
        FloatingPointError: A loss is not finite. Nothing is saved after that.
        StoppedTogetherError: SIGTERM, Ctrl-C or a closed terminal ended the
            run; the state is saved.
        ConnectionError: Another worker of the cluster is gone.
    """
    step = saved = start

    def tell(step: int) -> None:
        nonlocal since
        if report and since:
            report[1](step, since.scalars())
        since = None

    first: list[tuple[Due, Hook]] = [(report[0], tell)] if report else []
    before = [*first, *hooks]
    after = [evaluate] if evaluate else []
    dues = [every, save[0], *(due for due, _ in (*before, *after))]

    def call(those: Sequence[tuple[Due, Hook]]) -> bool:
        """Calls the hooks that are due; returns whether to stop training."""
        ends = False
        try:
            for due, hook in those:
                if _is_due(step, due, stop):
                    ends |= bool(hook(step))
        except Exception:  # For example in an evaluation.
            save_once()
            finish()
            logging.warning("Saved step %d; ending.", step)
            raise
        return ends

    def save_once() -> None:
        nonlocal saved
        if saved != step:
            saved = step  # A failed save is not retried.
            save[1](step, since)

    with _Signals() as signals, distribution.cluster_watched():
        # The first block builds the graph, which may take a minute.
        phase: contextlib.AbstractContextManager[None] = phases.lasting(
            "Compiling the training step (once per start)"
            if compiles
            else "Building the training step (once per start)"
        )
        while step < stop:
            end = int(min(stop, *(_next(step, due) for due in dues)))
            if compiles and step == start:
                end = step + 1
            began = time.monotonic()
            with phase:
                block = train(step, end - step)
            phase = contextlib.nullcontext()
            _check_finite(block.scalars(), step, end)
            seconds = time.monotonic() - began
            block = _timed(block, end - step, seconds, step == start, compiles)
            since = since + block if since else block
            step = end
            is_over = call(before)
            if _is_due(step, save[0], stop):
                save_once()
            is_stopped = agree(signals.received is not None)
            if not is_stopped and any(_is_due(step, x, stop) for x, _ in after):
                evaluated = functools.partial(call, after)
                is_over |= (
                    signals.breaking_off(evaluated)
                    if breaks_off
                    else evaluated()
                )
                is_stopped = agree(signals.received is not None)
            if not (is_over or is_stopped):
                continue
            save_once()
            if is_stopped:
                finish()
                agree(True)  # Waits for the writing worker.
                number = signals.received or signal.SIGTERM
                logging.warning(
                    "%s: saved step %d; ending. To resume, run the same "
                    "command again.",
                    number.name,
                    step,
                )
                raise distribution.StoppedTogetherError(128 + number)
            break
    return step


def _timed(
    block: loop.Block,
    steps: int,
    seconds: float,
    is_first: bool,
    compiles: bool,
) -> loop.Block:
    """Returns a block with its steps and seconds.

    The time to build the graph does not count: it would make the speeds of the
    first line too low. Where XLA compiles, it does so within the first step,
    whose speed is unknown.
    """
    counts = {**block.counts, "steps": steps, "seconds": seconds}
    of_steps = counts.pop("step_seconds", seconds)
    if is_first:
        counts["seconds"] = of_steps
    block = dataclasses.replace(block, counts=counts)
    return block.without_speeds() if is_first and compiles else block


def _next(step: int, due: Due) -> float:
    """Returns the first step after `step` where a hook is due."""
    if isinstance(due, tuple):
        return min((s for s in due if s > step), default=math.inf)
    return (step // due + 1) * due


def _is_due(step: int, due: Due, stop: int) -> bool:
    if isinstance(due, tuple):
        return step in due
    return step % due == 0 or step == stop


def _check_finite(scalars: loop.Scalars, step: int, end: int) -> None:
    bad = [name for name, value in scalars.items() if not math.isfinite(value)]
    if bad:
        raise NotFiniteError(
            f"Not a finite number in steps {step + 1} to {end}: "
            f"{', '.join(bad)}. Nothing was saved after that. Try a lower "
            "learning rate or more warm-up steps."
        )


class _Signals:
    """Records SIGTERM, Ctrl-C and a closed terminal.

    A second Ctrl-C ends the process at once.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._breaks_off = False
        self._previous: dict[int, Any] = {}

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Shells ignore SIGINT for background commands of a script, as nohup
            # ignores SIGHUP: leave it ignored.
            if signal.getsignal(number) == signal.SIG_IGN:
                continue
            # Python handles signals in the main thread only.
            with contextlib.suppress(ValueError):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_):
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def breaking_off(self, function: Callable[[], bool]) -> bool:
        """Returns the function's result, or False if a signal interrupts it."""
        try:
            try:
                self._breaks_off = True
                return function()
            finally:
                self._breaks_off = False
        except _BrokenOffError:
            return False

    def _receive(self, number, _):
        self.received = signal.Signals(number)
        if number == signal.SIGHUP:
            terminals.let_go()
        if number == signal.SIGINT:
            signal.signal(number, self._previous[number])
            # Not through logging, which the signal may have interrupted.
            clear = b"\r\033[K" if phases.bars() else b""
            os.write(2, clear + _AT_CTRL_C)
        if self._breaks_off:
            self._breaks_off = False
            raise _BrokenOffError


class _BrokenOffError(BaseException):
    """Not an Exception, so that the interrupted code does not handle it."""
