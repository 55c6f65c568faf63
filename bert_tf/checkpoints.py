"""Checkpoints: explicit names, in the original's TF1 format.

A checkpoint of ours is a checkpoint of the original: the model's variables
and the optimizer's under their released names, with `global_step`, and beside
them the position in the data. It is written under a temporary name and then
renamed, so that a crash leaves no half checkpoint.
"""

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from bert_tf import files, input_files, optimization, resuming

import keras
import numpy as np
import tensorflow as tf
from absl import logging

GLOBAL_STEP = "global_step"
RECORDS = "data_position/records"
SEED = "data_position/seed"
_NOT_WEIGHTS = re.compile(
    r"/adam_[mv]$|/lamb_[mv]$|^global_step$|^data_position/|^loss_scale/"
)


class UnreadableError(ValueError):
    """A checkpoint is truncated, corrupt or not all there."""


# ---- Files ------------------------------------------------------------------


def write(prefix: str, tensors: Mapping[str, Any]) -> None:
    """Writes tensors by name in TF1 format, whole or not at all.

    Args:
        prefix: path without the endings .index and .data-00000-of-00001.
        tensors: name -> tensor, variable or array.

    Raises:
        OSError: the disk is full, or the like.
    """
    temporary = f"{prefix}.tmp"
    names = sorted(tensors)
    # Of a process that was killed: TensorFlow's names are new each time.
    _remove_all(glob_escape(temporary) + "*")
    try:
        with files.naming(prefix, temporary):
            tf.raw_ops.SaveV2(
                prefix=temporary,
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[tf.convert_to_tensor(tensors[name]) for name in names],
            )
            # The index comes last: without it there is no checkpoint.
            for ending in (".data-00000-of-00001", ".index"):
                tf.io.gfile.rename(
                    temporary + ending, prefix + ending, overwrite=True
                )
    except BaseException:
        _remove_all(glob_escape(temporary) + "*")
        if not tf.io.gfile.exists(prefix + ".index"):
            _remove_all(glob_escape(prefix) + ".data-*")
        raise


def _remove_all(pattern: str) -> None:
    for path in tf.io.gfile.glob(pattern):
        tf.io.gfile.remove(path)


