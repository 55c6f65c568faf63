"""The state of a run, saved in checkpoints to resume training."""

import concurrent.futures
import contextlib
import functools
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

from bert_tf import files, optimization
from bert_tf.checkpoints import restoring, tf1_files
from bert_tf.errors import InputError

import keras
import numpy as np
import tensorflow as tf
from absl import logging


class TrainState:
    """Everything a run needs to resume; variables are saved under their paths.

    The newest `keep` checkpoints are kept. A run can't be resumed with another
    `seed`, which determines the order of the data. With a `batch_size`, the
    original's checkpoints can be resumed too, which contain no data position.
    Moments of `untrained` variables in a checkpoint are ignored. `own` are the
    variables of the objective.
    """

    def __init__(
        self,
        model: keras.Model,
        optimizer: optimization.Optimizer,
        seed: int,
        keep: int = 5,
        write: bool = True,
        batch_size: int | None = None,
        untrained: Collection[str] = (),
        own: Sequence[keras.Variable] = (),
    ):
        self.model = model
        self.seed = seed
        self.keep = keep
        self.write = write
        self.batch_size = batch_size
        self.untrained = frozenset(untrained)
        self.step = 0
        self.records = 0  # records consumed, over all epochs
        # Metrics of the steps since the last log line.
        self.since_line: Mapping[str, float] = {}
        self.weights = {v.path: v for v in (*model.variables, *own)}
        self.variables: dict[str, Any] = self.weights | optimizer.slots

    def save(self, folder: str, writer: "Writer | None" = None) -> str:
        """Writes model.ckpt-STEP and removes the oldest beyond `keep`.

        With a `writer` it is written in the background, from a copy of the
        current values; the caller is responsible for waiting for earlier
        writes.
        """
        prefix = os.path.join(folder, f"model.ckpt-{self.step}")
        if not self.write:
            return prefix
        tensors = {n: _value(v) for n, v in self.variables.items()}
        tensors[tf1_files.GLOBAL_STEP] = np.int64(self.step)
        tensors[tf1_files.RECORDS] = np.int64(self.records)
        tensors[tf1_files.SEED] = np.int64(self.seed)
        for name, value in self.since_line.items():
            tensors[tf1_files.SINCE_LINE + name] = np.float64(value)
        if writer is None:
            _write(folder, self.step, tensors, self.keep)
        else:
            copied = {name: _copy(value) for name, value in tensors.items()}
            # The current step: `self.step` changes during the write.
            writer.start(
                functools.partial(_write, folder, self.step, copied, self.keep)
            )
        return prefix

    def resume(self, folder: str) -> bool:
        """Restores the newest readable checkpoint; False without any."""
        if self.write:
            tf1_files.remove_leftovers(folder)
        found = list(tf1_files.numbered(folder).values())
        for prefix in reversed(found):
            try:
                self._restore(prefix)
            except tf1_files.UnreadableError as error:
                logging.warning("%s Trying an older one.", error)
                continue
            return True
        if found:
            raise InputError(
                f"None of the checkpoints in {folder} can be read. Remove "
                "them to start again, or choose another output_dir."
            )
        return False

    def _restore(self, prefix: str) -> None:
        stored = tf1_files.shapes(prefix)
        position = {tf1_files.RECORDS, tf1_files.SEED}
        is_originals = bool(self.batch_size) and not position & stored.keys()
        wanted = self.variables.keys() | {tf1_files.GLOBAL_STEP}
        wanted |= set() if is_originals else position
        # Older runs did not count them.
        wanted -= {optimization.SKIPPED_STEPS} - stored.keys()
        # Older runs trained and decayed variables that nothing reads.
        unused = moments_of(stored, self.untrained)
        told = {x for x in stored if x.startswith(tf1_files.SINCE_LINE)}
        check_names(prefix, wanted, stored.keys() - unused - told)
        restoring.check_shapes(
            prefix, stored, {n: v.shape for n, v in self.weights.items()}
        )
        values = tf1_files.read(prefix, sorted(wanted | told))
        step = int(values[tf1_files.GLOBAL_STEP])
        records, seed = step * (self.batch_size or 0), self.seed
        if not is_originals:
            records, seed = (
                int(values[tf1_files.RECORDS]),
                int(values[tf1_files.SEED]),
            )
        if seed != self.seed:
            raise InputError(
                f"{prefix} was made with another seed, so the data would come "
                f"in another order. Received: seed={self.seed}, in the "
                f"checkpoint {seed}"
            )
        for name, variable in self.variables.items():
            if name in wanted:
                variable.assign(values[name])
        self.step, self.records = step, records
        self.since_line = {
            name.removeprefix(tf1_files.SINCE_LINE): float(values[name])
            for name in told
        }
        if is_originals:
            logging.info(
                "%s, like the original's checkpoints, does not contain its "
                "position in the data: continuing after %d records (%d steps "
                "of %d), in the order of seed %d.",
                prefix,
                self.records,
                step,
                self.batch_size,
                self.seed,
            )
        if unused:
            logging.info(
                "%s has moments of variables that are not trained here; they "
                "are ignored: %s.",
                prefix,
                ", ".join(sorted(self.untrained)),
            )

    def check_room(self, folder: str, saves: int) -> None:
        """Raises OSError if the disk has too little room for the checkpoints.

        A run needs room for its newest checkpoints, one more that is being
        written, and twice the weights alone for the best checkpoint: a new one
        is complete before the old one is deleted.
        """
        free = _free(folder)
        if free is None:
            return
        weights = sum(_size(variable) for variable in self.model.variables)
        whole = sum(_size(variable) for variable in self.variables.values())
        there = len(tf1_files.numbered(folder))
        more = max(0, min(self.keep, there + saves) - there) + 1
        needed = more * whole + 2 * weights
        if needed > free:
            raise OSError(
                f"The disk of {folder} has {_spelt(free)} free, and the "
                f"checkpoints of this run need {_spelt(needed)}: {more} of "
                f"{_spelt(whole)} each, and the best. Free some, choose "
                "another --output_dir or lower --keep_checkpoint_max. "
                f"Received: keep_checkpoint_max={self.keep}"
            )


