"""The encoder's elementwise functions and dropout, compared with formulas."""

import math

from bert_tf import compiled, configuration, modeling
from bert_tf.encoders import layers, ops
from tests import reference

import numpy as np
import pytest
import tensorflow as tf


def _uniform(shape, seed=0, low=-3.0, high=3.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


@pytest.fixture(params=["CPU", "GPU", "compiled"])
def _each_device(request, monkeypatch):
    """Runs the GPU's and the compiled operations on CPUs, too."""
    if request.param == "compiled":
        monkeypatch.setattr(compiled, "is_compiled", lambda: True)
    else:
        monkeypatch.setattr(ops, "_devices", lambda: {"CPU", request.param})


# ---- Elementwise functions --------------------------------------------------


def _gelu_by_its_formula(x):
    """Returns value and derivative of the tanh form, in float64."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        cube = x + 0.044715 * x**3
        y = 0.5 * x * (1 + tf.tanh(math.sqrt(2 / math.pi) * cube))
    return y, tape.gradient(y, x)


def _value_and_slope(x, upstream=None):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.gelu(x)
    return y, tape.gradient(y, x, upstream)


class TestGelu:
    @pytest.mark.parametrize(
        ("dtype", "tolerance", "of_slopes"),
        # Where tanh is near 1, its float32 rounding of 1e-7 is multiplied by
        # the derivative of its argument, up to 40 here.
        [(tf.float64, 1e-14, 1e-13), (tf.float32, 1e-6, 5e-6)],
    )
    def test_is_the_tanh_form(self, dtype, tolerance, of_slopes):
        x = tf.constant(np.linspace(-10, 10, 2001))
        _, slope = _gelu_by_its_formula(x)
        own = tf.cast(x, dtype)
        y, found = _value_and_slope(own, tf.sin(own))
        np.testing.assert_allclose(
            y, reference.gelu(x.numpy()), rtol=0, atol=tolerance
        )
        np.testing.assert_allclose(
            found, slope * tf.sin(x), rtol=0, atol=of_slopes
        )

    def test_large_values_in_float16(self, monkeypatch):
        # As on GPUs; on CPUs alone it computes in float32.
        monkeypatch.setattr(ops, "_on_cpus", lambda: False)
        x = tf.constant([-65504, -300, -256, 0, 256, 300, 65504], tf.float16)
        y, slope = _value_and_slope(x)
        np.testing.assert_array_equal(y, np.maximum(x, 0))
        np.testing.assert_array_equal(slope, [0, 0, 0, 0.5, 1, 1, 1])

    def test_bfloat16_is_rounded_once(self):
        x = tf.cast(np.linspace(-3, 3, 301), tf.bfloat16)
        exact = _gelu_by_its_formula(tf.cast(x, tf.float64))
        for ours, theirs in zip(_value_and_slope(x), exact, strict=True):
            assert ours.dtype == tf.bfloat16
            # Half of the last of eight bits, and the rounding of float32.
            np.testing.assert_allclose(
                tf.cast(ours, tf.float64), theirs, rtol=2**-7.99, atol=1e-6
            )


class TestActivation:
    def test_names(self):
        x = np.linspace(-12, 12, 241)
        erf = np.array([math.erf(value / math.sqrt(2)) for value in x])
        expected = {
            "gelu": reference.gelu(x),
            "gelu_erf": x * (1 + erf) / 2,
            "gelu_10": np.clip(x * (1 + erf) / 2, -10, 10),
            "quick_gelu": x / (1 + np.exp(-1.702 * x)),
            "silu": x / (1 + np.exp(-x)),
            "mish": x * np.tanh(np.log1p(np.exp(x))),
            "relu": np.maximum(x, 0),
            "tanh": np.tanh(x),
            "linear": x,
        }
        assert tuple(ops.ACTIVATIONS) == configuration.ACTIVATIONS
        assert set(expected) == set(ops.ACTIVATIONS)
        for name, values in expected.items():
            np.testing.assert_allclose(
                ops.ACTIVATIONS[name](tf.constant(x)),
                values,
                rtol=0,
                atol=1e-8,  # TensorFlow's erf form holds sqrt(2) in float32
                err_msg=name,
            )


def _normalize(x, gamma, beta):
    return ops.normalize(x, gamma, beta, 1e-12)


def _plainly(x, gamma, beta):
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean((x - mean) ** 2, axis=-1, keepdims=True)
    return gamma * (x - mean) / tf.sqrt(variance + 1e-12) + beta


class TestNormalize:
    @pytest.mark.usefixtures("_each_device")
    @pytest.mark.parametrize(
        ("dtype", "tolerance"), [(tf.float64, 1e-13), (tf.float32, 1e-5)]
    )
    def test_value_and_gradients(self, dtype, tolerance):
        results = []
        for function, own in ((_normalize, dtype), (_plainly, tf.float64)):
            values = _uniform([2, 3, 7]), _uniform([7], 1), _uniform([7], 2)
            arguments = [tf.constant(value, own) for value in values]
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                y = function(*arguments)
            upstream = tf.constant(_uniform([2, 3, 7], 3), own)
            results.append([y, *tape.gradient(y, arguments, upstream)])
        for left, right in zip(*results, strict=True):
            np.testing.assert_allclose(left, right, rtol=0, atol=tolerance)

    def test_epsilon_is_inside_the_root(self):
        x = tf.constant([[1.0, 3.0]], tf.float64)  # variance 1
        one, zero = tf.ones([2], tf.float64), tf.zeros([2], tf.float64)
        np.testing.assert_allclose(
            ops.normalize(x, one, zero, 3.0), [[-0.5, 0.5]]
        )

    def test_layer_has_the_originals_epsilon(self):
        epsilon = modeling.BertConfig(vocab_size=7).layer_norm_eps
        layer = layers.LayerNorm(2, epsilon)
        layer.build()
        # A variance of 1e-12: with epsilon 1e-12 the root is that of 2e-12.
        y = layer(tf.constant([[-1e-6, 1e-6]]))
        np.testing.assert_allclose(y, [[-(0.5**0.5), 0.5**0.5]], rtol=1e-5)


class TestEmbed:
    ids = np.array([[4, 0, 4], [1, 4, 2]], np.int32)  # 4 three times, no 3

    def test_value_and_dense_gradient(self):
        table = tf.constant(_uniform([5, 3]))
        upstream = _uniform([2, 3, 3], 1)
        with tf.GradientTape() as tape:
            tape.watch(table)
            rows = ops.embed(table, tf.constant(self.ids))
        np.testing.assert_array_equal(rows, table.numpy()[self.ids])
        expected = np.zeros([5, 3])
        np.add.at(expected, self.ids, upstream)
        gradient = tape.gradient(rows, table, tf.constant(upstream))
        assert isinstance(gradient, tf.Tensor)  # no IndexedSlices
        np.testing.assert_allclose(gradient, expected, rtol=1e-14)

    def test_bfloat16_adds_up_in_float32(self):
        # In bfloat16 256 + 1 is 256.
        table = tf.ones([3, 2], tf.bfloat16)
        with tf.GradientTape() as tape:
            tape.watch(table)
            y = ops.embed(table, tf.ones([64, 64], tf.int32))
        gradient = tape.gradient(y, table)
        assert gradient.dtype == tf.bfloat16
        expected = [[0, 0], [4096, 4096], [0, 0]]
        np.testing.assert_array_equal(tf.cast(gradient, tf.int32), expected)


class TestAffine:
    def test_any_number_of_axes(self):
        kernel, bias = _uniform([4, 5], 1), _uniform([5], 2)
        for shape in ([3, 4], [2, 3, 4], [2, 1, 3, 4], [0, 3, 4]):
            x = _uniform(shape)
            y = ops.affine(
                tf.constant(x), tf.constant(kernel), tf.constant(bias)
            )
            assert y.shape == (*shape[:-1], 5)
            np.testing.assert_allclose(y, x @ kernel + bias, rtol=1e-12)

    @pytest.mark.parametrize(
        ("known", "shape"),
        [
            ([None, 3, 4], [2, 3, 4]),
            ([None, 3, 4], [0, 3, 4]),
            ([None, None, 4], [2, 3, 4]),
            ([None, 0, 4], [2, 0, 4]),
            ([0, None, 4], [0, 3, 4]),
        ],
    )
    def test_axes_of_unknown_size(self, known, shape):
        kernel, bias = _uniform([4, 5], 1), _uniform([5], 2)
        spec = tf.TensorSpec(known, tf.float64)
        traced = tf.function(lambda x: ops.affine(x, kernel, bias), [spec])
        x = _uniform(shape)
        y = traced(tf.constant(x))
        assert y.shape == (*shape[:-1], 5)
        np.testing.assert_allclose(y, x @ kernel + bias, rtol=1e-12)

    @pytest.mark.usefixtures("_each_device")
    @pytest.mark.parametrize(
        ("size_in", "size_out"), [(3, 5), (1024, 2), (2, 1024), (1024, 1024)]
    )
    def test_gradients(self, size_in, size_out):
        # Rows of 4 KiB are padded internally.
        x, kernel, bias, dy = (
            tf.constant(_uniform(shape, i), tf.float32)
            for i, shape in enumerate(
                [
                    *((2, 3, size_in), (size_in, size_out)),
                    *((size_out,), (2, 3, size_out)),
                ]
            )
        )
        with tf.GradientTape() as tape:
            tape.watch((x, kernel, bias))
            y = ops.affine(x, kernel, bias)
        found = tape.gradient(y, (x, kernel, bias), output_gradients=dy)
        rows, d_rows = (t.numpy().astype(float).reshape(6, -1) for t in (x, dy))
        expected = (
            (d_rows @ kernel.numpy().astype(float).T).reshape(x.shape),
            rows.T @ d_rows,
            d_rows.sum(axis=0),
        )
        for ours, theirs in zip(found, expected, strict=True):
            scale = np.abs(theirs).max()
            np.testing.assert_allclose(ours, theirs, atol=1e-6 * scale)

    @pytest.mark.usefixtures("_each_device")
    @pytest.mark.parametrize(
        "function",
        [
            lambda x, bias: ops.affine(x, tf.ones([5, 5], x.dtype), bias),
            ops.add_bias,
        ],
    )
    def test_bfloat16_adds_up_in_float32(self, function):
        # In bfloat16 256 + 1 is 256; 9984 is next to 10,000.
        bias = tf.ones([5], tf.bfloat16)
        with tf.GradientTape() as tape:
            tape.watch(bias)
            y = function(tf.ones([10_000, 5], tf.bfloat16), bias)
        gradient = tape.gradient(y, bias)
        assert gradient.dtype == tf.bfloat16
        np.testing.assert_array_equal(tf.cast(gradient, tf.int32), [9984] * 5)


# ---- Attention --------------------------------------------------------------


def _attend_plainly(q, k, v, mask, rate, seed):
    scores = tf.matmul(q, k, transpose_b=True) + mask
    kept = ops.dropout(tf.nn.softmax(scores), rate, seed)
    return tf.matmul(kept, v)


class TestAttend:
    def _results(self, function, q, k, v, dy, *more):
        with tf.GradientTape() as tape:
            tape.watch((q, k, v))
            y = function(q, k, v, *more)
        return [y, *tape.gradient(y, (q, k, v), output_gradients=dy)]

    @pytest.mark.parametrize("seed", [None, (1, 2)])
    @pytest.mark.parametrize(
        ("rows", "mask_rows"), [(6, 1), (6, 6), (2, 1), (2, 2)]
    )
    def test_value_and_gradients(self, seed, rows, mask_rows):
        # [B, N, R or S, H], with the padding of the second row masked out.
        shapes = [(2, 3, rows, 4), (2, 3, 6, 4), (2, 3, 6, 4)]
        arrays = [_uniform(shape, i) for i, shape in enumerate(shapes)]
        q, k, v = (tf.constant(array, tf.float32) for array in arrays)
        mask = np.zeros([2, 1, mask_rows, 6], np.float32)
        mask[1, ..., 4:] = -10000
        dy = tf.constant(_uniform(shapes[0], 4), tf.float32)
        results = [
            self._results(function, q, k, v, dy, tf.constant(mask), 0.3, seed)
            for function in (ops.attend, _attend_plainly)
        ]
        for found, expected in zip(*results, strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)

    # On TPUs the gradient takes the probabilities in bfloat16.
    @pytest.mark.parametrize("dialect", ["", "TPU"])
    def test_bfloat16_stays_near(self, dialect):
        results_of = compiled.marked(self._results, dialect)
        arrays = [tf.constant(_uniform((2, 2, 8, 4), i)) for i in range(4)]
        results = []
        for dtype in (tf.bfloat16, tf.float32):
            own = (tf.cast(array, dtype) for array in arrays)
            mask = tf.zeros([2, 1, 1, 8])
            found = results_of(ops.attend, *own, mask, 0, None)
            assert {x.dtype for x in found} == {dtype}
            results.append([tf.cast(x, tf.float32) for x in found])
        for found, expected in zip(*results, strict=True):
            error = np.linalg.norm(found - expected)
            assert 0 < error < 0.03 * np.linalg.norm(expected)


# ---- Dropout ----------------------------------------------------------------


class TestDropout:
    x = tf.constant(_uniform([200, 1000], low=1, high=2), tf.float32)

    def _mask(self, rate, seed):
        return ops.dropout(self.x, rate, tf.constant(seed)).numpy() != 0

    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_rate_and_scale(self, rate):
        y = ops.dropout(self.x, rate, tf.constant([1, 2])).numpy()
        kept = y != 0
        # Five standard deviations of a binomial distribution.
        spread = 5 * math.sqrt(rate * (1 - rate) / kept.size)
        assert abs(kept.mean() - (1 - rate)) < spread
        # The exact average share of dropped positions.
        share = np.float32(round(rate * 2**16) / 2**16)
        assert abs(share - rate) < 1e-5
        scaled = self.x.numpy() / (1 - share)
        np.testing.assert_allclose(y[kept], scaled[kept], rtol=2e-7)

    @pytest.mark.parametrize("size", [1, 2, 7])
    def test_any_width(self, size):
        x = tf.ones([20000, size])
        y = ops.dropout(x, 0.25, tf.constant([3, 1])).numpy()
        spread = 5 * math.sqrt(0.25 * 0.75 / len(y))
        assert np.all(abs((y != 0).mean(axis=0) - 0.75) < spread)

    @pytest.mark.parametrize("size", [6, 7])
    def test_unknown_width(self, size):
        """A traced function draws the same mask as an eager one."""
        x, seed = tf.ones([20, size]), tf.constant([3, 1])
        for known in (size, None):
            spec = tf.TensorSpec([None, known], tf.float32)
            traced = tf.function(lambda x: ops.dropout(x, 0.25, seed), [spec])
            np.testing.assert_array_equal(traced(x), ops.dropout(x, 0.25, seed))

    def test_the_halves_of_each_number_decide(self):
        bits = tf.random.stateless_uniform(
            [200, 500], [7, 8], minval=None, maxval=None, dtype=tf.int32
        ).numpy()
        halves = [bits >> 16, (bits & 0xFFFF).astype(np.int16)]
        # The upper or lower 16 bits as a signed number, of 2^16 from -2^15.
        kept = np.concatenate(halves, -1) >= round(0.1 * 2**16) - 2**15
        np.testing.assert_array_equal(self._mask(0.1, [7, 8]), kept)

    def test_places_that_share_bits_are_independent(self):
        # One integer decides about a position and the one half a row later.
        kept = self._mask(0.5, [7, 8])
        same = kept[:, :500] == kept[:, 500:]
        assert abs(same.mean() - 0.5) < 5 * 0.5 / math.sqrt(same.size)

    def test_same_mask_where_there_is_another_device(self, monkeypatch):
        x = self.x[:, :999]
        here = ops.dropout(x, 0.1, tf.constant([5, 6]))
        monkeypatch.setattr(ops, "_devices", lambda: {"CPU", "GPU"})
        there = ops.dropout(x, 0.1, tf.constant([5, 6]))
        np.testing.assert_array_equal(here, there)

    def test_masks_are_of_their_seeds(self):
        first = self._mask(0.5, [5, 6])
        np.testing.assert_array_equal(first, self._mask(0.5, [5, 6]))
        for other in ([5, 7], [6, 6], [6, 5]):
            both = first == self._mask(0.5, other)
            assert abs(both.mean() - 0.5) < 5 * 0.5 / math.sqrt(both.size)

    def test_no_seed_or_no_rate_is_identity(self):
        assert ops.dropout(self.x, 0.1, None) is self.x
        assert ops.dropout(self.x, 0.0, tf.constant([1, 2])) is self.x

    def test_gradient_goes_where_the_value_went(self):
        x = self.x[:2]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.dropout(x, 0.5, tf.constant([1, 2]))
        np.testing.assert_array_equal(
            tape.gradient(y, x), np.where(y.numpy() != 0, 2, 0)
        )

    def test_bfloat16_has_the_same_mask(self):
        y = ops.dropout(tf.cast(self.x, tf.bfloat16), 0.1, tf.constant([5, 6]))
        assert y.dtype == tf.bfloat16
        np.testing.assert_array_equal(
            tf.cast(y, tf.float32).numpy() != 0, self._mask(0.1, [5, 6])
        )


class TestBest:
    @pytest.mark.usefixtures("_each_device")
    def test_is_the_first_of_the_largest(self):
        scores = np.random.default_rng(0).integers(0, 9, [200, 30])
        largest = scores.max(axis=-1, keepdims=True)
        assert ((scores == largest).sum(axis=-1) > 1).any(), "no equal ones"
        found = ops.best(tf.constant(scores, tf.float32))
        assert found.dtype == tf.int32
        np.testing.assert_array_equal(found, scores.argmax(axis=-1))


class TestPut:
    def test_by_hand(self):
        found = ops.put(
            tf.constant([[1, 2, 3, 4], [5, 6, 7, 30521]]),
            tf.constant([[3, 1, 0], [2, 0, 0]]),
            tf.constant([[9, 8, 7], [30000, 1, 1]]),
            tf.constant([[True, True, False], [True, False, False]]),
        )
        assert found.numpy().tolist() == [[1, 8, 3, 9], [5, 6, 30000, 30521]]

    def test_the_first_place_with_filling(self):
        # Padded predictions have position 0, where a word may be, too.
        found = ops.put(
            tf.constant([[1, 2]]),
            tf.constant([[0, 0, 0]]),
            tf.constant([[5, 0, 0]]),
            tf.constant([[True, False, False]]),
        )
        assert found.numpy().tolist() == [[5, 2]]
