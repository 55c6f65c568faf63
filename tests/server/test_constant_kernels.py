"""Which models may have their kernels kept by oneDNN."""

import os
import subprocess
import sys

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
    """Saves a model of a product and a bias."""
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
    for name in (*exports.ALL_NAMES, "tokens"):
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
    # So that it is put back, whatever the test does.
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


_ANSWERS = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
serve = model.signatures["serve_ids"]
rng = np.random.default_rng(0)
found = []
for rows, length in [(1, 5), (40, 12), (4, 7), (2, 3), (9, 9), (3, 8)]:
    ids = rng.integers(5, 9, (rows, length)).astype(np.int32)
    mask = (np.arange(length) < rng.integers(1, length, (rows, 1)) + 1)
    x = {"input_ids": ids, "input_mask": mask.astype(np.int32),
         "segment_ids": np.zeros_like(ids)}
    found.append(serve(**{k: tf.constant(v) for k, v in x.items()})["logits"])
np.save(sys.argv[2], np.concatenate(found))
"""


@pytest.mark.slow
def test_answers_are_the_same_with_kernels_that_are_kept(tmp_path):
    """For all sizes of batches after each other, each with its own layout."""
    answers = []
    for is_kept in "01":
        out = tmp_path / f"{is_kept}.npy"
        subprocess.run(
            [sys.executable, "-c", _ANSWERS, exports.exported("one text"), out],
            env=os.environ | {_VARIABLE: is_kept, "TF_ENABLE_ONEDNN_OPTS": "1"},
            check=True,
            capture_output=True,
        )
        answers.append(np.load(out))
    dropped, kept = answers
    np.testing.assert_allclose(kept, dropped, rtol=0, atol=5e-6)
