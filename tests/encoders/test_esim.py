"""ESIM, compared with PyTorch in float64 by the formulas of its paper."""

import dataclasses
import json

from bert_tf import heads, vocabularies
from bert_tf.checkpoints import names
from bert_tf.contrib import esim
from bert_tf.encoders import families
from bert_tf.errors import InputError
from tests import reference

import keras
import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
torch_lstm = pytest.importorskip("tests.torch_lstm")
_CONFIG = esim.EsimConfig(vocab_size=20, embedding_size=5, hidden_size=3)
# Tokens of both texts. In the last pair each text is one token.
_LENGTHS = ((4, 3), (2, 6), (5, 5), (1, 1))
_TOLERANCE = 1e-5


@pytest.fixture(name="model")
def _model():
    """Returns a classifier whose biases are not zero either."""
    keras.utils.set_random_seed(3)
    model = heads.BertClassifier(families.make(_CONFIG), 3)
    return reference.randomized(model)


def _batch(before=0, after=0, lengths=_LENGTHS):
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


def _texts(batch, row):
    """Returns the ids of both texts of a row."""
    ids, mask, segments = (batch[name][row] for name in batch)
    return [ids[(mask > 0) & (segments == number)] for number in (0, 1)]


# ---- PyTorch ----------------------------------------------------------------


def _weights(model):
    return {
        v.path: torch.tensor(
            np.asarray(v), dtype=torch.float64, requires_grad=True
        )
        for v in model.variables
    }


def _read(weights, layer, x):
    """Returns the states of a BiLSTM, [S, 2 D]: equations 1, 2, 16 and 17."""
    before = f"esim/{layer}/"
    own = {
        name.removeprefix(before): value
        for name, value in weights.items()
        if name.startswith(before)
    }
    return torch_lstm.states(x, own)


def _dense(weights, name, x):
    return x @ weights[f"esim/{name}/kernel"] + weights[f"esim/{name}/bias"]


def _logits(weights, first, second):
    """Returns the logits of a pair of texts, [C], without dropout."""
    words = weights["esim/embeddings/word_embeddings"]
    a, b = (_read(weights, "encoding", words[ids]) for ids in (first, second))
    e = a @ b.T  # Equation 11.
    aligned_a = torch.softmax(e, dim=1) @ b  # Equation 12.
    aligned_b = torch.softmax(e, dim=0).T @ a  # Equation 13.
    pooled = []
    for x, aligned in ((a, aligned_a), (b, aligned_b)):
        # Equations 14 and 15.
        m = torch.cat([x, aligned, x - aligned, x * aligned], dim=1)
        m = torch.relu(_dense(weights, "projection", m))
        v = _read(weights, "composition", m)
        pooled += [v.mean(dim=0), v.max(dim=0).values]  # Equations 18 and 19.
    v = torch.tanh(_dense(weights, "pooler", torch.cat(pooled)))  # Equation 20.
    return v @ weights["output_weights"].T + weights["output_bias"]


def test_logits_and_gradients_are_those_of_the_paper(model):
    batch = _batch(before=1, after=2)
    factors = np.random.default_rng(2).normal(size=[len(_LENGTHS), 3])
    with tf.GradientTape() as tape:
        logits = model(batch)
        loss = tf.reduce_sum(logits * factors.astype(np.float32))
    weights = _weights(model)
    wanted = torch.stack(
        [_logits(weights, *_texts(batch, i)) for i in range(len(_LENGTHS))]
    )
    np.testing.assert_allclose(
        logits, wanted.detach().numpy(), rtol=0, atol=_TOLERANCE
    )
    (wanted * torch.tensor(factors)).sum().backward()
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    reference.assert_same(
        {
            v.path: tf.convert_to_tensor(x)
            for v, x in zip(variables, gradients, strict=True)
        },
        {name: x.grad.numpy() for name, x in weights.items()},
        _TOLERANCE,
    )


# ---- Texts and padding ------------------------------------------------------


@pytest.mark.parametrize("before, after", [(0, 5), (3, 0), (2, 4)])
def test_padding_and_other_rows_change_nothing(model, before, after):
    found, plain = model(_batch(before, after)).numpy(), _batch()
    for row, length in enumerate(map(sum, _LENGTHS)):
        alone = {name: x[row : row + 1, :length] for name, x in plain.items()}
        np.testing.assert_allclose(found[row], model(alone)[0], atol=1e-6)


