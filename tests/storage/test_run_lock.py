"""One process in a folder, by real processes and real locks."""

import contextlib
import dataclasses
import errno
import fcntl
import functools
import json
import logging
import os
import re
import signal
import socket
import textwrap
import threading
import time

from bert_tf.storage import file_systems, lock_file, run_lock
from bert_tf.storage.lock_file import Holder
from tests import processes, small_disks

import pytest
import tensorflow as tf
from absl import logging as absl_logging

# As on a disk that knows no locks.
_NO_LOCKS = """
    import errno, fcntl
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")
    fcntl.flock = flock
"""


@pytest.fixture(autouse=True)
def _log(caplog):
    caplog.set_level(logging.INFO)
    # absl's own level stands before Python's.
    absl_logging.set_verbosity(absl_logging.INFO)


_HOLD = """
    import sys, time
    from bert_tf.storage import run_lock
    times = dict(zip(("renew", "lease", "settle"), map(float, sys.argv[2:])))
    lock = run_lock.hold(sys.argv[1], what="trains", **times)
    print("held", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def _holding(folder, *times, before=""):
    """A process that holds the lock."""
    text = textwrap.dedent(before) + textwrap.dedent(_HOLD)
    process = processes.start(text, folder, *times)
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _elsewhere(**values):
    """A process on another machine."""
    here = Holder.here("trains")
    return dataclasses.replace(here, host="far", boot="its own", **values)


def _named(folder):
    """Whom the file names."""
    holder = lock_file.holder(f"{folder}/lock")
    assert holder is not None
    return holder


def _leave(folder, holder, age=0.0):
    """Leaves the file of a holder, renewed so many seconds ago."""
    path = folder / "lock"
    path.write_bytes(holder.encode(0))
    then = time.time() - age
    os.utime(path, (then, then))
    return path


# ---- Two at once ------------------------------------------------------------

# Forks pairs of processes, each of which takes the lock at a random distance
# from the other, and of which never two may be within.
_PAIRS = """
    import os, random, sys, time
    from bert_tf.storage import run_lock
    folder, rounds, settle = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    inside = f"{folder}/inside"

    def work(delay):
        time.sleep(delay)
        try:
            lock = run_lock.hold(folder, settle=settle)
        except run_lock.HeldError as error:
            assert "is in use" in str(error), error
            return 10
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
        time.sleep(random.random() * 0.04)
        os.remove(inside)
        lock.release()
        return 20

    for number in range(rounds):
        random.seed(number)
        children = []
        for delay in (0, random.random() * (0.04 + settle)):
            child = os.fork()
            if not child:
                try:
                    os._exit(work(delay))
                except BaseException as error:
                    print(repr(error), flush=True)
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        codes = [os.waitstatus_to_exitcode(status) for status in statuses]
        assert set(codes) <= {10, 20} and 20 in codes, codes
        assert not os.listdir(folder)
        print(*sorted(codes))
