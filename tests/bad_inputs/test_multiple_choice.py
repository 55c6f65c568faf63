"""Bad inputs of run_multiple_choice.py."""

import dataclasses

from bert_tf.storage import run_lock
from tests import small_disks
from tests.bad_inputs import matrix
from tests.bad_inputs.multiple_choice import data as data_cases
from tests.bad_inputs.multiple_choice import flags, right
from tests.bad_inputs.multiple_choice.inputs import (
    SCRIPT,
    Case,
    predict,
    write_data,
)

import pytest

CASES = {
    **flags.CASES,
    **data_cases.CASES,
}

data = matrix.inputs(write_data)


test_bad_input = matrix.refused(SCRIPT, CASES)


@pytest.mark.parametrize("name", ["lock", "evaluation.lock"])
def test_a_folder_that_another_process_holds(name, data, tmp_path):
    if name == "lock":
        case = Case({}, "{out} is in use: process ")
    else:
        case = predict("{out} is in use: process ")
    with run_lock.hold(tmp_path / "out", name, "trains", renew=600):
        matrix.check(SCRIPT, case, data, tmp_path)


def test_a_disk_too_small_for_checkpoints(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 48) as disk:
        line = f"The disk of {disk}/out has "
        # How much is free it says otherwise: the run has written its records.
        case = Case({"output_dir": f"{disk}/out"}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
        case = dataclasses.replace(case, arguments=("--check_only",))
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not list(disk.iterdir())


test_the_good_command_is_good = matrix.good(SCRIPT)


test_what_rightly_works = matrix.found_right(SCRIPT, right.GOOD)
