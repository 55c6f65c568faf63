"""CoVe: a BiLSTM on a translation model's encoder, compared with PyTorch."""

import dataclasses

from bert_tf import heads
from bert_tf.checkpoints import formats, model_files, names, opened, restoring
from bert_tf.contrib import bilstm_attention, cove
from bert_tf.encoders import families
from bert_tf.seq2seq import decoder
from bert_tf.tasks.features import feature_layers

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
torch_lstm = pytest.importorskip("tests.torch_lstm")

TRANSLATION = bilstm_attention.BiLstmAttentionConfig(
    vocab_size=23,
    hidden_size=12,
    embedding_size=12,
    hidden_dropout_prob=0.0,
    max_position_embeddings=16,
)
CONFIG = cove.CoveConfig(**dataclasses.asdict(TRANSLATION))
LENGTHS = (9, 1, 5)


def _values(model):
    return {v.path: v.numpy() for v in model.variables}


def _write(path, config, values):
    """Writes a checkpoint with its config, and opens it."""
    source = opened.Checkpoint(
        "in memory",
        "tf1",
        {name: x.shape for name, x in values.items()},
        lambda wanted: {name: values[name] for name in wanted},
        config=config,
    )
    formats.write(str(path), "tf1", source)
    return formats.open_checkpoint(str(path))


@pytest.fixture(scope="module", name="translation")
def _translation(tmp_path_factory):
    """Returns the checkpoint of a translation model, and its weights."""
    model = decoder.Seq2Seq(families.make(TRANSLATION))
    rng = np.random.default_rng(0)
    values = {n: rng.normal(0, 0.5, x.shape) for n, x in _values(model).items()}
    values = {name: x.astype(np.float32) for name, x in values.items()}
    path = tmp_path_factory.mktemp("translation") / "model"
    return _write(path, TRANSLATION, values), values


@pytest.fixture(name="batch")
def _batch():
    mask = np.arange(9) < np.array(LENGTHS)[:, np.newaxis]
    ids = np.random.default_rng(1).integers(5, 23, mask.shape)
    return {"input_ids": ids * mask, "input_mask": mask.astype(np.int32)}


def _part(values, before):
    """Returns the weights of a layer, by the rest of their names."""
    return {
        name.removeprefix(before): torch.tensor(x.astype(float))
        for name, x in values.items()
        if name.startswith(before)
    }


@pytest.mark.slow
def test_a_tagger_reads_words_and_states(translation, batch, tmp_path):
    """Only the task's weights are new, and its checkpoint is complete."""
    stored, values = translation
    (tmp_path / "config.json").write_text(CONFIG.to_json())
    path = str(tmp_path / "config.json")
    assert model_files.find_config(path, stored, True) == CONFIG
    model = heads.BertTagger(families.make(CONFIG), 3)
    report = restoring.restore_weights(model.variables, stored)
    own = {v.path: v.numpy() for v in model.variables}
    new = [x for x in own if x.startswith(("bilstm/task/", "cls/tagging/"))]
    assert sorted(report.fresh) == sorted(new)
    assert names.shapes(CONFIG, "tagging", 3) == {
        name: x.shape for name, x in own.items()
    }
    # Again with its own checkpoint, which has no decoder.
    again = _write(tmp_path / "tagger", CONFIG, own)
    assert not restoring.restore_weights(model.variables, again).fresh

    found = model.bert(batch)
    for row, length in enumerate(LENGTHS):
        ids = torch.tensor(batch["input_ids"][row, :length])
        words = _part(values, "bilstm/embeddings/")["word_embeddings"][ids]
        layers = [words]
        for i in range(2):
            part = _part(values, f"bilstm/lstm/layer_{i}/")
            layers.append(torch_lstm.states(layers[-1], part))
        both = torch.cat([words, layers[-1]], dim=-1)
        layers.append(torch_lstm.states(both, _part(own, "bilstm/task/")))
        assert len(found.layers) == CONFIG.num_blocks
        for ours, theirs in zip(found.layers, layers[1:], strict=True):
            np.testing.assert_allclose(ours[row, :length], theirs, atol=1e-5)
        np.testing.assert_allclose(
            found.pooled[row], torch_lstm.ends(layers[-1]), atol=1e-5
        )
    places = np.array([[0, 3]] * len(LENGTHS), np.int32)
    read = model.bert(batch, positions=places).sequence
    np.testing.assert_array_equal(read, found.sequence[:, :4:3])


def test_features_of_the_translation_model(translation, batch):
    """They need no config but its own, and are the input of the BiLSTM."""
    stored, values = translation
    model = families.make(stored.config)
    restoring.restore_weights(model.variables, stored)
    outputs = model(batch)
    choice = feature_layers.Choice("concat_embeddings_last")
    found = choice.select(outputs).numpy()[:, :, 0]
    words = values["bilstm/embeddings/word_embeddings"][batch["input_ids"]]
    wanted = np.concatenate([words, outputs.sequence], axis=-1)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_the_tasks_lstm_learns_as_heads():
    row = families.find(CONFIG)
    assert row.depth("bilstm/task/forward/kernel", CONFIG) == 0
    assert row.depth("bilstm/lstm/layer_1/backward/bias", CONFIG) == 1
    assert row.depth("bilstm/embeddings/word_embeddings", CONFIG) == 3


def test_the_encoder_alone_is_a_complete_tagger(tmp_path):
    """Without the task's BiLSTM, a tagger's checkpoint has no decoder."""
    values = _values(heads.BertTagger(families.make(TRANSLATION), 3))
    assert _write(tmp_path / "x", TRANSLATION, values).shapes == {
        name: x.shape for name, x in values.items()
    }
