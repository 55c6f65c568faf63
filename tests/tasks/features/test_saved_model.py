"""Tests of exported feature extractors, compared with Python's features."""

import contextlib
import dataclasses
import hashlib
import json

from bert_tf import modeling
from bert_tf.exporting import inference
from bert_tf.tasks.features import feature_layers, features_model
from bert_tf.vocabularies import word_pieces
from tests import saved_models, tiny_model
from tests.tasks.features import test_extraction as test_features

import numpy as np
import pytest
import tensorflow as tf

_CHOICE = feature_layers.Choice("layers", (-1, -2))
_PAIRS = [text.partition(" ||| ")[::2] for text in test_features.TEXTS]
TEXTS_A, TEXTS_B = map(list, zip(*_PAIRS, strict=True))


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    config = dataclasses.replace(test_features.CONFIG, num_hidden_layers=2)
    return modeling.Bert(config)


def export(model, unit="token", choice=_CHOICE, normalize=False):
    return features_model.extractor(
        model,
        word_pieces.WordPiece(tuple(test_features.VOCAB), True),
        max_seq_length=test_features.LENGTH,
        choice=choice,
        unit=unit,
        normalize=normalize,
    )


_LAST = feature_layers.Choice("last")
_TOP = feature_layers.Choice("layers", (-1,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "choice", "normalize"),
    [
        ("token", _CHOICE, True),
        ("mean", _LAST, False),
        # Other positions of the last layer are not computed.
        ("cls", _LAST, True),
        *(
            pytest.param(*combination, marks=pytest.mark.exhaustive)
            for combination in (
                *(("token", _CHOICE, False), ("mean", _CHOICE, True)),
                *(("cls", _LAST, False), ("cls", _TOP, True)),
                *(("cls", _TOP, False), ("cls", _CHOICE, False)),
            )
        ),
    ],
)
def test_vectors(unit, choice, normalize, model):
    """For texts, and for ids of any batch size and length."""
    made = export(model, unit, choice, normalize)
    assert json.loads(made.files["export.json"]) == {
        "head": "encoder",
        "do_lower_case": True,
        "max_seq_length": test_features.LENGTH,
        "features": [choice.name] if choice is _LAST else [*choice.layers],
        "unit": unit,
        "normalize": normalize,
        "vocab_sha256": hashlib.sha256(made.files["vocab.txt"]).hexdigest(),
    }
    # The units differ in few operations: one is traced.
    is_traced = unit == "token"
    with contextlib.nullcontext() if is_traced else tiny_model.untraced():
        _check_vectors(made, model, unit, choice, normalize)


def _check_vectors(made, model, unit, choice, normalize):
    serve = made.signatures["serving_default"]
    found = serve(tf.constant(TEXTS_A), tf.constant(TEXTS_B))["vectors"].numpy()
    with tiny_model.untraced():
        _, expected = test_features.extract(
            model, choice, unit, normalize=normalize
        )
    for row, vectors in zip(found, expected, strict=True):
        vectors = vectors if unit == "token" else vectors[0]
        np.testing.assert_allclose(row[: len(vectors)], vectors, atol=1e-5)
        assert unit != "token" or not row[len(vectors) :].any()
        if normalize:
            np.testing.assert_allclose((vectors**2).sum(-1), 1, atol=1e-5)
    alone = serve(tf.constant(TEXTS_A[:1]), tf.constant([""]))["vectors"]
    np.testing.assert_allclose(alone[0], found[0][: alone.shape[1]], atol=1e-5)
    for rows, length in ((1, 3), (4, 12), (0, 5)):
        ids = saved_models.some_ids(rows, length, len(test_features.VOCAB))
        inputs = {name: tf.constant(x) for name, x in ids.items()}
        found = made.signatures["serve_ids"](*inputs.values())
        layers = np.stack([x.numpy() for x in model(inputs).layers], 2)
        numbers = choice.layers if choice.name == "layers" else [-1]
        expected = layers[:, :, list(numbers)]  # [B, S, K, D]
        mask = ids["input_mask"][:, :, np.newaxis, np.newaxis]
        if unit == "token":
            for name in ("input_ids", "input_mask"):
                np.testing.assert_array_equal(found[name], ids[name])
        elif unit == "cls":
            expected = expected[:, 0]
        else:
            expected = (expected * mask).sum(1) / mask.sum(1)
        if normalize:
            expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
        expected = expected * mask if unit == "token" else expected
        np.testing.assert_allclose(found["vectors"], expected, atol=1e-5)


def test_words_are_refused(model):
    with pytest.raises(ValueError, match="unit=word"):
        export(model, "word")


def _multiplications(unit, model, rows, length):
    """Returns the multiplications in all matrix products of a batch's graph."""
    made = export(model, unit, _LAST)
    ids = [tf.TensorSpec([rows, length], tf.int32)] * 3
    with inference.computing_padding():
        traced = tf.function(
            made.module.serve_ids.python_function, ids, autograph=False
        )
        graph = traced.get_concrete_function().graph
    return sum(
        np.prod(x.outputs[0].shape) * x.inputs[0].shape[-1]
        for x in graph.get_operations()
        if "MatMul" in x.type
    )


@pytest.mark.slow
def test_cls_of_the_last_layer_takes_fewer_products(model):
    """The products saved are the last layer's at all other positions."""
    rows, length = 4, 10
    size = model.config.hidden_size
    inner = model.config.intermediate_size
    # Query, output, feed-forward twice, scores and their weighted sums.
    per_place = 2 * size * size + 2 * size * inner + 2 * length * size
    everywhere, at_cls = (
        _multiplications(unit, model, rows, length) for unit in ("mean", "cls")
    )
    assert everywhere - at_cls == rows * (length - 1) * per_place
