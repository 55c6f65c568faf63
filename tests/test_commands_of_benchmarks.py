"""Tests of benchmarks/commands.py, with a script that saves at Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap

from tests import processes

import pytest

_SCRIPT = """
    import pathlib, signal, sys, time

    folder = pathlib.Path(sys.argv[1])

    def save(*_):
        time.sleep(0.5)  # as one that has something to write
        (folder / "saved").touch()
        sys.exit("saved, and ended")

    signal.signal(signal.SIGINT, save)
    print(*sys.argv[2:], flush=True)
    (folder / "made").mkdir(exist_ok=True)
    if not (folder / "saved").exists():
        (folder / "began").touch()
        time.sleep(300)
"""
# Background jobs of a shell script ignore Ctrl-C by default.
_RUN = """
    import pathlib, signal, sys
    from benchmarks import commands

    signal.signal(signal.SIGINT, signal.default_int_handler)
    script, folder, *flags = sys.argv[1:]
    target = pathlib.Path(folder, "made")
    commands.run(script, target, folder, *flags)
"""


@pytest.fixture(name="start")
def _start(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(_SCRIPT))

    def start(flag="--flag"):
        code = textwrap.dedent(_RUN)
        return subprocess.Popen(
            [sys.executable, "-c", code, script, tmp_path, flag],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


@pytest.mark.slow
def test_a_stopped_script_saves_and_goes_on(start, tmp_path):
    run = start()
    processes.wait_for((tmp_path / "began").exists, run)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to both of them
    output, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "its output goes to" in output
    assert "saves what it has" in output
    assert errors.rstrip().endswith("was stopped; the same command goes on.")
    assert "Traceback" not in errors
    assert (tmp_path / "saved").exists(), "it was not waited for"
    assert not (tmp_path / "made.done").exists()

    run = start()
    output, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors
    assert (tmp_path / "made.done").exists()
    lines = (tmp_path / "made.log").read_text().splitlines()
    assert lines == ["--flag", "saved, and ended", "--flag"]

    # Complete results are not made again.
    run = start()
    assert run.communicate(timeout=60) == ("", "")
    assert run.returncode == 0

    # The same command with other options is a different result.
    run = start("--flag=2")
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "made was made with other options" in errors
    assert errors.endswith("Received: --flag=2\n")


def test_a_script_that_fails_tells_its_last_line(start, tmp_path):
    (tmp_path / "script.py").write_text("raise SystemExit('no such file: x')")
    run = start()
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert errors.endswith("ended with exit code 1: no such file: x\n")
    assert not (tmp_path / "made.done").exists()
