"""Runs that are killed, or started twice: a few of them.

`python -m tests.survival` kills and doubles a hundred more, at other moments.
"""

import random

from tests import combinations, survival

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> survival.Laboratory:
    return survival.Laboratory(tmp_path_factory.mktemp("laboratory"))


# The other scripts have the same loop, or are killed in separate tests.
@pytest.mark.parametrize(
    "kind",
    combinations.some([survival.KINDS[5]], survival.KINDS),
    ids=lambda kind: kind.name,
)
def test_what_a_killed_run_leaves(kind, laboratory):
    # The first kill is after 0.62 of the time of an uninterrupted run.
    assert not laboratory.killed(kind, 1, random.Random(5))


# Each of its assertions has a cheaper test of locks, files and data creation.
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", survival.KINDS[:2], ids=lambda kind: kind.name)
def test_what_a_run_started_twice_leaves(kind, laboratory):
    assert not laboratory.twice(kind, random.Random(kind.name))
