"""Locks of folders held by other processes, or left behind by them."""

import contextlib
import dataclasses
import errno
import os
import textwrap
import threading
import time

from bert_tf.storage import lock_file
from bert_tf.storage.lock_file import Holder
from tests import processes

# Simulates a disk that does not support locks.
NO_LOCKS = """
    import fcntl
    from tests import held_locks
    fcntl.flock = held_locks.no_locks
"""
_HOLD = """
    import sys, time
    from bert_tf.storage import run_lock
    times = dict(zip(("renew", "lease", "settle"), map(float, sys.argv[2:])))
    lock = run_lock.hold(sys.argv[1], what="trains", **times)
    print("held", flush=True)
    time.sleep(60)
"""


def no_locks(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@contextlib.contextmanager
def holding(folder, *times, before=""):
    """Runs a process that holds the lock."""
    text = textwrap.dedent(before) + textwrap.dedent(_HOLD)
    process = processes.start(text, folder, *times)
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def elsewhere(**values):
    """Returns the holder for a process on another machine."""
    here = Holder.here("trains")
    return dataclasses.replace(here, host="far", boot="its own", **values)


@contextlib.contextmanager
def renewing(path, every, holder=None):
    """Simulates another machine that renews its lock; in a bucket, a holder."""
    ended = threading.Event()

    def renew():
        count = 0
        while not ended.wait(every):
            count += 1
            if holder:
                lock_file.write(str(path), holder.encode(count))
            else:
                os.utime(path)

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def gone():
    """A process of this machine that runs no more."""
    return dataclasses.replace(Holder.here("trains"), process=1 << 30)


def named(folder):
    """Returns the holder that the file names."""
    holder = lock_file.read_holder(f"{folder}/lock")
    assert holder is not None
    return holder


def wait_for_renewals(folder, count, process=None):
    """Waits until the lock's file has been renewed that often."""
    path = folder / "lock"
    for _ in range(count):
        before = path.stat().st_mtime_ns
        processes.wait_for(
            lambda before=before: path.stat().st_mtime_ns != before, process
        )


def leave(folder, holder, age=0.0):
    """Leaves the file of a holder, last renewed `age` seconds ago."""
    path = folder / "lock"
    path.write_bytes(holder.encode(0))
    then = time.time() - age
    os.utime(path, (then, then))
    return path
