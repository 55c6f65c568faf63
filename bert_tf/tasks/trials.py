"""Runs a script repeatedly with different flags, and tabulates results."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.storage import run_lock

# Flags of training scripts that do not affect results.
INDIFFERENT = frozenset(
    {
        "eval_batch_size",
        "predict_batch_size",
        "save_checkpoints_steps",
        "keep_checkpoint_max",
        "log_steps",
        "overwrite",
        "iterations_per_loop",
        "peak_flops",
        "profile_steps",
        "report_to",
    }
)
# Seconds between two calls of `is_over`.
_POLL = 1.0


class FailedError(InputError):
    """A script failed; `last` is the last line of its output."""

    def __init__(self, text: str, last: str):
        super().__init__(text)
        self.last = last


def call(
    script: str | os.PathLike[str],
    values: Mapping[str, str],
    log: str,
    lock: run_lock.Lock | None,
    is_over: Callable[[], bool] | None = None,
) -> bool:
    """Runs a Python script to its end and appends all output to the log.

    Args:
        script: Path of the script.
        values: Flag -> its value.
        log: Path of the log.
        lock: Lock of the folder, which the script holds as well, as it may
            outlive this process; None if nothing is written.
        is_over: Called once a second; returns True to stop the script.

    Returns:
        Whether `is_over` stopped the script.

    Raises:
        FailedError: The script failed.
    """
    os.makedirs(os.path.dirname(log), exist_ok=True)
    flags = [f"--{name}={value}" for name, value in values.items()]
    command = [sys.executable, os.fspath(script), *flags]
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        held = lock.pass_fds if lock else ()
        process = subprocess.Popen(
            command, stdout=file, stderr=file, pass_fds=held
        )
        try:
            while (code := _wait(process, is_over)) is None:
                if is_over and is_over():
                    return True
        finally:  # On interruption, the script saves and exits as well.
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
    return False


def _wait(
    process: subprocess.Popen, is_over: Callable[[], bool] | None
) -> int | None:
    """Returns the exit code, or None if `is_over` must be called first."""
    try:
        return process.wait(_POLL if is_over else None)
    except subprocess.TimeoutExpired:
        return None


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a Markdown table, aligned for screens; row 0 is its header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]
