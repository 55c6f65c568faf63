"""Padding, dropout, number formats and configs of all encoders but BERT's."""

import dataclasses
import json
from typing import Any

from bert_tf import heads
from bert_tf.checkpoints import names
from bert_tf.contrib import (
    awd_lstm,
    bilstm,
    bilstm_lm,
    esim,
    left_to_right_bilstm,
    student_config,
    textcnn,
    xlnet_config,
)
from bert_tf.encoders import families
from bert_tf.errors import InputError
from tests import reference, tiny_model

import numpy as np
import pytest
import tensorflow as tf

_TRANSFORMER: dict[str, Any] = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
}
_CONFIGS = (
    textcnn.TextCnnConfig(
        20, embedding_size=5, hidden_size=8, filter_widths=(2, 4)
    ),
    bilstm.BiLstmConfig(20, embedding_size=5, hidden_size=6),
    esim.EsimConfig(20, embedding_size=5, hidden_size=3),
    bilstm_lm.BiLstmLmConfig(
        20, embedding_size=3, hidden_size=6, num_hidden_layers=2
    ),
    *(
        awd_lstm.AwdLstmConfig(
            20, num_hidden_layers=x, embedding_size=3, lstm_size=5
        )
        for x in (1, 2)
    ),
    left_to_right_bilstm.LeftToRightBiLstmConfig(
        20, **_TRANSFORMER, max_position_embeddings=16, type_vocab_size=2
    ),
    xlnet_config.XlnetConfig(20, **_TRANSFORMER),
)
# Tokens of both texts of a pair: one fills its row, one is empty.
_LENGTHS = ((4, 3), (1, 0), (2, 6), (0, 0))


@pytest.fixture(params=_CONFIGS, ids=lambda x: x.model_type)
def config(request):
    return request.param


def _randomized(model):
    for variable in reference.randomized(model).variables:
        if variable.path.endswith("moving_variance"):
            variable.assign(np.abs(variable))
    return model


@pytest.fixture
def model(config):
    return _randomized(families.make(config))


def pairs(lengths, before=0, after=0):
    """Returns pairs with padding that has separate ids and segments."""
    rng = np.random.default_rng(0)
    S = max(map(sum, lengths)) + before + after
    shape = (len(lengths), S)
    filling = np.random.default_rng(9)
    rows = {
        "input_ids": filling.integers(0, 20, shape).astype(np.int32),
        "input_mask": np.zeros(shape, np.int32),
        "segment_ids": filling.integers(0, 2, shape).astype(np.int32),
    }
    for row, (first, second) in enumerate(lengths):
        own = slice(before, before + first + second)
        rows["input_ids"][row, own] = rng.integers(1, 20, first + second)
        rows["input_mask"][row, own] = 1
        rows["segment_ids"][row, own] = [0] * first + [1] * second
    return rows


def _with_values_of(model, other):
    for ours, theirs in zip(model.variables, other.variables, strict=True):
        ours.assign(theirs)
    return model


def test_names_and_shapes_are_those_of_the_row(config, model):
    wanted = names.shapes(config, "encoder")
    assert {v.path: tuple(v.shape) for v in model.variables} == wanted
    assert names.find_head(wanted, "x") == "encoder"
    assert all(families.find(config).has(name, config) for name in wanted)


@pytest.mark.slow
def test_padding_and_other_rows_change_nothing(config, model):
    plain, alone = pairs(_LENGTHS), {}
    for row, length in enumerate(map(sum, _LENGTHS)):
        if length:
            one = {name: x[row : row + 1, :length] for name, x in plain.items()}
            alone[row] = model(one)
    # Outputs of these are up to 17, and those of the others below 4.
    is_large = config.model_type in ("awd_lstm", "xlnet")
    tolerance = 1e-5 if is_large else 1e-6
    # Positions of this one count from the start of the row.
    first = 0 if config.model_type == "left_to_right_bilstm" else 2
    for before, after in ((0, 0), (first, 4)):
        found = model(pairs(_LENGTHS, before, after))
        assert np.isfinite(found.pooled).all()
        for row, expected in alone.items():
            np.testing.assert_allclose(
                found.pooled[row], expected.pooled[0], atol=tolerance
            )
            if found.sequence is not None:
                own = found.sequence[row, before : before + sum(_LENGTHS[row])]
                np.testing.assert_allclose(
                    own, expected.sequence[0], atol=tolerance
                )
    if isinstance(config, student_config.StudentConfig):
        # From padding alone only a bias is left, or zeros.
        empty = found.pooled[_LENGTHS.index((0, 0))]
        other = model(pairs([(0, 0)] * 2, after=1)).pooled
        np.testing.assert_allclose(other, [empty, empty], atol=1e-6)


