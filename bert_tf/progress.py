"""What a user sees of a run: the screen, metrics.jsonl, TensorBoard."""

import json
import os
import re
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf
from absl import logging

# What tf.summary.scalar writes; it needs the viewer installed, this does not.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
)


# Of a block, not to be shown: they are measured by.
_COUNTS = re.compile(
    r"^(steps|seconds|input_seconds|sequences|tokens|pairs|.*_weight)$"
)
# What of metrics.jsonl only evaluations have.
_EVALUATION = "eval_best_step"
# What a meter says, as it is on screen.
_MEASURED: dict[str, Callable[[float], str]] = {
    "flops_utilization": lambda share: f"{share:.0%} of peak",
    "input_share": lambda share: f"{share:.0%} waiting for input",
    "peak_memory": lambda size: f"{size / 2**30:.1f} GiB",
    "loss_scale": lambda scale: f"loss scale {scale:.0f}",
    "skipped_steps": lambda count: f"{count:.0f} skipped",
}


class Profile:
    """A hook that writes a trace of some steps for TensorBoard.

    It starts when it is called at the first step of `steps` and ends at the
    other.
    """

    def __init__(self, folder: str, steps: tuple[int, int], stop: int):
        """Takes the run's folder, the steps, and the run's last step."""
        self.folder = folder
        self.first, self.last = steps
        self.runs = False
        if self.last > stop:
            raise ValueError(
                "--profile_steps must end by the last step of the run, "
                f"{stop}. Received: profile_steps={self.first}:{self.last}"
            )

    def __call__(self, step: int, scalars: Mapping[str, float]) -> None:
        """Starts or ends the trace."""
        if step == self.first:
            tf.profiler.experimental.start(self.folder)
            self.runs = True
        elif self.runs:
            tf.profiler.experimental.stop()
            self.runs = False
            logging.info(
                "Traced steps %d to %d; see: tensorboard --logdir %s",
                self.first + 1,
                self.last,
                self.folder,
            )


class Progress:
    """A hook of the training loop that reports the block's scalars.

    On screen: step, losses and accuracies, learning rate, norm of the
    gradients, sequences and real (non-padding) tokens per second, what the
    meter says, time left. The same numbers go to metrics.jsonl, one object a
    line, and to TensorBoard event files.
    """

    def __init__(
        self,
        folder: str,
        start: int,
        stop: int,
        write: bool = True,
        meter: Callable[[Mapping[str, float]], dict[str, float]] | None = None,
    ):
        """Takes up the files of an earlier part of the run.

        Args:
            folder: the run's. Lines of metrics.jsonl after step `start` are
                removed: those steps are made again.
            start: steps made before.
            stop: steps to have made at the end.
            write: whether this process is the one that writes. The others
                need the hook as well: they must make the same blocks of steps.
            meter: the block's scalars -> what they took of the devices.
        """
        self.step, self.stop = start, stop
        self.path = os.path.join(folder, "metrics.jsonl")
        self.write = write
        self.meter = meter
        if not write:
            return
        _keep_lines_until(self.path, start)
        self.writer = tf.summary.create_file_writer(folder)

    def __call__(self, step: int, scalars: dict[str, float]) -> None:
        """Reports the block of steps that ended at `step`."""
        if not self.write:
            return
        measured = self.meter(scalars) if self.meter else {}
        steps, self.step = scalars["steps"], step
        seconds = scalars["seconds"]
        speeds = {
            f"{name}_per_second": scalars[name] / seconds
            for name in ("sequences", "tokens")
        }
        # Raw counts are there for the meter.
        scalars = {k: v for k, v in scalars.items() if not _COUNTS.search(k)}
        scalars |= speeds | measured
        left = (self.stop - step) * seconds / steps
        logging.info("%s", self._line(scalars, left))
        self._record(step, scalars)

    def evaluation(
        self, step: int, results: Mapping[str, float], best_step: int
    ) -> None:
        """Reports an evaluation.

        Args:
            step: steps made.
            results: by name, which gets "eval_" before it where it has not.
            best_step: when the best evaluation of the run was.
        """
        if not self.write:
            return
        named = {
            f"eval_{name.removeprefix('eval_')}": float(value)
            for name, value in results.items()
        }
        texts = [f"{name} {value:.4f}" for name, value in named.items()]
        texts.append("the best" if step == best_step else f"best {best_step:,}")
        named[_EVALUATION] = best_step
        logging.info("step %s  %s", f"{step:,}/{self.stop:,}", "  ".join(texts))
        self._record(step, named)

    def _record(self, step: int, scalars: Mapping[str, float]) -> None:
        """Adds a line to metrics.jsonl, and events for TensorBoard."""
        with tf.io.gfile.GFile(self.path, "a") as file:
            file.write(json.dumps({"step": step, **scalars}) + "\n")
        with self.writer.as_default(step=step):
            for name, value in scalars.items():
                tf.summary.write(name, np.float32(value), metadata=_SCALAR)
        self.writer.flush()

    def _line(self, scalars: dict[str, float], left: float) -> str:
        sequences = scalars["sequences_per_second"]
        tokens = scalars["tokens_per_second"]
        shown = {name: f"{name} {value:.4f}" for name, value in scalars.items()}
        shown |= {
            "learning_rate": f"learning_rate {scalars['learning_rate']:.2e}",
            "gradient_norm": f"norm {scalars['gradient_norm']:.2f}",
            "sequences_per_second": f"{sequences:.1f} sequences/s",
            "tokens_per_second": f"{tokens:,.0f} tokens/s",
        }
        for name, text in _MEASURED.items():
            if name in scalars:
                shown[name] = text(scalars[name])
        losses = [name for name in scalars if name.endswith("_loss")]
        if len(losses) == 1:  # It is the loss.
            del shown[losses[0]]
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


def last_evaluation(folder: str) -> int:
    """Returns the last step of which metrics.jsonl has an evaluation, or 0."""
    path = os.path.join(folder, "metrics.jsonl")
    if not tf.io.gfile.exists(path):
        return 0
    with tf.io.gfile.GFile(path, "r") as file:
        # A line may be cut off by a crash.
        lines = [x for x in file if _EVALUATION in x and x.endswith("\n")]
    return max((json.loads(line)["step"] for line in lines), default=0)


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
