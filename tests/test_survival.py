"""Runs that are killed, or started twice: a few here, a hundred by the command.

`python -m tests.survival` kills and doubles many more, at other moments.
"""

import random

from tests import survival

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def laboratory(
    tmp_path_factory: pytest.TempPathFactory,
) -> survival.Laboratory:
    return survival.Laboratory(tmp_path_factory.mktemp("laboratory"))


def _kinds(*chosen):
    """All kinds of runs, beyond the chosen ones exhaustively."""
    return pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                kind,
                id=kind.name,
                marks=() if kind.name in chosen else pytest.mark.exhaustive,
            )
            for kind in survival.KINDS
        ],
    )


# Answers are trained as classes are, and GLUE's runs are of classifiers.
@_kinds(
    *("data creation", "pre-training on two replicas", "fine-tuning"),
    *("features", "augmentation"),
)
def test_what_a_killed_run_leaves(kind, laboratory):
    assert not laboratory.killed(kind, 1, random.Random(kind.name))


@_kinds("data creation")
def test_what_a_run_started_twice_leaves(kind, laboratory):
    assert not laboratory.twice(kind, random.Random(kind.name))