def _write(
    folder: str, step: int, tensors: Mapping[str, Any], keep: int
) -> None:
    """Writes a checkpoint in a locked folder; OSError if it can't be saved."""
    try:
        with files.locked_folder(folder) as path:
            _replace(path, step, tensors, keep)
    # A full disk, for example, or a bucket's error.
    except (OSError, tf.errors.OpError) as error:
        last = tf1_files.latest(folder)
        kept = (
            f"The last whole checkpoint is {os.path.basename(last)}. Once "
            "there is room, the same command goes on from it."
            if last
            else "There is no checkpoint yet. Once there is room, the same "
            "command begins anew."
        )
        reason = getattr(error, "message", None) or str(error)
        raise OSError(
            f"Step {step} could not be saved in {folder}: {reason}. {kept}"
        ) from error


def _replace(
    folder: str, step: int, tensors: Mapping[str, Any], keep: int
) -> None:
    """Writes a checkpoint and removes the oldest beyond `keep`."""
    tf1_files.write(os.path.join(folder, f"model.ckpt-{step}"), tensors)
    # Later checkpoints are unreadable and were skipped. Move them away, so
    # that the newest is this one.
    found = tf1_files.numbered(folder)
    for number in [x for x in found if x > step]:
        tf1_files.set_aside(found.pop(number))
    prefixes = list(found.values())
    tf1_files.write_state(folder, prefixes[-keep:])
    tf1_files.remove_old(prefixes[:-keep])


