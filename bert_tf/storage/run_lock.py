"""Ensures that only one process at a time uses a run's folder.

The lock is a file in the folder that names its holder and is removed at the
end. On disks, and on network file systems with shared locks, the file is locked
(flock) as well. The process with that lock is alone: if the file names another
process of this machine, that one has ended.

In a bucket, and between machines without shared locks, the lock is a lease. The
holder renews the file every RENEW seconds; a process that sees no renewal for
LEASE seconds, in a bucket BUCKET_LEASE, may take it over. The clocks of two
machines are never compared. A holder that has lost its lock exits at once, so
that it writes nothing into another process's run.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Self

from bert_tf.storage import file_systems, lock_file
from bert_tf.storage.lock_file import HeldError, Holder

from absl import logging

# Seconds.
RENEW = 10.0
LEASE = 45.0
# TensorFlow tries for three minutes to reach a bucket again. With a shorter
# lease a run would end before the try that succeeds.
BUCKET_LEASE = 240.0
# Delay after writing one's name until looking who has won, without flock. It
# must be longer than a newcomer takes from its look to writing its name.
SETTLE = 2.0

# Without flock, others may come and go meanwhile.
_ATTEMPTS = 10


class _LostError(Exception):
    """Another process has the lock now."""


_HELD: list["Lock"] = []  # by this process


def check_held() -> None:
    """Ends the process if a folder that it has locked no longer exists.

    Call it before you write anything into the folder of a run. A run whose
    folder was removed or moved would create it again, and mix its weights with
    the weights of the run that replaced it.
    """
    for lock in list(_HELD):
        lock.check()


def handle_path(folder: str) -> str:
    """Returns a path of a folder that stays with it if its name changes.

    For a folder that this process has locked, or one inside it, the path leads
    through an open descriptor. A write by this path can't reach a folder that
    replaces the locked one. Other folders keep their path.
    """
    paths = [lock.handle_path(folder) for lock in list(_HELD)]
    # The path from the closest locked folder.
    return min((x for x in paths if x), key=len, default=folder)


def hold(
    folder: str | os.PathLike[str],
    name: str = "lock",
    what: str = "works",
    *,
    of: str | None = None,
    renew: float = RENEW,
    lease: float | None = None,
    settle: float = SETTLE,
) -> "Lock":
    """Takes the lock of a folder, which is created if needed.

    The lock of a killed process is taken over: on this machine at once, or
    after the children that inherited the lock have ended; from another machine
    when the lease ends. The lock ends by `release`, with its context, or with
    the process, except when a signal kills it.

    Messages contain `what`, the action of this process, such as "trains", and
    `of`, the object of the lock. `renew`, `lease` and `settle` are seconds:
    between two renewals, without a renewal until others take over (None: LEASE,
    or BUCKET_LEASE), and until it is clear who has won, without flock. Raises
    HeldError if another process holds the lock, and OSError if its file can't
    be written.
    """
    folder = os.fspath(folder)
    if lease is None:
        lease = BUCKET_LEASE if file_systems.is_remote(folder) else LEASE
    lock = Lock(
        os.path.join(folder, name),
        of or folder,
        Holder.here(what),
        lock_file.Times(renew, lease, settle),
    )
    try:
        file_systems.find_backend(folder).makedirs(folder, exist_ok=True)
        lock.take()
    except OSError as error:
        raise file_systems.with_text(
            error,
            f"{folder} can't be worked in: its file {name}, which keeps other "
            f"processes out, can't be written ({error.strerror or error}). "
            "Choose another folder.",
        ) from error
    return lock


def check_free(folder: str | os.PathLike[str], name: str = "lock") -> None:
    """Raises HeldError if `hold` would fail now; changes nothing.

    In a bucket, and between machines without shared locks, this is only known
    after some time, and nothing is raised.
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, name)
    if not file_systems.is_remote(path) and file_systems.is_locked(path):
        raise HeldError(lock_file.in_use(folder, lock_file.read_holder(path)))


