"""Measures the cost of a token as sequences, batches and models grow.

    pip install -e '.[viz]'
    python -m benchmarks.cost_curves --picture=/tmp/cost_curves.png

Times run_pretraining.py's step, each point in a separate process, along three
curves that start at one BERT-mini: length at 4,096 tokens per step, batch, and
layers. Prints the time of a step and of a token; the speed in required FLOP/s,
which rises slowly or stays constant if the curves have no kink; and the memory
that the model and steps add to the process, next to our estimate.
"""

import dataclasses
import importlib
import json

from benchmarks import own_process, pretraining_step

from absl import app, flags

_MODEL = flags.DEFINE_string("model", "mini", "Of configs/models.")
_SECONDS = flags.DEFINE_float("seconds", 8.0, "Of steps at every point.")
_POINTS = flags.DEFINE_integer("points", 4, "Of every curve at most.", 1)
_PICTURE = flags.DEFINE_string("picture", None, "PNG file to write.")
_RUN = flags.DEFINE_string("run", None, "Internal: the point to measure.")

TOKENS = 4096
LENGTHS = (64, 128, 256, 512)
BATCHES = (8, 16, 32, 64)
LAYERS = (2, 4, 6, 8)


@dataclasses.dataclass(frozen=True)
class Point:
    """A step to measure; 15% of its words are predicted."""

    layers: int
    batch: int
    length: int

    @property
    def predictions(self) -> int:
        return round(0.15 * self.length) + 1

    @property
    def tokens(self) -> int:
        return self.batch * self.length


@dataclasses.dataclass(frozen=True)
class Cost:
    """The measured cost of a point, and our estimate."""

    seconds: float  # of a step
    memory: float  # bytes
    flops: float  # required for a step
    estimate: float  # bytes


# Varied property -> the points.
CURVES = {
    "length": [Point(4, TOKENS // S, S) for S in LENGTHS],
    "batch": [Point(4, B, 128) for B in BATCHES],
    "layers": [Point(L, TOKENS // 128, 128) for L in LAYERS],
}


def config_of(point: Point) -> dict:
    """Returns the config with the point's number of layers."""
    config = pretraining_step.config_of(_MODEL.value)
    return config | {"num_hidden_layers": point.layers}


def measure(point: Point) -> Cost:
    """Times steps in this process, and measures the memory they add."""
    importlib.import_module("bert_tf.heads")
    from bert_tf import modeling
    from bert_tf.training import accelerators, memory_use

    before = pretraining_step.resident()
    config, P = config_of(point), point.predictions
    step, _ = pretraining_step.make(config, point.batch, point.length, P)
    seconds = pretraining_step.timed(step, _SECONDS.value)
    peak = accelerators.peak_of_process()
    model = modeling.BertConfig(**config)
    B, S = point.batch, point.length
    return Cost(
        seconds,
        peak - before,
        accelerators.training_flops(model, B, B * S, B * S * S, B * P),
        memory_use.training_memory(model, B, S, P).total,
    )


def run(point: Point) -> Cost:
    """Measures a point in a separate process."""
    line = own_process.last_line(
        "benchmarks.cost_curves",
        f"--run={json.dumps(dataclasses.asdict(point))}",
        *(f"--model={_MODEL.value}", f"--seconds={_SECONDS.value}"),
    )
    return Cost(**json.loads(line))


def draw(costs: dict[Point, Cost], path: str) -> None:
    """Plots the curves: time and memory per token."""
    plots = importlib.import_module("matplotlib.pyplot")
    figure, axes = plots.subplots(
        2, len(CURVES), figsize=(10, 6), layout="constrained", squeeze=False
    )
    for column, (name, points) in enumerate(CURVES.items()):
        points = [point for point in points if point in costs]
        places = [getattr(point, name) for point in points]
        known = [costs[point] for point in points]
        tokens = [point.tokens for point in points]
        pairs = list(zip(known, tokens, strict=True))
        time, memory = axes[0][column], axes[1][column]
        time.plot(places, [1e6 * c.seconds / n for c, n in pairs], "o-")
        measured = [c.memory / 1e6 for c in known]
        memory.plot(places, measured, "o-", label="measured")
        expected = [c.estimate / 1e6 for c in known]
        memory.plot(places, expected, "--", label="estimate")
        memory.set_xlabel(name)
        for axis, label in ((time, "µs per token"), (memory, "MB")):
            axis.set_ylim(bottom=0)
            axis.set_xticks(places)
            axis.set_ylabel(label)
    axes[1][0].legend()
    figure.suptitle(f"A pre-training step of {_MODEL.value}")
    figure.savefig(path, dpi=150)


def main(argv):
    """Measures all points and prints the table."""
    del argv
    if _RUN.value:
        point = Point(**json.loads(_RUN.value))
        print(json.dumps(dataclasses.asdict(measure(point))))
        return
    costs: dict[Point, Cost] = {}
    print("curve    layers batch length   s/step us/token GFLOP/s  MB (said)")
    for name, points in CURVES.items():
        for point in points[: _POINTS.value]:
            if point not in costs:
                costs[point] = run(point)
            cost = costs[point]
            print(
                f"{name:8} {point.layers:6} {point.batch:5} {point.length:6} "
                f"{cost.seconds:8.3f} "
                f"{1e6 * cost.seconds / point.tokens:8.1f} "
                f"{cost.flops / cost.seconds / 1e9:7.1f} "
                f"{cost.memory / 1e6:6.0f} ({cost.estimate / 1e6:.0f})",
                flush=True,
            )
    if _PICTURE.value:
        draw(costs, _PICTURE.value)


if __name__ == "__main__":
    app.run(main)
