"""Python processes of their own, from the text of their script."""

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
    """Runs one to its end: its exit status, output and errors.

    One that has not ended after five minutes hangs.
    """
    process = start(text, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def fork_pairs(rounds, longest, work, check):
    """Forks pairs of processes, a random time apart, at most the longest.

    Each exits by what `work` returns of its number, 0 or 1: 20 where it has
    done its work, as one of a pair must, and 10 where it was refused. `check`
    is called after each pair.
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
