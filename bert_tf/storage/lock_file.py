"""A lock file: its content, and how other holders of the lock are handled."""

import contextlib
import dataclasses
import datetime
import json
import os
import socket
import sys
import time
from typing import NamedTuple, Self

from bert_tf.errors import InputError
from bert_tf.storage import file_systems

from absl import logging

# Constant, so that readers see a whole name during a write.
_SIZE = 1024
# A process that has locked the file writes its name within this time.
_WRITING = 1.0
_BETWEEN_LOOKS = 0.1


@dataclasses.dataclass(frozen=True)
class Holder:
    """A process that holds a lock. Unknown values are "" or None.

    Attributes:
        process: Its process id. Ids are reused.
        started: Its start time, in clock ticks after boot.
        boot: The id of that boot.
        numbers: The namespace of process ids: containers have their own.
        what: The action of the process, such as "trains".
        since: The time when it took the lock: ISO 8601, with the time zone.
        token: Unique for this lock.
    """

    host: str
    process: int
    started: int | None
    boot: str
    numbers: str
    command: str
    what: str
    since: str
    token: str

    @classmethod
    def here(cls, what: str) -> Self:
        now = datetime.datetime.now().astimezone()
        stat = _stat(os.getpid())
        return cls(
            host=socket.gethostname(),
            process=os.getpid(),
            started=int(stat[19]) if stat else None,
            boot=_boot(),
            numbers=_numbers(),
            command=os.path.basename(sys.argv[0] if sys.argv else ""),
            what=what,
            since=now.isoformat(timespec="seconds"),
            token=os.urandom(16).hex(),
        )

    def encode(self, renewals: int) -> bytes:
        """Returns the content of the file; each renewal changes it."""
        values = dataclasses.asdict(self) | {"renewals": renewals}
        return json.dumps(values).encode().ljust(_SIZE - 1) + b"\n"

    @classmethod
    def decode(cls, data: bytes | None) -> Self | None:
        """Returns the holder that a file names, None if it names none."""
        try:
            values = json.loads(data or b"")
            names = [field.name for field in dataclasses.fields(cls)]
            holder = cls(**{name: values[name] for name in names})
            # Raises if it is not a time.
            datetime.datetime.fromisoformat(holder.since)
        except (ValueError, KeyError, TypeError):
            return None
        is_number = isinstance(holder.process, int) and holder.process > 0
        return holder if is_number else None

    @property
    def is_of_this_machine(self) -> bool:
        """Whether the process began on this machine since its last boot."""
        if self.boot and _boot():
            return self.boot == _boot()
        return self.host == socket.gethostname()

    @property
    def runs(self) -> bool | None:
        """Whether the process runs; None if this can't be known from here."""
        if not self.is_of_this_machine or self.numbers != _numbers():
            return None
        stat = _stat(self.process)
        if stat:
            # A zombie, whose parent has not waited for it, is still listed.
            is_same = self.started in (None, int(stat[19]))
            return is_same and stat[0] not in ("Z", "X")
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    @property
    def name(self) -> str:
        """The name of the process in messages."""
        return f"process {self.process} on host {self.host}"

    @property
    def time(self) -> str:
        """The start of the lock, in the local time zone."""
        since = datetime.datetime.fromisoformat(self.since).astimezone()
        return since.strftime("%Y-%m-%d %H:%M:%S")


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _numbers() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _stat(process: int) -> list[str] | None:
    """Returns the fields of /proc/PID/stat, starting at the state."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            # Its name is in brackets, and may contain brackets and spaces.
            return file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None


# ---- The file ---------------------------------------------------------------


def read(path: str) -> bytes | None:
    """Reads the file, opening it each time for network file systems."""
    try:
        with file_systems.find_backend(path).open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_holder(path: str) -> Holder | None:
    """Returns the holder that the file names, None if it names none."""
    return Holder.decode(read(path))


def write(path: str, data: bytes) -> None:
    """Writes the file."""
    if file_systems.is_remote(path):
        with file_systems.find_backend(path).open(path, "wb") as file:
            file.write(data)
        return
    # In place, because this very file is locked.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, data)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Removes the file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        file_systems.find_backend(path).remove(path)


def stamp(path: str) -> tuple[bytes | None, float]:
    """Returns the values that a renewal changes."""
    data = read(path)
    try:
        # In a bucket, renewals change the bytes.
        changed = 0.0
        if not file_systems.is_remote(path):
            changed = os.stat(path).st_mtime
    except FileNotFoundError:
        return None, 0.0
    return data, changed


def age(path: str) -> float:
    """Returns seconds since a renewal, by the file system; 0 if unknown."""
    probe = f"{path}.probe"
    try:
        write(probe, b"now")
        renewed = _modified(path)
        return _modified(probe) - renewed if renewed else 0.0
    # TensorFlow's errors for buckets are not OSErrors.
    except Exception as error:
        logging.info("The age of %s is not known: %s", path, error)
        return 0.0
    finally:
        with contextlib.suppress(Exception):
            remove(probe)


def _modified(path: str) -> float:
    if file_systems.is_remote(path):
        return file_systems.find_backend(path).stat(path).mtime
    return os.stat(path).st_mtime


# ---- Other holders -----------------------------------------------------------


class HeldError(InputError):
    """Another process uses the folder."""


class Times(NamedTuple):
    """Durations in seconds, for `hold`."""

    renew: float
    lease: float
    settle: float


def lock(path: str, of: str) -> int:
    """Locks the file. Waits for the children of a killed holder if needed.

    Raises HeldError if a running process has locked it.
    """
    seen, since, is_told = None, time.monotonic(), False
    while True:
        descriptor = file_systems.lock(path)
        if descriptor is not None:
            return descriptor
        other = read_holder(path)
        if other and other.runs is not False:
            raise HeldError(in_use(of, other))
        if other != seen:
            seen, since = other, time.monotonic()
        if time.monotonic() - since > _WRITING:
            if not other:
                raise HeldError(in_use(of, None))
            if not is_told:
                logging.info(
                    "Waiting: the last run of a command that was killed still "
                    "works in %s.",
                    of,
                )
            is_told = True
        time.sleep(_BETWEEN_LOOKS)


def outlive(path: str, of: str, holder: Holder, times: Times) -> None:
    """Waits until another machine's lease ends; HeldError if it is renewed."""
    if age(path) < times.lease:
        logging.info(
            "%s, which holds %s since %s, may have ended: waiting for at most "
            "%.0f seconds to see whether it renews its lock.",
            _capital(holder.name),
            of,
            holder.time,
            times.lease,
        )
        first, end = stamp(path), time.monotonic() + times.lease
        while time.monotonic() < end:
            time.sleep(min(1.0, times.lease / 10))
            now = stamp(path)
            if now[0] is None:  # It has released it.
                return
            if now != first:
                raise HeldError(in_use(of, Holder.decode(now[0]) or holder))
    logging.info(
        "%s, which held %s since %s, has not renewed its lock for %.0f "
        "seconds: taking over.",
        _capital(holder.name),
        of,
        holder.time,
        times.lease,
    )


def say_gone(of: str, holder: Holder) -> None:
    """Logs that this process takes over from another."""
    # A copied folder names the process that used the original.
    end = "has let go of it" if holder.runs else "is gone"
    logging.info(
        "%s, which held %s since %s, %s: taking over.",
        _capital(holder.name),
        of,
        holder.time,
        end,
    )


def in_use(of: str, holder: Holder | None) -> str:
    """Returns the error message for a folder that is in use."""
    if holder is None:
        return (
            f"{of} is in use by another process. Wait for its end, end it, or "
            "choose another folder."
        )
    is_own = holder.process == os.getpid() and holder.runs
    name = f"this process, {os.getpid()}," if is_own else holder.name
    return (
        f"{of} is in use: {name} {holder.what} there since "
        f"{holder.time}. Wait for its end, end it, or choose another folder."
    )


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
