"""Compares estimated and measured memory of training.

    python -m benchmarks.memory
    python -m benchmarks.memory base:8:128:20 small:32:128:20

Prints, for each MODEL:B:S:P, with and without --remat and micro-batches, the
estimate of `memory_use.training_memory` and the peak memory that weights,
moments and a step add to a process; every measurement has a separate process.
The order in which threads run operations affects the peak: the smallest and the
largest of three measurements are printed.
"""

import multiprocessing
from typing import Any

from benchmarks import pretraining_step
from bert_tf import modeling
from bert_tf.training import accelerators, memory_use

from absl import app

SHAPES = ("mini:32:128:20", "mini:8:512:77", "small:16:128:20")
ROUNDS = 3

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["bert_tf.heads"])


def of_a_step(
    config: dict[str, Any],
    batch: int,
    seq: int,
    predictions: int,
    remat: bool,
    accumulate: int = 1,
) -> int:
    """Returns the peak bytes that model and step add to a process."""
    arguments = (config, batch, seq, predictions, remat, accumulate)
    with _CONTEXT.Pool(1) as pool:
        return pool.apply(_measure, arguments)


def _measure(config, B, S, P, remat, accumulate):
    from bert_tf import heads, optimization
    from bert_tf.training import pretraining, replica_step

    import tensorflow as tf

    before = pretraining_step.resident()
    model = heads.BertPretrainer(modeling.Bert(modeling.BertConfig(**config)))
    model.bert.encoder.remat = remat
    optimizer = optimization.AdamWeightDecay(lambda step: tf.constant(1e-4))
    optimizer.build(model.trainable_variables)
    state = pretraining_step.resident() - before
    batch = pretraining_step.rows(config, B, S, P)
    batch = {
        name: tf.constant(x, tf.float32 if x.dtype == "float32" else tf.int32)
        for name, x in batch.items()
    } | {"row_weights": tf.ones([B])}
    objective = pretraining.objective("nsp")

    # The seed is an argument: masks of a constant would be precomputed.
    @tf.function(autograph=False)
    def step(seed):
        gradients, _ = replica_step.add_up(
            lambda i, part: replica_step.gradients_and_sums(
                model, optimizer, objective, part, objective.weights(part), seed
            ),
            batch,
            accumulate,
        )
        return optimizer.apply(gradients, tf.constant(0, tf.int64))

    seed = tf.constant([1, 2])
    step.get_concrete_function(seed)
    before = pretraining_step.resident()
    step(seed)
    return state + accelerators.peak_of_process() - before


def main(argv):
    """Measures all shapes and prints the table."""
    print("shape            remat parts  estimate  measured, MB  ratio")
    for shape in argv[1:] or SHAPES:
        model, *numbers = shape.split(":")
        B, S, P = map(int, numbers)
        config = pretraining_step.config_of(model)
        for remat, accumulate in ((0, 1), (1, 1), (0, 4), (1, 4)):
            expected = memory_use.training_memory(
                modeling.BertConfig(**config),
                B // accumulate,
                S,
                P,
                remat=bool(remat),
                accumulate=accumulate,
            ).total
            taken = [
                of_a_step(config, B, S, P, bool(remat), accumulate)
                for _ in range(ROUNDS)
            ]
            print(
                f"{shape:16} {remat:5} {accumulate:5} {expected / 1e6:9.0f} "
                f"{min(taken) / 1e6:6.0f} {max(taken) / 1e6:6.0f}  "
                f"{expected / max(taken):.2f} to {expected / min(taken):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    app.run(main)
