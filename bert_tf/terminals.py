"""The terminal of a script: its width, and its state once it is closed."""

import os
import shutil
import stat
import sys

_NARROWEST, _WIDEST = 60, 160


def columns() -> int:
    """Returns the width of the log: the terminal's, or 120 in a file."""
    if not sys.stderr.isatty():
        return 120
    width = shutil.get_terminal_size((120, 24)).columns
    return min(max(width, _NARROWEST), _WIDEST)


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
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
