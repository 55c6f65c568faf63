"""Runs an implementation of a benchmark in a separate process."""

import os
import subprocess
import sys


def last_line(module: str, *arguments: str, **environment: str) -> str:
    """Runs `python -m module arguments` and returns the last line printed.

    Raises:
        SystemExit: It failed; has the end of its output.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3") | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        command = " ".join([module, *arguments])
        raise SystemExit(f"{command} failed:\n{done.stderr[-3000:]}")
    return done.stdout.splitlines()[-1]
