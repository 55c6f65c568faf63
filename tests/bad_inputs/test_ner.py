"""Bad inputs of run_ner.py."""

from tests import small_disks
from tests.bad_inputs import matrix
from tests.bad_inputs.ner import cases, right
from tests.bad_inputs.ner.inputs import SCRIPT, Case, write_data

import pytest

data = matrix.inputs(write_data)


test_bad_input = matrix.refused(SCRIPT, cases.CASES)


def test_a_disk_that_is_read_only(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64, read_only=True) as disk:
        line = "there is no permission to write to " + str(disk)
        case = Case({"output_dir": f"{disk}/out"}, line)
        matrix.check(SCRIPT, case, data, tmp_path)


test_the_good_command_is_good = matrix.good(SCRIPT)


test_what_rightly_works = matrix.found_right(SCRIPT, right.GOOD)


@pytest.mark.parametrize("redirections", ["", "<&-", ">&-"])
def test_a_c_locale_and_closed_streams(redirections, data, tmp_path):
    case = Case({"train_file": "{data}/\u540d\u524d.conll"}, "")
    flags = matrix.command(SCRIPT, case, data, tmp_path / "\u51fa\u529b")
    done = matrix.in_a_shell(
        *(SCRIPT, [*flags, "--check_only"]),
        *({"LC_ALL": "C"}, redirections),
    )
    assert done.returncode == 0, done.stderr
    assert "Found nothing that would stop this run." in done.stderr
