"""How scripts start, end and write their log."""

import os
import pathlib
import pty
import signal
import subprocess
import sys
import textwrap

from bert_tf.flags import error_lines
from bert_tf.records import reading
from tests import scripts

import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# A script with a case for each way of ending.
_SCRIPT = r"""
import glob, json, os, signal, sys, time
from bert_tf import files
from bert_tf.training import schedules
from bert_tf.errors import InputError, NotFiniteError
from bert_tf.flags import command_line
import numpy as np
import tensorflow as tf
from absl import flags

_SIZE = flags.DEFINE_integer("size", 1, "A size.", lower_bound=1)
_CASE = flags.DEFINE_string("case", None, "What happens.")

def main(_):
    case = _CASE.value
    if case == "done":
        print("done")
    elif case == "refused by the library":
        schedules.linear_warmup_decay(1e-4, 20, 10)
    elif case == "refused by the script":
        raise InputError("a\n  line,\tand another")
    elif case == "refused after a cause":
        try:
            json.loads("{")
        except ValueError as error:
            raise InputError("c.json is not JSON") from error
    elif case == "no text":
        raise InputError
    elif case == "not a number":
        raise NotFiniteError("Not a finite number in steps 1 to 2")
    elif case == "no file for Python":
        open("/nowhere/vocab.txt")
    elif case == "no file for TensorFlow":
        tf.io.gfile.GFile("/nowhere/vocab.txt").read()
    elif case == "folder for a file":
        tf.io.gfile.GFile("/").read()
    elif case == "no network":
        raise tf.errors.UnavailableError(None, None, "no way to gs://bucket")
    elif case == "unknown scheme":
        tf.io.gfile.makedirs("ftp2://bucket/run")
    elif case == "bug in another library":
        json.loads("{")
    elif case == "bug of ours":
        int("seven")
    elif case == "bug that is passed on":
        try:
            np.ones(2) + np.ones(3)
        except ValueError as error:
            raise error
    elif case == "bug in a call":
        main(_, 1)
    elif case == "bug of a key":
        {}["seven"]
    elif case == "out of memory":
        raise tf.errors.ResourceExhaustedError(
            None, None, "OOM when allocating tensor with shape[1048576,1]"
        )
    elif case == "allocation":
        tf.function(lambda n: tf.ones([n, n]))(tf.constant(1 << 20))
    elif case == "interrupted":
        raise KeyboardInterrupt
    elif case == "exit":
        sys.exit(143)
    elif case == "terminated":
        # Else a signal that is not handled would end the tests.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        command_line.unwind_at_signals()
        path = os.path.join(os.path.dirname(__file__), "terminated.tsv")
        try:
            with files.new_file(path) as file:
                file.write(b"half")
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(10)
        finally:
            print(glob.glob(f"{path}*"))

command_line.run(main)
"""
_ONE_LINE = {
    "refused by the library": "num_warmup_steps=20, num_train_steps=10",
    "refused by the script": "error: a line, and another\n",
    "refused after a cause": "error: c.json is not JSON\n",
    "no text": "error: InputError\n",
    "not a number": "error: Not a finite number in steps 1 to 2\n",
    "no file for Python": "/nowhere/vocab.txt",
    "no file for TensorFlow": "/nowhere/vocab.txt",
    "folder for a file": "Is a directory",
    "no network": "error: no way to gs://bucket\n",
    "unknown scheme": "has no file system ftp2:// here. Give a local",
    "argument": "Received: 'tiny.json'",
    "unknown": "error: There is no flag --sise. Did you mean --size? "
    "python script.py --help shows all.\n",
    "low": "--size=0",
}
_TRACEBACK = {
    "bug in another library": "json.decoder.JSONDecodeError",
    "bug of ours": "ValueError: invalid literal for int()",
    "bug that is passed on": "ValueError: operands could not be broadcast",
    "bug in a call": "TypeError",
    "bug of a key": "KeyError: 'seven'",
}
_FLAGS = {
    "argument": ["tiny.json"],
    "unknown": ["--sise=2"],
    "low": ["--size=0"],
}


def _end(folder, case):
    """Runs a case; returns its exit code, stdout and stderr."""
    (folder / "script.py").write_text(_SCRIPT)
    flags = [f"--case={case}", *_FLAGS.get(case, [])]
    done = scripts.run(folder, str(folder / "script"), *flags)
    return done.wait(), done.stdout, done.stderr


