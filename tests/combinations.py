"""Products of factors, of which a few pairs run and the rest is exhaustive."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some(chosen: Collection[Any], every: Iterable[Any]) -> list[Any]:
    """Marks parameters that are not chosen as exhaustive.

    Args:
        chosen: Of them each value of each factor occurs in one.
        every: All parameters: tuples where there are several.
    """
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)),
            marks=() if each in chosen else pytest.mark.exhaustive,
        )
        for each in every
    ]
