"""Distillation losses, compared with NumPy in float64."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from bert_tf import modeling
from bert_tf.encoders import families, watching
from bert_tf.training import distillation, distillation_losses, pretraining
from tests import pretraining_records, reference

import numpy as np
import pytest
import tensorflow as tf

B, S, D, N = 3, 5, 12, 3
_LENGTHS = np.array([5, 3, 1])
# Mask of tokens; at its zeros, which are padding, values are arbitrary.
_TOKENS = (np.arange(S) < _LENGTHS[:, None]).astype(np.float64)


def _random(shape, seed):
    values = np.random.default_rng(seed).normal(size=shape)
    return 3 * values.astype(np.float32).astype(np.float64)


def _softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def _divergence(p, q):
    """Returns KL(p || q), where p may have zeros."""
    ratio = np.where(p > 0, np.log(np.maximum(p, 1e-300) / q), 0)
    return (p * ratio).sum(-1)


def _float(*arrays):
    return [tf.constant(x, tf.float32) for x in arrays]


def _of(function: Callable[..., Any], *arrays: Any, **more: Any) -> Any:
    return function(*_float(*arrays), **more)


def _assert_same(found, expected):
    assert found.dtype == tf.float32
    assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 0.5])
@pytest.mark.parametrize("shape", [(B,), (B, S)])
def test_classes(temperature, shape):
    ours, theirs = _random([*shape, 4], 1), _random([*shape, 4], 2)
    weights = np.abs(_random(shape, 3)) * (_TOKENS if len(shape) > 1 else 1)
    divergence = _divergence(
        _softmax(theirs / temperature), _softmax(ours / temperature)
    )
    classes = functools.partial(_of, distillation_losses.classes)
    found = classes(ours, theirs, weights, temperature=temperature)
    _assert_same(found, temperature**2 * (weights * divergence).sum())
    assert float(classes(ours, ours, weights, temperature=temperature)) == 0


def test_classes_that_are_no_choice_count_nothing():
    ours, theirs = _random([B, 4], 1), _random([B, 4], 2)
    ours[1:, 2:] = theirs[1:, 2:] = -1e9
    first = _divergence(_softmax(theirs[:1]), _softmax(ours[:1]))
    others = _divergence(_softmax(theirs[1:, :2]), _softmax(ours[1:, :2]))
    expected = first.sum() + others.sum()
    found = _of(
        distillation_losses.classes, ours, theirs, np.ones(B), temperature=1
    )
    _assert_same(found, expected)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_labels_that_are_each_true_or_not(temperature):
    ours, theirs = _random([B, 4], 1), _random([B, 4], 2)
    weights = np.array([1.0, 0.0, 0.5])
    q, p = (1 / (1 + np.exp(-x / temperature)) for x in (ours, theirs))
    divergence = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    expected = temperature**2 * (weights * divergence.mean(-1)).sum()
    given = distillation_losses.labels, ours, theirs, weights
    found = _of(*given, temperature=temperature)
    _assert_same(found, expected)


def test_scores():
    ours, theirs = _random([B, 1], 1), _random([B, 1], 2)
    weights = np.array([1.0, 0.0, 0.5])
    expected = (weights * ((ours - theirs) ** 2)[:, 0]).sum()
    found = _of(
        distillation_losses.scores, ours, theirs, weights, temperature=3
    )
    _assert_same(found, expected)


def test_hidden_states_and_their_cosine():
    ours, theirs = _random([B, S, D], 1), _random([B, S, D], 2)
    expected = (_TOKENS * ((ours - theirs) ** 2).mean(-1)).sum()
    found = distillation_losses.hidden_states(*_float(ours, theirs, _TOKENS))
    _assert_same(found, expected)
    norms = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
    distance = 1 - (ours * theirs).sum(-1) / norms
    found = distillation_losses.cosine(*_float(ours, theirs, _TOKENS))
    _assert_same(found, (_TOKENS * distance).sum())


def _mask(packed):
    """Returns the bias of scores: -10000 for padding and other sequences."""
    if not packed:
        return -10000 * (1 - _TOKENS)[:, None, None]
    numbers = np.array([[1, 1, 2, 2, 2], [1, 2, 2, 0, 0], [1, 0, 0, 0, 0]])
    differ = numbers[:, None, :, None] != numbers[:, None, None]
    return -10000.0 * differ


def _attended(heads, width, seed, packed=False):
    """Returns unscaled queries, keys, values, [B, N, S, H], and a mask."""
    shape = [B, heads, S, width // heads]
    arrays = [_random(shape, seed + i) for i in range(3)]
    return (*arrays, _mask(packed))


def _given(queries, keys, values, mask):
    root = np.sqrt(queries.shape[-1])
    return watching.Attended(*_float(queries / root, keys, values, mask))


@pytest.mark.parametrize("packed", [False, True])
def test_attention_scores(packed):
    ours, theirs = _attended(N, D, 1, packed), _attended(N, 6, 5, packed)
    scores = []
    for queries, keys, _, mask in (ours, theirs):
        x = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
        x = x + mask
        scores.append(np.where(x <= -100, 0, x))
    sees = np.broadcast_to(mask > -100, [B, 1, S, S])[:, 0]
    error = ((scores[0] - scores[1]) ** 2).mean(1)  # [B, S, S]
    expected = (_TOKENS[:, :, None] * sees * error).sum()
    found = distillation_losses.attention_scores(
        _given(*ours), _given(*theirs), *_float(_TOKENS)
    )
    _assert_same(found, expected)


def test_scores_far_below_count_as_none():
    ours = _attended(1, 4, 1)
    low = (-200 * np.ones_like(ours[0]), np.ones_like(ours[1]), *ours[2:])
    theirs = (0 * ours[0], ours[1], *ours[2:])
    found = distillation_losses.attention_scores(
        _given(*low), _given(*theirs), *_float(_TOKENS)
    )
    assert float(found) == 0


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("heads", [1, 3, 6])
def test_relations_of_other_heads_and_widths(heads, packed):
    ours, theirs = _attended(3, 12, 1, packed), _attended(2, 24, 5, packed)
    mask, expected = ours[-1], 0.0
    for own, other in zip(ours[:3], theirs[:3], strict=True):
        relations = []
        for x in (own, other):
            flat = x.swapaxes(1, 2).reshape(B, S, -1)  # [B, S, D]
            x = flat.reshape(B, S, heads, -1).swapaxes(1, 2)
            like = x @ x.swapaxes(-1, -2) / np.sqrt(x.shape[-1])
            relations.append(_softmax(like + mask))
        q, p = relations
        q = np.maximum(q, 1e-300)
        expected += (_TOKENS * _divergence(p, q).mean(1)).sum()
    found = distillation_losses.relations(
        _given(*ours), _given(*theirs), tf.constant(_TOKENS, tf.float32), heads
    )
    _assert_same(found, expected)


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
    """From left to right, too, where a token sees only those before it."""
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
    """A causal model and a bidirectional one share the causal pairs only."""
    causal, full = (_made(family).mask(batch) for family in reversed(_BOTH))
    rng = np.random.default_rng(3)
    shape = [3, *batch["input_ids"].shape, 2, 4]  # for each: [B, S, N, H]
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
