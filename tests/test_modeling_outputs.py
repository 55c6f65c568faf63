"""The encoder's outputs, compared with NumPy."""

import dataclasses
import itertools
import re

from bert_tf import modeling
from bert_tf.encoders import ops
from tests import combinations, reference, tiny_model
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

_TINY = samples.THREES


@pytest.fixture
def bfloat16():
    with tiny_model.policy("mixed_bfloat16"):
        yield


@pytest.fixture(scope="module")
def tiny():
    model = reference.randomized(modeling.Bert(_TINY))
    return model


# ---- Outputs ----------------------------------------------------------------


def _everything(outputs):
    return [outputs.embeddings, *outputs.layers, outputs.pooled]


def _assert_close(found, expected):
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-5)


_SHAPES = [
    # L, D, N, F
    (1, 4, 1, 4),
    (2, 12, 3, 20),
    (3, 16, 16, 64),
]


class TestAgainstNumpy:
    @pytest.mark.parametrize(
        "shape, length",
        combinations.some(
            list(zip(_SHAPES, (1, 9, 16), strict=True)),
            itertools.product(_SHAPES, (1, 9, 16)),
        ),
        ids=str,
    )
    def test_all_outputs(self, shape, length):
        L, D, N, F = shape
        config = dataclasses.replace(
            _TINY,
            num_hidden_layers=L,
            hidden_size=D,
            num_attention_heads=N,
            intermediate_size=F,
        )
        model = reference.randomized(modeling.Bert(config), L)
        inputs = reference.batch(config, rows=4, length=length)
        outputs = model(inputs)
        embeddings, layers, pooled = reference.encode(
            config, reference.weights_of(model.variables), inputs
        )
        assert len(outputs.layers) == L
        found = _everything(outputs)
        assert {x.dtype for x in found} == {tf.float32}
        _assert_close(found, [embeddings, *layers, pooled])
        np.testing.assert_array_equal(outputs.sequence, outputs.layers[-1])

    def test_activation_of_the_pooler(self):
        model = reference.randomized(
            modeling.Bert(dataclasses.replace(_TINY, pooler_act="relu"))
        )
        inputs = reference.batch(_TINY)
        weights = reference.weights_of(model.variables)
        _, hidden, _ = reference.encode(_TINY, weights, inputs)
        expected = reference.dense(
            hidden[-1][:, 0], weights, "bert/pooler/dense"
        )
        assert (expected < 0).any() and (expected > 0).any()
        np.testing.assert_allclose(
            model(inputs).pooled, np.maximum(expected, 0), rtol=0, atol=1e-5
        )

    @pytest.mark.slow
    def test_in_a_graph_of_unknown_shape(self, tiny):
        spec = tf.TensorSpec([None, None], tf.int32)
        names = ("input_ids", "input_mask", "segment_ids")
        graph = tf.function(
            tiny.call, [dict.fromkeys(names, spec)], autograph=False
        )
        for rows, length in ((1, 3), (4, 16)):
            inputs = reference.batch(_TINY, rows, length)
            inputs = {name: inputs[name] for name in names}
            outputs = graph({k: tf.constant(v) for k, v in inputs.items()})
            _assert_close(_everything(outputs), _everything(tiny(inputs)))


# ---- Padding ----------------------------------------------------------------


class TestPadding:
    def _changed(self, inputs):
        """Returns inputs with other words and segments in the padding."""
        rows, length = inputs["input_ids"].shape
        other = reference.batch(_TINY, rows, length, seed=1)
        return inputs | {
            name: np.where(inputs["input_mask"] == 1, inputs[name], other[name])
            for name in ("input_ids", "segment_ids")
        }

    @pytest.mark.parametrize("kind", ["plain", "sharp", "bfloat16"])
    def test_content_does_not_matter(self, kind):
        # Bit for bit: the weight of padding is zero, not small.
        policy = "mixed_bfloat16" if kind == "bfloat16" else "float32"
        with tiny_model.policy(policy):
            model = reference.randomized(modeling.Bert(_TINY))
        for variable in model.variables:
            if kind == "sharp" and re.search(
                "/(query|key)/kernel$", variable.path
            ):
                # Scores in the hundreds, beyond those of trained models.
                variable.assign(variable * 10)
        inputs = reference.batch(_TINY)
        changed = self._changed(inputs)
        real = inputs["input_mask"] == 1
        assert (inputs["input_ids"] != changed["input_ids"]).any()
        first, second = model(inputs), model(changed)
        np.testing.assert_array_equal(first.pooled, second.pooled)
        for left, right in zip(first.layers, second.layers, strict=True):
            left, right = left.numpy(), right.numpy()
            np.testing.assert_array_equal(left[real], right[real])
            assert (left[~real] != right[~real]).any()

    def test_only_padding_is_finite(self, tiny):
        # A batch may be padded with empty rows.
        inputs = reference.batch(_TINY)
        inputs["input_mask"] = np.zeros_like(inputs["input_mask"])
        assert np.isfinite(tiny(inputs).sequence).all()


