"""Bad inputs of shrink_model.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.shrinking import cases
from tests.bad_inputs.shrinking.inputs import SCRIPT, build

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, cases.CASES)


test_what_rightly_works = matrix.rightly_works(SCRIPT, cases.RIGHT)
