"""The bidirectional LSTM language model, compared with PyTorch in float64."""

import collections
import dataclasses

from bert_tf import both_directions, errors, heads
from bert_tf.checkpoints import names
from bert_tf.contrib import bilstm_lm
from bert_tf.encoders import families
from bert_tf.training import pretraining
from tests import pretraining_records
from tests.training.test_next_pieces import tensors
from tests.training.test_pretraining import make_rows

import keras
import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
torch_lstm = pytest.importorskip("tests.torch_lstm")

CONFIG = bilstm_lm.BiLstmLmConfig(
    vocab_size=pretraining_records.CONFIG["vocab_size"],
    embedding_size=6,
    hidden_size=12,
    num_hidden_layers=3,
    hidden_dropout_prob=0.0,
    max_position_embeddings=64,
    initializer_range=0.5,
)


@pytest.fixture(name="model")
def _model():
    keras.utils.set_random_seed(2)
    model = both_directions.BothDirections(families.make(CONFIG))
    rng = np.random.default_rng(0)
    for variable in model.variables:
        spread = 1 if len(variable.shape) > 1 else 0.3
        variable.assign(rng.normal(0, spread, variable.shape))
    return model


def _rows():
    return make_rows(objective="none", dynamic_masking=True)


def _direction(weights, layer, way, x):
    """Returns one layer of one direction, [S, H]: half of a BiLSTM's output."""
    before = f"bilstm_lm/lstm/layer_{layer}/{way}/"
    own = {
        f"{name}/{path.removeprefix(before)}": values
        for path, values in weights.items()
        if path.startswith(before)
        for name in ("forward", "backward")
    }
    H = CONFIG.units
    found = torch_lstm.states(x, own)
    return found[:, :H] if way == "forward" else found[:, H:]


def _sequence(weights, ids):
    """Returns the sequence output of a row without padding, [S, D]."""
    words = weights["bilstm_lm/embeddings/word_embeddings"][torch.tensor(ids)]
    ways = []
    for way in ("forward", "backward"):
        x = _direction(weights, 0, way, words)
        for layer in range(1, CONFIG.num_hidden_layers):
            x = x + _direction(weights, layer, way, x)
        ways.append(x)
    return torch.cat(ways, dim=1)


def _logits(weights, sequence, half):
    """Returns logits of tokens, [S, V], from one half of the output."""
    before, H = "cls/both_directions/", CONFIG.units
    kernel = weights[f"{before}transform/dense/kernel"][half * H :][:H]
    x = sequence[:, half * H :][:, :H] @ kernel
    x = x + weights[f"{before}transform/dense/bias"]
    x = torch.nn.functional.gelu(x, approximate="tanh")
    x = torch.nn.functional.layer_norm(
        x,
        (H,),
        weights[f"{before}transform/LayerNorm/gamma"],
        weights[f"{before}transform/LayerNorm/beta"],
        eps=1e-12,
    )
    words = weights["bilstm_lm/embeddings/word_embeddings"]
    return x @ words.T + weights[f"{before}output_bias"]


@pytest.mark.slow
def test_losses_and_gradients_are_those_of_pytorch(model):
    rows = {name: values[:6] for name, values in _rows().items()}
    batch, objective = tensors(rows), pretraining.objective("both_directions")
    variables = model.trained_variables
    with tf.GradientTape() as tape:
        sums = objective.sums(model, batch, None)
        totals = objective.weights(batch)
        found = {n: x["loss"] / totals[n] for n, x in sums.items()}
        loss = tf.add_n([*found.values()])
    gradients = tape.gradient(loss, [v.value for v in variables])
    weights = torch_lstm.weights_of(model)
    parts: dict[str, list] = collections.defaultdict(list)
    for ids, mask in zip(rows["input_ids"], rows["input_mask"], strict=True):
        own = ids[mask > 0]
        sequence, labels = _sequence(weights, own), torch.tensor(own).long()
        ahead, back = (_logits(weights, sequence, half) for half in (0, 1))
        for name, logits, wanted in (
            ("next_piece", ahead[:-1], labels[1:]),
            ("previous_piece", back[1:], labels[:-1]),
        ):
            parts[name].append(
                torch.nn.functional.cross_entropy(
                    logits, wanted, reduction="none"
                )
            )
    means = {name: torch.cat(x).mean() for name, x in parts.items()}
    for name, wanted in means.items():
        assert float(found[name]) == pytest.approx(wanted.item(), rel=1e-6)
    sum(means.values()).backward()
    for variable, gradient in zip(variables, gradients, strict=True):
        wanted = weights[variable.path].grad.numpy()
        size = np.abs(wanted).max()
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient),
            wanted,
            atol=2e-5 * size,
            err_msg=variable.path,
        )


@pytest.mark.slow
def test_pooled_is_of_both_ends_and_layers_are_all(model):
    ids = np.array([[3, 7, 5, 9]], np.int32)
    outputs, H = model.bert({"input_ids": ids}), CONFIG.units
    sequence = outputs.sequence.numpy()[0]
    ends = np.concatenate([sequence[-1, :H], sequence[0, H:]])
    weights = {v.name: v.numpy() for v in model.bert.pooler.variables}
    wanted = np.maximum(ends @ weights["kernel"] + weights["bias"], 0)
    np.testing.assert_allclose(outputs.pooled[0], wanted, rtol=1e-5)
    assert len(outputs.layers) == CONFIG.num_hidden_layers
    np.testing.assert_array_equal(outputs.layers[-1], outputs.sequence)
    places = np.array([[2, 0]], np.int32)
    read = model.bert({"input_ids": ids}, positions=places).sequence
    np.testing.assert_array_equal(read[0], sequence[[2, 0]])


def test_names_and_depth(model):
    shapes = names.shapes(CONFIG, "both_directions")
    assert {v.path: v.shape for v in model.variables} == shapes
    assert names.find_head(shapes, "x") == "both_directions"
    row = families.find(CONFIG)
    assert row.depth("bilstm_lm/lstm/layer_2/forward/bias", CONFIG) == 1
    assert row.depth("bilstm_lm/embeddings/word_embeddings", CONFIG) == 4


@pytest.mark.parametrize(
    "values, line",
    [
        ({"embedding_size": 4}, "must be half of `hidden_size`"),
        ({"hidden_size": 13}, "must be even"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_attention_heads": 2}, "has no effect"),
    ],
)
def test_bad_configs(values, line):
    with pytest.raises(errors.InputError, match=line):
        dataclasses.replace(CONFIG, **values)


@pytest.mark.slow
def test_what_is_refused(model):
    bert = families.make(
        families.BERT.config(vocab_size=20, num_hidden_layers=1)
    )
    with pytest.raises(errors.InputError, match="model_type=bilstm_lm"):
        both_directions.BothDirections(bert)
    with pytest.raises(errors.InputError, match="left to right"):
        heads.next_piece_head(model.bert)
    rows = make_rows(objective="sop", pack=True)
    batch = tensors(rows)
    with pytest.raises(errors.InputError, match="one sequence in a row"):
        pretraining.objective("both_directions").sums(model, batch, None)