# ---- bfloat16 ---------------------------------------------------------------


class TestBfloat16:
    def test_outputs_are_close(self, tiny, bfloat16):
        model = reference.randomized(modeling.Bert(_TINY))
        assert {v.dtype for v in model.variables} == {"float32"}
        inputs = reference.batch(_TINY)
        expected, outputs = tiny(inputs), model(inputs)
        pairs = zip(_everything(outputs), _everything(expected), strict=True)
        for left, right in pairs:
            assert left.dtype == tf.bfloat16
            difference = np.abs(tf.cast(left, tf.float32) - right)
            # bfloat16 has 8 bits: values up to 4 are rounded by up to 2^-7,
            # in a dozen consecutive operations.
            assert difference.mean() < 2**-6
            assert difference.max() < 2**-3
        assert expected.pooled.dtype == tf.float32

    def test_gradients_are_float32_and_close(self, tiny, bfloat16):
        model = reference.randomized(modeling.Bert(_TINY))
        inputs = reference.batch(_TINY)
        gradients = []
        for each in (tiny, model):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.cast(each(inputs).pooled, tf.float32))
            values = tape.gradient(y, [v.value for v in each.variables])
            assert {value.dtype for value in values} == {tf.float32}
            gradients.append(np.concatenate([np.ravel(v) for v in values]))
        exact, rounded = gradients
        error = np.linalg.norm(rounded - exact) / np.linalg.norm(exact)
        assert 0 < error < 0.05


# ---- Dropout ----------------------------------------------------------------


class TestDropoutOfTheModel:
    def test_each_place_has_its_seed_rate_and_shape(self, monkeypatch):
        config = dataclasses.replace(
            _TINY, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3
        )
        seen = []
        dropout = ops.dropout

        def spy(x, rate, seed):
            seen.append((tuple(x.shape), rate, tuple(seed.numpy())))
            return dropout(x, rate, seed)

        monkeypatch.setattr(ops, "dropout", spy)
        modeling.Bert(config)(reference.batch(config), tf.constant([1, 2]))
        hidden, probs = ((3, 9, 12), 0.2), ((3, 3, 9, 9), 0.3)
        assert [(shape, rate) for shape, rate, _ in seen] == (
            [hidden] + 2 * [probs, hidden, hidden]
        )
        assert len({seed for _, _, seed in seen}) == len(seen)

    @pytest.mark.slow
    def test_is_a_function_of_the_seed(self, tiny):
        inputs = reference.batch(_TINY)
        outputs = {
            seed: tiny(inputs, seed and tf.constant(seed)).sequence.numpy()
            for seed in (None, (1, 2), (1, 3), (2, 2))
        }
        again = tf.function(tiny)(inputs, tf.constant((1, 2))).sequence
        np.testing.assert_allclose(again, outputs[1, 2], atol=1e-5)
        values = list(outputs.values())
        for i, left in enumerate(values):
            for right in values[:i]:
                assert np.abs(left - right).mean() > 0.1

    def test_none_means_none(self, tiny):
        config = dataclasses.replace(
            _TINY, hidden_dropout_prob=0, attention_probs_dropout_prob=0
        )
        model = reference.randomized(modeling.Bert(config))
        inputs = reference.batch(_TINY)
        np.testing.assert_array_equal(
            model(inputs, tf.constant([1, 2])).sequence, tiny(inputs).sequence
        )


class TestPositions:
    """The last layer computed at some positions equals the whole layer."""

    positions = np.array([[0, 3, 3], [0, 8, 0], [0, 1, 2]], np.int32)

    def test_outputs_are_the_whole_layers(self, tiny):
        inputs = reference.batch(_TINY)
        weights = reference.weights_of(tiny.variables)
        _, layers, pooled = reference.encode(_TINY, weights, inputs)
        outputs = tiny(inputs, positions=tf.constant(self.positions))
        expected = layers[-1][np.arange(3)[:, np.newaxis], self.positions]
        np.testing.assert_allclose(outputs.sequence, expected, atol=1e-5)
        np.testing.assert_allclose(outputs.pooled, pooled, atol=1e-5)

    def test_gradients_are_the_whole_layers(self, tiny):
        inputs = reference.batch(_TINY)
        scale = np.random.default_rng(1).normal(size=(3, 3, _TINY.hidden_size))

        def gradients(read):
            with tf.GradientTape() as tape:
                sequence, pooled = read()
                loss = tf.reduce_sum(sequence * scale.astype(np.float32))
                loss += tf.reduce_sum(pooled * pooled)
            variables = [v.value for v in tiny.trainable_variables]
            return tape.gradient(loss, variables)

        def some():
            outputs = tiny(inputs, positions=tf.constant(self.positions))
            return outputs.sequence, outputs.pooled

        def every():
            outputs = tiny(inputs)
            rows = tf.gather(outputs.sequence, self.positions, batch_dims=1)
            return rows, outputs.pooled

        pairs = zip(gradients(some), gradients(every), strict=True)
        for ours, expected in pairs:
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