class TestRun:
    @pytest.mark.parametrize(
        ("case", "end"),
        [
            ("done", (0, "done\n", "")),
            ("exit", (143, "", "")),
            ("interrupted", (130, "", "")),
            # It prints the list of half-written files that are left.
            ("terminated", (143, "[]\n", "")),
        ],
    )
    def test_end(self, tmp_path, case, end):
        assert _end(tmp_path, case) == end

    @pytest.mark.parametrize("case", _ONE_LINE)
    def test_mistake_is_one_line(self, tmp_path, case):
        code, out, err = _end(tmp_path, case)
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1 and err.endswith("\n")
        assert _ONE_LINE[case] in err

    @pytest.mark.parametrize("case", _TRACEBACK)
    def test_bug_keeps_its_traceback(self, tmp_path, case):
        code, _, err = _end(tmp_path, case)
        assert code == 1
        assert "Traceback (most recent call last)" in err
        assert "script.py" in err
        assert _TRACEBACK[case] in err

    @pytest.mark.parametrize(
        "case",
        [
            "out of memory",
            # TensorFlow waits ten seconds for memory.
            pytest.param("allocation", marks=pytest.mark.exhaustive),
        ],
    )
    def test_too_little_memory(self, tmp_path, case):
        code, _, err = _end(tmp_path, case)
        assert code == 1
        assert "Traceback" not in err
        # TensorFlow's allocator logs a line before it.
        last = err.splitlines()[-1]
        assert last.startswith("error: The device has too little memory. Take")
        assert "Received: OOM when allocating tensor with shape[104" in last

    @pytest.mark.parametrize(
        "text",
        [
            "OOM when allocating tensor with shape[9]",
            "Out of memory while trying to allocate 4294967296 bytes.",
            "Ran out of memory in memory space hbm. Used 20.1G of 16.0G hbm.",
            "Out of memory allocating 1073741824 bytes.",
        ],
    )
    def test_too_little_memory_of_a_compiled_step(self, text):
        error = tf.errors.ResourceExhaustedError(
            None,
            None,
            f"2 root error(s) found.\n  (0) {text}\n\t [[{{{{node}}}}]]",
        )
        line = error_lines.one_line(error)
        assert line.startswith("The device has too little memory. Take")
        assert line.endswith(f"Received: {text}")


def _start(folder, text, **environment):
    script = folder / "script.py"
    script.write_text(
        "from bert_tf.flags import command_line\n" + textwrap.dedent(text)
    )
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(_ROOT), "HOME": "/", **environment},
        text=True,
        # In background jobs a shell ignores SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_reader_that_has_had_enough(tmp_path):
    """Like `script | head -1`."""
    text = """
        def main(_):
            for number in range(100_000):
                print(number)
        command_line.run(main)
    """
    with _start(tmp_path, text) as process:
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    # The shell's exit code for a process that SIGPIPE ended.
    assert process.returncode == 141


def test_ctrl_c_while_the_script_imports(tmp_path):
    text = """
        import time
        command_line.start(__name__)
        print('importing', flush=True)
        time.sleep(60)
    """
    with _start(tmp_path, text) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == ""
    assert process.returncode == 130


@pytest.mark.slow
def test_another_backend_of_keras_is_not_used(tmp_path):
    """The one line about it is all that is logged: TensorFlow is silent."""
    text = """
        command_line.start(__name__)
        import keras
        import tensorflow as tf
        def main(_):
            tf.constant(1) + 1
            print(keras.config.backend())
        command_line.run(main)
    """
    only_cpus = {"CUDA_VISIBLE_DEVICES": "-1"}
    with _start(tmp_path, text, KERAS_BACKEND="torch", **only_cpus) as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "tensorflow\n")
    (line,) = errors.splitlines()
    assert "WARNING: KERAS_BACKEND=torch is not used: " in line


def test_long_lines_are_broken_between_words(tmp_path):
    (tmp_path / "script.py").write_text(
        "from bert_tf.flags import command_line\n"
        "from absl import logging\n"
        "def main(_):\n"
        "    logging.info('%s', 'word ' * 60 + 'x' * 200)\n"
        "    logging.info('short\\n  as it is')\n"
        "command_line.run(main)\n"
    )
    scripts.run(tmp_path, str(tmp_path / "script"))
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert max(map(len, lines[:-3])) <= 120
    assert all(line.startswith(" " * 9 + "word") for line in lines[1:-3])
    # Long words such as paths are not split.
    assert lines[-3] == " " * 9 + "x" * 200
    assert " ".join(lines[:-2]).split()[1:] == ["word"] * 60 + ["x" * 200]
    assert lines[-2][9:] == "short" and lines[-1] == "  as it is"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_at_once_that_libraries_load(is_terminal):
    code = "from bert_tf.flags import command_line as c; c.start('__main__')"
    ours, theirs = pty.openpty() if is_terminal else os.pipe()
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=_ROOT,
        check=True,
        stdin=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.write(theirs, b"\n")  # So that there is something to read.
    shown = os.read(ours, 1 << 10)
    assert (b"Loading libraries.\r\n" in shown) == is_terminal
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("name", ["AbortedError", "DeadlineExceededError"])
def test_a_bucket_that_stays_away_is_foreseen(name):
    error = getattr(tf.errors, name)(None, None, "All 10 retry attempts failed")
    assert error_lines.is_foreseen(error)
    assert error_lines.one_line(error) == "All 10 retry attempts failed"


def test_a_file_error_in_a_graph_is_one_line(tmp_path):
    """Without the stack of the graph's definition, nor its nodes."""
    path = str(tmp_path / "none.tfrecord")
    with pytest.raises(tf.errors.NotFoundError) as error:
        reading.count([path])
    line = error_lines.one_line(error.value)
    assert line == f"{path}; No such file or directory"
