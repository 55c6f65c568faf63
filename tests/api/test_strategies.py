"""The public Keras classes in the loops of Keras: two devices, and XLA."""

import dataclasses
import functools
import itertools

import bert_tf
from tests import combinations, tiny_files

import keras
import numpy as np
import pytest

_CONFIG = dataclasses.replace(
    tiny_files.CONFIG,
    num_hidden_layers=1,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
_ROWS, _LENGTH = 16, 8


def _of_classes(count, *shape):
    return lambda rng: rng.integers(0, count, [_ROWS, *shape])


def _several(*targets):
    return lambda rng: tuple(make(rng) for make in targets)


def _scorer(bert):
    """`Bert` as a layer of another model."""
    columns = {
        name: keras.Input([_LENGTH], dtype="int32", name=name)
        for name in ("input_ids", "attention_mask", "segment_ids")
    }
    return keras.Model(columns, keras.layers.Dense(2)(bert(columns).pooled))


_CLASSES = {
    "Bert": (_scorer, _of_classes(2)),
    "BertClassifier": (
        lambda bert: bert_tf.BertClassifier(bert, 2),
        _of_classes(2),
    ),
    "BertTagger": (
        lambda bert: bert_tf.BertTagger(bert, 3),
        _of_classes(3, _LENGTH),
    ),
    "BertSpanFinder": (
        bert_tf.BertSpanFinder,
        _several(_of_classes(_LENGTH), _of_classes(_LENGTH)),
    ),
    "BertMultipleChoice": (bert_tf.BertMultipleChoice, _of_classes(2)),
    "BertNextSentence": (bert_tf.BertNextSentence, _of_classes(2)),
    "BertMaskedLM": (bert_tf.BertMaskedLM, _of_classes(_CONFIG.vocab_size, 2)),
    "BertPretrainer": (
        bert_tf.BertPretrainer,
        _several(_of_classes(_CONFIG.vocab_size, 2), _of_classes(2)),
    ),
}


def _inputs(name, rng):
    shape = [_ROWS, _LENGTH]
    if name == "BertMultipleChoice":
        shape = [_ROWS, 2, _LENGTH]
    inputs = {
        "input_ids": rng.integers(5, _CONFIG.vocab_size, shape),
        # Floats, like the masks of other libraries' collators.
        "attention_mask": (rng.random(shape) < 0.9).astype(np.float32),
        "segment_ids": rng.integers(0, 2, shape),
    }
    if name in ("BertMaskedLM", "BertPretrainer"):
        inputs["masked_lm_positions"] = rng.integers(0, _LENGTH, [_ROWS, 2])
    return inputs


def _results(name, **how):
    """Returns the losses of fit and evaluate, and the predictions."""
    make, labels = _CLASSES[name]
    keras.utils.set_random_seed(1)
    model = make(bert_tf.Bert(_CONFIG))
    rng = np.random.default_rng(0)
    inputs, wanted = _inputs(name, rng), labels(rng)
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        keras.optimizers.SGD(0.05),
        [entropy] * 2 if isinstance(wanted, tuple) else entropy,
        **how,
    )
    fitted = model.fit(
        inputs, wanted, batch_size=8, epochs=2, shuffle=False, verbose=0
    )
    evaluated = model.evaluate(inputs, wanted, batch_size=8, verbose=0)
    predicted = model.predict(inputs, batch_size=8, verbose=0)
    return [
        *fitted.history["loss"],
        *np.ravel(evaluated),
    ], keras.tree.flatten(predicted)


_on_one_device = functools.partial(_results, run_eagerly=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loop"),
    combinations.some(
        [
            ("BertSpanFinder", "two devices"),
            ("BertClassifier", "XLA"),
        ],
        itertools.product(_CLASSES, ("two devices", "XLA")),
    ),
)
def test_loops_agree_with_one_device(name, loop, two_replicas):
    losses, predictions = _on_one_device(name)
    if loop == "XLA":
        found, predicted = _results(name, jit_compile=True)
    else:
        with two_replicas.scope():
            found, predicted = _results(name, jit_compile=False)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    for x, y in zip(predicted, predictions, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5)


def test_other_floats_are_refused():
    model = bert_tf.BertClassifier(bert_tf.Bert(_CONFIG), 2)
    with pytest.raises(bert_tf.InputError, match="must be integers"):
        model({"input_ids": np.ones([2, 4], np.float32)})
