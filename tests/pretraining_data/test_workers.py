"""Tasks give the same results and errors in this process and in others."""

import collections
import functools
import os
import signal
import subprocess
import sys
import time

from bert_tf.errors import InputError
from bert_tf.pretraining_data import workers
from tests import processes

import numpy as np
import pytest


def count(number, path=None):
    """A task: yields `number` twice, and may write its process's id."""
    for _ in range(2):
        if path:
            (path / str(os.getpid())).touch()
            time.sleep(0.05)
        yield {"sum": number}


def fail(error):
    yield {"sum": 1}
    raise error


def die():
    yield {"sum": 1}
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 4), ("150000 100000", 2), ("900000 100000", 4)],
)
def test_cores_of_a_container(quota, expected, tmp_path, monkeypatch):
    cores = dict.fromkeys(range(4))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores, False)
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert workers.cores(str(tmp_path / "cpu.max")) == expected


@pytest.fixture(scope="module")
def pool():
    with workers.Workers(2, ["tests.pretraining_data.test_workers"]) as pool:
        yield pool


@pytest.fixture
def total():
    return collections.Counter()


@pytest.mark.slow
def test_one_process_is_this_process_and_two_are_others(pool, total, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for path, number in ((one, 5), (two, 20)):
        path.mkdir()
        tasks = [functools.partial(count, n, path) for n in range(number)]
        total.clear()
        if path == two:
            pool.run(tasks, total.update)
        else:
            with workers.Workers(1, []) as this:
                this.run(tasks, total.update)
        assert total == {"sum": number * (number - 1)}
    assert [path.name for path in one.iterdir()] == [str(os.getpid())]
    names = {path.name for path in two.iterdir()}
    assert len(names) == 2
    assert str(os.getpid()) not in names


def test_no_tasks(pool, total):
    pool.run([], total.update)
    assert not total


@pytest.mark.parametrize(
    "error", [InputError("bad line 7"), FileNotFoundError(2, "none", "x")]
)
def test_error_of_a_task(pool, total, error):
    with pytest.raises(type(error), match=str(error)[-6:].strip("'")):
        pool.run([functools.partial(fail, error)], total.update)


def broadcast():
    np.ones(2) + np.ones(3)
    yield {}


def test_bug_in_a_task_is_no_mistake_of_the_user(pool, total):
    with pytest.raises(ValueError, match="could not be broadcast") as caught:
        pool.run([broadcast], total.update)
    assert not isinstance(caught.value, InputError)
    assert "in broadcast" in str(caught.value.__cause__), "the worker's lines"


@pytest.mark.slow
def test_killed_worker_is_told(total):
    with (
        pytest.raises(RuntimeError, match="A worker process was killed"),
        workers.Workers(2, ["tests.pretraining_data.test_workers"]) as pool,
    ):
        pool.run([die], total.update)


_PARENT = """
import functools, pathlib, sys, time
from bert_tf.pretraining_data import workers
from tests.pretraining_data import test_workers
if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    tasks = [functools.partial(test_workers.count, 1, path)] * 2000
    with workers.Workers(2, []) as pool:
        pool.run(tasks, lambda counts: None)
"""


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(tmp_path):
    script, pids = tmp_path / "parent.py", tmp_path / "pids"
    script.write_text(_PARENT)
    pids.mkdir()
    path = os.pathsep.join(filter(None, sys.path))
    parent = subprocess.Popen(
        [sys.executable, script, pids], env={**os.environ, "PYTHONPATH": path}
    )
    processes.wait_for(lambda: len(list(pids.iterdir())) == 2, parent)
    parent.kill()
    parent.wait(60)
    processes.wait_for(
        lambda: not any(is_running(int(p.name)) for p in pids.iterdir())
    )


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
