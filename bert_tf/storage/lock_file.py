"""The file of a lock: whom it names, and how long it has named it."""

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

# Of one size, always: who reads what is being written sees a whole name.
_SIZE = 1024


@dataclasses.dataclass(frozen=True)
class Holder:
    """A process that holds a lock. What the system does not tell is "" or None.

    Attributes:
        process: Its number. Numbers of processes come again.
        started: When, in clock ticks after the machine's start.
        boot: Which start of the machine that was.
        numbers: Whose numbers these are, as containers have their own.
        what: What it does, such as "trains".
        since: When it took the lock: ISO 8601, with the zone.
        token: Of this lock and no other.
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
        """Returns the bytes of the file; each renewal changes them."""
        values = dataclasses.asdict(self) | {"renewals": renewals}
        return json.dumps(values).encode().ljust(_SIZE - 1) + b"\n"

    @classmethod
    def decode(cls, data: bytes | None) -> Self | None:
        """Returns whom a file names; None where it names nobody."""
        try:
            values = json.loads(data or b"")
            names = [field.name for field in dataclasses.fields(cls)]
            holder = cls(**{name: values[name] for name in names})
            # Raises if it is none.
            datetime.datetime.fromisoformat(holder.since)
        except (ValueError, KeyError, TypeError):
            return None
        is_number = isinstance(holder.process, int) and holder.process > 0
        return holder if is_number else None

    @property
    def is_of_this_machine(self) -> bool:
        """Whether it began on this machine since its start."""
        if self.boot and _boot():
            return self.boot == _boot()
        return self.host == socket.gethostname()

    @property
    def runs(self) -> bool | None:
        """Whether it runs; None where that is not to be known from here."""
        if not self.is_of_this_machine or self.numbers != _numbers():
            return None
        stat = _stat(self.process)
        if stat:
            # One that nobody has asked for its end is listed still.
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
        """What messages call it."""
        return f"process {self.process} on host {self.host}"

    @property
    def time(self) -> str:
        """Since when it holds the lock, in the zone of who asks."""
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
    """Returns what /proc says of a process, from its state on."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            # Its name stands in brackets, and may hold brackets and blanks.
            return file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None


def _started(process: int) -> int | None:
    stat = _stat(process)
    return int(stat[19]) if stat else None


# ---- Its file ---------------------------------------------------------------


def read(path: str) -> bytes | None:
    """Returns what the file holds, opened anew for network file systems."""
    try:
        with file_systems.of(path).open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def holder(path: str) -> Holder | None:
    """Returns whom the file names; None where it names nobody."""
    return Holder.decode(read(path))


def write(path: str, data: bytes) -> None:
    """Writes the file."""
    if file_systems.is_remote(path):
        with file_systems.of(path).open(path, "wb") as file:
            file.write(data)
        return
    # In place: it is this very file that is locked.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, data)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Removes the file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        file_systems.of(path).remove(path)


def stamp(path: str) -> tuple[bytes | None, float]:
    """Returns what a renewal changes."""
    data = read(path)
    try:
        # In a bucket the bytes change.
        time = 0.0 if file_systems.is_remote(path) else os.stat(path).st_mtime
    except FileNotFoundError:
        return None, 0.0
    return data, time


def age(path: str) -> float:
    """Seconds since a renewal, by the file system's clock; 0 if unknown."""
    probe = f"{path}.probe"
    try:
        write(probe, b"now")
        renewed = _modified(path)
        return _modified(probe) - renewed if renewed else 0.0
    # TensorFlow's errors of buckets are none of Python's.
    except Exception as error:
        logging.info("The age of %s is not known: %s", path, error)
        return 0.0
    finally:
        with contextlib.suppress(Exception):
            remove(probe)


def _modified(path: str) -> float:
    if file_systems.is_remote(path):
        return file_systems.of(path).stat(path).mtime
    return os.stat(path).st_mtime