@pytest.mark.slow
def test_dropout_is_a_function_of_the_seed(config, model):
    batch, seeds = pairs(_LENGTHS), [tf.constant([1, x]) for x in (1, 1, 2)]
    first, again, other = (model(batch, x).pooled.numpy() for x in seeds)
    np.testing.assert_array_equal(first, again)
    if config.model_type != "textcnn":  # Only its heads apply dropout.
        for changed in (other, model(batch).pooled):
            assert np.abs(first - changed).max() > 1e-3
    classifier = _randomized(heads.BertClassifier(model, 3))
    without = classifier(batch).numpy()
    first, again, other = (classifier(batch, x).numpy() for x in seeds)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6
    rates = [
        x for x in dataclasses.asdict(config) if x.endswith("dropout_prob")
    ]
    plain = dataclasses.replace(config, **dict.fromkeys(rates, 0.0))
    made = heads.BertClassifier(families.make(plain), 3)
    found = _with_values_of(made, classifier)(batch, seeds[0])
    if config.model_type == "awd_lstm":  # It takes the statistics of a batch.
        without = made(batch, seeds[2])
    np.testing.assert_allclose(found, without, atol=1e-6)
    assert np.abs(first - found).max() > 1e-6


@pytest.mark.slow
def test_bfloat16(config, model):
    classifier = _randomized(heads.BertClassifier(model, 3))
    with tiny_model.policy("mixed_bfloat16"):
        half = heads.BertClassifier(families.make(config), 3)
    assert {v.dtype for v in half.variables} == {"float32"}
    found = _with_values_of(half, classifier)(pairs(_LENGTHS))
    assert half.bert(pairs(_LENGTHS)).pooled.dtype == tf.bfloat16
    wanted = classifier(pairs(_LENGTHS))
    assert found.dtype == tf.float32
    assert 0 < np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    (_CONFIGS[0], _CONFIGS[2]),
    ids=lambda x: x.model_type,
    indirect=True,
)
def test_compiled_steps_are_the_same(model):
    batch = {
        name: tf.constant(x) for name, x in pairs(_LENGTHS, after=1).items()
    }
    variables = [v.value for v in model.trainable_variables]

    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(batch).pooled ** 2)
        found = tape.gradient(loss, variables)
        return [tf.convert_to_tensor(x) for x in found]

    compiled = tf.function(gradients, jit_compile=True, autograph=False)
    for found, wanted in zip(compiled(), gradients(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_packed_rows_are_refused(model):
    batch = pairs(_LENGTHS)
    with pytest.raises(InputError, match="one sequence in a row"):
        model(batch | {"sequence_ids": batch["input_mask"]})


def test_positions_that_are_not_read_are_an_error(config, model):
    batch = pairs(_LENGTHS)
    batch["position_ids"] = batch["input_mask"]
    if config.model_type == "left_to_right_bilstm":
        found, plain = model(batch), model(pairs(_LENGTHS))
        assert np.abs(found.sequence - plain.sequence).max() > 1e-3
        return
    with pytest.raises(InputError, match="leave out `position_ids`"):
        model(batch)


def test_config_is_read_as_it_is_written(config):
    values = json.loads(config.to_json())
    assert families.of_values(values).config.from_dict(values) == config
    assert families.from_values(families.to_values(config)) == config
    if isinstance(config, student_config.StudentConfig):
        assert not {"num_attention_heads", "type_vocab_size"} & values.keys()
