"""Models whose kernels oneDNN may cache."""

import os

from bert_tf import kept_kernels
from bert_tf.errors import InputError
from bert_tf.server import constant_kernels
from tests import exports

import numpy as np
import pytest
import tensorflow as tf

_VARIABLE = kept_kernels.VARIABLE
_X = tf.TensorSpec([None, 8], tf.float32)


def _save(folder, product):
    """Saves a model with a matrix product and a bias."""
    module = tf.Module()
    module.kernel = tf.Variable(np.eye(8, dtype=np.float32))
    module.bias = tf.Variable(np.ones(8, np.float32))

    def serve(x):
        return {"y": tf.nn.bias_add(product(x, module.kernel), module.bias)}

    module.serve = tf.function(serve, [_X])
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    return str(folder)


def _by_itself(x, kernel):
    return tf.matmul(x[:8], x[:8]) + 0 * tf.matmul(x[:8], kernel)


def _in_a_branch(x, kernel):
    computed = x[:8] * 2
    return tf.cond(
        tf.shape(x)[0] > 3,
        lambda: tf.matmul(x[:8], computed),
        lambda: tf.matmul(x[:8], kernel),
    )


@pytest.mark.slow
def test_exports_of_all_heads_have_constant_kernels():
    for name in (*exports.NAMES, "tokens"):
        assert constant_kernels.are_constant(str(exports.exported(name))), name


def test_kernels_made_of_variables_are_constant(tmp_path):
    path = _save(
        tmp_path / "scaled",
        lambda x, kernel: tf.matmul(x, tf.transpose(tf.concat([kernel], 1))),
    )
    assert constant_kernels.are_constant(path)


@pytest.mark.parametrize("product", [_by_itself, _in_a_branch])
def test_products_of_what_is_computed_are_not(tmp_path, product):
    path = _save(tmp_path / "model", product)
    assert not constant_kernels.are_constant(path)


@pytest.fixture
def no_variable(monkeypatch):
    # Makes monkeypatch restore it, whatever the test does.
    monkeypatch.setenv(_VARIABLE, "")
    monkeypatch.delenv(_VARIABLE)


@pytest.mark.usefixtures("no_variable")
def test_kernels_of_all_models_are_kept_or_of_none(tmp_path):
    bad = _save(tmp_path / "bad", _by_itself)
    good = _save(tmp_path / "good", tf.matmul)
    assert not constant_kernels.keep([good, bad])
    assert _VARIABLE not in os.environ
    constant_kernels.check(bad)

    assert constant_kernels.keep([good])
    assert os.environ[_VARIABLE] == "1"
    constant_kernels.check(good)
    with pytest.raises(InputError, match="--keep_kernels=false"):
        constant_kernels.check(bad)


@pytest.mark.usefixtures("no_variable")
def test_what_the_environment_says_counts(tmp_path, monkeypatch):
    good = _save(tmp_path / "good", tf.matmul)
    monkeypatch.setenv(_VARIABLE, "0")
    assert not constant_kernels.keep([good])
    assert os.environ[_VARIABLE] == "0"


@pytest.mark.usefixtures("no_variable")
def test_a_damaged_version_does_not_count(tmp_path):
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "saved_model.pb").write_bytes(b"\xff" * 9)
    good = _save(tmp_path / "1", tf.matmul)
    assert constant_kernels.keep([str(tmp_path / "2"), good])
