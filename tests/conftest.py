"""Shared by all tests: environment, the folder of test data, order of files."""

import importlib
import os
import pathlib

# Set before TensorFlow is imported: logs only errors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Tests run on the CPU even if there is a GPU: the asserted values are the
# CPU's, and several test processes would compete for GPU memory.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Set before huggingface_hub is imported, also in child processes: model names
# are not looked up on the network.
os.environ["HF_HUB_OFFLINE"] = "1"

from bert_tf import quiet

import pytest

# As in scripts, and so in the processes that tests/scripts.py forks.
quiet.skip_unused_imports()

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--grappler",
        action="store_true",
        help="optimize graphs, and XLA's code, as users' programs do: slower",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Sets up TensorFlow in processes that run tests.

    The process that only starts the workers does not import it, which takes
    seconds in which they would wait.
    """
    workers = config.getoption("numprocesses", None)  # None in a worker
    if not workers or config.option.collectonly:
        config.pluginmanager.register(
            importlib.import_module("tests.tensorflow_setup")
        )


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """The folder of released vocabularies, GLUE files and the like."""
    named = os.environ.get("BERT_TF_TEST_DATA")
    folder = pathlib.Path(named) if named else _ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"needs the test data: no folder {folder} "
            "(BERT_TF_TEST_DATA names another)"
        )
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks exhaustive tests as slow, and starts files with slow tests first.

    Files are distributed one by one, and a long one that starts last would
    leave a core idle.
    """
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.slow)
    slow = {x.path for x in items if x.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