def _value(variable: Any) -> tf.Tensor:
    """Returns the value of a Keras or TensorFlow variable on one replica."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return tf.convert_to_tensor(variable)


def _copy(value: Any) -> tf.Tensor:
    """Copies a value to host memory that no step changes."""
    # Also copies from accelerators. On CPUs other ways of reading share memory.
    with tf.device("CPU:0"):
        return tf.raw_ops.DeepCopy(x=value)


def _spelt(size: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit / 10:
            return f"{size / unit:.2f} {name}"
    return f"{size:,} bytes"


def _size(variable: Any) -> int:
    return 4 * math.prod(variable.shape)


def _free(folder: str) -> int | None:
    """Free bytes on the disk of a folder, which may be new; None: a bucket."""
    if "://" in folder:
        return None
    folder = os.path.abspath(folder)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free


# ---- Names in the checkpoint ------------------------------------------------

_MOST_LISTED = 10


def moments_of(names: Collection[str], variables: Collection[str]) -> set[str]:
    """Returns the names that are optimizer moments of these variables."""
    found = ((name, optimization.slot_of(name)) for name in names)
    return {name for name, slot in found if slot and slot[0] in variables}


def check_names(prefix: str, wanted: Set[str], stored: Set[str]) -> None:
    """Raises InputError unless checkpoint and run have the same names.

    They cover weights, moments, the step, and the position in the data.
    """
    ours, theirs = wanted - stored, stored - wanted
    if not ours and not theirs:
        return
    reasons = (
        _weights(ours, theirs),
        _moments(wanted, stored),
        _other_state(ours, theirs),
    )
    raise InputError(
        f"{prefix} can't be resumed. "
        f"{' '.join(reason for reason in reasons if reason)} "
        "Choose another output_dir, or start from these weights with "
        "--init_checkpoint."
    )


def _weights(ours: Set[str], theirs: Set[str]) -> str:
    here, there = (
        [name for name in names if tf1_files.is_weight(name)]
        for names in (ours, theirs)
    )
    if not here and not there:
        return ""
    return (
        "It holds another model than this run's. "
        f"In this run only: {_listed(here)}. "
        f"In the checkpoint only: {_listed(there)}."
    )


def _moments(wanted: Set[str], stored: Set[str]) -> str:
    """Describes how the moments of shared variables differ."""
    kinds, owners = [], []
    for names, others in ((wanted, stored), (stored, wanted)):
        found = [slot for slot in map(optimization.slot_of, names) if slot]
        kinds.append({kind for _, kind in found})
        owners.append({owner for owner, _ in found if owner in others})
    here, there = (", ".join(sorted(kind)) or "none" for kind in kinds)
    if kinds[0] and not kinds[1]:
        return (
            f"It holds only weights and no moments ({here}), like checkpoints "
            "in best/ and those that --strip_optimizer writes."
        )
    if kinds[0] != kinds[1]:
        fitting = [
            name
            for name, kind in optimization.OPTIMIZERS.items()
            if {*kind.slot_names} == kinds[1]
        ]
        return (
            f"Its optimizer's moments are {there}, and this run's {here}: "
            "pass the --optimizer that it was trained with"
            f"{': one of ' if fitting else ''}{', '.join(fitting)}."
        )
    only_here, only_there = owners[0] - owners[1], owners[1] - owners[0]
    if not only_here and not only_there:
        return ""
    return (
        "Its run trained other variables. "
        f"Trained in this run only: {_listed(only_here)}. "
        f"In the checkpoint only: {_listed(only_there)}."
    )


def _other_state(ours: Set[str], theirs: Set[str]) -> str:
    """Describes a step, data position or loss scale that only one has."""
    here, there = (
        [name for name in names if tf1_files.is_state(name)]
        for names in (ours, theirs)
    )
    said = []
    if here:
        said.append(f"It lacks {_listed(here)}.")
    if there:
        said.append(f"This run has no {_listed(there)}.")
    if any(name.startswith("loss_scale/") for name in (*here, *there)):
        said.append(
            "Only one of the two uses --dtype=float16: keep the --dtype."
        )
    return " ".join(said)


def _listed(names: Collection[str]) -> str:
    first = sorted(names)[:_MOST_LISTED]
    if len(names) > len(first):
        first.append(f"and {len(names) - len(first)} more")
    return ", ".join(first) or "nothing"


# ---- Saving in the background -----------------------------------------------

# Added to the niceness of the training threads: where they need all processors,
# the writing thread gets a thirtieth of one.
_NICER = 15
_NICEST = 19


class Writer:
    """Runs one write at a time in a background thread.

    An error of a write is raised by the next `start`, `wait` or `check`. As a
    context manager it waits on exit; if another exception is already ending the
    block, the write's error is logged instead.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(
            1, "writer", initializer=_step_aside
        )
        self._writing: concurrent.futures.Future[None] | None = None

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        try:
            self.wait()
        except Exception as own:
            if raised[1] is None:
                raise
            logging.error("%s", own)
        finally:
            self._pool.shutdown()

    @property
    def is_writing(self) -> bool:
        """Whether a write is still running."""
        return self._writing is not None and not self._writing.done()

    def start(self, write: Callable[[], None]) -> None:
        """Starts a write in the background, after the previous one ends."""
        self.wait()
        self._writing = self._pool.submit(write)

    def check(self) -> None:
        """Raises the error of the last write, if it has failed."""
        if not self.is_writing:
            self.wait()

    def wait(self) -> None:
        """Waits until everything is written.

        If a signal interrupts the wait, the write continues, and the next call
        waits for it.
        """
        if self._writing is None:
            return
        try:
            self._writing.result()
        except Exception:
            self._writing = None
            raise
        self._writing = None


def _step_aside() -> None:
    """Gives this thread a lower priority than the training threads have."""
    # Only on Linux does setpriority accept the number of a thread.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            number = threading.get_native_id()
            own = os.getpriority(os.PRIO_PROCESS, number)
            own = min(own + _NICER, _NICEST)
            os.setpriority(os.PRIO_PROCESS, number, own)
