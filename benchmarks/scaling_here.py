"""Tests the model of scaling.py on the local machine.

    python -m benchmarks.scaling_here

Times run_pretraining.py's step for several shapes in float32, each in a
separate process. Two shapes determine the speed of products and memory; the
time of the others is predicted from it. Prints the errors.
"""

import dataclasses
import json

from benchmarks import own_process, pretraining_step, scaling
from bert_tf.flags import command_line
from bert_tf.training import accelerators

import numpy as np
from absl import flags

_SECONDS = flags.DEFINE_float("seconds", 8.0, "Of steps of every shape.")
_RUN = flags.DEFINE_string("run", None, "Internal: the shape to measure.")

# (model, batch, length).
FITTED = (("mini", 32, 128), ("base", 8, 128))
PREDICTED = (
    ("small", 32, 128),
    ("mini", 8, 128),
    ("mini", 64, 64),
    ("mini", 8, 512),
    ("small", 8, 512),
    ("base", 2, 512),
)
# A device on which FLOPs and bytes equal seconds.
_UNIT = accelerators.Device("here", {"float32": 1.0}, 1.0, 1.0, 1.0)
_WHOLE = scaling.Shares(1.0, 1.0, 0.0)


def run_of(model: str, batch: int, length: int) -> scaling.Run:
    """Returns a step of a shape, on a device of 1 FLOP/s and 1 byte/s."""
    config = scaling.load(model)
    return scaling.Run(
        config, _UNIT, 1, length, batch, 1, dtype="float32", shares=_WHOLE
    )


def work(run: scaling.Run) -> tuple[float, float]:
    """Returns the FLOPs and the memory traffic in bytes of a step."""
    return run.product_seconds(), run.memory_seconds() + run.update_seconds()


def fit(works: list[tuple[float, float]], seconds: list[float]) -> np.ndarray:
    """Returns the seconds per FLOP and per byte, from two steps."""
    found = np.linalg.solve(np.array(works), np.array(seconds))
    if (found <= 0).any():
        raise SystemExit(
            "The times of the two shapes contradict the model: products or "
            f"memory would take no time. Received: {seconds} s"
        )
    return found


def measure(model: str, batch: int, length: int) -> float:
    """Returns the seconds of a step, in a separate process."""
    shape = json.dumps([model, batch, length])
    return float(
        own_process.last_line(
            "benchmarks.scaling_here",
            f"--run={shape}",
            f"--seconds={_SECONDS.value}",
        )
    )


def main(_: list[str]) -> None:
    """Measures, fits, predicts and prints."""
    if _RUN.value:
        model, batch, length = json.loads(_RUN.value)
        run = run_of(model, batch, length)
        config = dataclasses.asdict(run.config)
        step, _ = pretraining_step.make(config, batch, length, run.predictions)
        print(pretraining_step.timed(step, _SECONDS.value))
        return
    works = [work(run_of(*shape)) for shape in FITTED]
    costs = fit(works, [measure(*shape) for shape in FITTED])
    speeds = 1 / costs / 1e9
    print(f"Fitted: {speeds[0]:.0f} GFLOP/s, {speeds[1]:.1f} GB/s")
    print("model batch length  s/step  predicted  error")
    for shape in PREDICTED:
        found = measure(*shape)
        predicted = np.dot(work(run_of(*shape)), costs)
        print(
            f"{shape[0]:6}{shape[1]:5}{shape[2]:7}{found:8.3f}"
            f"{predicted:11.3f}{predicted / found - 1:+7.0%}",
            flush=True,
        )


if __name__ == "__main__":
    command_line.run(main)
