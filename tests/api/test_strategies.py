"""The public Keras classes under a strategy of two devices."""

import dataclasses

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
_CLASSES = {
    "BertClassifier": (
        lambda bert: bert_tf.BertClassifier(bert, 2),
        lambda rng: rng.integers(0, 2, _ROWS),
    ),
    "BertTagger": (
        lambda bert: bert_tf.BertTagger(bert, 3),
        lambda rng: rng.integers(0, 3, [_ROWS, _LENGTH]),
    ),
    "BertMultipleChoice": (
        bert_tf.BertMultipleChoice,
        lambda rng: rng.integers(0, 2, _ROWS),
    ),
    "BertNextSentence": (
        bert_tf.BertNextSentence,
        lambda rng: rng.integers(0, 2, _ROWS),
    ),
    "BertMaskedLM": (
        bert_tf.BertMaskedLM,
        lambda rng: rng.integers(0, _CONFIG.vocab_size, [_ROWS, 2]),
    ),
}


def _inputs(name, rng):
    shape = [_ROWS, _LENGTH]
    if name == "BertMultipleChoice":
        shape = [_ROWS, 2, _LENGTH]
    inputs = {
        "input_ids": rng.integers(5, _CONFIG.vocab_size, shape),
        # Floats, as others' collators make masks.
        "attention_mask": (rng.random(shape) < 0.9).astype(np.float32),
        "segment_ids": rng.integers(0, 2, shape),
    }
    if name == "BertMaskedLM":
        inputs["masked_lm_positions"] = rng.integers(0, _LENGTH, [_ROWS, 2])
    return inputs


def _losses(name):
    """Returns the losses of fit and evaluate, and the predictions."""
    make, labels = _CLASSES[name]
    keras.utils.set_random_seed(1)
    model = make(bert_tf.Bert(_CONFIG))
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    rng = np.random.default_rng(0)
    inputs, wanted = _inputs(name, rng), labels(rng)
    fitted = model.fit(
        inputs, wanted, batch_size=8, epochs=2, shuffle=False, verbose=0
    )
    loss = model.evaluate(inputs, wanted, batch_size=8, verbose=0)
    return (
        [*fitted.history["loss"], loss],
        model.predict(inputs, batch_size=8, verbose=0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", combinations.some(["BertMaskedLM"], _CLASSES))
def test_two_replicas_lose_what_one_loses(name, two_replicas):
    losses, logits = _losses(name)
    with two_replicas.scope():
        found, predicted = _losses(name)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    # Adam divides by the root of small squares, which differ by their sums.
    np.testing.assert_allclose(predicted, logits, atol=1e-4)


def test_other_floats_are_refused():
    model = bert_tf.BertClassifier(bert_tf.Bert(_CONFIG), 2)
    with pytest.raises(bert_tf.InputError, match="must be integers"):
        model({"input_ids": np.ones([2, 4], np.float32)})
