"""TensorFlow in a process that runs tests: two logical CPUs, memory, seeds."""

import ctypes
import gc
import os
import pathlib
import random
import sys
from collections.abc import Iterator

import bert_tf  # noqa: F401  (sets TF_ENABLE_ONEDNN_OPTS)
from tests import scripts, store, tiny_model

import pytest
import tensorflow as tf
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context

# Growth of this process after which unused models are collected. Reference
# cycles keep them alive, and Python collects those too rarely: it counts
# objects, not the bytes of their weights.
_GROWTH = 512 << 20  # bytes
# Total size from which loaded exports, of about 100 MB each, are dropped.
_MOST = 3 << 30

# XLA reads these flags when it first compiles. On CPUs, they halve the time it
# takes. The passes that change the program itself run as always.
_QUICK_XLA = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

# Two replicas on one machine. This is only possible before TensorFlow starts.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
# The default. run_server.py sets it again, and once TensorFlow has started, no
# other value is accepted.
tf.config.threading.set_intra_op_parallelism_threads(0)


@pytest.fixture(scope="session")
def two_replicas() -> tf.distribute.Strategy:
    """Two replicas on the two logical CPUs.

    The whole process uses one strategy: each strategy numbers its collective
    operations from the same start, so those of two strategies would collide.
    """
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def untraced():
    """Runs functions eagerly: tracing takes longer than a few steps.

    Not for exports, nor where numbers of traced runs must be the same.
    """
    with tiny_model.untraced():
        yield


@pytest.fixture(scope="module")
def grappler(pytestconfig: pytest.Config) -> Iterator[None]:
    """Optimizes graphs until the module's end, as in users' programs."""
    _use_grappler(True)
    yield
    _use_grappler(pytestconfig.option.grappler)


def _use_grappler(is_used: bool) -> None:
    """Turns TensorFlow's optimizer of graphs on or off.

    It takes most of the time of the first call of a function, and tests call
    few functions often.
    """
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": not is_used}
    )


def _set_seed(self, seed):
    """Sets a seed, and keeps compiled kernels, which take long to make again.

    TensorFlow drops all of them, as those of stateful random ops have their
    seed. Ours are stateless.
    """
    self._seed = seed
    self._rng = random.Random(seed)


context.Context._set_global_seed = _set_seed


def pytest_configure(config: pytest.Config) -> None:
    """Sets the optimizers, and keeps two kinds of iterators alive to the end.

    TensorFlow destroys an iterator while it holds Python's lock, and waits for
    a thread that may need this lock to call Python. This deadlocks whenever
    Python's garbage collector finds an iterator that is not exhausted. For one
    replica's part of a dataset, it waits for a thread that sleeps for up to a
    minute, longer for older iterators.
    """
    store.uses_grappler = config.option.grappler
    uses_cpu = os.environ["CUDA_VISIBLE_DEVICES"] == "-1"
    if uses_cpu and not config.option.grappler:
        os.environ.setdefault("XLA_FLAGS", _QUICK_XLA)
    _use_grappler(config.option.grappler)
    make = iterator_ops.OwnedIterator._create_iterator

    def create(self, dataset):
        make(self, dataset)
        if _calls_python(dataset) or _is_of_one_replica(dataset):
            _kept.append(self._iterator_resource)

    iterator_ops.OwnedIterator._create_iterator = create


_kept: list[tf.Tensor] = []


def _calls_python(dataset: tf.data.Dataset) -> bool:
    """Whether a function of the dataset, or of its inputs, is Python's."""
    functions = [x.function.graph for x in dataset._functions()]
    types = {op.type for graph in functions for op in graph.get_operations()}
    return not types.isdisjoint({"PyFunc", "EagerPyFunc"}) or any(
        map(_calls_python, dataset._inputs())
    )


def _is_of_one_replica(dataset: tf.data.Dataset) -> bool:
    """Whether its elements come from a dataset for several devices."""
    return "PerDeviceGenerator" in type(dataset).__name__ or any(
        map(_is_of_one_replica, dataset._inputs())
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Removes stored models of older code, in one of the workers."""
    worker = getattr(session.config, "workerinput", {"workerid": "gw0"})
    if worker["workerid"] == "gw0":
        store.forget_old()


def pytest_collection_finish() -> None:
    """Excludes imported modules from garbage collection, and makes it rarer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_runtest_setup() -> None:
    """Lets each test see lines that are logged once in a process."""
    scripts.forget_logged()


_size = 0  # of this process after the last collection, in bytes


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> None:
    """Collects unused models once the process has grown.

    After the last test of a file, also drops models that other files would load
    again, as garbage collection takes a second or two.
    """
    global _size
    memory = _memory()
    is_last = nextitem is None or nextitem.path != item.path
    exports = sys.modules.get("tests.exports")
    has_dropped = (
        is_last and memory > _MOST and exports is not None and exports.forget()
    )
    if not has_dropped and memory - _size < _GROWTH:
        return
    gc.collect()
    _trim()
    _size = _memory()


def _trim() -> None:
    """Returns freed memory to the system, as it is too fragmented to reuse."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _memory() -> int:
    """Returns the resident bytes of this process; 0 if unknown."""
    statm = pathlib.Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
