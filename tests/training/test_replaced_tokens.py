from bert_tf import replaced_tokens
from bert_tf.encoders import electra, families
from bert_tf.training import (
    accelerators,
    loop,
    memory_use,
    replaced_tokens_objective,
)
from tests import pretraining_records, tiny_trainer

import keras
import numpy as np
import pytest
import tensorflow as tf

_CONFIG = electra.ElectraConfig(
    **pretraining_records.CONFIG | {"hidden_act": "gelu_erf"},
    embedding_size=4,
    generator_hidden_size=0.5,
)


def make(config=_CONFIG):
    keras.utils.set_random_seed(2)
    encoder = families.make(config)
    return replaced_tokens.ReplacedTokensPretrainer(
        encoder, electra.Generator(encoder)
    )


def batch_of(rows):
    rng = np.random.default_rng(0)
    made = [pretraining_records.values(rng) for _ in range(rows)]
    found = {name: np.array([row[name] for row in made]) for name in made[0]}
    return pretraining_records.tensors(found | {"row_weights": np.ones(rows)})


class _Given:
    trained_variables = ()

    def __init__(self, outputs):
        self.outputs = outputs

    def __call__(self, *_):
        return self.outputs


def test_metrics_by_hand():
    batch = {
        "input_ids": tf.zeros([2, 3], tf.int32),
        "input_mask": tf.constant([[1, 1, 1], [1, 1, 0]]),
        "masked_lm_ids": tf.constant([[1, 2], [0, 0]]),
        "masked_lm_weights": tf.constant([[1.0, 1.0], [1.0, 0.0]]),
        "row_weights": tf.ones([2]),
    }
    logits = np.zeros([2, 2, 3], np.float32)
    logits[0, 0, 1] = logits[0, 1, 0] = logits[1, 0, 0] = 5
    # Predicted: yes, no, yes; no, yes, (yes).
    scores = np.array([[1, -1, 2], [-3, 1, 9]], np.float32)
    labels = np.array([[1, 1, 0], [0, 1, 0]], np.float32)
    model = _Given(
        replaced_tokens.Outputs(
            tf.constant(logits),
            tf.constant([[1, 1], [0, 0]]),
            tf.constant(labels),
            tf.constant(scores),
        )
    )
    task = replaced_tokens_objective.objective(model)
    weights = task.weights(batch)
    found = loop.divide(task, task.sums(model, batch, None), weights)
    probabilities = 1 / (1 + np.exp(-np.float64(scores)))
    of_label = np.where(labels > 0, probabilities, 1 - probabilities)
    disc = -np.log(of_label).ravel()[:5].mean()
    wrong, right = np.log(np.exp(5) + 2) - np.array([0, 5])
    words = (2 * right + wrong) / 3
    wanted = {
        "loss": words + 50 * disc,
        "masked_lm_loss": words,
        "masked_lm_accuracy": 2 / 3,
        "sampled_masked_lm_accuracy": 2 / 3,
        "disc_loss": disc,
        "disc_accuracy": 3 / 5,
        "disc_precision": 2 / 3,
        "disc_recall": 2 / 3,
    }
    assert found == pytest.approx(wanted, rel=1e-5)


@pytest.mark.slow
def test_no_word_is_replaced():
    """Without masked words, their losses and shares are 0."""
    model = make()
    batch = batch_of(3)
    batch["masked_lm_weights"] *= 0
    task = replaced_tokens_objective.objective(model)
    found = loop.divide(
        task, task.sums(model, batch, None), task.weights(batch)
    )
    assert found["disc_recall"] == found["masked_lm_loss"] == 0
    assert 0 < found["disc_loss"] < 10


