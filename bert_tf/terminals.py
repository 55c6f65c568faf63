"""The terminal of a script: its log lines and its standard output."""

import functools
import logging as python_logging
import os
import shutil
import signal
import stat
import sys
import textwrap

from absl import logging

_NARROWEST, _WIDEST = 60, 160


def columns() -> int:
    """Returns the width of the log: the terminal's, or 120 in a file."""
    if not sys.stderr.isatty():
        return 120
    width = shutil.get_terminal_size((120, 24)).columns
    return min(max(width, _NARROWEST), _WIDEST)


def write(text: str) -> None:
    """Writes to standard output, or ends the process if that fails.

    The process ends with one line on stderr, or, as other programs do, without
    a word if the reader has closed the pipe.
    """
    try:
        print(text, end="", flush=True)
    except OSError as error:
        # The text in memory would fail again at exit.
        _discard(1)
        if isinstance(error, BrokenPipeError):
            sys.exit(128 + signal.SIGPIPE)
        sys.exit(f"error: Cannot write to standard output: {error.strerror}")


def let_go() -> None:
    """Redirects output to /dev/null once the terminal is closed.

    Otherwise each write is an error, for example the log line after a save.
    Output to files and pipes is not affected.
    """
    for descriptor in (1, 2):
        try:
            is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        except OSError:  # The descriptor is closed.
            continue
        if is_device:
            _discard(descriptor)


def _discard(descriptor: int) -> None:
    """Redirects a stream to /dev/null."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


# ---- Log lines ---------------------------------------------------------------


@functools.cache
def log_once(line: str) -> None:
    """Logs a line once in this process, which may open a model repeatedly."""
    logging.info("%s", line)


@functools.cache
def warn_once(line: str) -> None:
    """Like `log_once`, for warnings."""
    logging.warning("%s", line)


class LogFormatter(python_logging.Formatter):
    """Formats lines as time, level (if above info) and message.

    Long lines are wrapped at spaces and indented.
    """

    def __init__(self):
        super().__init__("%(message)s", "%H:%M:%S")

    def format(self, record):
        head = f"{self.formatTime(record, self.datefmt)} "
        indent = " " * len(head)
        if record.levelno >= python_logging.WARNING:
            head += f"{record.levelname}: "
        width = columns()
        lines: list[str] = []
        for line in (head + super().format(record)).split("\n"):
            is_long = len(line) > width
            lines += _broken(line, indent, width) if is_long else [line]
        return "\n".join(lines)


def _broken(line: str, indent: str, width: int) -> list[str]:
    """Wraps a line at spaces."""
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
