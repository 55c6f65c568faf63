"""Separate Python processes, started from source text."""

import os
import pathlib
import random
import subprocess
import sys
import textwrap
import time

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
    """Runs a script to its end; returns exit status, output and errors.

    After five minutes, the process counts as hanging.
    """
    process = start(text, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def fork_pairs(rounds, longest, work, check):
    """Forks pairs of processes at a random interval, up to the longest.

    Each exits with the result of `work` for its number, 0 or 1: 20 if it has
    done its work, as one of a pair must, and 10 if it was rejected. `check` is
    called after each pair.
    """
    for seed in range(rounds):
        random.seed(seed)
        children = []
        for number, delay in enumerate((0, random.random() * longest)):
            child = os.fork()
            if not child:
                try:
                    time.sleep(delay)
                    os._exit(work(number))
                except BaseException as error:
                    print(repr(error), flush=True)
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        codes = [os.waitstatus_to_exitcode(status) for status in statuses]
        assert set(codes) <= {10, 20} and 20 in codes, codes
        check()
