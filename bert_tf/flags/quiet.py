"""Keeps what TensorFlow says of itself while it starts off the screen.

Its C++ code writes to the file descriptor of stderr, whatever the level of its
log says. What comes between `begin` and `end` is shown if the process dies.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

# stderr as it was, and what tells the keeper how it ended.
_held: tuple[int, int, int] | None = None


def begin() -> None:
    """Gives what is written to stderr to a process that keeps it.

    Call it before there are threads: the process is a fork, which outlives
    this one if TensorFlow aborts it, and then shows what it has.
    """
    global _held
    if _held is not None:
        return
    screen = os.dup(2)
    text_end, text = os.pipe()
    verdict_end, verdict = os.pipe()
    sys.stderr.flush()
    keeper = os.fork()
    if not keeper:
        os.close(text)
        os.close(verdict)
        _keep(text_end, verdict_end, screen)
    os.close(text_end)
    os.close(verdict_end)
    os.dup2(text, 2)
    os.close(text)
    _held = screen, verdict, keeper


def end() -> None:
    """Gives stderr back; what was kept is forgotten."""
    global _held
    if _held is None:
        return
    screen, verdict, keeper = _held
    _held = None
    sys.stderr.flush()
    os.dup2(screen, 2)
    os.close(screen)
    os.write(verdict, b"well")
    os.close(verdict)
    os.waitpid(keeper, 0)


def _keep(text: int, verdict: int, screen: int) -> None:
    """Reads to the end of the text, and shows it unless all went well."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parts = []
    while part := os.read(text, 1 << 16):
        parts.append(part)
    if not os.read(verdict, 16):
        os.write(screen, b"".join(parts))
    os._exit(0)


@contextlib.contextmanager
def kept_back() -> Iterator[None]:
    """Keeps back what is written to stderr meanwhile, unless it fails."""
    begin()
    yield
    end()
