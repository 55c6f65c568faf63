"""The outer training loop, in Python; it knows no task, but calls hooks."""

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import phases
from bert_tf.errors import NotFiniteError
from bert_tf.training import distribution, loop

from absl import logging

# What it returns says whether the run is to end there; None: no.
Hook = Callable[[int, loop.Scalars], bool | None]
# A hook is due at the multiples of a number and at the end, or at these steps.
Due = int | tuple[int, ...]


def run(
    train: Callable[[int, int], loop.Scalars],
    start: int,
    stop: int,
    every: int,
    save: tuple[int, Hook],
    hooks: Sequence[tuple[Due, Hook]] = (),
    agree: Callable[[bool], bool] = lambda yes: yes,
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Trains in blocks of at most `every` steps and calls the hooks between.

    Blocks of 100 to 1000 steps suit TPUs, where each costs a round trip;
    elsewhere short ones cost nothing. A hook is due at the multiples of its
    period and at the end, or at given steps. It takes the step and the block's
    scalars, with the block's number of `steps` and its `seconds`. `save` is
    called after the others, and where a signal or a hook's error ends the run.
    `finish` waits for what it may have left to a thread, before the end by a
    signal or an error; at other ends the caller does.

    All workers of a cluster need hooks due at the same steps: a reduction of
    one worker's block finds its partners in the same block of the others. Where
    one says that the run is to end, all workers' must. By
    `distribution.agreement` all stop after the same block when one gets a
    signal.

    Returns:
        The step where the run ended.

    Raises:
        FloatingPointError: A loss is not finite. Nothing is saved after that.
        StoppedTogetherError: SIGTERM came, or Ctrl-C; the state is saved.
        ConnectionError: Another worker of the cluster is gone.
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
                finish()
                logging.warning("Saved step %d; ending.", step)
                raise
            if _is_due(step, save[0], stop):
                save[1](step, scalars)
            is_stopped = agree(signals.received is not None)
            if not (is_over or is_stopped):
                continue
            if step < stop and step % save[0]:
                save[1](step, scalars)
            if is_stopped:
                finish()
                agree(True)  # Waits for the one that writes.
                number = signals.received or signal.SIGTERM
                logging.warning("%s: saved step %d; ending.", number.name, step)
                raise distribution.StoppedTogetherError(128 + number)
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


def _check_finite(scalars: loop.Scalars, step: int, end: int) -> None:
    bad = [name for name, value in scalars.items() if not math.isfinite(value)]
    if bad:
        raise NotFiniteError(
            f"Not a finite number in steps {step + 1} to {end}: "
            f"{', '.join(bad)}. Nothing was saved after that. Try a lower "
            "learning rate or more warm-up steps."
        )


class _Signals:
    """Notes SIGTERM or Ctrl-C; a second Ctrl-C ends the process at once."""

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
