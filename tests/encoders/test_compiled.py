"""The compiled dialect: same values as eager execution, dropout and seeds.

The dialect is a choice of operations, so most tests run it uncompiled.
"""

import itertools
import math
from typing import Any

from benchmarks import pretraining_step
from bert_tf import compiled, heads, losses, modeling, replaced_tokens
from bert_tf.encoders import families, ops
from bert_tf.errors import InputError
from bert_tf.training import replica_step
from tests import combinations, pretraining_records

import keras
import numpy as np
import pytest
import tensorflow as tf

_SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "vocab_size": 150,
}


@pytest.fixture(name="dialect")
def _dialect(monkeypatch):
    monkeypatch.setattr(compiled, "is_compiled", lambda: True)


@pytest.fixture(name="both_dialects", params=["XLA", "TPU"])
def _both_dialects(dialect, request, monkeypatch):
    del dialect
    is_for_tpus = request.param == "TPU"
    monkeypatch.setattr(compiled, "is_for_tpus", lambda: is_for_tpus)


class _Optimizer:
    """The parts of an optimizer that `gradients_and_sums` needs."""

    loss_scale = None

    def __init__(self, variables):
        self.variables = variables


def _step(family, **sizes):
    """Returns a function without arguments: gradients and sums of a batch."""
    keras.utils.set_random_seed(1)
    values = pretraining_step.config_of("tiny", family) | _SIZES | sizes
    made = families.from_values(values)
    model, objective, trained = pretraining_step.model_of(made)
    rows = pretraining_step.rows(values, 4, 16, 3)
    batch = pretraining_records.tensors(rows) | {"row_weights": tf.ones([4])}
    # Some padding, and a padded prediction.
    batch["input_mask"] = tf.constant(np.arange(16) < [[16], [9], [12], [5]], 1)
    batch["masked_lm_weights"] *= tf.constant([1.0, 1.0, 0.0])
    totals = objective.weights(batch)
    optimizer: Any = _Optimizer(trained)
    arguments = model, optimizer, objective, batch, totals
    return lambda: replica_step.gradients_and_sums(*arguments, None)


def _assert_close(found, expected, tolerance):
    """Asserts an error within a tolerance of each tensor's largest number.

    The gradient of a bias of two classes adds up terms of 0.1, which cancel.
    """
    pairs = [tf.nest.flatten(each) for each in (found, expected)]
    for ours, theirs in zip(*pairs, strict=True):
        scale = max(np.abs(theirs).max(), 0.1)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


class TestSameNumbers:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "family",
        [x for x in pretraining_step.OBJECTIVES if x != "left_to_right"],
    )
    def test_gradients_and_losses(self, family):
        step = _step(family)
        expected = step()
        for dialect in ("XLA", "TPU"):
            _assert_close(compiled.marked(step, dialect)(), expected, 1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "family",
        combinations.some(["electra"], ["bert", "albert", "electra"]),
    )
    def test_compiled(self, family, monkeypatch):
        # XLA samples in another way.
        monkeypatch.setattr(
            replaced_tokens,
            "sample",
            lambda logits, seed: tf.argmax(logits, -1, tf.int32),
        )
        step = _step(family, num_hidden_layers=1)
        _assert_close(compiled.whole(step)(), step(), 1e-6)

    @pytest.mark.usefixtures("dialect")
    def test_vocabulary_of_whole_tiles(self):
        config = modeling.BertConfig(**_SIZES)
        head = heads.MaskedLMHead(config)
        head.build()
        logits = head(tf.ones([2, 3, 16]), tf.ones([150, 16]))
        assert logits.shape == (2, 3, 256)
        # exp(-10000) is 0: padded rows have no probability.
        assert tf.reduce_max(logits[..., 150:]) == -10000
        labels = tf.constant([[0, 1, 149]] * 2)
        sums = losses.classification(logits, labels, tf.ones([2, 3]))
        assert sums["loss"].numpy() == pytest.approx(6 * math.log(150))


