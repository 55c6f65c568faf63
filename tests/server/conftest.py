"""Exports of tiny models for the server."""

from tests import exports

import pytest


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    """The folder of version 1 of a classifier of pairs; do not change it."""
    folder = tmp_path_factory.mktemp("served") / "pairs"
    folder.symlink_to(exports.exported("classification").parent)
    return folder
