"""Tests of exported feature extractors, against Python's own features."""

import json

from bert_tf import modeling
from bert_tf.exporting import inference, saved_model
from bert_tf.tasks.features import layers as feature_layers
from bert_tf.tasks.features import saved_model as features_model
from bert_tf.vocabularies import word_pieces
from tests import saved_models
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
    return modeling.Bert(test_features.CONFIG)


def save(path, model, unit="token", choice=_CHOICE, normalize=False):
    made = features_model.extractor(
        model,
        word_pieces.WordPiece(tuple(test_features.VOCAB), True),
        max_seq_length=test_features.LENGTH,
        choice=choice,
        unit=unit,
        normalize=normalize,
    )
    saved_model.save(str(path), made)


@pytest.mark.slow
def test_tokens_in_another_process(model, tmp_path):
    save(tmp_path / "tokens", model)
    found = saved_models.serve_elsewhere(
        tmp_path, tmp_path / "tokens", text_a=TEXTS_A, text_b=TEXTS_B
    )
    outputs = {name: np.array(rows) for name, rows in found.items()}
    lines, expected = test_features.extract(model, _CHOICE, "token")
    for i, (line, vectors) in enumerate(zip(lines, expected, strict=True)):
        size = len(line.ids)
        assert outputs["input_ids"][i, :size].tolist() == list(line.ids)
        assert outputs["input_mask"][i].sum() == size
        np.testing.assert_allclose(
            outputs["vectors"][i, :size], vectors, atol=1e-5
        )
        assert not outputs["vectors"][i, size:].any()


@pytest.mark.slow
def test_one_vector_of_a_text(model, tmp_path):
    save(tmp_path / "mean", model, "mean", feature_layers.Choice("last"))
    loaded = tf.saved_model.load(str(tmp_path / "mean"))
    found = loaded(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
    _, expected = test_features.extract(
        model, feature_layers.Choice("last"), "mean"
    )
    np.testing.assert_allclose(
        found["vectors"], np.concatenate(expected), atol=1e-5
    )
    alone = loaded(tf.constant(TEXTS_A[:1]))["vectors"]
    np.testing.assert_allclose(alone, expected[0], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["token", "mean"])
def test_vectors_of_unit_length(unit, model, tmp_path):
    save(tmp_path / "unit", model, unit, normalize=True)
    assets = tmp_path / "unit" / "assets"
    assert json.loads((assets / "export.json").read_text())["normalize"] is True
    loaded = tf.saved_model.load(str(tmp_path / "unit"))
    found = loaded(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
    _, expected = test_features.extract(model, _CHOICE, unit, normalize=True)
    for row, vectors in zip(found["vectors"].numpy(), expected, strict=True):
        if unit == "mean":
            vectors = vectors[0]
        np.testing.assert_allclose(row[: len(vectors)], vectors, atol=1e-5)
        assert not row[len(vectors) :].any()
        np.testing.assert_allclose((vectors**2).sum(-1), 1, atol=1e-5)


def test_the_description_says_the_length(model, tmp_path):
    save(tmp_path / "plain", model)
    text = (tmp_path / "plain" / "assets" / "export.json").read_text()
    assert json.loads(text) == {
        "head": "encoder",
        "do_lower_case": True,
        "max_seq_length": test_features.LENGTH,
        "features": [-1, -2],
        "unit": "token",
        "normalize": False,
    }


def test_words_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match="unit=word"):
        save(tmp_path / "new", model, "word")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "length"), [(1, 3), (4, 12), (0, 5)])
@pytest.mark.parametrize("unit", ["token", "mean", "cls"])
def test_ids_of_any_batch_and_length(unit, rows, length, model, tmp_path):
    save(tmp_path / "ids", model, unit)
    ids = saved_models.some_ids(rows, length, len(test_features.VOCAB))
    inputs = {name: tf.constant(x) for name, x in ids.items()}
    found = tf.saved_model.load(str(tmp_path / "ids")).signatures["serve_ids"](
        **inputs
    )
    layers = np.stack([x.numpy() for x in model(inputs).layers], 2)
    expected = layers[:, :, [-1, -2]]  # [B, S, K, D]
    mask = ids["input_mask"][:, :, np.newaxis, np.newaxis]
    if unit == "token":
        expected = expected * mask
        np.testing.assert_array_equal(found["input_ids"], ids["input_ids"])
        np.testing.assert_array_equal(found["input_mask"], ids["input_mask"])
    elif unit == "cls":
        expected = expected[:, 0]
    else:
        expected = (expected * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(found["vectors"], expected, atol=1e-5)


_LAST = [feature_layers.Choice("last"), feature_layers.Choice("layers", (-1,))]


@pytest.mark.slow
@pytest.mark.parametrize("choice", _LAST, ids=lambda choice: choice.name)
@pytest.mark.parametrize("normalize", [False, True])
def test_cls_of_the_last_layer(choice, normalize, model, tmp_path):
    """From texts and from ids, where no other place of the layer is there."""
    save(tmp_path / "cls", model, "cls", choice, normalize)
    loaded = tf.saved_model.load(str(tmp_path / "cls"))
    found = loaded(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
    _, expected = test_features.extract(
        model, choice, "cls", normalize=normalize
    )
    np.testing.assert_allclose(
        found["vectors"], np.concatenate(expected), rtol=0, atol=1e-5
    )
    for rows, length in ((1, 3), (4, 12), (0, 5)):
        ids = saved_models.some_ids(rows, length, len(test_features.VOCAB))
        inputs = {name: tf.constant(x) for name, x in ids.items()}
        found = loaded.signatures["serve_ids"](**inputs)["vectors"]
        vectors = model(inputs).sequence.numpy()[:, :1]  # [B, 1, D]
        if normalize:
            vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        assert found.shape == vectors.shape
        np.testing.assert_allclose(found, vectors, rtol=0, atol=1e-5)


def _multiplications(unit, model, rows, length):
    """Returns how many all matrix products of a batch's graph take."""
    made = features_model.extractor(
        model,
        word_pieces.WordPiece(tuple(test_features.VOCAB), True),
        test_features.LENGTH,
        feature_layers.Choice("last"),
        unit,
    )
    ids = [tf.TensorSpec([rows, length], tf.int32)] * 3
    with inference.computing_padding():
        traced = tf.function(made.module.serve_ids.python_function, ids)
        graph = traced.get_concrete_function().graph
    return sum(
        np.prod(x.outputs[0].shape) * x.inputs[0].shape[-1]
        for x in graph.get_operations()
        if "MatMul" in x.type
    )


def test_cls_of_the_last_layer_takes_fewer_products(model):
    """By what the layer's queries and all after them take elsewhere."""
    rows, length = 4, 10
    size = model.config.hidden_size
    inner = model.config.intermediate_size
    # Query, output, feed-forward twice, scores and what they gather.
    per_place = 2 * size * size + 2 * size * inner + 2 * length * size
    everywhere, at_cls = (
        _multiplications(unit, model, rows, length) for unit in ("mean", "cls")
    )
    assert everywhere - at_cls == rows * (length - 1) * per_place
