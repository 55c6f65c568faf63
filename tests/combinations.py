"""Products of factors: a few combinations run, the rest is exhaustive."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some(chosen: Collection[Any], every: Iterable[Any]) -> list[Any]:
    """Marks parameters that are not chosen as exhaustive.

    Args:
        chosen: Parameters in which each value of each factor occurs.
        every: All parameters: tuples if there are several.
    """
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)),
            marks=() if each in chosen else pytest.mark.exhaustive,
        )
        for each in every
    ]
