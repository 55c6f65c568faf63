"""Runs that are killed, or started twice: a few here, a hundred by the command.

`python -m tests.survival` kills and doubles many more, at other moments.
"""

import random

from tests import survival

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> survival.Laboratory:
    return survival.Laboratory(tmp_path_factory.mktemp("laboratory"))


def _some(*names):
    """Kinds of runs: these, and the others by `make test-all`."""
    return [
        pytest.param(
            kind,
            id=kind.name,
            marks=() if kind.name in names else pytest.mark.exhaustive,
        )
        for kind in survival.KINDS
    ]


# The others' loops are the same, or killed in tests of their own.
@pytest.mark.parametrize(
    "kind", _some("fine-tuning", "GLUE", "features", "augmentation")
)
def test_what_a_killed_run_leaves(kind, laboratory):
    assert not laboratory.killed(kind, 1, random.Random(kind.name))


@pytest.mark.parametrize("kind", _some("data creation")[:2])
def test_what_a_run_started_twice_leaves(kind, laboratory):
    assert not laboratory.twice(kind, random.Random(kind.name))
