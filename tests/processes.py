"""Python processes of their own, from the text of their script."""

import pathlib
import subprocess
import sys
import textwrap

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def start(text, *arguments):
    """Starts a Python process."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(text, *arguments):
    """Runs one to its end: its exit status, output and errors.

    One that has not ended after five minutes hangs.
    """
    process = start(text, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors
