"""Computing tokens only gives the same results as computing padding, too."""

import dataclasses

from bert_tf import compiled, heads, modeling
from bert_tf.contrib import left_to_right
from bert_tf.encoders import families, ops, padding
from tests import pretraining_records, reference, tiny_model

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = modeling.BertConfig(**pretraining_records.WITHOUT_DROPOUT)


def _ints(rows):
    return np.array(rows, np.int32)


def _batch(lengths):
    """Sequences of these lengths, padded to 9."""
    batch = reference.batch(_CONFIG, rows=len(lengths))
    mask = np.arange(9) < np.array(lengths)[:, np.newaxis]
    batch["input_mask"] = mask.astype(np.int32)
    # Words are predicted of tokens only.
    last = np.array(lengths)[:, np.newaxis] - 1
    batch["masked_lm_positions"] = np.minimum(
        batch["masked_lm_positions"], last
    ).astype(np.int32)
    return batch


def _read(model, batch):
    """Returns the outputs that a task reads, as one vector."""
    outputs = tf.nest.flatten(model(batch))
    mask = batch["input_mask"] > 0
    if isinstance(model, heads.BertTagger):
        outputs = [tf.boolean_mask(x, mask) for x in outputs]
    return tf.concat([tf.reshape(x, [-1]) for x in outputs], axis=0)


def _values_and_gradients(model, batch, skips_padding):
    model.bert.skips_padding = skips_padding
    with tf.GradientTape() as tape:
        values = _read(model, batch)
        # No output can hide another output's error.
        factors = np.arange(1, len(values) + 1, dtype=np.float32)
        loss = tf.reduce_sum(values * factors)
    variables = [v.value for v in model.trainable_variables]
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    paths = (v.path for v in model.trainable_variables)
    return values.numpy(), dict(zip(paths, gradients, strict=True))


def _assert_close(found, expected):
    """Compares the values, and the gradients relative to their size."""
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    for name, right in expected[1].items():
        scale = max(1, np.abs(right).max())
        np.testing.assert_allclose(
            found[1][name] / scale, right / scale, atol=1e-5, err_msg=name
        )


def _tagger():
    return heads.BertTagger(modeling.Bert(_CONFIG), 4)


def _classifier():
    return heads.BertClassifier(modeling.Bert(_CONFIG), 3)


def _pretrainer():
    return heads.BertPretrainer(modeling.Bert(_CONFIG))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "lengths", "remat"),
    [
        (_classifier, (9, 5, 1, 3), False),
        (_classifier, (9, 9), False),  # no padding
        (_classifier, (1,), False),  # less padding than fills 32 places
        (_tagger, (9, 5, 1, 3), False),
        (_tagger, (9,) * 7 + (1,), True),
        (_pretrainer, (9, 5, 1, 3), False),
        (_pretrainer, (9,) * 7 + (1,), True),
    ],
)
def test_same_values_and_gradients(make, lengths, remat):
    model = make()
    reference.random_weights(model.trainable_variables)
    model.bert.encoder.remat = remat
    batch = _batch(lengths)
    expected = _values_and_gradients(model, batch, False)
    found = _values_and_gradients(model, batch, True)
    _assert_close(found, expected)


def test_all_layers_by_the_papers_formulas():
    bert = reference.randomized(modeling.Bert(_CONFIG))
    bert.skips_padding = True
    batch = _batch((9, 4, 1))
    outputs = bert(batch)
    embeddings, layers, pooled = reference.encode(
        _CONFIG, reference.weights_of(bert.variables), batch
    )
    np.testing.assert_allclose(outputs.pooled, pooled, atol=1e-5)
    real = batch["input_mask"] > 0
    found = [outputs.embeddings, *outputs.layers]
    for x, values in zip(found, [embeddings, *layers], strict=True):
        np.testing.assert_allclose(x[real], values[real], atol=1e-5)


def test_several_sequences_in_a_row():
    model = reference.randomized(_pretrainer())
    batch = _batch((9, 7))
    batch |= {
        "sequence_ids": _ints([[1] * 4 + [2] * 5, [1] * 6 + [2, 0, 0]]),
        "position_ids": _ints([[*range(4), *range(5)], [*range(6), 0, 0, 0]]),
        "cls_positions": _ints([[0, 4], [0, 6]]),
    }
    expected = _values_and_gradients(model, batch, False)
    found = _values_and_gradients(model, batch, True)
    _assert_close(found, expected)


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_row_without_tokens_is_its_first_position(is_causal):
    config = _CONFIG
    if is_causal:
        values = dataclasses.asdict(_CONFIG)
        config = left_to_right.LeftToRightConfig(**values)
    model = heads.BertClassifier(families.make(config), 3)
    reference.random_weights(model.trainable_variables)
    expected = model(_batch((9, 1, 3)))
    model.bert.skips_padding = True
    batch = _batch((9, 0, 3))
    np.testing.assert_allclose(model(batch), expected, atol=1e-5)
    alone = {name: x[1:2, :4] for name, x in batch.items()}
    np.testing.assert_allclose(model(alone), expected[1:2], atol=1e-5)


def test_in_bfloat16():
    exact = _classifier()
    with tiny_model.policy("mixed_bfloat16"):
        model = _classifier()
    for each in (exact, model):
        reference.random_weights(each.trainable_variables)
    batch = _batch((9, 5, 1, 3))
    values, gradients = _values_and_gradients(model, batch, True)
    expected, _ = _values_and_gradients(exact, batch, False)
    # Numbers of 8 bits, in two layers with sums of 20.
    np.testing.assert_allclose(values, expected, atol=0.1, rtol=0.05)
    assert all(np.isfinite(x).all() for x in gradients.values())


def test_compiled_steps_compute_padding():
    """XLA has no shapes that depend on the lengths of sequences."""
    bert, batch = modeling.Bert(_CONFIG), _batch([9, 4, 1])
    inputs = {x: tf.constant(batch[x]) for x in ("input_ids", "input_mask")}
    expected = bert(inputs).sequence
    bert.skips_padding = True
    found = compiled.whole(lambda inputs: bert(inputs).sequence)(inputs)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_only_tokens_are_computed():
    mask = _ints([[1] * 40 + [0] * 60, [1] * 30 + [0] * 70])
    layout = padding.Tokens(modeling.additive_mask(mask), mask)
    ids = np.arange(200, dtype=np.int32).reshape(2, 100)
    # 70 tokens, padded to a multiple of 32.
    joined = layout.joined(tf.constant(ids)).numpy()
    assert joined.shape == (1, 96)
    assert joined[0, :70].tolist() == [*range(40), *range(100, 130)]
    x = ops.embed(tf.random.normal([200, 5]), joined)
    rows = layout.to_rows(x)
    np.testing.assert_array_equal(rows[0, :40], x[0, :40])
    np.testing.assert_array_equal(rows[1, :30], x[0, 40:70])
    np.testing.assert_array_equal(layout.from_rows(rows), x)


def test_dropout_is_a_function_of_the_seed():
    config = dataclasses.replace(_CONFIG, hidden_dropout_prob=0.5)
    model = reference.randomized(heads.BertClassifier(modeling.Bert(config), 3))
    model.bert.skips_padding = True
    batch = _batch((9, 4, 1))
    logits = [model(batch, tf.constant([1, i])).numpy() for i in (1, 1, 2)]
    np.testing.assert_array_equal(logits[0], logits[1])
    assert (logits[0] != logits[2]).all()