"""


def test_two_at_once_are_never_both_within(tmp_path):
    code, output, errors = processes.run(_PAIRS, tmp_path, 20, 0)
    assert code == 0, output + errors
    rounds = output.splitlines()
    # Some came while the other held it, some after.
    assert len(rounds) == 20
    assert set(rounds) == {"10 20", "20 20"}


def test_two_at_once_without_locks_of_files(tmp_path):
    text = textwrap.dedent(_NO_LOCKS) + textwrap.dedent(_PAIRS)
    code, output, errors = processes.run(text, tmp_path, 8, 0.15)
    assert code == 0, output + errors
    assert len(output.splitlines()) == 8


# ---- One that runs ----------------------------------------------------------


@pytest.mark.parametrize("before", ["", _NO_LOCKS], ids=["locks", "no locks"])
def test_a_running_holder_is_named_in_one_line(
    tmp_path, monkeypatch, caplog, before
):
    if before:
        monkeypatch.setattr(fcntl, "flock", _no_locks)
    folder = tmp_path / "run"
    with _holding(folder, 10, 45, 0.1, before=before) as process:
        began = time.monotonic()
        with pytest.raises(run_lock.HeldError) as refused:
            run_lock.hold(folder)
        assert time.monotonic() - began < 1
        assert re.fullmatch(
            rf"{folder} is in use: process {process.pid} on host "
            rf"{socket.gethostname()} trains there since "
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Wait for its end, end it, or "
            r"choose another folder\.",
            str(refused.value),
        )
        assert not caplog.text
        written = json.loads((folder / "lock").read_text())
        assert written["process"] == process.pid
        assert written["command"] == "-c"


def _no_locks(*_):
    raise OSError(errno.ENOLCK, "No locks available")


def test_twice_in_one_process(tmp_path):
    message = rf"in use: this process, {os.getpid()}, works there since"
    with (
        run_lock.hold(tmp_path / "a"),
        run_lock.hold(tmp_path / "b"),
        pytest.raises(run_lock.HeldError, match=message),
    ):
        run_lock.hold(tmp_path / "a")
    with run_lock.hold(tmp_path / "a"):
        assert os.listdir(tmp_path / "a") == ["lock"]


def test_other_names_are_other_locks(tmp_path):
    with (
        run_lock.hold(tmp_path, "a.lock", of="the file a"),
        run_lock.hold(tmp_path, "b.lock"),
        pytest.raises(run_lock.HeldError, match=r"^the file a is in use: "),
    ):
        run_lock.hold(tmp_path, "a.lock", of="the file a")


# ---- The end ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("lock.release()", 0),
        ("lock.release(); lock.release()", 0),
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise KeyError", 1),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", -signal.SIGINT),
        # The lock is the parent's.
        ("os.fork() or sys.exit(0); os.wait(); assert os.listdir(folder)", 0),
    ],
)
def test_nothing_is_left(tmp_path, end, code):
    text = f"""
        import os, signal, sys, time
        from bert_tf.storage import run_lock
        signal.signal(signal.SIGINT, signal.default_int_handler)
        folder = sys.argv[1]
        lock = run_lock.hold(folder)
        assert os.listdir(folder) == ["lock"]
        {end}
    """
    got, _, errors = processes.run(text, tmp_path)
    assert got == code, errors
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_is_not_removed(tmp_path):
    lock = run_lock.hold(tmp_path)
    path = _leave(tmp_path, _elsewhere())
    lock.release()
    assert path.exists()


# ---- Killed holders ---------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("before", ["", _NO_LOCKS], ids=["locks", "no locks"])
def test_a_killed_holder_is_replaced_at_once(
    tmp_path, monkeypatch, caplog, before, number
):
    if before:
        monkeypatch.setattr(fcntl, "flock", _no_locks)
    with _holding(tmp_path, 10, 45, 0.1, before=before) as process:
        # It is not waited for: to the system it is there still.
        process.send_signal(number)
        while _named(tmp_path).runs:
            time.sleep(0.01)
        began = time.monotonic()
        with run_lock.hold(tmp_path, settle=0.1):
            assert time.monotonic() - began < 1
    assert re.search(
        rf"Process {process.pid} on host {socket.gethostname()}, which held "
        rf"{tmp_path} since .*, is gone: going on in its place\.",
        caplog.text,
    )
    assert not list(tmp_path.iterdir())


# Kills a process that takes and gives back the lock, wherever it is.
_KILLED = """
    import os, random, signal, sys, time
    from bert_tf.storage import run_lock
    for number in range(15):
        random.seed(number)
        child = os.fork()
        if not child:
            while True:
                run_lock.hold(sys.argv[1]).release()
        time.sleep(random.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with run_lock.hold(sys.argv[1]):
            assert os.listdir(sys.argv[1]) == ["lock"]
        assert not os.listdir(sys.argv[1])
"""


def test_killed_anywhere(tmp_path):
    code, output, errors = processes.run(_KILLED, tmp_path)
    assert code == 0, output + errors


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_number_that_came_again_is_another_process(
    tmp_path, monkeypatch, has_locks
):
    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", _no_locks)
    ours = Holder.here("trains")
    assert ours.runs
    if ours.started is None:
        pytest.skip("this system does not tell when a process started")
    _leave(tmp_path, dataclasses.replace(ours, started=ours.started - 1))
    with run_lock.hold(tmp_path, settle=0.1):
        pass
    assert not list(tmp_path.iterdir())


def test_a_copied_folder_is_free(tmp_path, caplog):
    # Its file names a process that runs, and has locked another file.
    _leave(tmp_path, Holder.here("trains"))
    with run_lock.hold(tmp_path):
        assert "has let go of it: going on in its place" in caplog.text


@pytest.mark.parametrize("has_locks", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"null", b"[1]", b'{"host": "a"}', b"\xff" * 3000),
        Holder.here("trains").encode(0)[:200],
    ],
)
def test_a_file_that_names_nobody_is_replaced(
    tmp_path, monkeypatch, data, has_locks
):
    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", _no_locks)
    (tmp_path / "lock").write_bytes(data)
    with run_lock.hold(tmp_path, settle=0.05):
        assert _named(tmp_path).process == os.getpid()
    assert not list(tmp_path.iterdir())


def test_one_that_has_not_written_its_name_yet_is_not_replaced(tmp_path):
    descriptor = file_systems.lock(str(tmp_path / "lock"))
    message = f"{tmp_path} is in use by another process. Wait"
    with pytest.raises(run_lock.HeldError, match=message):
        run_lock.hold(tmp_path)
    assert descriptor is not None
    file_systems.unlock(descriptor)


# Its child has the lock, and ends when there is a file `end`.
_PARENT = """
    import subprocess, sys, time
    from bert_tf.storage import run_lock
    lock = run_lock.hold(sys.argv[1])
    code = "import os, sys, time\\n"
    code += "while not os.path.exists(sys.argv[1] + '/end'): time.sleep(0.01)"
    subprocess.Popen(
        [sys.executable, "-c", code, sys.argv[1]],
        pass_fds=lock.pass_fds,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_child_of_a_killed_holder_is_waited_for(tmp_path, caplog):
    parent = processes.start(_PARENT, tmp_path)
    assert parent.stdout.readline() == "held\n"
    parent.kill()
    parent.communicate()
    locks: list[run_lock.Lock] = []
    waits = threading.Thread(
        target=lambda: locks.append(run_lock.hold(tmp_path))
    )
    waits.start()
    told = "Waiting: the last run of a command that was killed still works in"
    while told not in caplog.text:
        assert waits.is_alive()
        time.sleep(0.01)
    assert not locks
    (tmp_path / "end").touch()
    waits.join(10)
    assert f"Process {parent.pid} on host" in caplog.text
    locks[0].release()
    assert os.listdir(tmp_path) == ["end"]


# ---- Other machines ---------------------------------------------------------


@contextlib.contextmanager
def _renewing(path, every, holder=None):
    """Another machine, which renews its lock; as a bucket's with a holder."""
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


def test_one_that_renews_elsewhere_is_refused_when_it_is_seen(tmp_path, caplog):
    path = _leave(tmp_path, _elsewhere(process=12))
    message = "in use: process 12 on host far trains there since"
    with (
        _renewing(path, 0.3),
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
    _leave(tmp_path, _elsewhere(process=12))
    began = time.monotonic()
    with run_lock.hold(tmp_path, lease=0.5):
        assert 0.5 <= time.monotonic() - began < 3
    assert "has not been heard of for 0 seconds: going on" in caplog.text


def test_one_that_was_silent_for_a_lease_is_replaced_at_once(tmp_path, caplog):
    _leave(tmp_path, _elsewhere(), age=60)
    began = time.monotonic()
    with run_lock.hold(tmp_path):
        assert time.monotonic() - began < 1
    assert "has not been heard of for 45 seconds: going on" in caplog.text
    assert "waiting" not in caplog.text


def test_the_clock_of_this_machine_does_not_count(tmp_path, monkeypatch):
    # Its own is an hour ahead of the file system's.
    _leave(tmp_path, _elsewhere(), age=60)
    ahead = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: ahead)
    with run_lock.hold(tmp_path):
        pass
    path = _leave(tmp_path, _elsewhere(), age=3600)
    os.utime(path)
    with _renewing(path, 0.1), pytest.raises(run_lock.HeldError):
        run_lock.hold(tmp_path, lease=5)


def test_one_that_releases_elsewhere_is_followed(tmp_path):
    path = _leave(tmp_path, _elsewhere())
    released = threading.Timer(0.3, path.unlink)
    released.start()
    began = time.monotonic()
    with run_lock.hold(tmp_path, lease=20):
        assert time.monotonic() - began < 10
        assert _named(tmp_path).process == os.getpid()
    released.join()
    assert not list(tmp_path.iterdir())


def test_after_a_restart_of_the_machine_the_lease_decides(tmp_path):
    before = dataclasses.replace(Holder.here("trains"), boot="the one before")
    path = _leave(tmp_path, before)
    with _renewing(path, 0.1), pytest.raises(run_lock.HeldError):
        run_lock.hold(tmp_path, lease=5)
    _leave(tmp_path, before, age=60)
    with run_lock.hold(tmp_path):
        pass


def test_a_container_with_another_name_is_of_this_machine(tmp_path):
    other = dataclasses.replace(
        Holder.here("trains"), host="a container", numbers="its own", process=1
    )
    assert other.runs is None
    _leave(tmp_path, other)
    with run_lock.hold(tmp_path):  # The lock of the file tells.
        pass


# ---- Losing it --------------------------------------------------------------


def test_who_finds_another_in_its_lock_ends(tmp_path):
    with _holding(tmp_path, 0.1, 0.5, 0) as process:
        _leave(tmp_path, _elsewhere(process=12))
        _, errors = process.communicate(timeout=10)
        assert process.returncode == 1
        assert errors.splitlines()[-1] == (
            f"error: The lock of {tmp_path} is lost: process 12 on host far "
            "has taken it over. This process ends at once, to write nothing "
            "into the run of another."
        )
    assert _named(tmp_path).process == 12


@pytest.mark.parametrize("before", ["", _NO_LOCKS], ids=["locks", "no locks"])
def test_who_can_not_renew_its_lock_ends(tmp_path, before):
    folder = tmp_path / "run"
    with _holding(folder, 0.1, 0.6, 0, before=before) as process:
        began = time.monotonic()
        folder.rename(tmp_path / "moved")
        _, errors = process.communicate(timeout=10)
        assert 0.4 < time.monotonic() - began < 3
        assert process.returncode == 1
        said = f"\nerror: The lock of {folder} is lost: {folder}/lock can't be "
        assert said in f"\n{errors}"
        assert errors.count("error: ") == 1


# As of a bucket that takes what it is sent, and never answers.
_HANGS = (
    _NO_LOCKS
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


def test_who_gets_no_answer_ends(tmp_path):
    with _holding(tmp_path, 0.1, 0.6, 0, before=_HANGS) as process:
        _, errors = process.communicate(timeout=10)
        assert process.returncode == 1
        assert "can't be renewed: there is no answer." in errors


def test_who_was_stopped_goes_on(tmp_path):
    with _holding(tmp_path, 0.1, 0.5, 0) as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        assert process.poll() is None


@pytest.mark.parametrize("data", [None, b"", b"not ours"])
def test_a_file_that_somebody_removed_is_made_again(tmp_path, data):
    path = tmp_path / "lock"
    with _holding(tmp_path, 0.05, 5, 0) as process:
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
        while (holder := lock_file.holder(str(path))) is None:
            time.sleep(0.01)
        assert holder.process == process.pid
        with pytest.raises(run_lock.HeldError):
            run_lock.hold(tmp_path)
        assert process.poll() is None


def test_a_removed_file_that_another_has_made_is_lost(tmp_path):
    with _holding(tmp_path, 0.3, 5, 0.3) as process:
        (tmp_path / "lock").unlink()
        with run_lock.hold(tmp_path):
            _, errors = process.communicate(timeout=10)
            assert process.returncode == 1
            assert f"process {os.getpid()} on host" in errors


# ---- Buckets ----------------------------------------------------------------

# An address of TensorFlow's file systems is as a bucket: it has no locks. That
# of a folder is one too.


def test_in_a_bucket_it_is_a_lease(tmp_path, caplog):
    folder = f"file://{tmp_path}/run"
    hold = functools.partial(run_lock.hold, renew=0.1, lease=1, settle=0.1)
    with hold(folder) as lock:
        assert not lock.pass_fds
        first = lock_file.read(f"{folder}/lock")
        while lock_file.read(f"{folder}/lock") == first:
            time.sleep(0.01)
        with pytest.raises(run_lock.HeldError, match="in use: this process"):
            run_lock.hold(folder)
    assert not tf.io.gfile.exists(f"{folder}/lock")
    other = _elsewhere(process=12)
    lock_file.write(f"{folder}/lock", other.encode(0))
    with (
        _renewing(f"{folder}/lock", 0.1, other),
        pytest.raises(run_lock.HeldError, match="process 12 on host far"),
    ):
        hold(folder)
    with hold(folder):
        assert "has not been heard of for 1 seconds" in caplog.text
        assert _named(folder).process == os.getpid()


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

        threads = [
            threading.Thread(target=hold, args=(delay,))
            for delay in (0, 0.01 * number)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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
    text = textwrap.dedent(_NO_LOCKS) + textwrap.dedent(text)
    code, _, errors = processes.run(text, tmp_path)
    assert code == -signal.SIGINT, errors
    assert not list(tmp_path.iterdir())


def test_what_a_bucket_does_not_keep_is_no_lock():
    # This file system appends where it should replace.
    folder = "ram://bucket/run"
    tf.io.gfile.makedirs(folder)
    lock_file.write(f"{folder}/lock", b"nobody")
    with pytest.raises(OSError, match="does not stay as it was"):
        run_lock.hold(folder, settle=0.01)


def test_the_age_in_a_bucket_is_its_own(tmp_path):
    folder = tmp_path / "run"
    with run_lock.hold(f"file://{folder}", settle=0.05):
        assert os.listdir(folder) == ["lock"]
    assert not list(folder.iterdir())
    _leave(folder, _elsewhere(), age=60)
    began = time.monotonic()
    with run_lock.hold(f"file://{folder}", settle=0.05):
        assert time.monotonic() - began < 5
    assert not list(folder.iterdir())


# ---- Disks ------------------------------------------------------------------


def test_a_folder_that_may_not_be_written_to(tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64, read_only=True) as folder:
        message = (
            f"^{folder} can't be worked in: its file lock, which keeps other "
            r"processes out, can't be written \(Read-only file system\)\. "
            r"Choose another folder\.$"
        )
        with pytest.raises(OSError, match=message):
            run_lock.hold(folder)


def test_a_folder_of_another_user(tmp_path):
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("root may write everywhere")
    with pytest.raises(PermissionError, match=f"^{tmp_path} can't be worked"):
        run_lock.hold(tmp_path)
    tmp_path.chmod(0o700)


def test_a_full_disk(tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64) as folder:
        with pytest.raises(OSError), open(folder / "much", "wb", 0) as file:
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(OSError, match="No space left on device") as error:
            run_lock.hold(folder)
        assert error.value.errno == errno.ENOSPC
        assert os.listdir(folder) == ["much"]
        # One that is held is renewed without room.
        (folder / "much").unlink()
        with run_lock.hold(folder, renew=0.05, lease=0.2, settle=0):
            with pytest.raises(OSError), open(folder / "much", "wb", 0) as file:
                while True:
                    file.write(b"x" * 4096)
            time.sleep(0.5)
            assert lock_file.age(str(folder / "lock")) < 0.2


def test_no_parents(tmp_path):
    with run_lock.hold(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / "lock").exists()


def test_it_starts_fast():
    code = (
        "import time; t = time.process_time(); "
        "import bert_tf.storage.run_lock; "
        "import sys; assert 'tensorflow' not in sys.modules; "
        "print(time.process_time() - t)"
    )
    assert min(float(processes.run(code)[1]) for _ in range(3)) < 0.15
