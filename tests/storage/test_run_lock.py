"""One process per folder, tested with real processes, locks and disks."""

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

from bert_tf.storage import file_systems, run_lock
from bert_tf.storage.lock_file import Holder
from tests import held_locks, processes, small_disks

import pytest
from absl import logging as absl_logging


@pytest.fixture(autouse=True)
def _log(caplog):
    caplog.set_level(logging.INFO, "absl")
    # absl's own level is checked before Python's.
    absl_logging.set_verbosity(absl_logging.INFO)


_PAIRS = """
    import os, random, sys, time
    from bert_tf.storage import run_lock
    from tests import processes
    folder, rounds, settle = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    inside = f"{folder}/inside"

    def work(number):
        try:
            lock = run_lock.hold(folder, settle=settle)
        except run_lock.HeldError as error:
            assert "is in use" in str(error), error
            return False
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
        time.sleep(random.random() * 0.04)
        os.remove(inside)
        lock.release()
        return True

    def check():
        assert not os.listdir(folder)
    processes.race(rounds, 0.04 + settle, work, check)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "rounds", "settle"),
    [("", 20, 0), (held_locks.NO_LOCKS, 8, 0.15)],
    ids=["locks", "no locks"],
)
def test_two_at_once_are_never_both_within(tmp_path, before, rounds, settle):
    text = textwrap.dedent(before) + textwrap.dedent(_PAIRS)
    code, output, errors = processes.run(text, tmp_path, rounds, settle)
    assert code == 0, output + errors


@pytest.fixture(params=["", held_locks.NO_LOCKS], ids=["locks", "no locks"])
def before(request, monkeypatch):
    """Runs with and without file locks, here and in child processes."""
    if request.param:
        monkeypatch.setattr(fcntl, "flock", held_locks.no_locks)
    return request.param


def test_a_running_holder_is_named_in_one_line(tmp_path, caplog, before):
    folder = tmp_path / "run"
    with held_locks.holding(folder, 10, 45, 0.1, before=before) as process:
        with pytest.raises(run_lock.HeldError) as refused:
            run_lock.hold(folder)
        assert re.fullmatch(
            rf"{folder} is in use: process {process.pid} on host "
            rf"{socket.gethostname()} trains there since "
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Wait for its end, end it, or "
            r"choose another folder\.",
            str(refused.value),
        )
        assert not caplog.text, "it is not waited for"
        written = json.loads((folder / "lock").read_text())
        assert written["process"] == process.pid
        assert written["command"] == "-c"


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
    with run_lock.hold(tmp_path / "a"):
        path = held_locks.leave(tmp_path / "a", held_locks.elsewhere())
    assert path.exists(), "it is another's"
    with (
        run_lock.hold(tmp_path, "a.lock", of="the file a"),
        run_lock.hold(tmp_path, "b.lock"),
        pytest.raises(run_lock.HeldError, match=r"^the file a is in use: "),
    ):
        run_lock.hold(tmp_path, "a.lock", of="the file a")


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("lock.release(); lock.release()", 0),
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise KeyError", 1),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", -signal.SIGINT),
        # The lock belongs to the parent.
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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_is_replaced_at_once(tmp_path, caplog, before, number):
    with held_locks.holding(tmp_path, 10, 45, 0.1, before=before) as process:
        # The child is not waited for: to the system it still exists.
        process.send_signal(number)
        processes.wait_for(lambda: not held_locks.named(tmp_path).runs)
        with run_lock.hold(tmp_path, settle=0.1):
            pass
    assert "waiting" not in caplog.text
    assert re.search(
        rf"Process {process.pid} on host {socket.gethostname()}, which held "
        rf"{tmp_path} since .*, is gone: taking over\.",
        caplog.text,
    )
    assert not list(tmp_path.iterdir())


# Kills a process that takes and releases the lock, at a random moment.
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


@pytest.mark.usefixtures("before")
def test_a_number_that_came_again_is_another_process(tmp_path):
    ours = Holder.here("trains")
    assert ours.runs
    if ours.started is None:
        pytest.skip("this system does not tell when a process started")
    earlier = dataclasses.replace(ours, started=ours.started - 1)
    held_locks.leave(tmp_path, earlier)
    with run_lock.hold(tmp_path, settle=0.1):
        pass
    assert not list(tmp_path.iterdir())


def test_a_copied_folder_is_free(tmp_path, caplog):
    # The lock file names a live process, which has locked another file.
    held_locks.leave(tmp_path, Holder.here("trains"))
    with run_lock.hold(tmp_path):
        assert "has let go of it: taking over" in caplog.text


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"null", b"[1]", b'{"host": "a"}', b"\xff" * 3000),
        Holder.here("trains").encode(0)[:200],
    ],
)
def test_a_file_that_names_nobody_is_replaced(tmp_path, data):
    (tmp_path / "lock").write_bytes(data)
    with run_lock.hold(tmp_path, settle=0.05):
        assert held_locks.named(tmp_path).process == os.getpid()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_one_that_has_not_written_its_name_yet_is_not_replaced(tmp_path):
    descriptor = file_systems.lock(str(tmp_path / "lock"))
    message = f"{tmp_path} is in use by another process. Wait"
    with pytest.raises(run_lock.HeldError, match=message):
        run_lock.hold(tmp_path)
    assert descriptor is not None
    file_systems.unlock(descriptor)


# Its child has the lock, and ends once there is a file `end`.
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


@pytest.mark.slow
def test_the_child_of_a_killed_holder_is_waited_for(tmp_path, caplog):
    parent = processes.start(_PARENT, tmp_path)
    assert parent.stdout.readline() == "held\n"
    parent.kill()
    parent.communicate()
    locks: list[run_lock.Lock] = []
    hold = functools.partial(run_lock.hold, tmp_path)
    waits = threading.Thread(target=lambda: locks.append(hold()))
    waits.start()
    told = "Waiting: the last run of a command that was killed still works in"
    processes.wait_for(lambda: told in caplog.text)
    assert not locks
    (tmp_path / "end").touch()
    waits.join(10)
    assert f"Process {parent.pid} on host" in caplog.text
    locks[0].release()
    assert os.listdir(tmp_path) == ["end"]


# Its folder is removed before it writes again.
_REMOVED = """
    import os, shutil, sys
    from bert_tf.storage import run_lock
    folder, way = sys.argv[1:]
    run_lock.hold(folder, what="trains")
    run_lock.check_held()
    if way == "moved":
        os.rename(folder, folder + "_old")
    elif way != "untouched":
        shutil.rmtree(folder)
    if way == "replaced":
        os.mkdir(folder)
    if way == "a file":
        open(folder, "w").close()
    run_lock.check_held()
    print("writes")
