"""Shared by the tests of scripts."""

from tests import tiny_model

import pytest


@pytest.fixture
def untraced():
    """Runs functions eagerly: tracing takes longer than a few steps.

    Not for exports, nor where numbers of traced runs must be the same.
    """
    with tiny_model.untraced():
        yield
