"""Bad inputs of run_classifier.py."""

from tests.bad_inputs import matrix, surroundings
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
    case = matrix.Case({}, "{out} is in use: process ", checked=False)
    with surroundings.held(tmp_path / "out"):
        matrix.check(SCRIPT, case, data, tmp_path)
