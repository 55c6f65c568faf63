"""Bad inputs of run_prediction.py."""

import os

from bert_tf.storage import file_systems
from tests import small_disks
from tests.bad_inputs import matrix
from tests.bad_inputs.predicting import flags, models, right
from tests.bad_inputs.predicting.inputs import SCRIPT, build

import pytest

CASES = {
    **flags.CASES,
    **models.CASES,
}

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, CASES)


test_what_rightly_works = matrix.rightly_works(SCRIPT, right.RIGHT)


def test_another_process_writes_it(data, tmp_path):
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "answers.jsonl.tmp"
    descriptor = file_systems.lock(str(path))
    assert descriptor is not None
    case = matrix.Case(
        {},
        f"Another process writes {{out}}/answers.jsonl: process {os.getpid()}",
    )
    try:
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        file_systems.unlock(descriptor)


@pytest.mark.parametrize(
    ("flags", "closed", "line"),
    [
        ([], "<&-", "Standard input is closed, and there is no --input_file."),
        (
            ["--input_file={data}/lines.txt"],
            ">&-",
            "Standard output is closed, and there is no --output_file.",
        ),
    ],
)
def test_a_stream_is_closed(flags, closed, line, data):
    """As by a shell that was told so: nothing is answered into nowhere."""
    flags = [flag.format(data=data) for flag in flags]
    flags.append(f"--model_dir={data}/run")
    run = matrix.in_a_shell(SCRIPT, flags, {}, closed)
    assert run.returncode == 1
    assert not run.stdout
    (said,) = run.stderr.splitlines()
    assert said == f"error: {line} Give one of them."


def test_lines_before_a_bad_one_are_no_result(data, tmp_path):
    """Where what comes is read once, and the answers go to a file."""
    flags = [f"--model_dir={data}/run", f"--output_file={tmp_path}/out.jsonl"]
    run = matrix.in_a_shell(SCRIPT, flags, {}, f"<{data}/three.txt")
    assert run.returncode == 1
    assert "standard input, line 3: 3 columns with tabs" in run.stderr
    assert "Traceback" not in run.stderr
    assert not os.listdir(tmp_path)


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 4):
        case = matrix.Case(
            {
                "input_file": "{data}/many.txt",
                "output_file": f"{tmp_path}/disk/x.jsonl",
            },
            f"Cannot write {tmp_path}/disk/x.jsonl: No space left on device",
        )
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not os.listdir(tmp_path / "disk")
