"""Runs scripts as processes of their own, one after the other."""

import os
import subprocess
import sys
from collections.abc import Sequence

from bert_tf.errors import InputError
from bert_tf.storage import run_lock


class FailedError(InputError):
    """A script failed; `last` is the last line of its output."""

    def __init__(self, text: str, last: str):
        super().__init__(text)
        self.last = last


def call(
    script: str | os.PathLike[str],
    arguments: Sequence[str],
    log: str,
    lock: run_lock.Lock | None,
) -> None:
    """Runs a script of Python to its end, adding all output to the log.

    The script holds the folder's lock too, as it may outlive us; the lock is
    None if nothing is written. FailedError tells the last line.
    """
    os.makedirs(os.path.dirname(log), exist_ok=True)
    command = [sys.executable, os.fspath(script), *arguments]
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        held = lock.pass_fds if lock else ()
        process = subprocess.Popen(
            command, stdout=file, stderr=file, pass_fds=held
        )
        try:
            code = process.wait()
        finally:  # Where we are to end, it saves and ends as well.
            if process.poll() is None:
                process.terminate()
                process.wait()
    if code:
        with open(log, encoding="utf-8", errors="replace") as file:
            last = [line.strip() for line in file if line.strip()][-1]
        raise FailedError(
            f"{os.path.basename(script)} ended with exit code {code}: {last} "
            f"See {log}. The same command goes on from here.",
            last,
        )
