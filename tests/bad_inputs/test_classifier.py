"""Bad inputs of run_classifier.py."""

import os

from bert_tf.storage import run_lock
from tests.bad_inputs import matrix
from tests.bad_inputs.classifier import flags, right, runs, tables, teachers
from tests.bad_inputs.classifier.inputs import SCRIPT, write_data

CASES = {
    **flags.CASES,
    **tables.CASES,
    **runs.CASES,
    **teachers.CASES,
}

data = matrix.inputs(write_data)


test_bad_input = matrix.refused(SCRIPT, CASES)


test_what_rightly_works = matrix.found_right(SCRIPT, right.GOOD)


def test_another_process_works_there(data, tmp_path):
    lock = run_lock.hold(tmp_path / "out", what="trains")
    line = f"{{out}} is in use: process {os.getpid()} on host"
    try:
        # It may end before the run begins.
        case = matrix.Case({}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        lock.release()
