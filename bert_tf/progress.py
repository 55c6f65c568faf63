"""What a user sees of a run: the screen, metrics.jsonl, TensorBoard."""

import json
import os

import numpy as np
import tensorflow as tf
from absl import logging

# What tf.summary.scalar writes; it needs the viewer installed, this does not.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
)


class Progress:
    """A hook of the training loop that reports the block's scalars.

    On screen: step, losses and accuracies, learning rate, sequences and real
    (non-padding) tokens per second, time left. The same numbers go to
    metrics.jsonl, one object a line, and to TensorBoard event files.
    """

    def __init__(self, folder: str, start: int, stop: int, write: bool = True):
        """Takes up the files of an earlier part of the run.

        Args:
            folder: the run's. Lines of metrics.jsonl after step `start` are
                removed: those steps are made again.
            start: steps made before.
            stop: steps to have made at the end.
            write: whether this process is the one that writes. The others
                need the hook as well: they must make the same blocks of steps.
        """
        self.step, self.stop = start, stop
        self.path = os.path.join(folder, "metrics.jsonl")
        self.write = write
        if not write:
            return
        _keep_lines_until(self.path, start)
        self.writer = tf.summary.create_file_writer(folder)

    def __call__(self, step: int, scalars: dict[str, float]) -> None:
        """Reports the block of steps that ended at `step`."""
        if not self.write:
            return
        scalars = dict(scalars)
        steps, self.step = scalars.pop("steps"), step
        seconds = scalars.pop("seconds")
        for name in ("sequences", "tokens"):
            scalars[f"{name}_per_second"] = scalars.pop(name) / seconds
        left = (self.stop - step) * seconds / steps
        logging.info("%s", self._line(scalars, left))
        with tf.io.gfile.GFile(self.path, "a") as file:
            file.write(json.dumps({"step": step} | scalars) + "\n")
        with self.writer.as_default(step=step):
            for name, value in scalars.items():
                tf.summary.write(name, np.float32(value), metadata=_SCALAR)
        self.writer.flush()

    def _line(self, scalars: dict[str, float], left: float) -> str:
        sequences = scalars["sequences_per_second"]
        tokens = scalars["tokens_per_second"]
        shown = {
            name: f"{name} {value:.4f}"
            for name, value in scalars.items()
            if name != "gradient_norm"
        } | {
            "learning_rate": f"learning_rate {scalars['learning_rate']:.2e}",
            "sequences_per_second": f"{sequences:.1f} sequences/s",
            "tokens_per_second": f"{tokens:,.0f} tokens/s",
        }
        step = f"step {self.step:,}/{self.stop:,}"
        return "  ".join([step, *shown.values(), f"{duration(left)} left"])


def _keep_lines_until(path: str, step: int) -> None:
    """Drops lines of later steps, and a line cut off by a crash."""
    if not tf.io.gfile.exists(path):
        return
    with tf.io.gfile.GFile(path, "r") as file:
        lines = file.read().splitlines(keepends=True)
    kept = []
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            continue
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}, is no JSON object with a `step`. "
                f"Remove it, or move the file away. Received: {line.rstrip()}"
            ) from error
    temporary = f"{path}.tmp{os.getpid()}"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write("".join(kept))
    tf.io.gfile.rename(temporary, path, overwrite=True)


def duration(seconds: float) -> str:
    """Formats seconds as 1d 02:03:04, without leading empty parts."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{minutes}:{seconds:02d}"
    if hours or days:
        text = f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{days}d {text}" if days else text


def write_results(path: str, results: dict[str, float]) -> None:
    """Writes sorted `name = value` lines, as the original, and shows them."""
    lines = [f"{name} = {results[name]}" for name in sorted(results)]
    temporary = f"{path}.tmp{os.getpid()}"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write("\n".join(lines) + "\n")
    tf.io.gfile.rename(temporary, path, overwrite=True)
    logging.info("***** Results, written to %s *****", path)
    for line in lines:
        logging.info("  %s", line)
