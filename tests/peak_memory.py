"""Measures what a training step needs, in a process of its own."""

import multiprocessing
import resource
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["bert_tf.heads"])


def of_a_step(
    config: dict[str, Any], batch: int, seq: int, predictions: int, remat: bool
) -> int:
    """Returns the bytes that model and step add to a process at their most."""
    with _CONTEXT.Pool(1) as pool:
        return pool.apply(_measure, (config, batch, seq, predictions, remat))


def _measure(config, B, S, P, remat):
    from bert_tf import heads, losses, modeling, optimization

    import numpy as np
    import tensorflow as tf

    before = _resident()
    model = heads.BertPretrainer(modeling.BertConfig(**config))
    model.bert.encoder.remat = remat
    optimizer = optimization.AdamWeightDecay(lambda step: tf.constant(1e-4))
    optimizer.build(model.trainable_variables)
    state = _resident() - before
    rng = np.random.default_rng(0)
    batch = {
        "input_ids": rng.integers(0, config["vocab_size"], (B, S)),
        "input_mask": np.ones((B, S)),
        "segment_ids": np.zeros((B, S)),
        "masked_lm_positions": rng.integers(0, S, (B, P)),
    }
    batch = {name: tf.constant(x, tf.int32) for name, x in batch.items()}
    labels = tf.ones([B, P], tf.int32)

    # The seed is an argument: masks of a constant are drawn beforehand.
    @tf.function(autograph=False)
    def step(seed):
        with tf.GradientTape() as tape:
            words, following = model(batch, seed)
            sums = losses.classification(words, labels, tf.ones([B, P]))
            loss = sums["loss"] + tf.reduce_sum(following)
        variables = [v.value for v in model.trainable_variables]
        gradients = tape.gradient(loss, variables)
        return optimizer.apply(gradients, tf.constant(0, tf.int64))

    seed = tf.constant([1, 2])
    step.get_concrete_function(seed)
    before = _resident()
    step(seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return state + peak - before


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
