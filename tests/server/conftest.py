"""Exports of tiny models, and a server of some of them."""

import pytest


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    """The folder of version 1 of a classifier of pairs; do not change it."""
    # Imported here: the process that starts the workers loads this file, too.
    from tests import exports

    folder = tmp_path_factory.mktemp("served") / "pairs"
    folder.symlink_to(exports.exported("classification").parent)
    return folder


@pytest.fixture(scope="session")
def server(pairs, tmp_path_factory):
    """A server of several models, which all tests of requests share."""
    from tests import exports
    from tests.server import served

    models = {
        "pairs": pairs,
        "chooser": exports.exported("multiple_choice"),
        # Nested outputs, in a name that is invalid for a component of OpenAPI.
        "ein {span}ä": exports.exported("span"),
        # The method regress.
        "scores": exports.exported("regression"),
    }
    given = ",".join(f"{name}={path}" for name, path in models.items())
    with served.start(
        *(tmp_path_factory.mktemp("log"), f"--model={given}"),
        *("--max_request_mb=2", "--poll_seconds=0"),
        "--cors_origins=https://Ours.example/",
        "--allowed_hosts=Proxy.example:8080",
    ) as server:
        yield server
