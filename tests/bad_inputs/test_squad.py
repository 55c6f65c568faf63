"""Bad inputs of run_squad.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.squad import cases, right
from tests.bad_inputs.squad.inputs import SCRIPT, write_data

data = matrix.inputs(write_data)


test_bad_input = matrix.refused(SCRIPT, cases.CASES)


test_the_good_command_is_good = matrix.good(SCRIPT)


test_what_rightly_works = matrix.found_right(SCRIPT, right.GOOD)


def test_another_backend_of_keras_is_not_used(data, tmp_path):
    flags = matrix.command(SCRIPT, matrix.Case({}, ""), data, tmp_path / "out")
    done = matrix.in_a_shell(
        SCRIPT, [*flags, "--check_only"], {"KERAS_BACKEND": "torch"}
    )
    assert done.returncode == 0, done.stderr
    assert "KERAS_BACKEND=torch is not used" in done.stderr
