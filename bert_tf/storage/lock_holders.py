"""Handles other holders of a lock: wait for them, outlast them, name them."""

import os
import time
from typing import NamedTuple

from bert_tf.errors import InputError
from bert_tf.storage import file_systems, lock_file
from bert_tf.storage.lock_file import Holder

from absl import logging

# A process that has locked the file writes its name within this time.
_WRITING = 1.0
_BETWEEN_LOOKS = 0.1


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
        holder = lock_file.holder(path)
        if holder and holder.runs is not False:
            raise HeldError(in_use(of, holder))
        if holder != seen:
            seen, since = holder, time.monotonic()
        if time.monotonic() - since > _WRITING:
            if not holder:
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
    if lock_file.age(path) < times.lease:
        logging.info(
            "%s, which holds %s since %s, may have ended: waiting for at most "
            "%.0f seconds to see whether it renews its lock.",
            _capital(holder.name),
            of,
            holder.time,
            times.lease,
        )
        first, end = lock_file.stamp(path), time.monotonic() + times.lease
        while time.monotonic() < end:
            time.sleep(min(1.0, times.lease / 10))
            now = lock_file.stamp(path)
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
