"""What is left to do where the terminal of a script is closed."""

import os
import stat


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
