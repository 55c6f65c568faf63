"""The BiLSTM encoder-decoder with attention, compared with PyTorch."""

import dataclasses

from bert_tf import errors
from bert_tf.checkpoints import names
from bert_tf.contrib import bilstm_attention
from bert_tf.encoders import families
from bert_tf.seq2seq import beam_search, decoder

import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
torch_lstm = pytest.importorskip("tests.torch_lstm")

CONFIG = bilstm_attention.BiLstmAttentionConfig(
    vocab_size=23,
    hidden_size=12,
    embedding_size=12,
    hidden_dropout_prob=0.0,
    max_position_embeddings=16,
)
START, END, PAD = 2, 3, 0
LENGTHS = (9, 1, 5)
TARGETS, STEPS = 6, 7


@pytest.fixture(scope="module", name="model")
def _model():
    model = decoder.Seq2Seq(families.make(CONFIG))
    rng = np.random.default_rng(0)
    for variable in model.variables:
        spread = 0.8 if len(variable.shape) > 1 else 0.3
        variable.assign(rng.normal(0, spread, variable.shape))
    return model


def sources():
    ids = np.random.default_rng(1).integers(5, 23, [3, 9])
    mask = (np.arange(9) < np.array(LENGTHS)[:, np.newaxis]).astype(int)
    return ids * mask, mask


def inputs():
    ids, mask = sources()
    return {"input_ids": tf.constant(ids), "input_mask": tf.constant(mask)}


def target_states(x, own, c):
    """Returns the states of an LSTM of PyTorch, [T, D], from a cell state."""
    D = CONFIG.hidden_size
    lstm = torch.nn.LSTM(D, D, dtype=torch.float64)
    order = [*range(2 * D), *range(3 * D, 4 * D), *range(2 * D, 3 * D)]
    values = {
        "weight_ih_l0": own["kernel"].T[order],
        "weight_hh_l0": own["recurrent_kernel"].T[order],
        "bias_ih_l0": own["bias"][order],
        "bias_hh_l0": torch.zeros(4 * D, dtype=torch.float64),
    }
    first = (torch.tanh(c)[None], c[None])
    return torch.func.functional_call(lstm, values, (x, first))[0]


def logits(values, ids, targets):
    """Returns PyTorch's logits of one target, [T, V]."""
    words = values["bilstm/embeddings/word_embeddings"]
    x, y = words[torch.tensor(ids)], words[torch.tensor(targets)]
    for i in range(CONFIG.num_hidden_layers):
        x = torch_lstm.states(
            x, torch_lstm.part(values, f"bilstm/lstm/layer_{i}/")
        )
    last = torch_lstm.ends(x)
    for i in range(CONFIG.num_hidden_layers):
        own = torch_lstm.part(values, f"decoder/layer_{i}/")
        c = torch.tanh(last @ own["start/kernel"] + own["start/bias"])
        y = target_states(y, own, c)
    scores = y @ values["decoder/attention/score"] @ x.T
    both = torch.cat([torch.softmax(scores, dim=-1) @ x, y], dim=-1)
    own = torch_lstm.part(values, "decoder/attention/output/")
    out = torch.tanh(both @ own["kernel"] + own["bias"])
    return out @ words.T + values["decoder/predictions/output_bias"]


def test_logits_and_gradients_are_those_of_pytorch(model):
    ids, _ = sources()
    targets = np.random.default_rng(2).integers(5, 23, [3, TARGETS])
    factors = np.random.default_rng(3).normal(size=[3, TARGETS, 23])
    variables = model.trained_variables
    with tf.GradientTape() as tape:
        found = model({**inputs(), "target_ids": tf.constant(targets)})
        loss = tf.reduce_sum(found * tf.constant(factors, tf.float32))
    gradients = tape.gradient(loss, [v.value for v in variables])
    values = torch_lstm.weights_of(model)
    expected = torch.stack(
        [
            logits(values, row[:length], target)
            for row, length, target in zip(ids, LENGTHS, targets, strict=True)
        ]
    )
    np.testing.assert_allclose(found, expected.detach(), rtol=1e-5, atol=1e-5)
    (expected * torch.tensor(factors)).sum().backward()
    assert {v.path for v in variables} == values.keys()
    for variable, gradient in zip(variables, gradients, strict=True):
        wanted = values[variable.path].grad.numpy()
        size = np.abs(wanted).max()
        assert size > 0
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient),
            wanted,
            atol=1e-5 * max(size, 1),
            err_msg=variable.path,
        )


@pytest.mark.slow
def test_cached_states_find_the_same_targets(model):
    ids, _ = sources()
    values = torch_lstm.weights_of(model)
    greedy = []
    for row, length in zip(ids, LENGTHS, strict=True):
        target = [START]
        while len(target) <= STEPS and target[-1] != END:
            best = logits(values, row[:length], target)[-1].argmax()
            target.append(int(best))
        greedy.append([*target[1:], *[PAD] * (STEPS - len(target) + 1)])
    found = []
    for beams, caches in ((1, True), (4, True), (4, False)):
        model.search = beam_search.Search(
            START, END, PAD, 23, STEPS, beams, caches=caches
        )
        result = tf.function(model, autograph=False)(inputs())
        found.append(result["target_ids"].numpy().tolist())
    assert found[0] == greedy
    assert found[1] == found[2] != greedy


def test_names_are_those_of_the_model(model):
    shapes = {v.path: tuple(v.shape) for v in model.variables}
    assert shapes == names.shapes(CONFIG, "seq2seq")
    assert names.find_head(shapes, "x") == "seq2seq"


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"embedding_size": 8}, "`embedding_size` must be 12"),
        ({"shared": "none"}, "`shared` must be embeddings"),
        ({"hidden_size": 13, "embedding_size": 13}, "must be even"),
        ({"num_attention_heads": 2}, "has no effect"),
    ],
)
def test_bad_configs(wrong, words):
    with pytest.raises(errors.InputError, match=words):
        dataclasses.replace(CONFIG, **wrong)
