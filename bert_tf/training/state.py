"""The state of a run: what it needs to go on where it stopped."""

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bert_tf import optimization
from bert_tf.checkpoints import restoring, resuming, tf1_files
from bert_tf.errors import InputError
from bert_tf.training import background

import keras
import numpy as np
import tensorflow as tf
from absl import logging


class TrainState:
    """All that a run needs to go on; variables are saved under their paths.

    The newest `keep` checkpoints stay. A run can't be resumed with another
    seed, that of the data order. With a batch size it goes on from the
    original's checkpoints too, which tell no data position. Moments that a
    checkpoint has of `untrained` variables are left out. `own` are variables of
    the objective.
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
        # Of the steps since the last line of the log: what that would tell.
        self.since_line: Mapping[str, float] = {}
        self.weights = {v.path: v for v in (*model.variables, *own)}
        self.variables: dict[str, Any] = self.weights | optimizer.slots

    def save(self, folder: str, writer: background.Writer | None = None) -> str:
        """Writes model.ckpt-STEP and removes the oldest beyond `keep`.

        A `writer` does that later, of a copy of the values as they are now; it
        is the caller's to wait for what it wrote before.
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
            # The step of now: the state's goes on.
            writer.start(
                functools.partial(_write, folder, self.step, copied, self.keep)
            )
        return prefix

    def resume(self, folder: str) -> bool:
        """Restores the newest readable checkpoint; says if there was one."""
        if self.write:
            tf1_files.remove_leftovers(folder)
        found = list(tf1_files.numbered(folder).values())
        for prefix in reversed(found):
            try:
                self._restore(prefix)
            except tf1_files.UnreadableError as error:
                logging.warning("%s Passing it over.", error)
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
        # As runs had them that trained, and decayed, what nothing reads.
        unused = resuming.moments_of(stored, self.untrained)
        told = {x for x in stored if x.startswith(tf1_files.SINCE_LINE)}
        resuming.check(prefix, wanted, stored.keys() - unused - told)
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
            variable.assign(values[name])
        self.step, self.records = step, records
        self.since_line = {
            name.removeprefix(tf1_files.SINCE_LINE): float(values[name])
            for name in told
        }
        if is_originals:
            logging.info(
                "%s does not tell its place in the data, as the original's "
                "don't: going on behind %d records (%d steps of %d), in the "
                "order of seed %d.",
                prefix,
                self.records,
                step,
                self.batch_size,
                self.seed,
            )
        if unused:
            logging.info(
                "%s has moments of variables that nothing trains, which are "
                "left out: %s stay as they are.",
                prefix,
                ", ".join(sorted(self.untrained)),
            )


def _write(
    folder: str, step: int, tensors: Mapping[str, Any], keep: int
) -> None:
    """Writes a checkpoint and removes the oldest beyond `keep`."""
    try:
        tf1_files.write(os.path.join(folder, f"model.ckpt-{step}"), tensors)
        # Later ones are unreadable and were passed over. What looks for the
        # newest is to find this one.
        found = tf1_files.numbered(folder)
        for number in [x for x in found if x > step]:
            tf1_files.set_aside(found.pop(number))
        prefixes = list(found.values())
        tf1_files.write_state(folder, prefixes[-keep:])
    # Of a full disk, for example; or of a bucket.
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
    for old in prefixes[:-keep]:
        tf1_files.remove(old)


def _value(variable: Any) -> tf.Tensor:
    """The value of a Keras or TensorFlow variable, from one replica."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return tf.convert_to_tensor(variable)


def _copy(value: Any) -> tf.Tensor:
    """Copies a value to memory of the host that no step changes."""
    # From accelerators, too. On CPUs others share what they read.
    with tf.device("CPU:0"):
        return tf.raw_ops.DeepCopy(x=value)
