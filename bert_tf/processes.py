"""Runs scripts as processes of their own, one after the other."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence

from absl import logging


def hold(folder: str) -> int:
    """Waits until no other process works in a folder.

    Returns:
        What `call` passes on: whoever has it holds the folder.
    """
    os.makedirs(folder, exist_ok=True)
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        logging.info(
            "Waiting: another process works in %s. It may be the last run of "
            "a command that was killed.",
            folder,
        )
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def call(
    script: str | os.PathLike[str],
    arguments: Sequence[str],
    log: str,
    lock: int,
) -> None:
    """Runs a script of Python to its end.

    Args:
        script: Its path.
        arguments: Its flags.
        log: File to add its command and its output to.
        lock: Of `hold`. The script has it too: it may outlive us.

    Raises:
        ValueError: It failed. Tells its last line.
    """
    os.makedirs(os.path.dirname(log), exist_ok=True)
    command = [sys.executable, os.fspath(script), *arguments]
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        process = subprocess.Popen(
            command, stdout=file, stderr=file, pass_fds=[lock]
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
        raise ValueError(
            f"{os.path.basename(script)} ended with exit code {code}: {last} "
            f"See {log}. The same command goes on from here."
        )