"""


@pytest.mark.parametrize("way", ["removed", "moved", "replaced", "a file"])
def test_a_run_ends_at_once_without_its_folder(tmp_path, way):
    code, output, errors = processes.run(_REMOVED, tmp_path / "run", way)
    assert (code, output) == (1, "")
    assert errors == (
        f"error: The lock of {tmp_path}/run is lost: the folder was removed, "
        "moved or replaced. This process ends at once, to write nothing into "
        "the run of another.\n"
    )
    if way == "replaced":
        assert not list((tmp_path / "run").iterdir())


def test_a_run_goes_on_otherwise(tmp_path):
    found = processes.run(_REMOVED, tmp_path / "run", "untouched")
    assert found == (0, "writes\n", "")


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


def fill(file):
    while True:
        file.write(b"x" * 4096)


def test_a_full_disk(tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64) as folder:
        with pytest.raises(OSError), open(folder / "much", "wb", 0) as file:
            fill(file)
        with pytest.raises(OSError, match="No space left on device") as error:
            run_lock.hold(folder)
        assert error.value.errno == errno.ENOSPC
        assert os.listdir(folder) == ["much"]
        # A lock that is held can be renewed on a full disk.
        (folder / "much").unlink()
        with run_lock.hold(folder, renew=0.05, lease=0.2, settle=0):
            with pytest.raises(OSError), open(folder / "much", "wb", 0) as file:
                fill(file)
            held_locks.wait_for_renewals(folder, 5)
    with run_lock.hold(tmp_path / "no" / "parents"):
        assert (tmp_path / "no" / "parents" / "lock").exists()
