"""Lines that run_prediction.py answers as they come: files, pipes, a prompt."""

import functools
import io
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import threading

from tests import exports, scripts
from tests.commands.test_run_prediction import answers, predict

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.usefixtures("untraced")

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scores():
    return exports.run("score")


def start(scores, stdin, stdout, stderr, **options):
    return subprocess.Popen(
        [sys.executable, "run_prediction.py", f"--model_dir={scores}"],
        cwd=_ROOT,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        **options,
    )


def from_stdin(monkeypatch, data, *arguments):
    stdin = io.TextIOWrapper(io.BytesIO(data))
    monkeypatch.setattr(sys, "stdin", stdin)
    return predict(*arguments)


@pytest.mark.slow
def test_standard_input(scores, monkeypatch, capsys):
    data = "good film\r\nbad film\n博\n\n\n".encode()
    code = from_stdin(
        *(monkeypatch, data, f"--model_dir={scores}", "--output_format=plain")
    )
    assert not code
    found = [float(line) for line in capsys.readouterr().out.splitlines()]
    rows = [("good film",), ("bad film",), ("博",)]
    expected = exports.python_logits(exports.model("score"), *rows)[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_the_format_of_a_file_is_that_of_its_name(
    scores, tmp_path, monkeypatch
):
    path = tmp_path / "out.tsv"
    flags = f"--model_dir={scores}", f"--output_file={path}"
    assert not from_stdin(monkeypatch, b"good film\n", *flags)
    expected = exports.python_logits(exports.model("score"), ("good film",))
    assert float(path.read_text()) == pytest.approx(expected[0, 0], abs=1e-5)


@pytest.mark.slow
def test_answers_before_a_bad_line_are_kept(scores, monkeypatch, capsys):
    code = from_stdin(
        *(monkeypatch, b"good\n \nbad\n", f"--model_dir={scores}")
    )
    assert code == 1
    output = capsys.readouterr()
    assert output.out.count("score") == 1
    assert "standard input, line 2: the line is empty" in output.err


def test_a_file_in_a_bucket(scores, tmp_path, monkeypatch, capsys):
    def local(call):
        return lambda path, *arguments: call(
            path.replace("gs://bucket", str(tmp_path)), *arguments
        )

    for name in ("exists", "isdir", "GFile"):
        call = getattr(tf.io.gfile, name)
        monkeypatch.setattr(tf.io.gfile, name, local(call))
    run = f"--model_dir={scores}"
    bucket = "--input_file=gs://bucket"
    found = answers(tmp_path, ["good film", "bad"], run, f"{bucket}/in.txt")
    assert [list(answer) for answer in found] == [["score"], ["score"]]
    assert predict(run, f"{bucket}/none") == 1
    assert "Received: input_file=gs://bucket/none" in capsys.readouterr().err


def test_a_pipe_is_read_once(scores, tmp_path, caplog):
    pipe, output = tmp_path / "pipe", tmp_path / "out.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("good\nbad\n",))
    writer.start()
    flags = [f"--input_file={pipe}", f"--output_file={output}"]
    assert not predict(f"--model_dir={scores}", *flags)
    writer.join()
    assert f"Waiting for the program that writes to {pipe}." in caplog.text
    lines = output.read_text().splitlines()
    assert ["score" in json.loads(line) for line in lines] == [True, True]


def test_no_lines_in_a_pipe_or_device(scores, tmp_path, capsys):
    output = f"--output_file={tmp_path}/out.jsonl"
    flags = [f"--model_dir={scores}", "--input_file=/dev/null", output]
    assert predict(*flags) == 1
    assert "error: /dev/null has no lines. Expected" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def end_of_input(process):
    process.stdin.close()


def end_by_sigterm(process):
    process.send_signal(signal.SIGTERM)


def end_as_head_does(process):
    """Reads no more answers, and asks for one."""
    process.stdout.close()
    process.stdin.write("bad\n")
    process.stdin.flush()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param(end_of_input, 0, marks=pytest.mark.exhaustive),
        pytest.param(
            end_by_sigterm, 128 + signal.SIGTERM, marks=pytest.mark.exhaustive
        ),
        (end_as_head_does, 128 + signal.SIGPIPE),
    ],
)
def test_each_line_is_answered_before_the_next_comes(
    end, code, scores, tmp_path
):
    """It ends, too, while it waits for a line."""
    with (tmp_path / "log").open("w") as log:
        pipe = subprocess.PIPE
        process = start(scores, pipe, pipe, log, text=True)
    assert process.stdin and process.stdout
    for line in ("good\n", "a bad film\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert "score" in process.stdout.readline()
    end(process)  # Its standard input stays open, but at its end.
    assert process.wait(60) == code
    said = (tmp_path / "log").read_text()
    assert "Fatal Python error" not in said
    assert "Traceback" not in said
    process.stdin.close()


@pytest.mark.slow
def test_a_prompt_to_type_at(scores, tmp_path):
    ours, theirs = pty.openpty()
    take = functools.partial(scripts.take_terminal, os.ttyname(theirs))
    flags = [f"--model_dir={scores}"]
    run = scripts.Run(tmp_path, "run_prediction", flags, {}, before=take)
    seen = b""

    def until(mark):
        nonlocal seen
        while mark not in seen:
            assert select.select([ours], [], [], 60)[0], seen
            seen += os.read(ours, 1000)
        before, _, seen = seen.partition(mark)
        return before

    assert b"Type a text; Ctrl-D ends." in until(b"> ")
    os.write(ours, b"good film\n")
    assert b'{"score": ' in until(b"> ")
    os.write(ours, b"\x04")
    assert run.wait(60) == 0
    os.close(theirs)
    os.close(ours)


@pytest.mark.exhaustive
def test_a_prompt_is_no_answer(scores):
    """Where answers go to a file or to another program."""
    ours, theirs = pty.openpty()
    process = start(scores, theirs, subprocess.PIPE, subprocess.PIPE)
    os.write(ours, b"good film\n\x04")
    answers, log = process.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    assert [list(json.loads(x)) for x in answers.splitlines()] == [["score"]]
    assert log.count(b"> ") == 2