@pytest.mark.slow
def test_filling_counts_nothing():
    model = make()
    task = replaced_tokens_objective.objective(model)
    few = batch_of(3)
    fill = {n: tf.concat([x, x[:2]], axis=0) for n, x in few.items()}
    fill["row_weights"] = tf.constant([1.0, 1, 1, 0, 0])
    weights, others = task.weights(few), task.weights(fill)
    assert tf.nest.map_structure(float, weights) == pytest.approx(
        tf.nest.map_structure(float, others)
    )
    given = tf.ones([5, 4], tf.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            replaced_tokens, "sample", lambda x, _: given[: x.shape[0]]
        )
        found, wanted = (task.sums(model, x, None) for x in (fill, few))
    for name, metrics in wanted.items():
        assert tf.nest.map_structure(float, found[name]) == pytest.approx(
            tf.nest.map_structure(float, metrics), rel=1e-5
        )


def _trained(files, monkeypatch, remat=False, **how):
    """Returns weights and losses after three steps, without dropout.

    The samples are fixed, since they are drawn per replica and micro-batch.
    """
    monkeypatch.setattr(
        replaced_tokens,
        "sample",
        lambda logits, _: tf.argmax(-logits, -1, tf.int32),
    )
    config = electra.ElectraConfig(
        **pretraining_records.WITHOUT_DROPOUT,
        embedding_size=4,
        generator_hidden_size=0.5,
    )
    made = []

    def model():
        made.append(make(config))
        for bert in (made[0].bert, made[0].generator):
            bert.encoder.remat = remat
        return made[0]

    # The objective is bound to the model made here.
    trainer = tiny_trainer.Trainer(
        files,
        make=model,
        objective=loop.Objective(
            lambda batch: replaced_tokens_objective.objective(made[0]).weights(
                batch
            ),
            lambda model, batch, seed: replaced_tokens_objective.objective(
                model
            ).sums(model, batch, seed),
            factors={"disc": 50.0},
        ),
        **how,
    )
    return trainer.train(0, 3), trainer.arrays()


@pytest.mark.exhaustive
def test_ways_to_compute_change_nothing(files, monkeypatch, two_replicas):
    plain, weights = _trained(files, monkeypatch)
    parts = {"accumulate": 2, "strategy": two_replicas}
    ways = (parts, {"remat": True})
    for how in ways:
        found, arrays = _trained(files, monkeypatch, **how)
        for name in ("loss", "masked_lm_loss", "disc_loss"):
            assert found[name] == pytest.approx(plain[name], rel=1e-4), name
        for name, value in weights.items():
            if name.endswith(("kernel", "embeddings")):
                np.testing.assert_allclose(
                    arrays[name], value, rtol=0, atol=2e-4, err_msg=name
                )


class TestWork:
    def test_flops_are_those_of_both(self):
        D, G = _CONFIG.hidden_size, _CONFIG.generator
        sizes = (2, 200, 20000)
        found = accelerators.replaced_tokens_flops(_CONFIG, G, *sizes, 30)
        ours = accelerators.training_flops(_CONFIG, *sizes, 0, True)
        theirs = accelerators.training_flops(G, *sizes, 30)
        head = 3 * 200 * 2 * (D * D + D)
        assert found == pytest.approx(ours + theirs + head)
        meter = accelerators.Meter(
            _CONFIG, 1, 1e12, "masked_lm", reads_all=True, generator=G
        )
        block = dict(zip(("sequences", "tokens", "pairs"), sizes, strict=True))
        block |= {"masked_lm_weight": 30, "seconds": 2, "input_seconds": 0}
        assert meter(block)["flops_utilization"] == pytest.approx(found / 2e12)

    def test_memory_is_that_of_both(self):
        generator = _CONFIG.generator
        found = memory_use.replaced_tokens_memory(
            _CONFIG, generator, 8, 128, 20
        )
        ours, theirs = (
            memory_use.training_memory(x, 8, 128, 20)
            for x in (_CONFIG, generator)
        )
        assert max(ours.state, theirs.state) < found.state
        assert found.state < ours.state + theirs.state
        assert found.activations > theirs.activations
        half = memory_use.replaced_tokens_memory(_CONFIG, generator, 4, 128, 20)
        assert half.activations < 0.6 * found.activations
