"""The terminal of a script: its width, and what to do once it is closed."""

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
    """Sends to nowhere what would be written to a closed terminal.

    Each write there is an error, as of a line that says what was saved. Files
    and pipes go on being written to.
    """
    for descriptor in (1, 2):
        try:
            is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        except OSError:  # It is closed.
            continue
        if is_device:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
