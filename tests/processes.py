"""Separate Python processes, started from source text."""

import multiprocessing
import pathlib
import random
import subprocess
import sys
import textwrap
import time

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_FORK = multiprocessing.get_context("fork")


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


def wait_for(condition, process=None, seconds=60):
    """Waits until a condition is true, and returns its value.

    Fails after too long, and if a process (a Popen or a `scripts.Run`) ends
    before.
    """
    end = time.monotonic() + seconds
    while True:
        has_ended = process is not None and process.poll() is not None
        if found := condition():
            return found
        if has_ended or time.monotonic() > end:
            errors = getattr(process, "stderr", "")
            problem = "ended too early" if has_ended else "waited in vain"
            raise AssertionError(f"{problem}:\n{errors}")
        time.sleep(0.01)


def race(rounds, longest, work, check):
    """Lets two processes work at the same time, in several rounds.

    The second starts after a random delay, up to `longest`. `work` takes the
    number of the process, 0 or 1, and returns True if it has done its work, as
    one of the two must, and False if it was rejected. `check` is called after
    each round.
    """
    pipes = []
    for number in range(2):
        pipe, theirs = _FORK.Pipe()
        arguments = theirs, number * longest, work, number
        _FORK.Process(target=_take_part, args=arguments, daemon=True).start()
        theirs.close()
        pipes.append(pipe)
    for seed in range(rounds):
        for pipe in pipes:
            pipe.send(seed)
        done = [pipe.recv() for pipe in pipes]
        assert True in done, done
        check()


def _take_part(pipe, longest, work, number):
    while True:
        random.seed(pipe.recv())
        time.sleep(random.random() * longest)
        pipe.send(work(number))