@pytest.mark.usefixtures("both_dialects")
class TestDropout:
    x = tf.ones([400, 1001])

    def _kept(self, rate, seed):
        return ops.dropout(self.x, rate, tf.constant(seed)).numpy() != 0

    @pytest.mark.parametrize(
        ("rate", "share"),
        [(0.1, 26 / 256), (0.5, 0.5), (0.9, 230 / 256), (1e-4, 1 / 256)],
    )
    def test_share_and_scale(self, rate, share):
        y = ops.dropout(self.x, rate, tf.constant([1, 2])).numpy()
        kept = y != 0
        # Five standard deviations of a binomial distribution.
        spread = 5 * math.sqrt(share * (1 - share) / kept.size)
        assert abs(kept.mean() - (1 - share)) < spread
        np.testing.assert_allclose(y[kept], 1 / (1 - share), rtol=1e-6)

    def test_places_of_one_number_are_independent(self):
        kept = self._kept(0.5, [7, 8])
        # A number is for eight neighbors, or on TPUs for four rows, which are
        # 100 apart.
        for array, distances in ((kept.T, (1, 4, 7, 8)), (kept, (1, 100, 300))):
            for distance in distances:
                same = array[:-distance] == array[distance:]
                spread = 5 * 0.5 / math.sqrt(same.size)
                assert abs(same.mean() - 0.5) < spread, distance

    @pytest.mark.parametrize("shape", [[7], [1, 6], [3, 5, 7]])
    def test_shapes_without_a_factor_of_four(self, shape):
        y = ops.dropout(tf.ones(shape), 0.5, tf.constant([3, 4])).numpy()
        assert y.shape == tuple(shape)
        assert set(y.flat) == {0, 2}

    def test_masks_are_of_their_seeds(self):
        first = self._kept(0.5, [5, 6])
        np.testing.assert_array_equal(first, self._kept(0.5, [5, 6]))
        # Consecutive seeds, like those of layers.
        for other in ([5, 7], [6, 6], [6, 5], [5, -6]):
            both = first == self._kept(0.5, other)
            assert abs(both.mean() - 0.5) < 5 * 0.5 / math.sqrt(both.size)


def _split_mix(state, count):
    """The generator of Steele et al. (2014), after the authors' Java."""
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


@pytest.mark.usefixtures("dialect")
def test_dropout_off_tpus_is_split_mix():
    # The numbers that other implementations publish for this seed.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert list(_split_mix(1234567, 3)) == published
    # A negative number has all upper bits set, and the path is above it.
    seed = (5 << 32) + 2**32 - 9
    step = 0x9E3779B97F4A7C15
    (start,) = _split_mix(seed - step, 1)
    numbers: np.ndarray = np.fromiter(
        _split_mix(start - step, 150), np.dtype("<u8")
    )
    kept = ops.dropout(tf.ones([3, 400]), 0.25, tf.constant([-9, 5])).numpy()
    expected = numbers.view(np.uint8).reshape(3, 400) >= 64
    np.testing.assert_array_equal(kept != 0, expected)


@pytest.mark.usefixtures("dialect")
class TestSeeds:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "splits, parts",
        [
            # ELECTRA's three parts, the parts of a model, layers, two in each.
            ([3, 2, 127, 2, 2], 1),
            # The second stream of XLNet, and more in each part than any has.
            ([17, 17, 1, 1, 1, 1], 1),
            # The attention of a classifier, in each micro-batch.
            ([2, 1, 1, 2, 2], 32),
        ],
    )
    def test_every_place_has_its_own(self, splits, parts):
        # All seeds of a depth at once, [2, N]; each as `ReplicaStep.seeds`
        # returns it.
        seeds = ops.root_seed(tf.stack([[2**31 - 5] * parts, range(parts)]))
        depths: list[Any] = [seeds]
        for count in splits:
            seeds = tf.concat(ops.split_seed(seeds, count), axis=1)
            depths.append(seeds)
        found: np.ndarray = np.concatenate(depths, axis=1)
        counts = itertools.accumulate(splits, lambda x, y: x * y, initial=1)
        assert found.shape[1] == parts * sum(counts)
        assert len(np.unique(found, axis=1).T) == found.shape[1]

    def test_the_first_micro_batch_draws_as_a_whole_batch(self):
        seed = tf.constant([11, 0])
        np.testing.assert_array_equal(ops.root_seed(seed), [11, 0])
        (seed,) = ops.split_seed(ops.split_seed(seed, 2)[1], 1)
        assert seed.numpy().tolist() == [11, 2 * 128 + 1]

    def test_no_seed(self):
        assert ops.split_seed(None, 3) == [None] * 3

    def test_too_many(self):
        with pytest.raises(InputError, match=r"at most 127 layers.*: 128"):
            ops.split_seed(tf.constant([1, 2]), 128)


@pytest.mark.slow
@pytest.mark.usefixtures("dialect")
def test_no_operation_that_does_not_fuse():
    graph = tf.function(_step("bert"), autograph=False).get_concrete_function()
    types = [op.type for op in graph.graph.get_operations()]
    assert not {"TensorScatterSub", "BiasAddGrad"} & set(types)
