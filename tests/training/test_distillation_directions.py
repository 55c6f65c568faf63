"""Students and teachers of which one reads from left to right only."""

import dataclasses

from bert_tf import modeling
from bert_tf.encoders import families, watching
from bert_tf.training import distillation, distillation_losses, pretraining
from tests import pretraining_records, reference

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = modeling.BertConfig(
    **pretraining_records.WITHOUT_DROPOUT | {"num_hidden_layers": 2}
)
_OWN = pretraining.objective("nsp")


@pytest.fixture(scope="module", name="batch")
def _batch():
    made = {x: tf.constant(y) for x, y in reference.batch(_CONFIG).items()}
    return made | {"row_weights": tf.ones(made["input_ids"].shape[0])}


_BOTH = [families.BERT, families.FAMILIES["left_to_right"]]


def _made(family):
    return families.make(family.config(**dataclasses.asdict(_CONFIG)))


@pytest.mark.parametrize("ours", _BOTH, ids=lambda family: family.name)
@pytest.mark.parametrize("theirs", _BOTH, ids=lambda family: family.name)
def test_scores_that_all_differ_by_one_are_of_mean_one(ours, theirs, batch):
    """From left to right, too, where a token sees those before it only."""
    student, teacher = _made(ours), _made(theirs)
    objective = distillation.by_layers(_OWN, student, teacher)
    pairs = objective.weights(batch)["attention"]
    ones = tf.ones([*batch["input_ids"].shape, 1])[:, None]  # [B, 1, S, 1]
    score = watching.Attended(ones, ones, ones, student.mask(batch))
    other = watching.Attended(2 * ones, ones, ones, teacher.mask(batch))
    tokens = tf.cast(batch["input_mask"], tf.float32)
    lost = distillation_losses.attention_scores(score, other, tokens)
    assert float(lost / pairs) == pytest.approx(1)


def test_relations_are_of_what_both_see(batch):
    """A teacher of both directions tells nothing of what comes to the other."""
    causal, full = (_made(family).mask(batch) for family in reversed(_BOTH))
    rng = np.random.default_rng(3)
    shape = [3, *batch["input_ids"].shape, 2, 4]  # of two models, [B, S, N, H]
    vectors = [
        tf.transpose(
            tf.constant(rng.normal(size=shape), tf.float32), [0, 1, 3, 2, 4]
        )
        for _ in range(2)
    ]  # [3, B, N, S, H] each
    tokens = tf.cast(batch["input_mask"], tf.float32)

    def loss(mask, other):
        ours, theirs = (
            watching.Attended(x[0], x[1], x[2], own)
            for x, own in zip(vectors, (mask, other), strict=True)
        )
        return float(distillation_losses.relations(ours, theirs, tokens, 2))

    expected = loss(causal, causal)
    assert loss(causal, full) == loss(full, causal) == expected
    assert 0 < expected < 10 * float(tf.reduce_sum(tokens))
    assert loss(full, full) != pytest.approx(expected, 0.01)


def test_what_lies_on_the_layers_is_not_trained():
    family = families.FAMILIES["left_to_right_bilstm"]
    student, teacher = _made(family), modeling.Bert(_CONFIG)
    objective = distillation.by_relations(_OWN, student, teacher, 2)
    paths = {v.path for v in objective.trained or ()}
    assert any(v.path.startswith("bert/bilstm/") for v in student.variables)
    assert not [path for path in paths if path.startswith("bert/bilstm/")]
    assert "bert/encoder/layer_1/attention/self/query/kernel" in paths
