"""Bad inputs of run_glue.py."""

import dataclasses
import os

from bert_tf.storage import run_lock
from tests import small_disks
from tests.bad_inputs import matrix
from tests.bad_inputs.glue import data as data_cases
from tests.bad_inputs.glue import flags, right
from tests.bad_inputs.glue.inputs import SCRIPT, build

CASES = {
    **flags.CASES,
    **data_cases.CASES,
}

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, CASES)


test_what_rightly_works = matrix.found_right(SCRIPT, right.RIGHT)


def test_another_process_works_there(data, tmp_path):
    lock = run_lock.hold(tmp_path / "out", what="trains")
    line = f"{{out}} is in use: process {os.getpid()} on host"
    try:
        # It may end before the run begins.
        case = matrix.Case({}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        lock.release()


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 32):
        case = matrix.Case(
            {"output_dir": f"{tmp_path}/disk/out"},
            "bytes free, and the checkpoints of this run need",
            checked=False,  # A lock takes some of them.
        )
        for more in ((), ("--check_only",)):
            each = dataclasses.replace(case, arguments=more)
            matrix.check(SCRIPT, each, data, tmp_path)
            assert not os.listdir(tmp_path / "disk")
