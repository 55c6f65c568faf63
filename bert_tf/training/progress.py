"""Reports the progress of a run: screen, metrics.jsonl, TensorBoard."""

import fractions
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence

from bert_tf import files, phases, terminals
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, run_lock
from bert_tf.training import trackers

import numpy as np
import tensorflow as tf
from absl import logging

# What tf.summary.scalar writes: that function needs TensorBoard installed.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
)


# Raw counts of a block, which the meter uses and nobody sees.
_COUNTS = re.compile(
    r"^(steps|seconds|input_seconds|sequences|tokens|pairs|.*_weight)$"
)
# Seconds between writes into a bucket. Each sends all of a file again.
_BETWEEN_WRITES = 60.0
# A key of metrics.jsonl that only evaluations have.
_EVALUATION = "eval_best_step"
# Columns of the time before a line, and the indent of its continuation lines.
_TIME, _INDENT = 9, 4
# How the meter's values are shown on screen.
_MEASURED: dict[str, Callable[[float], str]] = {
    "input_share": lambda share: f"waiting for data {100 * share:.0f}%",
    "peak_memory": lambda size: f"memory {size / 2**30:.1f} GiB",
    "flops_utilization": lambda share: f"{100 * share:.0f}% of peak FLOP/s",
    "loss_scale": lambda scale: f"loss scale {scale:.0f}",
    "skipped_steps": lambda count: f"{count:.0f} steps skipped",
    "pruned_share": lambda share: f"{100 * share:.1f}% pruned",
}
# Metrics that are shown next to their loss.
_SHARES = ("accuracy", "precision", "recall")
# Values below these are not shown on screen.
_LEAST = {"input_share": 0.05}


class Profile:
    """A hook that traces the steps between two given steps, for TensorBoard.

    If the run ends before the second, `close` writes the trace so far.
    """

    def __init__(self, folder: str, steps: tuple[int, int]):
        self.folder = folder
        self.first, self.last = steps
        self.runs = False

    def __call__(self, step: int) -> None:
        if step == self.first:
            tf.profiler.experimental.start(self.folder)
            self.runs = True
        elif self.runs:
            self._write(f"{self.last}")

    def close(self) -> None:
        """Ends a trace that is still running."""
        if self.runs:
            self._write("where the run ended")

    def _write(self, end: str) -> None:
        self.runs = False
        tf.profiler.experimental.stop()
        logging.info(
            "Traced steps %d to %s; see: tensorboard --logdir %s",
            self.first + 1,
            end,
            shlex.quote(self.folder),
        )


def check_profile(steps: tuple[int, int] | None, stop: int) -> None:
    """Raises InputError if a trace would continue after the run's last step."""
    if steps and steps[1] > stop:
        raise InputError(
            f"--profile_steps must end by the last step of the run, {stop}. "
            f"Received: profile_steps={steps[0]}:{steps[1]}"
        )


