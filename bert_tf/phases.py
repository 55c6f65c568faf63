"""Shows the progress of work: a bar at terminals, log lines otherwise.

Log lines come at most every ten seconds, and none before that.
"""

import contextlib
import functools
import logging as python_logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import tqdm
from absl import logging

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BEFORE_BAR = 1.0
# What a line has besides its texts: "100%|" and at least one column of the bar.
_SMALLEST_BAR = 8
Item = TypeVar("Item")


class Meter:
    """Measures the rate of work, and when the next log line is due."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since it was created."""
        return time.monotonic() - self._start

    def is_due(self) -> bool:
        """Whether ten seconds have passed since this last returned True."""
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES:
            return False
        self._last = now
        return True

    def rate(self, done: float) -> float:
        """Returns the amount of work done per second."""
        return done / self.seconds

    def left(self, done: float, total: float) -> float:
        """Returns the seconds that the rest takes at the same rate."""
        return max(0, total - done) * self.seconds / done


class Bar(tqdm.tqdm):
    """The last line of a terminal, redrawn in place; log lines scroll above it.

    It has what it is `doing`, the share of `total` that is done, and the texts
    of `show`.
    """

    # tqdm's thread redraws bars that nobody updates.
    monitor_interval = 0
    desc: str

    def __init__(self, total: float | None = None, doing: str = ""):
        head = doing.replace("{", "{{").replace("}", "}}")
        self._head = len(doing) + 1 if doing else 0
        parts = [head, "{percentage:.0f}%|{bar}|" if total else "", "{desc}"]
        _log_above_bars()
        super().__init__(
            total=total,
            bar_format=" ".join(filter(None, parts)),
            miniters=1,
            leave=False,
            dynamic_ncols=True,
        )

    @property
    def format_dict(self):
        """The values of the line, which leaves room for an echoed ^C."""
        values = super().format_dict
        values["ncols"] = (values["ncols"] or 80) - len("^C")
        return values

    def display(self, msg=None, pos=None):
        """Draws the line, but not before it has a text."""
        return bool(self.desc) and super().display(msg, pos)

    def show(self, done: float, texts: Sequence[str]) -> None:
        """Redraws the bar; the last texts are left out if they do not fit."""
        room = self.format_dict["ncols"] - self._head - _SMALLEST_BAR
        texts = list(texts)
        while len(texts) > 1 and len("  ".join(texts)) > room:
            texts.pop()
        is_first = not self.desc
        self.desc = "  ".join(texts)
        self.update(done - self.n)
        if is_first:
            self.refresh()


def are_bars_possible() -> bool:
    """Whether the log of a script goes to a terminal that can redraw lines."""
    handler = logging.get_absl_handler()
    return (
        handler in python_logging.root.handlers
        and handler.python_handler.stream is sys.stderr
        and sys.stderr.isatty()
        and os.environ.get("TERM") != "dumb"
        and logging.vlog_is_on(0)
    )


def bars() -> list[tqdm.tqdm]:
    """Returns the bars on the terminal."""
    return list(getattr(Bar, "_instances", ()))


def close_bars() -> None:
    """Removes all bars from the terminal."""
    for bar in bars():
        bar.close()


@functools.cache
def _log_above_bars() -> None:
    """Makes log lines scroll above the bars."""
    handler = logging.get_absl_handler().python_handler
    emit = handler.emit

    def emit_above(record: python_logging.LogRecord) -> None:
        with Bar.external_write_mode(sys.stderr):
            emit(record)

    # Not a subclass: absl makes the handler.
    handler.emit = emit_above  # type: ignore[method-assign]


class Phase:
    """Counts completed items, and shows the count.

    A line has what it is `doing`, such as "Answering", and how many items of a
    `unit`, such as "windows", are done. Only processes with `is_shown` show it.
    """

    def __init__(
        self,
        doing: str,
        unit: str,
        total: float | None = None,
        is_shown: bool = True,
    ):
        self._doing, self._unit, self._total = doing, unit, total
        self._is_shown = is_shown
        self._done = 0.0
        self._meter = Meter()
        self._was_shown = False
        self._has_bar = is_shown and are_bars_possible()
        self._bar: Bar | None = None

    def add(self, count: float = 1) -> None:
        """Adds to the count of completed items."""
        self._done += count
        if not self._is_shown:
            return
        is_due = self._meter.is_due()
        self._was_shown |= is_due
        if self._has_bar:
            if self._meter.seconds < _SECONDS_BEFORE_BAR:
                return
            if self._bar is None:
                self._bar = Bar(self._total, self._doing)
            self._bar.show(self._done, self._texts())
        elif is_due:
            logging.info("%s: %s", self._doing, ", ".join(self._texts()))

    def finish(self) -> None:
        """Logs the total time, if the phase took ten seconds or longer."""
        self.close()
        if self._was_shown:
            logging.info(
                "%s: %s %s in %s.",
                self._doing,
                _number(self._done),
                self._unit,
                duration(self._meter.seconds),
            )

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()

    def _texts(self) -> list[str]:
        done = _number(self._done)
        if self._total:
            done += f" of {_number(self._total)}"
        rate = self._meter.rate(self._done)
        texts = [f"{done} {self._unit}", f"{rate:,.1f} {self._unit}/s"]
        if self._total and self._done:
            left = self._meter.left(self._done, self._total)
            texts.append(f"{duration(left)} left")
        return texts


def _number(value: float) -> str:
    """Formats whole numbers in full, and others with one digit."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def tracked(
    items: Iterable[Item], doing: str, unit: str, total: int | None = None
) -> Iterator[Item]:
    """Yields items, and shows how many have been processed."""
    with contextlib.closing(Phase(doing, unit, total)) as phase:
        for item in items:
            yield item
            phase.add()
        phase.finish()


@contextlib.contextmanager
def lasting(doing: str) -> Iterator[None]:
    """Shows how long `doing`, such as "Writing the SavedModel", is taking.

    Nothing is logged in the first ten seconds.
    """
    start = time.monotonic()
    ended = threading.Event()
    was_shown = False
    has_bar = are_bars_possible()
    bar: Bar | None = None

    def say() -> None:
        nonlocal was_shown, bar
        wait = _SECONDS_BEFORE_BAR if has_bar else _SECONDS_BETWEEN_LINES
        while not ended.wait(wait):
            passed = time.monotonic() - start
            if has_bar:
                if bar is None:
                    bar = Bar(doing=f"{doing}:")
                bar.show(passed, [duration(passed)])
                was_shown = passed >= _SECONDS_BETWEEN_LINES
                continue
            logging.info("%s: %s so far", doing, duration(passed))
            was_shown = True
            wait = max(wait, passed / 2)  # Logs less and less often.

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if bar is not None:
            bar.close()
        if was_shown:
            passed = time.monotonic() - start
            logging.info("%s: took %s", doing, duration(passed))


def duration(seconds: float) -> str:
    """Formats seconds as 1d 02:03:04, without leading empty parts."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{minutes}:{seconds:02d}"
    if hours or days:
        text = f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{days}d {text}" if days else text