def read(prefix: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Reads tensors by name, checking their checksums."""
    with _explained(prefix):
        reader = tf.train.load_checkpoint(prefix)
        return {name: reader.get_tensor(name) for name in names}


def shapes(prefix: str) -> dict[str, tuple[int, ...]]:
    """Returns the name and shape of every tensor in a checkpoint."""
    with _explained(prefix):
        return {n: tuple(s) for n, s in tf.train.list_variables(prefix)}


def is_weight(name: str) -> bool:
    """Says whether a tensor is the model's, not the optimizer's or a step."""
    return not _NOT_WEIGHTS.search(name)


_NOT_OF_THE_FILE = (
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnauthenticatedError,
    tf.errors.UnavailableError,
)


@contextlib.contextmanager
def _explained(prefix: str) -> Iterator[None]:
    """Turns whatever TensorFlow says of a bad file into UnreadableError.

    What says nothing of the file itself is raised as it is: a network that is
    down must not cost the newest checkpoint.
    """
    try:
        yield
    except _NOT_OF_THE_FILE:
        raise
    # A checksum that does not match comes as a plain OpError, missing bytes
    # come as an IndexError.
    except (tf.errors.OpError, IndexError) as error:
        paths = [f"{prefix}.index", *_data_files(prefix)]
        plain = next(filter(None, map(not_weights, paths)), None)
        raise UnreadableError(
            plain
            or f"The checkpoint {prefix} can't be read, it is truncated, "
            f"corrupt or not all there: {getattr(error, 'message', error)}. If "
            "it was copied or downloaded, do so again."
        ) from error


def not_weights(path: str) -> str | None:
    """Says what a file is, if it plainly is none of what it is taken for."""
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path, "rb") as file:
        start = file.read(64)
    problem = input_files.explain(start)
    if not problem:
        return None
    again = " Copy or download it again." * (not start)
    return f"{path} can't be read: {problem}.{again}"


def find(path: str) -> str:
    """Returns the prefix of the checkpoint that `path` means.

    Args:
        path: a prefix such as .../bert_model.ckpt, one of its files, or a
            folder, where the newest checkpoint counts.
    """
    if tf.io.gfile.isdir(path):
        prefix = latest(path) or _only(path)
    else:
        prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)
    if not tf.io.gfile.exists(prefix + ".index"):
        data = _data_files(prefix)
        raise ValueError(
            f"There is no checkpoint {path}: {prefix}.index does not exist. "
            "A checkpoint is named by its prefix, such as "
            ".../bert_model.ckpt, or by its folder; a Hugging Face model by "
            "its folder."
            + (" Its data is there: copy the index, too." if data else "")
        )
    _check_data(prefix)
    return prefix


def _data_files(prefix: str) -> list[str]:
    found = tf.io.gfile.glob(glob_escape(prefix) + ".data-*")
    return [p for p in found if re.search(r"\.data-\d+-of-\d+$", p)]


def _check_data(prefix: str) -> None:
    """Raises ValueError unless all files are there that hold the tensors."""
    found = _data_files(prefix)
    counts = {int(path.rpartition("-of-")[2]) for path in found} or {1}
    wanted = [
        [f"{prefix}.data-{i:05d}-of-{count:05d}" for i in range(count)]
        for count in sorted(counts)
    ]
    missing = [[p for p in paths if p not in found] for paths in wanted]
    if all(missing):
        state = "not all of its" if found else "no"
        raise ValueError(
            f"The checkpoint {prefix} has an index but {state} data: "
            f"{missing[0][0]} does not exist. Copy or download it, too."
        )


def _only(folder: str) -> str:
    """Returns the prefix of bert_model.ckpt, or of the only checkpoint."""
    pattern = os.path.join(glob_escape(folder), "*.index")
    found = [p.removesuffix(".index") for p in tf.io.gfile.glob(pattern)]
    # Of a process that was killed while it wrote.
    found = [path for path in found if not path.endswith(".tmp")]
    released = os.path.join(folder, "bert_model.ckpt")
    if released in found:
        return released
    if not found:
        data = tf.io.gfile.glob(os.path.join(glob_escape(folder), "*.data-*"))
        raise ValueError(
            f"The folder {folder} holds no checkpoint: neither "
            "model.ckpt-STEP.index nor bert_model.ckpt.index."
            + (f" {min(data)} is there: copy its index, too." if data else "")
        )
    if len(found) > 1:
        raise ValueError(
            f"The folder {folder} holds several checkpoints. Name one of "
            f"them: {', '.join(sorted(found))}."
        )
    return found[0]


def numbered(folder: str) -> dict[int, str]:
    """Returns step -> prefix of the folder's checkpoints, oldest first."""
    pattern = os.path.join(glob_escape(folder), "model.ckpt-*.index")
    found = {}
    for path in tf.io.gfile.glob(pattern):
        match = re.search(r"model\.ckpt-(\d+)\.index$", path)
        if match:
            found[int(match.group(1))] = path.removesuffix(".index")
    return dict(sorted(found.items()))


def glob_escape(path: str) -> str:
    """Makes a path match itself where a glob is expected."""
    return re.sub(r"([*?\[\\])", r"[\1]", path)


def latest(folder: str) -> str | None:
    """Returns the prefix of the newest checkpoint in a folder, or None."""
    found = numbered(folder)
    return found[max(found)] if found else None


# ---- Weights from elsewhere -------------------------------------------------


class Source(Protocol):
    """A checkpoint of any format, as bert_tf/interop opens them."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of its weights, by our names."""

    @property
    def left_over(self) -> Sequence[str]:
        """Names that mean nothing to us."""

    @property
    def read(self) -> Callable[[Sequence[str]], Mapping[str, np.ndarray]]:
        """Returns tensors by name."""


@dataclasses.dataclass(frozen=True)
class Report:
    """What restoring weights did, by variable name."""

    path: str
    restored: tuple[str, ...]
    fresh: tuple[str, ...]  # in the model only: they keep their random values
    unused: tuple[str, ...]  # in the checkpoint only

    def __str__(self):
        lines = [f"Restored {len(self.restored)} variables of {self.path}."]
        for title, names in (
            ("Not in the checkpoint, start from random values", self.fresh),
            ("In the checkpoint, not used by this model", self.unused),
        ):
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        return "\n".join(lines)


# A head over the sequence output needs no pooler, and some files have none.
ENCODER = "^bert/(?!pooler/)"


def restore_weights(
    variables: Sequence[keras.Variable],
    source: Source,
    required: str = ENCODER,
) -> Report:
    """Sets variables from a checkpoint, by name.

    Args:
        variables: of the model.
        source: the checkpoint, opened.
        required: regular expression; variables whose name matches must be in
            the checkpoint. The others, heads, may start from random values.

    Returns:
        What was restored and what was not.
    """
    report = compare(variables, source, required)
    wanted = {v.path: v for v in variables}
    values = source.read(report.restored)
    _check_finite(source.path, values)
    for name, value in values.items():
        wanted[name].assign(value)
    return report


def _check_finite(path: str, values: Mapping[str, np.ndarray]) -> None:
    """Raises UnreadableError if weights are no numbers: all would be none."""
    wrong = [n for n, x in sorted(values.items()) if not np.isfinite(x).all()]
    if wrong:
        raise UnreadableError(
            f"{path} holds weights that are infinite or no numbers (NaN): "
            f"{_some(wrong)}. Its training diverged: give an earlier "
            "checkpoint, or train again with a lower --learning_rate."
        )


def compare(
    variables: Sequence[keras.Variable],
    source: Source,
    required: str = ENCODER,
) -> Report:
    """Says what `restore_weights` would do, or raises what it would raise."""
    stored = source.shapes
    wanted = {v.path: v for v in variables}
    present = sorted(wanted.keys() & stored.keys())
    fresh = sorted(wanted.keys() - stored.keys())
    unused = sorted({*stored.keys(), *source.left_over} - wanted.keys())
    missing = [name for name in fresh if re.search(required, name)]
    if missing:
        # By what the encoder is called there one sees what it is.
        unused = sorted(unused, key=lambda name: "encoder" not in name)
        raise ValueError(
            f"{source.path} does not fit this model. "
            f"In the model only: {_some(missing)}. "
            f"In the checkpoint only: {_some(unused) or 'nothing'}. "
            "Is it another architecture than bert_config_file says?"
        )
    _check_shapes(source.path, stored, {n: wanted[n].shape for n in present})
    return Report(source.path, tuple(present), tuple(fresh), tuple(unused))


def _some(texts: Sequence[str], separator: str = ", ") -> str:
    """Names the first three."""
    more = [f"and {len(texts) - 3} more"] * (len(texts) > 3)
    return separator.join([*texts[:3], *more])


def _check_shapes(
    prefix: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    wrong = [
        f"{name} is {list(stored[name])} there and {list(shape)} in the model"
        for name, shape in wanted.items()
        if stored[name] != tuple(shape)
    ]
    if wrong:
        raise ValueError(
            f"{prefix} has other shapes than this model: {_some(wrong, '; ')}. "
            "Use the bert_config.json and vocab.txt that belong to it."
        )


# ---- The state of a run -----------------------------------------------------


class TrainState:
    """Everything that a run needs to go on where it stopped."""

    def __init__(
        self,
        model: keras.Model,
        optimizer: optimization.Optimizer,
        seed: int,
        keep: int = 5,
        write: bool = True,
        batch_size: int | None = None,
        untrained: Collection[str] = (),
    ):
        """Takes a model and a built optimizer.

        Args:
            model: its variables are saved under their paths.
            optimizer: its slots likewise.
            seed: of the data order; a run can't be resumed with another.
            keep: how many checkpoints to keep, as the original.
            write: whether this process is the one that writes.
            batch_size: records of a step. With it the run goes on from the
                original's checkpoints too, which tell no data position.
            untrained: names of variables of the model that nothing trains.
                Moments that a checkpoint has of them are left out.
        """
        self.model = model
        self.seed = seed
        self.keep = keep
        self.write = write
        self.batch_size = batch_size
        self.untrained = frozenset(untrained)
        self.step = 0
        self.records = 0  # records consumed, over all epochs
        self.variables: dict[str, Any] = {
            v.path: v for v in model.variables
        } | optimizer.slots

    def save(self, folder: str) -> str:
        """Writes model.ckpt-STEP and removes the oldest beyond `keep`."""
        prefix = os.path.join(folder, f"model.ckpt-{self.step}")
        if not self.write:
            return prefix
        tensors = {n: _value(v) for n, v in self.variables.items()}
        tensors[GLOBAL_STEP] = np.int64(self.step)
        tensors[RECORDS] = np.int64(self.records)
        tensors[SEED] = np.int64(self.seed)
        try:
            write(prefix, tensors)
            # Later ones are unreadable and were passed over.
            found = numbered(folder).items()
            prefixes = [path for step, path in found if step <= self.step]
            write_state(folder, prefixes[-self.keep :])
        # Of a full disk, for example; or of a bucket.
        except (OSError, tf.errors.OpError) as error:
            last = latest(folder)
            reason = getattr(error, "message", None) or str(error)
            raise OSError(
                f"Step {self.step} could not be saved in {folder}: "
                f"{reason}. The last whole checkpoint is "
                f"{os.path.basename(last) if last else 'none'}. Once there is "
                "room, the same command goes on from it."
            ) from error
        for old in prefixes[: -self.keep]:
            remove(old)
        return prefix

    def resume(self, folder: str) -> bool:
        """Restores the newest readable checkpoint of a run.

        Returns:
            Whether there was one.
        """
        if self.write:
            remove_leftovers(folder)
        found = list(numbered(folder).values())
        for prefix in reversed(found):
            try:
                self._restore(prefix)
            except UnreadableError as error:
                logging.warning("%s Passing it over.", error)
                continue
            return True
        if found:
            raise ValueError(
                f"None of the checkpoints in {folder} can be read. Remove "
                "them to start again, or choose another output_dir."
            )
        return False

    def _restore(self, prefix: str) -> None:
        stored = shapes(prefix)
        position = {RECORDS, SEED}
        is_originals = bool(self.batch_size) and not position & stored.keys()
        wanted = self.variables.keys() | {GLOBAL_STEP}
        wanted |= set() if is_originals else position
        # As runs had them that trained, and decayed, what nothing reads.
        unused = resuming.moments_of(stored, self.untrained)
        resuming.check(prefix, wanted, stored.keys() - unused)
        _check_shapes(
            prefix, stored, {v.path: v.shape for v in self.model.variables}
        )
        values = read(prefix, sorted(wanted))
        step = int(values[GLOBAL_STEP])
        records, seed = step * (self.batch_size or 0), self.seed
        if not is_originals:
            records, seed = int(values[RECORDS]), int(values[SEED])
        if seed != self.seed:
            raise ValueError(
                f"{prefix} was made with another seed, so the data would come "
                f"in another order. Received: seed={self.seed}, in the "
                f"checkpoint {seed}"
            )
        for name, variable in self.variables.items():
            variable.assign(values[name])
        self.step, self.records = step, records
        if is_originals:
            logging.info(
                "%s does not tell its place in the data, as the original's "
                "don't: going on behind %d records (%d steps of %d), in the "
                "order of seed %d.",
                *(prefix, self.records, step, self.batch_size, self.seed),
            )
        if unused:
            logging.info(
                "%s has moments of variables that nothing trains, which are "
                "left out: %s stay as they are.",
                *(prefix, ", ".join(sorted(self.untrained))),
            )


def _value(variable: Any) -> tf.Tensor:
    """The value of a Keras or TensorFlow variable, from one replica."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return tf.convert_to_tensor(variable)


def write_state(folder: str, prefixes: Sequence[str]) -> None:
    """Writes the file `checkpoint`, by which TensorFlow finds the newest."""
    names = [os.path.basename(prefix) for prefix in prefixes]
    lines = [f'model_checkpoint_path: "{names[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    files.write_lines(os.path.join(folder, "checkpoint"), lines)


def remove(prefix: str) -> None:
    """Deletes a checkpoint."""
    # The index first: without it the rest is no checkpoint.
    for path in sorted(
        tf.io.gfile.glob(glob_escape(prefix) + ".*"),
        key=lambda path: not path.endswith(".index"),
    ):
        tf.io.gfile.remove(path)


def remove_leftovers(folder: str, names: Sequence[str] = ()) -> None:
    """Deletes what a killed process left half-written.

    Args:
        folder: of a run, or of its best weights.
        names: of other files than checkpoints that are written there.
    """
    _remove_all(os.path.join(glob_escape(folder), "model.ckpt-*.tmp*"))
    files.remove_leftovers(folder, ["checkpoint", *names])
