"""What is kept off the screen while TensorFlow starts."""

import subprocess
import sys

from tests import small_script

import pytest


def _run(body: str) -> subprocess.CompletedProcess[str]:
    """Runs code between the two ends; C code writes to the descriptor."""
    code = (
        "import os, sys, time\n"
        "from bert_tf.flags import quiet\n"
        "def noise(): os.write(2, b'I0000 noise\\n')\n" + body
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=small_script.ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_what_went_well_is_not_shown():
    done = _run(
        "quiet.begin()\nnoise()\nquiet.end()\n"
        "print('after', file=sys.stderr)\nos.write(2, b'later\\n')\n"
    )
    assert (done.returncode, done.stderr) == (0, "after\nlater\n")


def test_more_than_a_pipe_holds():
    done = _run(
        "quiet.begin()\nfor _ in range(100_000): noise()\nquiet.end()\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_error_shows_all():
    done = _run("with quiet.kept_back():\n    noise()\n    import nowhere\n")
    assert done.returncode == 1
    assert done.stderr.startswith("I0000 noise\nTraceback")
    assert "No module named 'nowhere'" in done.stderr


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), 9)"])
def test_death_shows_all(end):
    # As TensorFlow dies on a processor that it was not compiled for.
    done = _run(f"quiet.begin()\nnoise()\n{end}\n")
    assert done.returncode < 0
    assert done.stderr == "I0000 noise\n"


def test_twice_and_not_at_all():
    done = _run(
        "quiet.end()\nquiet.begin()\nquiet.begin()\nnoise()\nquiet.end()\n"
        "quiet.end()\nos.write(2, b'later\\n')\n"
    )
    assert (done.returncode, done.stderr) == (0, "later\n")


@pytest.mark.slow
def test_script_shows_its_own_lines_only(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from bert_tf.flags import command_line\n"
        "command_line.start(__name__)\n"
        "import tensorflow as tf\n"
        "def main(_):\n"
        "    tf.constant(1) + 1\n"
        "command_line.run(main)\n"
    )
    environment = {"PYTHONPATH": str(small_script.ROOT), "HOME": "/"}
    for arguments, is_quiet in (([], True), (["--verbosity=1"], False)):
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stderr == "") == is_quiet, done.stderr
