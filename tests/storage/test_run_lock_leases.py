"""Locks that must be renewed: other machines', lost ones, and in buckets."""

import dataclasses
import functools
import logging
import os
import re
import signal
import textwrap
import threading
import time

from bert_tf.storage import lock_file, run_lock
from bert_tf.storage.lock_file import Holder
from tests import held_locks, processes

import pytest
import tensorflow as tf
from absl import logging as absl_logging


@pytest.fixture(autouse=True)
def _log(caplog):
    caplog.set_level(logging.INFO, "absl")
    # absl's own level is checked before Python's.
    absl_logging.set_verbosity(absl_logging.INFO)


def test_one_that_renews_elsewhere_is_refused_when_it_is_seen(tmp_path, caplog):
    path = held_locks.leave(tmp_path, held_locks.elsewhere(process=12))
    message = "in use: process 12 on host far trains there since"
    with (
        held_locks.renewing(path, 0.3),
        pytest.raises(run_lock.HeldError, match=message),
    ):
        run_lock.hold(tmp_path, lease=5)
    assert re.search(
        rf"Process 12 on host far, which holds {tmp_path} since .*, may have "
        "ended: waiting for at most 5 seconds to see whether it renews",
        caplog.text,
    )
    assert path.exists()
    assert not (tmp_path / "lock.probe").exists()


def test_one_that_is_silent_for_a_lease_is_replaced(tmp_path, caplog):
    held_locks.leave(tmp_path, held_locks.elsewhere(process=12))
    began = time.monotonic()
    with run_lock.hold(tmp_path, lease=0.5):
        assert time.monotonic() - began >= 0.5
    assert "has not renewed its lock for 0 seconds: taking over" in caplog.text
    # Immediately if it was silent before.
    caplog.clear()
    held_locks.leave(tmp_path, held_locks.elsewhere(), age=60)
    with run_lock.hold(tmp_path):
        pass
    assert "has not renewed its lock for 45 seconds: taking over" in caplog.text
    assert "waiting" not in caplog.text


def test_the_clock_of_this_machine_does_not_count(tmp_path, monkeypatch):
    # Its clock is an hour ahead of the file system's.
    held_locks.leave(tmp_path, held_locks.elsewhere(), age=60)
    ahead = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: ahead)
    with run_lock.hold(tmp_path):
        pass
    path = held_locks.leave(tmp_path, held_locks.elsewhere(), age=3600)
    os.utime(path)
    with held_locks.renewing(path, 0.1), pytest.raises(run_lock.HeldError):
        run_lock.hold(tmp_path, lease=5)


@pytest.mark.slow
def test_one_that_releases_elsewhere_is_followed(tmp_path):
    path = held_locks.leave(tmp_path, held_locks.elsewhere())
    released = threading.Timer(0.3, path.unlink)
    released.start()
    with run_lock.hold(tmp_path, lease=10**6):
        assert held_locks.named(tmp_path).process == os.getpid()
    released.join()
    assert not list(tmp_path.iterdir())


def test_after_a_restart_of_the_machine_the_lease_decides(tmp_path):
    before = dataclasses.replace(Holder.here("trains"), boot="the one before")
    path = held_locks.leave(tmp_path, before)
    with held_locks.renewing(path, 0.1), pytest.raises(run_lock.HeldError):
        run_lock.hold(tmp_path, lease=5)
    held_locks.leave(tmp_path, before, age=60)
    with run_lock.hold(tmp_path):
        pass


def test_a_container_with_another_name_is_of_this_machine(tmp_path):
    other = dataclasses.replace(
        Holder.here("trains"), host="a container", numbers="its own", process=1
    )
    assert other.runs is None
    held_locks.leave(tmp_path, other)
    with run_lock.hold(tmp_path):  # The file lock decides.
        pass


def test_who_finds_another_in_its_lock_ends(tmp_path):
    with held_locks.holding(tmp_path, 0.1, 0.5, 0) as process:
        held_locks.leave(tmp_path, held_locks.elsewhere(process=12))
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert errors.splitlines()[-1] == (
            f"error: The lock of {tmp_path} is lost: process 12 on host far "
            "has taken it over. This process ends at once, to write nothing "
            "into the run of another."
        )
    assert held_locks.named(tmp_path).process == 12


@pytest.mark.parametrize(
    ("before", "problem"),
    [
        ("", "the folder was removed, moved or replaced"),
        # Without file locks it tries to get a lease.
        (held_locks.NO_LOCKS, "{folder}/lock can't be "),
    ],
    ids=["locks", "no locks"],
)
def test_who_can_not_renew_its_lock_ends(tmp_path, before, problem):
    folder = tmp_path / "run"
    with held_locks.holding(folder, 0.1, 0.6, 0, before=before) as process:
        folder.rename(tmp_path / "moved")
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        said = f"\nerror: The lock of {folder} is lost: "
        assert said + problem.format(folder=folder) in f"\n{errors}"
        assert errors.count("error: ") == 1


# Simulates a bucket that accepts requests and never answers.
_HANGS = (
    held_locks.NO_LOCKS
    + """
    import threading
    from bert_tf.storage import lock_file
    write = lock_file.write
    def hang(path, data):
        if b'"renewals": 2' in data:
            threading.Event().wait()
        write(path, data)
    lock_file.write = hang
"""
)


