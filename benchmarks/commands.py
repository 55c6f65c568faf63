"""Runs the scripts as a user would, each only until it has been completed."""

import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(script: str, target: pathlib.Path, *options: str) -> None:
    """Runs one of the scripts, which makes `target`, unless it did before.

    Its output goes to a log beside `target`, as does the mark that it is done.
    A script that was stopped is started again, and goes on if it can.
    """
    done = target.parent / f"{target.name}.done"
    if done.exists():
        return
    command = [sys.executable, str(ROOT / script), *options]
    target.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    path = target.parent / f"{target.name}.log"
    with path.open("a") as log:
        code = subprocess.run(command, stdout=log, stderr=log).returncode
    if code:
        last = path.read_text().rstrip().rpartition("\n")[2]
        raise SystemExit(f"{script} ended with exit code {code}: {last}")
    print(f"{script} {target}: {time.monotonic() - began:.0f} s", flush=True)
    done.touch()
