"""Writes files in a background thread, one at a time, during training."""

import concurrent.futures
import contextlib
import os
import sys
import threading
from collections.abc import Callable

from absl import logging

# Added to the niceness of the training threads: where they need all processors,
# the writing thread gets a thirtieth of one.
_NICER = 15
_NICEST = 19


class Writer:
    """Runs one write at a time in a background thread.

    An error of a write is raised by the next `start`, `wait` or `check`. As a
    context manager it waits on exit; if another exception is already ending the
    block, the write's error is logged instead.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(
            1, "writer", initializer=_step_aside
        )
        self._writing: concurrent.futures.Future[None] | None = None

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        try:
            self.wait()
        except Exception as own:
            if raised[1] is None:
                raise
            logging.error("%s", own)
        finally:
            self._pool.shutdown()

    @property
    def is_writing(self) -> bool:
        """Whether a write is still running."""
        return self._writing is not None and not self._writing.done()

    def start(self, write: Callable[[], None]) -> None:
        """Starts a write in the background, after the previous one ends."""
        self.wait()
        self._writing = self._pool.submit(write)

    def check(self) -> None:
        """Raises the error of the last write, if it has failed."""
        if not self.is_writing:
            self.wait()

    def wait(self) -> None:
        """Waits until everything is written.

        If a signal interrupts the wait, the write continues, and the next call
        waits for it.
        """
        if self._writing is None:
            return
        try:
            self._writing.result()
        except Exception:
            self._writing = None
            raise
        self._writing = None


def _step_aside() -> None:
    """Gives this thread a lower priority than the training threads have."""
    # Only on Linux does setpriority accept the number of a thread.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            number = threading.get_native_id()
            own = os.getpriority(os.PRIO_PROCESS, number)
            own = min(own + _NICER, _NICEST)
            os.setpriority(os.PRIO_PROCESS, number, own)