def test_the_order_of_texts_counts(model):
    batch = _batch(lengths=[(3, 3)])
    swapped = {n: np.roll(x, 3, axis=1) for n, x in batch.items()}
    swapped["segment_ids"] = batch["segment_ids"]
    assert np.abs(model(batch) - model(swapped)).max() > 1e-3


def test_texts_without_tokens(model):
    """A batch is padded with empty rows, and a text may be empty."""
    lengths = [(3, 0), (0, 0), (3, 2)]
    with tf.GradientTape() as tape:
        logits = model(_batch(after=1, lengths=lengths))
    gradients = tape.gradient(logits, [v.value for v in model.variables])
    for x in [logits, *map(tf.convert_to_tensor, gradients)]:
        assert np.isfinite(x).all()
    longer = model(_batch(after=4, lengths=lengths))
    np.testing.assert_allclose(logits, longer, atol=1e-6)


def test_segments_are_checked(model):
    batch = _batch() | {"segment_ids": np.full([4, 10], 2, np.int32)}
    with pytest.raises(InputError, match="must be from 0 to 1"):
        model(batch)
    with pytest.raises(InputError, match="reads one sequence in a row"):
        model(_batch() | {"sequence_ids": _batch()["input_mask"]})


# ---- Variables, dropout, number formats -------------------------------------


def test_names_and_shapes_are_those_of_the_row(model):
    wanted = names.shapes(_CONFIG, "encoder")
    found = {v.path: tuple(v.shape) for v in model.bert.variables}
    assert found == wanted


def test_dropout_is_a_function_of_the_seed(model):
    batch = _batch()
    rows = [model(batch, tf.constant([1, seed])).numpy() for seed in (1, 1, 2)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert np.abs(rows[0] - rows[2]).max() > 1e-6
    plain = dataclasses.replace(_CONFIG, hidden_dropout_prob=0.0)
    other = heads.BertClassifier(families.make(plain), 3)
    for ours, theirs in zip(other.variables, model.variables, strict=True):
        ours.assign(theirs)
    found = other(batch, tf.constant([1, 1]))
    np.testing.assert_array_equal(found, model(batch))


def test_bfloat16(model):
    half = heads.BertClassifier(esim.Esim(_CONFIG, dtype="mixed_bfloat16"), 3)
    for ours, theirs in zip(half.variables, model.variables, strict=True):
        ours.assign(theirs)
    found = half(_batch())
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, model(_batch()), atol=0.05)


@pytest.mark.slow
def test_compiled_steps_are_the_same(model):
    batch = {name: tf.constant(x) for name, x in _batch(after=1).items()}

    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(batch) ** 2)
        return tape.gradient(loss, [v.value for v in model.variables])

    compiled = tf.function(gradients, jit_compile=True, autograph=False)
    for found, wanted in zip(compiled(), gradients(), strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(found),
            tf.convert_to_tensor(wanted),
            rtol=1e-4,
            atol=1e-5,
        )


# ---- Heads and configs ------------------------------------------------------


def test_other_heads():
    bert = families.make(_CONFIG)
    choices = {n: x.reshape(2, 2, -1) for n, x in _batch().items()}
    assert heads.BertMultipleChoice(bert)(choices).shape == (2, 2)
    with pytest.raises(InputError, match="the head tagger needs"):
        heads.BertTagger(bert, 3)


def test_config():
    values = json.loads(_CONFIG.to_json())
    assert "type_vocab_size" not in values
    assert families.of_values(values).config.from_dict(values) == _CONFIG
    with pytest.raises(InputError, match="`type_vocab_size` is of transf"):
        families.from_values(values | {"type_vocab_size": 1})


def test_what_is_not_a_pair_is_refused():
    with pytest.raises(InputError, match="and there is one text: give pairs"):
        _CONFIG.check_reads_single_texts()
    special = vocabularies.Special(
        *(vocabularies.SpecialToken(x, i) for i, x in enumerate("pucsm"))
    )
    template = vocabularies.Template
    _CONFIG.check_reads_pairs(template.of_bert(special).segments)
    with pytest.raises(InputError, match="gives both texts the same"):
        _CONFIG.check_reads_pairs(
            template.with_double_separator(special).segments
        )