@pytest.mark.slow
def test_who_gets_no_answer_ends(tmp_path):
    with held_locks.holding(tmp_path, 0.1, 0.6, 0, before=_HANGS) as process:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "can't be renewed: there is no answer." in errors


@pytest.mark.slow
def test_who_was_stopped_goes_on(tmp_path):
    path = tmp_path / "lock"
    with held_locks.holding(tmp_path, 0.1, 0.5, 0) as process:
        process.send_signal(signal.SIGSTOP)
        processes.wait_for(lambda: lock_file.age(str(path)) >= 1)
        process.send_signal(signal.SIGCONT)
        held_locks.wait_for_renewals(tmp_path, 3, process)


@pytest.mark.parametrize("data", [None, b"", b"not ours"])
def test_a_file_that_somebody_removed_is_made_again(tmp_path, data):
    path = tmp_path / "lock"
    with held_locks.holding(tmp_path, 0.05, 5, 0) as process:
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
        holder = processes.wait_for(lambda: lock_file.read_holder(str(path)))
        assert holder.process == process.pid
        with pytest.raises(run_lock.HeldError):
            run_lock.hold(tmp_path)
        assert process.poll() is None


@pytest.mark.slow
def test_a_removed_file_that_another_has_made_is_lost(tmp_path):
    # It renews so rarely that the other is faster.
    with held_locks.holding(tmp_path, 2, 10, 0.3) as process:
        (tmp_path / "lock").unlink()
        with run_lock.hold(tmp_path):
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 1
            assert f"process {os.getpid()} on host" in errors


# Addresses of TensorFlow's file systems have no locks, like a bucket's; here a
# folder gets such an address.


@pytest.mark.slow
def test_in_a_bucket_it_is_a_lease(tmp_path, caplog):
    folder = f"file://{tmp_path}/run"
    hold = functools.partial(run_lock.hold, renew=0.1, lease=1, settle=0.1)
    with hold(folder) as lock:
        assert not lock.pass_fds
        first = lock_file.read(f"{folder}/lock")
        processes.wait_for(lambda: lock_file.read(f"{folder}/lock") != first)
        with pytest.raises(run_lock.HeldError, match="in use: this process"):
            run_lock.hold(folder)
    assert not tf.io.gfile.exists(f"{folder}/lock")
    other = held_locks.elsewhere(process=12)
    lock_file.write(f"{folder}/lock", other.encode(0))
    with (
        held_locks.renewing(f"{folder}/lock", 0.1, other),
        pytest.raises(run_lock.HeldError, match="process 12 on host far"),
    ):
        hold(folder)
    with hold(folder):
        assert "has not renewed its lock for 1 seconds" in caplog.text
        assert held_locks.named(folder).process == os.getpid()


@pytest.mark.slow
def test_of_two_at_once_in_a_bucket_one_gets_it(tmp_path):
    folder = f"file://{tmp_path}/run"
    for number in range(5):
        got: list[run_lock.Lock | run_lock.HeldError] = []

        def hold(delay, folder=f"{folder}{number}", got=got):
            time.sleep(delay)
            try:
                got.append(run_lock.hold(folder, settle=0.2))
            except run_lock.HeldError as error:
                got.append(error)

        delayed = threading.Thread(target=hold, args=(0.01 * number,))
        delayed.start()
        hold(0)
        delayed.join()
        locks = [x for x in got if isinstance(x, run_lock.Lock)]
        assert len(got) == 2
        assert len(locks) == 1
        locks[0].release()


def test_who_is_interrupted_while_it_takes_it_leaves_nothing(tmp_path):
    text = """
        import os, signal, sys, threading
        from bert_tf.storage import run_lock
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.3, interrupt).start()
        run_lock.hold(sys.argv[1], settle=30)
    """
    text = textwrap.dedent(held_locks.NO_LOCKS) + textwrap.dedent(text)
    code, _, errors = processes.run(text, tmp_path)
    assert code == -signal.SIGINT, errors
    assert not list(tmp_path.iterdir())


def test_what_a_bucket_does_not_keep_is_no_lock():
    # This file system appends when it should replace.
    folder = "ram://bucket/run"
    tf.io.gfile.makedirs(folder)
    lock_file.write(f"{folder}/lock", b"nobody")
    with pytest.raises(OSError, match="does not stay as it was"):
        run_lock.hold(folder, settle=0.01)


def test_the_age_in_a_bucket_is_its_own(tmp_path, caplog):
    folder = tmp_path / "run"
    with run_lock.hold(f"file://{folder}", settle=0.05):
        assert os.listdir(folder) == ["lock"]
    assert not list(folder.iterdir())
    held_locks.leave(folder, held_locks.elsewhere(), age=600)
    with run_lock.hold(f"file://{folder}", settle=0.05):
        pass
    assert "waiting" not in caplog.text
    assert not list(folder.iterdir())


def test_a_bucket_may_be_away_as_long_as_tensorflow_tries_again(tmp_path):
    tries = sum(min(2**number, 32) for number in range(10))  # in seconds
    with run_lock.hold(f"file://{tmp_path}/run", settle=0.01) as lock:
        assert lock._patience_seconds > tries
