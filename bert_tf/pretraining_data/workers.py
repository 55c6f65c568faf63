"""Runs tasks in this process or in several, and logs their progress.

A task is a generator function without arguments that yields its counts since
the last yield. It must be picklable: a `functools.partial` of a module-level
function.
"""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import forkserver
from typing import Any, Self

from bert_tf import phases

from absl import logging

Counts = Mapping[str, int]
Task = Callable[[], Iterator[Counts]]

_SECONDS_BETWEEN_REPORTS = 0.5
# One worker runs per core, so each gets one thread.
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "TF_NUM_INTRAOP_THREADS",
)


def cores(quota: str = "/sys/fs/cgroup/cpu.max") -> int:
    """Returns the number of cores that this process may use.

    `quota` is the file that limits a container: microseconds of computing, or
    "max", in a period of microseconds.
    """
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    if os.path.exists(quota):
        with open(quota) as file:
            share, period = file.read().split()
        if share != "max":
            found = min(found, -(-int(share) // int(period)))
    return found


class Reporter:
    """Shows the progress of a phase and its remaining time.

    `text` is a format string of counts, `total`, and `rate` per second. `total`
    and `rate` refer to the count `measure` and are scaled by `scale`.
    """

    def __init__(self, text: str, measure: str, total: float, scale: float = 1):
        self._text, self._measure = text, measure
        self._total, self._scale = total, scale
        self._counts: collections.Counter[str] = collections.Counter()
        self._meter = phases.Meter()
        self._bar = phases.Bar(total) if phases.are_bars_possible() else None

    def __call__(self, counts: Counts) -> None:
        """Adds counts; logs at most every ten seconds."""
        self._counts.update(counts)
        is_due = self._meter.is_due()
        if self._bar is None and not is_due:
            return
        done = self._counts[self._measure]
        left = "?"
        if done:
            left = phases.duration(self._meter.left(done, self._total))
        texts = [self._line(), f"{left} left"]
        if self._bar is not None:
            self._bar.show(done, texts)
        else:
            logging.info("%s", ", ".join(texts))

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._counts:
            logging.info("%s", self._line())

    def _line(self) -> str:
        done = self._counts[self._measure] * self._scale
        values = {
            self._measure: done,
            "total": self._total * self._scale,
            "rate": self._meter.rate(done),
        }
        return self._text.format_map(
            collections.defaultdict(int, {**self._counts, **values})
        )


class Workers:
    """Processes that run tasks; a context manager.

    If `number` is 1, tasks run in this process. Worker processes import the
    modules of `preload` first.
    """

    def __init__(self, number: int, preload: Sequence[str]):
        self._number = number
        self._preload = list(preload)
        self._executor: concurrent.futures.ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._number > 1:
            for name in _ONE_THREAD:
                os.environ.setdefault(name, "1")
            # Forks of a small process without threads share its modules.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(self._preload)
            with _interrupts_held():
                forkserver.ensure_running()
            self._reports = context.SimpleQueue()
            self._executor = concurrent.futures.ProcessPoolExecutor(
                self._number, context, _begin, (self._reports,)
            )
        return self

    def __exit__(self, error_type: type | None, *_: object) -> None:
        if not self._executor:
            return
        if error_type:
            # Half-finished tasks are useless, and may take minutes to finish.
            for process in multiprocessing.active_children():
                process.terminate()
        self._executor.shutdown(cancel_futures=True)

    def run(
        self, tasks: Sequence[Task], report: Callable[[Counts], None]
    ) -> None:
        """Runs all tasks, in any order; calls `report` with their counts.

        Raises:
            Exception: As raised by a task.
            RuntimeError: A process died.
        """
        if not self._executor:
            for task in tasks:
                for counts in task():
                    report(counts)
            return
        pending = {self._executor.submit(_run, task) for task in tasks}
        while pending:
            done, pending = concurrent.futures.wait(
                pending,
                _SECONDS_BETWEEN_REPORTS,
                concurrent.futures.FIRST_EXCEPTION,
            )
            while not self._reports.empty():
                report(self._reports.get())
            for future in done:
                _raise(future.exception())


def _raise(error: BaseException | None) -> None:
    if error is None:
        return
    if isinstance(error, concurrent.futures.process.BrokenProcessPool):
        raise RuntimeError(
            "A worker process was killed, perhaps for want of memory. Run the "
            "same command again: it goes on where this one stopped. If it "
            "happens again, use fewer workers"
        ) from error
    # Its cause is the traceback in the worker, as text.
    raise error


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Blocks Ctrl-C; processes started meanwhile never receive it.

    A terminal sends it to all processes of a command. Only this process handles
    it and then ends the others, which would each print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- In a worker ------------------------------------------------------------

_reports: Any = None


def _begin(reports: Any) -> None:
    global _reports
    _reports = reports
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when its parent is killed and can't end it."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def _run(task: Task) -> None:
    counts: collections.Counter[str] = collections.Counter()
    last = time.monotonic()
    for part in task():
        counts.update(part)
        if time.monotonic() - last > _SECONDS_BETWEEN_REPORTS:
            _reports.put(dict(counts))
            counts.clear()
            last = time.monotonic()
    _reports.put(dict(counts))
