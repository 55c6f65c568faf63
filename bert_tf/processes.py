"""Runs scripts as processes of their own, one after the other."""

import os
import subprocess
import sys
from collections.abc import Sequence

from bert_tf import run_lock


def call(
    script: str | os.PathLike[str],
    arguments: Sequence[str],
    log: str,
    lock: run_lock.Lock,
) -> None:
    """Runs a script of Python to its end.

    Args:
        script: Its path.
        arguments: Its flags.
        log: File to add its command and its output to.
        lock: Of its folder. The script holds it too: it may outlive us.

    Raises:
        ValueError: It failed. Tells its last line.
    """
    os.makedirs(os.path.dirname(log), exist_ok=True)
    command = [sys.executable, os.fspath(script), *arguments]
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        process = subprocess.Popen(
            command, stdout=file, stderr=file, pass_fds=lock.pass_fds
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
