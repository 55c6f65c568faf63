"""Commands without a working folder, or with a standard output that fails."""

import os
import pathlib
import subprocess
import sys

from tests import combinations

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SCRIPT = str(_ROOT / "run_ner.py")


def _run(*arguments, **how):
    """Runs Python; returns its exit code, stdout and stderr."""
    # Output in memory fails at exit only.
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)
    how.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run(
        [sys.executable, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
        **how,
    )
    return done.returncode, done.stdout, done.stderr


_ANSWERS = [
    ["-m", "bert_tf"],
    ["-m", "bert_tf", "completion", "bash"],
    [_SCRIPT, "--help"],
    ["-m", "bert_tf", "run_ner", "--version"],
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", combinations.some(_ANSWERS[1:3], _ANSWERS)
)
def test_standard_output_that_is_full(arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        code, _, errors = _run(*arguments, stdout=full)
    assert code == 1
    assert errors == (
        "error: Cannot write to standard output: No space left on device\n"
    )


@pytest.mark.parametrize(
    "arguments", combinations.some(_ANSWERS[::3], _ANSWERS)
)
def test_standard_output_that_nobody_reads(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    code, _, errors = _run(*arguments, stdout=writer)
    os.close(writer)
    # The shell's exit code for a process that SIGPIPE ended.
    assert (code, errors) == (141, "")


def _without_folder(tmp_path, *arguments):
    def remove_folder():
        os.chdir(tmp_path)
        os.rmdir(tmp_path)

    return _run(*arguments, preexec_fn=remove_folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "bert_tf", "configs"],
        ["-m", "bert_tf", "run_ner", "--output_dir=run"],
        [_SCRIPT, "--output_dir=run"],
    ],
)
def test_scripts_without_a_working_folder(tmp_path, arguments):
    code, _, errors = _without_folder(tmp_path, *arguments)
    assert code == 1
    assert errors.startswith("error: ") and errors.count("\n") == 1
    assert "The working folder was deleted: change to a folder" in errors


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["-c", "import bert_tf; print(bert_tf.InputError)"], "<class"),
        (["-m", "bert_tf"], "python -m bert_tf NAME"),
        ([_SCRIPT, "--help"], "run_ner.py: Fine-tunes"),
    ],
)
def test_answers_without_a_working_folder(tmp_path, arguments, output):
    code, answer, errors = _without_folder(tmp_path, *arguments)
    assert (code, errors) == (0, "")
    assert answer.startswith(output)
