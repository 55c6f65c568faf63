import os
import pathlib
import signal
import subprocess
import sys
import textwrap

from bert_tf.storage import run_lock
from bert_tf.tasks import trials
from tests import processes

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _script(folder, text):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_output_goes_to_the_log(tmp_path):
    script = _script(tmp_path, "import sys; print('got', *sys.argv[1:])")
    log = tmp_path / "run" / "log.txt"
    lock = run_lock.hold(tmp_path)
    for values in ({"a": "1"}, {"b": "2"}):
        trials.call(script, values, str(log), lock)
    lock.release()
    assert log.read_text().splitlines() == [
        f"$ {sys.executable} {script} --a=1",
        "got --a=1",
        f"$ {sys.executable} {script} --b=2",
        "got --b=2",
    ]


def test_a_failure_tells_the_last_line(tmp_path):
    script = _script(tmp_path, "import sys; sys.exit('error: no such file')")
    lock = run_lock.hold(tmp_path)
    with pytest.raises(ValueError, match="exit code 1: error: no such file"):
        trials.call(script, {}, str(tmp_path / "run" / "log.txt"), lock)
    lock.release()


_HOLDER = """
    import os, sys
    from bert_tf.storage import run_lock
    from bert_tf.tasks import trials
    lock = run_lock.hold(sys.argv[1])
    trials.call(sys.argv[2], {}, sys.argv[1] + "/log.txt", lock)
"""
_SLEEPER = """
    import os, pathlib, sys, time
    here = pathlib.Path(__file__).parent
    (here / "pid").write_text(str(os.getpid()))
    (here / "started").touch()
    while not (here / "end").exists():
        time.sleep(0.01)
"""


def _start(tmp_path):
    """Starts a holder, and returns it once its script runs."""
    (tmp_path / "inner").mkdir()
    sleeper = _script(tmp_path / "inner", _SLEEPER)
    holder = subprocess.Popen(
        [sys.executable, _script(tmp_path, _HOLDER), tmp_path, sleeper],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        # Background jobs of a shell ignore SIGINT, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    processes.wait_for((tmp_path / "inner" / "started").exists, holder)
    return holder, int((tmp_path / "inner" / "pid").read_text())


@pytest.mark.slow
def test_the_run_of_a_killed_command_is_waited_for(tmp_path):
    holder, _ = _start(tmp_path)
    holder.kill()
    assert holder.wait(60) == -signal.SIGKILL
    waiting = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from absl import logging;"
            "from bert_tf.storage import run_lock;"
            "logging.set_verbosity('info');"
            "run_lock.hold(sys.argv[1]); print('mine')",
            tmp_path,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    said = "Waiting: the last run of a command that was killed still works in"
    assert said in waiting.stderr.readline()
    assert waiting.poll() is None
    (tmp_path / "inner" / "end").touch()
    output, log = waiting.communicate(timeout=60)
    assert output == "mine\n"
    assert f"Process {holder.pid} on host" in log
    assert "is gone: taking over." in log
    assert not (tmp_path / "lock").exists()


@pytest.mark.slow
def test_a_command_that_ends_ends_its_run(tmp_path):
    holder, pid = _start(tmp_path)
    holder.send_signal(signal.SIGINT)
    assert holder.wait(timeout=60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