class Lock:
    """The lock of a folder, returned by `hold`; a context manager."""

    def __init__(self, path: str, of: str, me: Holder, times: lock_file.Times):
        self._path, self._of, self._me, self._times = path, of, me, times
        self._descriptor: int | None = None  # of a locked file
        self._folder: os.stat_result | None = None  # on a disk
        self._handle: int | None = None  # descriptor of the folder
        self._renewals = 0
        self._released = threading.Event()
        # Separates the threads that renew and release.
        self._mutex = threading.Lock()
        self._end_mutex = threading.Lock()

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """The `pass_fds` of `subprocess.Popen` for a child that keeps the lock.

        The next holder waits for the child's end. Empty in buckets.
        """
        return () if self._descriptor is None else (self._descriptor,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    # ---- Taking it ----------------------------------------------------------

    def take(self) -> None:
        """Takes the lock, or raises the errors of `hold`."""
        try:
            if file_systems.is_remote(self._path):
                self._take_by_lease()
            else:
                try:
                    self._take_file()
                except file_systems.NoLocksError:
                    self._take_by_lease()
            if self._descriptor is not None:
                folder = os.path.dirname(self._path)
                self._handle = file_systems.open_folder(folder)
                self._folder = os.fstat(self._handle)
        except BaseException:
            with contextlib.suppress(Exception):
                self._remove_own()
            self._unlock()
            raise
        _HELD.append(self)
        atexit.register(self.release)
        threading.Thread(target=self._keep, daemon=True).start()

    def _take_file(self) -> None:
        while True:
            self._descriptor = lock_file.lock(self._path, self._of)
            before = lock_file.read_holder(self._path)
            if before is None:
                break
            if before.is_of_this_machine:
                lock_file.say_gone(self._of, before)
                break
            # Its machine may share the files, but not the locks.
            lock_file.outlive(self._path, self._of, before, self._times)
            if file_systems.is_at(self._descriptor, self._path):
                break
            self._unlock()
        lock_file.write(self._path, self._me.encode(0))

    def _take_by_lease(self) -> None:
        """Writes this process into the file, and checks that it stays there."""
        for _ in range(_ATTEMPTS):
            data = lock_file.read(self._path)
            before = Holder.decode(data)
            if before and before.runs:
                raise HeldError(lock_file.in_use(self._of, before))
            if before and before.runs is False:
                lock_file.say_gone(self._of, before)
            elif before:
                lock_file.outlive(self._path, self._of, before, self._times)
            elif data is not None:  # A name may follow.
                time.sleep(self._times.settle)
            now = lock_file.read_holder(self._path)
            if now and now != before:
                continue
            lock_file.write(self._path, self._me.encode(0))
            time.sleep(self._times.settle)
            winner = lock_file.read_holder(self._path)
            if winner == self._me:
                return
            # No holder: the previous one removed the file, taking it for its
            # own.
            if winner:
                raise HeldError(lock_file.in_use(self._of, winner))
        raise OSError("it does not stay as it was written")

    # ---- Keeping it ---------------------------------------------------------

    def _keep(self) -> None:
        """Renews the lock until it is released; runs in a thread."""
        # If two took it at the same moment, one must end soon.
        wait = min(self._times.settle, self._times.renew)
        failing: float | None = None
        while not self._released.wait(wait):
            wait = self._times.renew
            began = time.monotonic() if failing is None else failing
            try:
                with self._mutex, self._patience(began):
                    self._renew()
                failing = None
            except _LostError as error:
                self._end(str(error))
            # TensorFlow's errors for buckets are not OSErrors.
            except Exception as error:
                failing = began
                text = f"{self._path} can't be renewed: {error}"
                logging.warning("%s", text)
                if time.monotonic() - began > self._patience_seconds:
                    self._end(text)

    @property
    def _patience_seconds(self) -> float:
        """The time for failing renewals: less than others wait for one."""
        return self._times.lease - self._times.renew

    @contextlib.contextmanager
    def _patience(self, began: float) -> Iterator[None]:
        """Ends the process if a bucket hangs; files on disks stay locked."""
        if self._descriptor is not None:
            yield
            return
        left = began + self._patience_seconds - time.monotonic()
        text = f"{self._path} can't be renewed: there is no answer"
        # An answer, even an error, reports more than this timeout does.
        left = max(left, self._times.renew / 2)
        timer = threading.Timer(left, self._end, [text])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def check(self) -> None:
        """Ends the process if the folder was removed, moved or replaced."""
        try:
            self._check_folder()
        except _LostError as error:
            self._end(str(error))

    def handle_path(self, folder: str) -> str | None:
        """Returns the path by the descriptor; None for a folder outside."""
        if self._handle is None or file_systems.is_remote(folder):
            return None
        by_handle = f"/proc/self/fd/{self._handle}"  # Linux has these paths.
        own = os.path.abspath(os.path.dirname(self._path))
        inside = os.path.relpath(os.path.abspath(folder), own)
        is_inside = inside.split(os.sep)[0] != os.pardir
        if not is_inside or not os.path.islink(by_handle):
            return None
        return os.path.normpath(os.path.join(by_handle, inside))

    def _check_folder(self) -> None:
        if self._folder is None or self._released.is_set():
            return
        try:
            now = os.stat(os.path.dirname(self._path) or ".")
            is_same = os.path.samestat(now, self._folder)
        except OSError:
            is_same = False
        if not is_same:
            raise _LostError("the folder was removed, moved or replaced")

    def _renew(self) -> None:
        """Shows that this process is alive; _LostError if it lost the lock."""
        if self._released.is_set():
            return
        self._check_folder()
        data = lock_file.read(self._path)
        holder = Holder.decode(data)
        if holder and holder != self._me:
            raise _LostError(f"{holder.name} has taken it over")
        if self._descriptor is None:
            self._renewals += 1
            lock_file.write(self._path, self._me.encode(self._renewals))
        elif not file_systems.is_at(self._descriptor, self._path):
            self._lock_again()
        elif holder is None:
            lock_file.write(self._path, self._me.encode(0))
        else:
            # Network file systems send it at once, and it works on full disks.
            os.utime(self._path)

    def _lock_again(self) -> None:
        """Creates the file again after someone has removed it."""
        fresh = file_systems.lock(self._path)
        if fresh is None:
            raise _LostError("another process has taken it over")
        if self._descriptor is not None:
            os.dup2(fresh, self._descriptor, inheritable=False)
            os.close(fresh)
        lock_file.write(self._path, self._me.encode(0))

    def _end(self, reason: str) -> None:
        """Ends the process before it writes anything else."""
        self._end_mutex.acquire()  # Kept: this is logged once.
        if self._released.is_set():
            return
        sys.stderr.write(
            f"error: The lock of {self._of} is lost: {reason}. This process "
            "ends at once, to write nothing into the run of another.\n"
        )
        sys.stderr.flush()
        os._exit(1)

    # ---- Releasing it -------------------------------------------------------

    def release(self) -> None:
        """Releases the lock; more calls do nothing."""
        # A fork has this object, too, but the lock belongs to its parent.
        if os.getpid() != self._me.process:
            return
        with self._mutex:
            if self._released.is_set():
                return
            self._released.set()
        if self in _HELD:
            _HELD.remove(self)
        atexit.unregister(self.release)
        try:
            self._remove_own()
        # The work is done. The next process detects that this one has ended.
        except Exception as error:
            logging.warning("%s could not be removed: %s", self._path, error)
        finally:
            self._unlock()

    def _remove_own(self) -> None:
        data = lock_file.read(self._path)
        # A full disk had room for the file's name, but not for its content.
        is_empty = self._descriptor is not None and not data
        if is_empty or Holder.decode(data) == self._me:
            lock_file.remove(self._path)

    def _unlock(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._descriptor is not None:
            file_systems.unlock(self._descriptor)
            self._descriptor = None
