"""Bad inputs of label_versions.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.labelling.inputs import CASES, SCRIPT, build

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, CASES)


test_good = matrix.good(SCRIPT)
