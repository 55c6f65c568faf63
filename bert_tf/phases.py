"""Logs the progress of anything that takes longer than ten seconds."""

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from absl import logging

_SECONDS_BETWEEN_LINES = 10.0
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
        return rate(done, self.seconds)

    def left(self, done: float, total: float) -> float:
        """Returns the seconds that the rest takes at the same rate."""
        return left(max(0, total - done), done, self.seconds)


class Phase:
    """Counts completed items, and logs the count at most every ten seconds.

    A line has what it is `doing`, such as "Answering", and how many items of a
    `unit`, such as "windows", are done. Only processes with `is_shown` log.
    """

    def __init__(
        self,
        doing: str,
        unit: str,
        total: int | None = None,
        is_shown: bool = True,
    ):
        self._doing, self._unit, self._total = doing, unit, total
        self._is_shown = is_shown
        self._done = 0
        self._meter = Meter()
        self._was_shown = False

    def add(self, count: int = 1) -> None:
        """Adds to the count of completed items."""
        self._done += count
        if not self._is_shown or not self._meter.is_due():
            return
        self._was_shown = True
        rate = self._meter.rate(self._done)
        parts = [f"{self._doing}: {self._done:,}"]
        if self._total:
            parts[0] += f" of {self._total:,}"
        parts[0] += f" {self._unit}"
        parts.append(f"{rate:,.1f} {self._unit}/s")
        if self._total:
            left = self._meter.left(self._done, self._total)
            parts.append(f"{duration(left)} left")
        logging.info("%s", ", ".join(parts))

    def finish(self) -> None:
        """Logs the total time, if any progress was logged."""
        if self._was_shown:
            logging.info(
                "%s: %s %s in %s.",
                self._doing,
                f"{self._done:,}",
                self._unit,
                duration(self._meter.seconds),
            )


def tracked(
    items: Iterable[Item], doing: str, unit: str, total: int | None = None
) -> Iterator[Item]:
    """Yields items, and logs how many have been processed."""
    phase = Phase(doing, unit, total)
    for item in items:
        yield item
        phase.add()
    phase.finish()


@contextlib.contextmanager
def lasting(doing: str) -> Iterator[None]:
    """Logs how long `doing`, such as "Writing the SavedModel", is taking.

    Nothing is logged in the first ten seconds.
    """
    start = time.monotonic()
    ended = threading.Event()
    was_shown = False

    def say() -> None:
        nonlocal was_shown
        wait = _SECONDS_BETWEEN_LINES
        while not ended.wait(wait):
            passed = time.monotonic() - start
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
        if was_shown:
            passed = time.monotonic() - start
            logging.info("%s: %s in all", doing, duration(passed))


def rate(done: float, seconds: float) -> float:
    """Returns the amount of work done per second."""
    return done / seconds


def left(to_do: float, done: float, seconds: float) -> float:
    """Returns the seconds that the rest takes at the same rate."""
    return to_do * seconds / done


def duration(seconds: float) -> str:
    """Formats seconds as 1d 02:03:04, without leading empty parts."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{minutes}:{seconds:02d}"
    if hours or days:
        text = f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{days}d {text}" if days else text
