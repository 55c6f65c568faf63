"""What all tests share: two logical CPUs and the folder of real data."""

import gc
import os
import pathlib
import time

# Before TensorFlow is imported: only errors in its log.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Tests run on the CPU, also where there is a GPU: the values they assert are
# the CPU's, and several test processes would compete for its memory.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import bert_tf  # noqa: F401, I001  (sets TF_ENABLE_ONEDNN_OPTS)
import pytest
import tensorflow as tf

# Growth of this process after which models that nobody holds are let go. They
# are held by cycles, and Python looks for those too seldom: it counts objects,
# not what the weights take.
_GROWTH = 512 << 20  # bytes
_ROOT = pathlib.Path(__file__).resolve().parents[1]

# Two replicas on one machine. Only possible before TensorFlow starts.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
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


@pytest.fixture(scope="session")
def two_replicas() -> tf.distribute.Strategy:
    """Two replicas on the two logical CPUs.

    One strategy for the whole process: each counts its collective operations
    from the same number, so those of two strategies would be taken for one.
    """
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--until",
        type=float,
        metavar="SECONDS",
        help="begin no slow test later than this (seconds since 1970)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves out slow tests for which there is no time."""
    until = item.config.getoption("--until")
    if until and time.time() > until and item.get_closest_marker("slow"):
        pytest.skip("no time is left for slow tests: --until")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes variants for slow, and has files with slow tests begin first.

    Files are shared out one by one, and a long one that begins last leaves a
    core without work.
    """
    for item in items:
        if item.get_closest_marker("variant"):
            item.add_marker(pytest.mark.slow)
    slow = {x.path for x in items if x.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Has the search for cycles leave alone what was imported."""
    gc.collect()
    gc.freeze()


_size = 0  # of this process after the last look for cycles, in bytes


def pytest_runtest_teardown() -> None:
    """Lets models of tests before go, where they have become many."""
    global _size
    if _memory() - _size > _GROWTH:
        gc.collect()
        _size = _memory()


def _memory() -> int:
    """Returns the bytes of memory that this process has; 0 if not known."""
    statm = pathlib.Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
