"""Restricts the tables of bad inputs to `make bad-inputs` and CI."""

import pytest


def pytest_collection_modifyitems(items):
    """Marks the cases of the tables as slow."""
    quick = ("test_cases.py", "test_flags.py")
    for item in items:
        if "bad_inputs" in item.path.parts and item.path.name not in quick:
            item.add_marker(pytest.mark.slow)