class Progress:
    """Reports the metrics of consecutive training steps.

    On screen: step, epoch of `epoch_steps` steps, time left, losses and
    accuracies, learning rate, gradient norm, sequences and real (non-padding)
    tokens per second, and the meter's values. The same numbers go to
    TensorBoard, to trackers and to metrics.jsonl, one JSON object a line. Lines
    of metrics.jsonl after step `start` are removed, since those steps run
    again. Processes that do not `write` need the hook as well, so that all
    train in the same blocks of steps. In a bucket, lines are written once a
    minute, after an evaluation, and by `flush`.

    At a terminal a bar has the numbers that matter most, and lines come at most
    every ten seconds.
    """

    def __init__(
        self,
        folder: str,
        start: int,
        stop: int,
        write: bool = True,
        meter: Callable[[Mapping[str, float]], dict[str, float]] | None = None,
        epoch_steps: fractions.Fraction | int | None = None,
        tracked: trackers.Trackers | None = None,
    ):
        self.step, self.stop = start, stop
        self.epoch_steps = epoch_steps
        self.path = os.path.join(folder, "metrics.jsonl")
        self.write = write
        self.meter = meter
        self.tracked = tracked
        self.memory: str | None = None  # as it was last shown
        self._steps = self._seconds = 0.0
        self._bar: phases.Bar | None = None
        self._line_meter = phases.Meter()
        self._unwritten: list[tuple[int, Mapping[str, float]]] = []
        self._written_at = -_BETWEEN_WRITES
        if not write:
            return
        # Lines of later steps go, and a line cut off by a crash.
        if tf.io.gfile.exists(self.path):
            lines = _lines_and_steps(self.path)
            kept = [line for line, at in lines if at <= start]
            files.write_bytes(self.path, b"".join(kept))
        # TensorFlow makes the file again, by this path, where it is not there.
        path = run_lock.handle_path(folder)
        # By default it would send the file again every ten events.
        self.writer = tf.summary.create_file_writer(path, max_queue=10**6)

    def __call__(self, step: int, scalars: dict[str, float]) -> None:
        if not self.write:
            return
        measured = self.meter(scalars) if self.meter else {}
        self.step, speeds = step, {}
        if "seconds" in scalars:
            seconds = scalars["seconds"]
            speeds = {
                f"{name}_per_second": scalars[name] / seconds
                for name in ("sequences", "tokens")
            }
            self._steps += scalars["steps"]
            self._seconds += seconds
        # The meter has read the raw counts; nobody else needs them.
        scalars = {k: v for k, v in scalars.items() if not _COUNTS.search(k)}
        scalars |= speeds | measured
        if self._bar is None and phases.are_bars_possible():
            self._bar = phases.Bar(self.stop)
        left = None
        if self._steps:
            left = (self.stop - step) * self._seconds / self._steps
        shown = self._place(left, scalars["loss"])
        self._show(step, shown, scalars)
        self._record(step, scalars)

    def evaluation(
        self, step: int, results: Mapping[str, float], best_step: int
    ) -> None:
        """Reports the results of an evaluation, with the prefix "eval_".

        `best_step` is the step of the best evaluation, or 0 if none counts yet.
        """
        if not self.write:
            return
        named = {
            _of_evaluation(name): float(value)
            for name, value in results.items()
        }
        texts = [f"{name} {value:.4f}" for name, value in named.items()]
        if best_step:
            is_best = step == best_step
            texts.append("the best" if is_best else f"best {best_step:,}")
        named[_EVALUATION] = best_step
        shown = [f"step {step:,}/{self.stop:,}", *texts]
        logging.info("%s", _lines(shown))
        self._record(step, named)
        self.flush()  # A resumed run reads them.

    def _record(self, step: int, scalars: Mapping[str, float]) -> None:
        self._unwritten.append((step, scalars))
        is_due = time.monotonic() - self._written_at >= _BETWEEN_WRITES
        if is_due or not file_systems.is_remote(self.path):
            self.flush()
        if self.tracked:
            self.tracked.write(step, scalars)

    def flush(self) -> None:
        """Writes the lines and events that are not yet in the folder."""
        if not self._unwritten:
            return
        unwritten, self._unwritten = self._unwritten, []
        lines = [json.dumps({"step": step, **x}) for step, x in unwritten]
        folder, name = os.path.split(self.path)
        with (
            files.locked_folder(folder) as locked,
            files.naming(folder, locked),
        ):
            try:
                with tf.io.gfile.GFile(os.path.join(locked, name), "a") as file:
                    file.write("".join(f"{line}\n" for line in lines))
            except tf.errors.OpError:
                # Half a line may be in a folder. A bucket has all or nothing.
                if file_systems.is_remote(self.path):
                    self._unwritten = unwritten
                raise
            with self.writer.as_default():
                for step, scalars in unwritten:
                    for name, value in scalars.items():
                        tf.summary.write(name, np.float32(value), step, _SCALAR)
                self.writer.flush()
        self._written_at = time.monotonic()

    def close(self) -> None:
        """Writes the remaining lines, and removes the bar.

        A run that ends with an error says that one: others are only logged.
        """
        try:
            self.flush()
        except (OSError, tf.errors.OpError) as error:
            logging.warning("The last lines of %s: %s", self.path, error)
        finally:
            if self._bar is not None:
                self._bar.close()

    def _show(
        self, step: int, place: list[str], scalars: dict[str, float]
    ) -> None:
        is_due = self._line_meter.is_due() or step == self.stop
        if self._bar is not None:
            self._bar.show(step, [*place, *_speeds(scalars)[:1]])
        if self._bar is None or is_due:
            logging.info("%s", self._line(place, scalars))

    def _line(self, place: list[str], scalars: dict[str, float]) -> str:
        step, *rest = place
        share = 100 * self.step // self.stop
        shown = [
            f"step {step} ({share}%)",
            *rest,
            *_of_losses(scalars),
            f"learning_rate {scalars['learning_rate']:.2e}",
            f"gradient_norm {scalars['gradient_norm']:.2f}",
            *_speeds(scalars),
        ]
        measured = {
            name: text(scalars[name])
            for name, text in _MEASURED.items()
            if name in scalars and scalars[name] >= _LEAST.get(name, 0)
        }
        # Memory use only grows: show it when it changes.
        if measured.get("peak_memory") == self.memory:
            measured.pop("peak_memory", None)
        self.memory = measured.get("peak_memory", self.memory)
        return _lines([*shown, *measured.values()])

    def _place(self, left: float | None, loss: float) -> list[str]:
        """Returns texts of the step, the epoch, the time left and the loss."""
        shown = [f"{self.step:,}/{self.stop:,}"]
        if self.epoch_steps:
            epochs = (-(-x // self.epoch_steps) for x in (self.step, self.stop))
            shown.append("epoch {}/{}".format(*epochs))
        if left is not None:
            shown.append(f"{phases.duration(left)} left")
        return [*shown, f"loss {loss:.4f}"]


def _speeds(scalars: Mapping[str, float]) -> list[str]:
    """Returns texts of the speeds, if they are known."""
    if "sequences_per_second" not in scalars:
        return []
    return [
        f"{scalars['sequences_per_second']:,.1f} sequences/s",
        f"{scalars['tokens_per_second']:,.0f} tokens/s",
    ]


def _of_losses(scalars: Mapping[str, float]) -> list[str]:
    """Formats each loss with its metrics; a single loss only by metrics."""
    names = [x.removesuffix("_loss") for x in scalars if x.endswith("_loss")]
    shares = [x for x in scalars if x.endswith(_SHARES)]
    texts = []
    for name in names if len(names) > 1 else ():
        own = [x for x in shares if x.startswith(f"{name}_")]
        shares = [x for x in shares if x not in own]
        loss = f"{name} {scalars[f'{name}_loss']:.4f}"
        metrics = [f"{x.rpartition('_')[2]} {scalars[x]:.4f}" for x in own]
        texts.append(f"{loss} ({', '.join(metrics)})" if own else loss)
    for key in shares:
        name = key.removeprefix(f"{names[0]}_") if len(names) == 1 else key
        texts.append(f"{name} {scalars[key]:.4f}")
    return texts


def _lines(texts: Sequence[str]) -> str:
    width = terminals.columns()
    lines, left = [texts[0]], width - _TIME
    for text in texts[1:]:
        if len(lines[-1]) + 2 + len(text) <= left:
            lines[-1] += f"  {text}"
        else:
            lines.append(text)
            left = width - _INDENT
    return f"\n{' ' * _INDENT}".join(lines)


def check_lines(folder: str) -> None:
    """Raises InputError if a run can't continue its metrics.jsonl."""
    path = os.path.join(folder, "metrics.jsonl")
    if tf.io.gfile.exists(path):
        _lines_and_steps(path)


def _lines_and_steps(path: str) -> list[tuple[bytes, int]]:
    with tf.io.gfile.GFile(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    found = []
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            continue
        try:
            found.append((line, int(json.loads(line)["step"])))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            text = line.decode(errors="replace").rstrip()
            raise InputError(
                f"{path}, line {number}, is no JSON object with a `step`. "
                f"Remove it, or move the file away. Received: {text[:80]}"
            ) from error
    return found


def scores(folder: str, metric: str) -> list[float]:
    """Returns a metric of all evaluations in metrics.jsonl, ordered by step."""
    name, found = _of_evaluation(metric), evaluations(folder)
    return [found[step][name] for step in sorted(found)]


def best_until(folder: str, step: int, metric: str) -> tuple[int, float] | None:
    """Returns the step and score of the best evaluation up to a step.

    The step is 0 if no evaluation counted. The result is None if metrics.jsonl
    is missing or has no line for the best.
    """
    if not tf.io.gfile.exists(os.path.join(folder, "metrics.jsonl")):
        return None
    found = evaluations(folder)
    last = max((x for x in found if x <= step), default=0)
    if not last:
        return 0, 0.0
    at = int(found[last][_EVALUATION])
    name = _of_evaluation(metric)
    if not at:
        return 0, 0.0
    return (at, found[at][name]) if name in found.get(at, {}) else None


def evaluations(folder: str) -> dict[int, dict[str, float]]:
    """Returns the evaluations in metrics.jsonl by step."""
    path = os.path.join(folder, "metrics.jsonl")
    if not tf.io.gfile.exists(path):
        return {}
    with tf.io.gfile.GFile(path, "r") as file:
        # A line may be cut off by a crash.
        texts = [x for x in file if _EVALUATION in x and x.endswith("\n")]
    lines = map(json.loads, texts)
    return {line["step"]: line for line in lines}


def _of_evaluation(name: str) -> str:
    """Returns the name of an evaluation's result in metrics.jsonl."""
    return f"eval_{name.removeprefix('eval_')}"


def write_results(path: str, results: dict[str, float]) -> None:
    """Writes sorted `name = value` lines, as the original; logs a table."""
    names = sorted(results)
    files.write_lines(path, [f"{name} = {results[name]}" for name in names])
    logging.info("Results, written to %s:", path)
    width = max(map(len, names))
    for name in names:
        logging.info("  %s  %s", name.ljust(width), _short(results[name]))


def _short(value: float) -> str:
    """Formats integers and whole numbers from 2 in full, others in 4 digits."""
    is_large = float(value).is_integer() and abs(value) >= 2
    if isinstance(value, int) or is_large:
        return f"{value:,.0f}"
    return f"{value:.4f}" if abs(value) >= 0.001 else f"{value:.4g}"
