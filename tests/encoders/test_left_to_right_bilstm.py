"""A BiLSTM on a left-to-right model, compared with PyTorch's on the same."""

import dataclasses

from bert_tf import errors, heads
from bert_tf.checkpoints import formats, model_files, opened, restoring
from bert_tf.contrib import left_to_right, left_to_right_bilstm
from bert_tf.encoders import families

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
torch_lstm = pytest.importorskip("tests.torch_lstm")

CONFIG = left_to_right_bilstm.LeftToRightBiLstmConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=8,
    type_vocab_size=2,
)
BELOW = left_to_right.LeftToRightConfig(**dataclasses.asdict(CONFIG))
LENGTHS = (8, 1, 5)


def _random(config):
    model, rng = families.make(config), np.random.default_rng(0)
    for variable in model.variables:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    return model


def _batch():
    rng = np.random.default_rng(1)
    mask = np.arange(8) < np.array(LENGTHS)[:, np.newaxis]
    # Tokens are unique: the word embeddings show what depends on each token.
    ids = rng.permutation(CONFIG.vocab_size)[: mask.size].reshape(mask.shape)
    return {
        "input_ids": ids.astype(np.int32),
        "input_mask": mask.astype(np.int32),
    }


@pytest.fixture(name="model")
def _model():
    return _random(CONFIG)


def _below(model):
    """Returns the model below the BiLSTM, with the same weights."""
    below = families.make(BELOW)
    values = {v.path: v for v in model.variables}
    for variable in below.variables:
        variable.assign(values[variable.path])
    return below


@pytest.mark.slow
def test_states_and_vectors_are_those_of_pytorch(model):
    batch = _batch()
    found = model(batch)
    hidden = _below(model)(batch).sequence.numpy()
    weights = torch_lstm.part(torch_lstm.weights_of(model), "bert/bilstm/")
    pooler = {v.name: v.numpy() for v in model.pooler.variables}
    for row, length in enumerate(LENGTHS):
        x = torch.tensor(hidden[row, :length].astype(float))
        states = torch_lstm.states(x, weights).detach()
        np.testing.assert_allclose(
            found.sequence[row, :length], states, atol=1e-5
        )
        ends = torch_lstm.ends(states).numpy()
        wanted = np.tanh(ends @ pooler["kernel"] + pooler["bias"])
        np.testing.assert_allclose(found.pooled[row], wanted, atol=1e-5)
    places = np.array([[0, 3]] * len(LENGTHS), np.int32)
    read = model(batch, positions=places)
    np.testing.assert_array_equal(read.sequence, found.sequence[:, ::3][:, :2])
    np.testing.assert_array_equal(read.layers[-1], read.sequence)
    np.testing.assert_array_equal(read.pooled, found.pooled)


def test_depth():
    row = families.find(CONFIG)
    assert row.depth("bert/bilstm/forward/kernel", CONFIG) == 0
    assert row.depth("bert/encoder/layer_1/output/dense/bias", CONFIG) == 1
    assert row.depth("bert/embeddings/word_embeddings", CONFIG) == 3


def _opened(config, values):
    return opened.Checkpoint(
        "in memory",
        "tf1",
        {name: x.shape for name, x in values.items()},
        lambda wanted: {name: values[name] for name in wanted},
        config=config,
    )


@pytest.mark.slow
def test_it_starts_from_the_model_below(model, tmp_path):
    """The BiLSTM starts from random values; its own checkpoint is complete."""
    for config, fresh in ((BELOW, 6), (CONFIG, 0)):
        source = _random(config)
        path = tmp_path / config.model_type
        values = {v.path: v.numpy() for v in source.variables}
        formats.write(str(path), "tf1", _opened(config, values))
        stored = formats.open_checkpoint(str(path))
        written = tmp_path / "config.json"
        written.write_text(CONFIG.to_json())
        assert model_files.find_config(str(written), stored, True) == CONFIG
        made = heads.BertClassifier(families.make(CONFIG), 2)
        report = restoring.restore_weights(made.variables, stored)
        kept = [x for x in report.fresh if x.startswith("bert/")]
        assert len(kept) == fresh
        for variable in made.bert.variables:
            if variable.path in values:
                np.testing.assert_array_equal(variable, values[variable.path])
    written.write_text(BELOW.to_json())
    with pytest.raises(errors.InputError, match="encoder is left_to_right th"):
        model_files.find_config(str(written), stored, True)


def test_bad_config():
    with pytest.raises(errors.InputError, match="must be even"):
        dataclasses.replace(CONFIG, hidden_size=15, num_attention_heads=3)
