"""Tests of int8 matrices against NumPy in float64."""

from bert_tf.exporting import quantized

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture
def matrix():
    rng = np.random.default_rng(3)
    # Columns and rows of very different sizes, and one of zeros each.
    scale = 10.0 ** np.arange(-6, 6)
    matrix = rng.normal(size=[12, 12]) * scale * scale[::-1, np.newaxis] ** 0.5
    matrix[:, 4] = matrix[7] = 0
    return matrix.astype(np.float32)


@pytest.mark.parametrize(
    ("quantize", "axis"), [(quantized.columns, 0), (quantized.rows, 1)]
)
def test_each_has_its_own_scale(matrix, quantize, axis):
    found = quantize(matrix)
    assert found.values.dtype == np.int8
    assert found.scales.dtype == np.float32
    exact = found.values.astype(np.float64) * found.scales
    step = np.abs(matrix).max(axis, keepdims=True) / 127
    # Never further than half a step from the float.
    assert (np.abs(exact - matrix) <= 0.501 * step).all()
    largest = np.abs(found.values.astype(int)).max(axis)
    is_zero = ~matrix.any(axis)
    assert is_zero.sum() == 1
    np.testing.assert_array_equal(largest, np.where(is_zero, 0, 127))


def test_signs_are_alike(matrix):
    one, other = quantized.columns(matrix), quantized.columns(-matrix)
    np.testing.assert_array_equal(one.values, -other.values)


def _as_floats(found):
    return found.values.astype(np.float64) * found.scales


def test_product(matrix):
    kernel = quantized.columns(matrix)
    x = np.random.default_rng(5).normal(size=[7, 12]).astype(np.float32)
    np.testing.assert_allclose(
        quantized.product(tf.constant(x), kernel),
        x @ _as_floats(kernel),
        rtol=1e-4,
        atol=1e-6 * np.abs(matrix).max(),
    )


def test_embedding(matrix):
    table = quantized.rows(matrix)
    ids = np.array([[0, 11, 7], [3, 3, 5]], np.int32)
    np.testing.assert_allclose(
        quantized.embed(table, tf.constant(ids)),
        _as_floats(table)[ids],
        rtol=1e-6,
    )


def test_kept_weights(matrix):
    weights = quantized.Int8()
    kernel, table = weights.kernel(matrix), weights.table(matrix)
    bias = weights.keep(matrix[0])
    assert [v.dtype.name for v in weights.variables] == [
        *("int8", "float32", "int8", "float32", "float32"),
    ]
    np.testing.assert_array_equal(bias, matrix[0])
    x = np.eye(12, dtype=np.float32)
    np.testing.assert_allclose(
        kernel(tf.constant(x)), _as_floats(quantized.columns(matrix)), rtol=1e-6
    )
    exact = _as_floats(quantized.rows(matrix))
    np.testing.assert_allclose(table.all(), exact, rtol=1e-6)
    np.testing.assert_allclose(table.rows(tf.constant([5, 0])), exact[[5, 0]])
