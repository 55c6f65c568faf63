"""The content of a lock file: its holder and the time of the lock."""

import contextlib
import dataclasses
import datetime
import json
import os
import socket
import sys
from typing import Self

from bert_tf.storage import file_systems

from absl import logging

# Constant, so that readers see a whole name during a write.
_SIZE = 1024


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
        return cls(
            host=socket.gethostname(),
            process=os.getpid(),
            started=_started(os.getpid()),
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


def _started(process: int) -> int | None:
    stat = _stat(process)
    return int(stat[19]) if stat else None


# ---- The file ---------------------------------------------------------------


def read(path: str) -> bytes | None:
    """Reads the file, opening it each time for network file systems."""
    try:
        with file_systems.find_backend(path).open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def holder(path: str) -> Holder | None:
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
        time = 0.0 if file_systems.is_remote(path) else os.stat(path).st_mtime
    except FileNotFoundError:
        return None, 0.0
    return data, time


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
