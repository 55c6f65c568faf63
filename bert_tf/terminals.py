"""The terminal and the standard output of a script."""

import os
import shutil
import signal
import stat
import sys

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
