"""ESIM, compared with PyTorch in float64 by the formulas of its paper."""

import json

from bert_tf import heads, vocabularies
from bert_tf.contrib import esim
from bert_tf.encoders import families
from bert_tf.errors import InputError
from tests import reference
from tests.encoders.test_every_encoder import pairs

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


def _texts(batch, row):
    """Returns the ids of both texts of a row."""
    ids, mask, segments = (batch[name][row] for name in batch)
    return [ids[(mask > 0) & (segments == number)] for number in (0, 1)]


# ---- PyTorch ----------------------------------------------------------------


def _read(weights, layer, x):
    """Returns the states of a BiLSTM, [S, 2 D]: equations 1, 2, 16 and 17."""
    return torch_lstm.states(x, torch_lstm.part(weights, f"esim/{layer}/"))


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


@pytest.mark.slow
def test_logits_and_gradients_are_those_of_the_paper(model):
    batch = pairs(_LENGTHS, before=1, after=2)
    factors = np.random.default_rng(2).normal(size=[len(_LENGTHS), 3])
    with tf.GradientTape() as tape:
        logits = model(batch)
        loss = tf.reduce_sum(logits * factors.astype(np.float32))
    weights = torch_lstm.weights_of(model)
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


# ---- Texts ------------------------------------------------------------------


@pytest.mark.slow
def test_texts_without_tokens(model):
    """A batch is padded with empty rows, and a text may be empty."""
    lengths = [(3, 0), (0, 0), (3, 2)]
    with tf.GradientTape() as tape:
        logits = model(pairs(lengths, after=1))
    gradients = tape.gradient(logits, [v.value for v in model.variables])
    for x in [logits, *map(tf.convert_to_tensor, gradients)]:
        assert np.isfinite(x).all()
    longer = model(pairs(lengths, after=4))
    np.testing.assert_allclose(logits, longer, atol=1e-6)


def test_segments_are_checked(model):
    batch = pairs(_LENGTHS) | {"segment_ids": np.full([4, 10], 2, np.int32)}
    with pytest.raises(InputError, match="must be from 0 to 1"):
        model(batch)


# ---- Heads and configs ------------------------------------------------------


def test_other_heads():
    bert = families.make(_CONFIG)
    choices = {n: x.reshape(2, 2, -1) for n, x in pairs(_LENGTHS).items()}
    assert heads.BertMultipleChoice(bert)(choices).shape == (2, 2)
    with pytest.raises(InputError, match="the head tagger needs"):
        heads.BertTagger(bert, 3)


def test_bad_config():
    values = json.loads(_CONFIG.to_json())
    with pytest.raises(InputError, match="`type_vocab_size` has no effect"):
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
