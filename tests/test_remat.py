"""Rematerialization: the same results with less memory."""

import re
from typing import Any

from benchmarks import memory
from bert_tf import heads, modeling
from bert_tf.encoders import ops
from bert_tf.training import memory_use
from tests import combinations, pretraining_records, tiny_model

import keras
import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

# Deep enough that stored activations take most of the memory.
_DEEP: dict[str, Any] = {
    "vocab_size": 2000,
    "hidden_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "type_vocab_size": 2,
}


def _gradients(strategy, remat):
    """Returns replicas' loss, logits and gradients of a batch, with dropout."""
    config = modeling.BertConfig(
        **pretraining_records.CONFIG | {"num_hidden_layers": 2}
    )
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = heads.BertPretrainer(modeling.Bert(config))
    model.bert.encoder.remat = remat
    rng = np.random.default_rng(0)
    batch = {
        "input_ids": rng.integers(1, 40, (4, 16)),
        "input_mask": np.tri(4, 16, 12),
        "segment_ids": rng.integers(0, 2, (4, 16)),
        "masked_lm_positions": rng.integers(1, 12, (4, 4)),
    }
    batch = {name: tf.constant(x, tf.int32) for name, x in batch.items()}

    @tf.function(autograph=False)
    def step(key):
        def replica():
            context = tf.distribute.get_replica_context()
            seed = tf.random.fold_in(key, context.replica_id_in_sync_group)
            with tf.GradientTape() as tape:
                words, following = model(batch, seed)
                loss = tf.reduce_sum(words**2) + tf.reduce_sum(following)
            variables = [v.value for v in model.trainable_variables]
            return [loss, words, *tape.gradient(loss, variables)]

        return strategy.run(replica)

    with tiny_model.untraced(not remat):  # the reference
        values = step(tf.constant([1, 2]))
    return [
        [x.numpy() for x in strategy.experimental_local_results(value)]
        for value in values
    ]


@pytest.mark.parametrize("replicas", combinations.some([2], [1, 2]))
def test_changes_nothing(two_replicas, replicas):
    strategy = two_replicas if replicas == 2 else tf.distribute.get_strategy()
    found, expected = (_gradients(strategy, remat) for remat in (True, False))
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        for x, y in zip(left, right, strict=True):
            # Up to rounding: parallel kernels may sum in another order.
            scale = np.abs(y).max()
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-6 * scale)
    if replicas == 2:
        # The two differ by dropout's masks, so there is dropout.
        assert not np.array_equal(*expected[1])


@pytest.mark.exhaustive
def test_less_memory():
    # Enough rows for the framework's own memory, 100 to 250 MB depending on the
    # processor, to be the smaller part.
    sizes = (128, 128, 20)
    peaks = {
        remat: memory.of_a_step(_DEEP, *sizes, remat) for remat in (False, True)
    }
    config = modeling.BertConfig(**_DEEP)
    for remat, peak in peaks.items():
        estimate = memory_use.training_memory(config, *sizes, remat=remat)
        assert estimate.total == pytest.approx(peak, rel=0.35)
    assert peaks[True] < 0.5 * peaks[False]


def test_xla_does_not_merge_the_passes():
    """Otherwise a TPU would store activations instead of recomputing them."""
    weights = tf.ones([8, 8])

    def layer(x, seed):
        return tf.tanh(x @ weights) * tf.random.stateless_uniform([4, 8], seed)

    @tf.function(autograph=False, jit_compile=True)
    def gradient(x, seed):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(ops.recomputed(layer, x, seed) ** 2)
        return tape.gradient(loss, x)

    x, seed = tf.ones([4, 8]), tf.constant([1, 2])
    compiled = gradient.experimental_get_compiler_ir(x, seed)("optimized_hlo")
    assert len(re.findall(r"\btanh\(", compiled)) == 2
