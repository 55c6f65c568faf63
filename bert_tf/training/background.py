"""Writes beside the steps: one at a time, in a thread."""

import concurrent.futures
import contextlib
import os
import sys
import threading
from collections.abc import Callable

from absl import logging

# More than that of the steps: where they need all processors, the thread gets a
# thirtieth of one.
_NICER = 15
_NICEST = 19


class Writer:
    """Runs one write at a time in a thread.

    What a write raises is raised by the next `start`, `wait` or `check`. As a
    context it waits at the end; where that comes by another error, this one is
    logged.
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
        """Whether a write is not done yet."""
        return self._writing is not None and not self._writing.done()

    def start(self, write: Callable[[], None]) -> None:
        """Runs a write, after the one before, while the caller goes on."""
        self.wait()
        self._writing = self._pool.submit(write)

    def check(self) -> None:
        """Raises what the write has raised, if it has ended by that."""
        if not self.is_writing:
            self.wait()

    def wait(self) -> None:
        """Returns when all is written.

        Where a signal breaks that off, the write is at work all the same: the
        next to ask waits for it.
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
    """Lets the threads of the steps go before this one."""
    # Elsewhere the number of a thread is none that this call knows.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            number = threading.get_native_id()
            own = os.getpriority(os.PRIO_PROCESS, number)
            own = min(own + _NICER, _NICEST)
            os.setpriority(os.PRIO_PROCESS, number, own)
