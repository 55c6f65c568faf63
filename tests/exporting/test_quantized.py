"""Tests of int8 matrices, compared with NumPy in float64."""

import bert_tf
from bert_tf.encoders import albert
from bert_tf.exporting import quantized, runtimes
from tests import exports
from tests.exports import TEXTS_A, VOCAB

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture
def matrix():
    rng = np.random.default_rng(3)
    # Columns and rows of very different scales, and one each of zeros.
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
    # At most half a step from the float value.
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


def encoders(folder, groups=1, inner=1, layers=2):
    """Returns an encoder with random weights, in float32 and in int8."""
    config = albert.AlbertConfig(
        vocab_size=len(VOCAB),
        embedding_size=32,
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
        initializer_range=0.3,
        num_hidden_groups=groups,
        inner_group_num=inner,
    )
    run = exports.write_run(folder, "encoder", config=config)
    made = bert_tf.load(run)._made
    assert made is not None
    return made, runtimes.with_weights(made, "int8")


def size(made):
    """Returns the size of the variables in bytes."""
    return sum(x.numpy().nbytes for x in made.module.variables)


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_answers_are_those_of_floats(tmp_path):
    both = encoders(tmp_path / "run", groups=2, inner=2)
    lines = tf.constant(TEXTS_A)
    expected, found = (
        np.squeeze(made.signatures["serving_default"](text_a=lines)["vectors"])
        for made in both
    )
    product = (found * expected).sum(-1)
    length = np.linalg.norm([found, expected], axis=-1).prod(0)
    assert (product / length).min() > 0.99
    # Values differ from float32's, and different texts have different vectors.
    assert (found != expected).any()
    assert expected.std(0).max() > 0.1
    # Scales, biases and layer norms stay floats.
    assert size(both[1]) < 0.31 * size(both[0])


@pytest.mark.slow
def test_shared_weights_are_kept_once(tmp_path):
    found = {}
    for groups, layers in [(1, 2), (1, 4), (2, 4)]:
        folder = tmp_path / f"{groups}_{layers}"
        both = encoders(folder, groups, layers=layers)
        found[groups, layers] = size(both[1])
    assert found[1, 4] == found[1, 2]
    # A block has int8 matrices, a scale and a bias per output, and two layer
    # norms.
    D, F = 64, 256
    block = 4 * D * D + 2 * D * F + 2 * 4 * (5 * D + F) + 4 * 4 * D
    assert found[2, 4] - found[1, 4] == block
