"""A run that is killed.

`python -m tests.survival` kills a hundred of all kinds, and starts some twice.
"""

import random

from tests import survival

import pytest

pytestmark = pytest.mark.slow


# The other scripts have the same loop, or are killed in separate tests.
def test_what_a_killed_run_leaves(tmp_path):
    # The first kill is after 0.62 of the time of an uninterrupted run.
    laboratory = survival.Laboratory(tmp_path)
    assert not laboratory.killed(survival.KINDS[5], 1, random.Random(5))
