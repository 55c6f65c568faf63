"""Profiles a pre-training step, by kind of operation.

    python -m benchmarks.step_profile --models=mini,small,base

The step of training_speed.py, traced by TensorFlow's profiler on one thread:
operations run one at a time, so their times add up to the step's. Prints the
share and the speed of matrix products, next to the fastest product found, and
the time of other operations in milliseconds per step.
"""

import collections
import pathlib
import re
import sys
import tempfile

from benchmarks import matrix_products, pretraining_step, training_speed

from absl import app, flags

_STEPS = flags.DEFINE_integer("steps", 3, "Steps to trace.", 1)
_KINDS = flags.DEFINE_integer("kinds", 12, "Kinds of operation to list.", 1)

# An operation in the trace: its name in the graph, and its kind.
_OPERATION = re.compile(r"[^: ]+:(\w+)")
_PRODUCT = "MatMul"
# Operations that contain other operations, or wait for them.
_OUTER = ("PartitionedCall", "While", "Iterator", "PyFunc", "ParseExample")


def trace(model: str) -> dict[str, float]:
    """Returns the seconds of each kind of operation in a step."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    step, _ = pretraining_step.make(
        pretraining_step.config_of(model),
        training_speed.batch_size(model),
        flags.FLAGS.length,
        flags.FLAGS.predictions,
    )
    step(3)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            step(_STEPS.value)
        (path,) = pathlib.Path(folder).glob("**/*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    seconds: dict[str, float] = collections.defaultdict(float)
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                match = _OPERATION.fullmatch(name)
                if match and not any(x in match[1] for x in _OUTER):
                    duration = event.duration_ps / 1e12
                    seconds[match[1]] += duration / _STEPS.value
    return seconds


def report(model: str, seconds: dict[str, float], top: float) -> None:
    """Prints the table of one model.

    Args:
        model: A name in configs/models.
        seconds: Kind of operation -> its time in a step.
        top: The fastest matrix product, in FLOP/s.
    """
    batch = training_speed.batch_size(model)
    config = pretraining_step.config_of(model)
    flops = batch * training_speed.needed_flops(config)
    whole = sum(seconds.values())
    products = sum(t for kind, t in seconds.items() if _PRODUCT in kind)
    print(
        f"{model}: {1e3 * whole:.0f} ms a step of {batch} x "
        f"{flags.FLAGS.length}, {flops / 1e9:.0f} GFLOP in matrix products: "
        f"{100 * products / whole:.0f} % of the time, at "
        f"{100 * flops / products / top:.0f} % of {top / 1e9:.0f} GFLOP/s; "
        f"the step at {100 * flops / whole / top:.0f} %"
    )
    longest = sorted(seconds, key=lambda kind: -seconds[kind])
    for kind in longest[: _KINDS.value]:
        share = 100 * seconds[kind] / whole
        print(f"  {1e3 * seconds[kind]:8.1f} ms  {share:4.1f} %  {kind}")
    sys.stdout.flush()


def main(argv):
    """Traces each model."""
    del argv
    from bert_tf.training import distribution

    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    dtype = flags.FLAGS.dtype
    distribution.set_up("default", dtype)
    top = matrix_products.of_tensorflow(dtype)
    for model in flags.FLAGS.models:
        report(model, trace(model), top)


if __name__ == "__main__":
    app.run(main)
