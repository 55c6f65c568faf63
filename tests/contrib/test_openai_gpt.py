"""GPT-1 computes as in transformers, and its folders are read and written."""

import functools

from bert_tf import errors, heads
from bert_tf.checkpoints import formats
from bert_tf.contrib import openai_gpt
from bert_tf.encoders import families
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)
safetensors = pytest.importorskip("safetensors.torch")

V, S = 41, 11
SIZES = {"vocab_size": V, "n_positions": 20, "n_embd": 32, "n_layer": 3}
SIZES |= {"n_head": 4, "pad_token_id": 0, "num_labels": samples.NUM_LABELS}
CONFIG = openai_gpt.OpenAIGPTConfig(
    vocab_size=V,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    max_position_embeddings=20,
)
MODELS = {
    "OpenAIGPTModel": "encoder",
    "OpenAIGPTLMHeadModel": "next_piece",
    "OpenAIGPTForSequenceClassification": "classification",
}


@functools.cache
def _theirs(architecture):
    """Returns a transformers model with random weights."""
    torch.manual_seed(0)
    config = transformers.OpenAIGPTConfig(**SIZES)
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.normal_(0, value.shape[0] ** -0.5)
            if "ln_" in name and name.endswith("weight"):
                value.uniform_(0.5, 1.5)
    return model


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    def save(architecture):
        path = tmp_path_factory.mktemp(architecture)
        _theirs(architecture).save_pretrained(path)
        return path

    return functools.cache(save)


def _batch():
    """Returns IDs and mask of rows that are padded at the end."""
    ids = np.random.default_rng(0).integers(1, V, [3, S])
    mask = np.arange(S) < np.array([[S], [7], [3]])
    return ids * mask, mask.astype(int)


def _close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", MODELS)
def test_same_outputs_as_transformers(folder, architecture):
    ids, mask = _batch()
    with torch.no_grad():
        theirs = _theirs(architecture)(
            torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            output_hidden_states=True,
        )
    model, head = samples.load(str(folder(architecture)))
    assert head == MODELS[architecture]
    inputs = {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.constant(mask, tf.int32),
    }
    encoder = model if head == "encoder" else model.bert
    outputs = encoder(inputs)
    found = [outputs.embeddings, *outputs.layers]
    expected = theirs.hidden_states
    if head == "next_piece":
        found, expected = [*found, model(inputs)], [*expected, theirs.logits]
    for one, other in zip(found, expected, strict=True):
        _close(one.numpy()[mask > 0], other.numpy()[mask > 0])
    last = outputs.sequence.numpy()[range(3), mask.sum(1) - 1]
    np.testing.assert_array_equal(outputs.pooled, last)
    if head == "classification":
        _close(model(inputs), theirs.logits)


@pytest.mark.parametrize("architecture", MODELS)
def test_folders_are_written_as_they_were(tmp_path, folder, architecture):
    ours, back = tmp_path / "ours", tmp_path / "back"
    samples.convert(folder(architecture), "tf1", ours)
    written = samples.convert(ours, "hf", back, MODELS[architecture])
    assert not written.left_out
    model, info = getattr(transformers, architecture).from_pretrained(
        back, output_loading_info=True
    )
    assert not any(info.values()), info
    state = _theirs(architecture).state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    keys = ("n_embd", "n_layer", "n_head", "n_positions", "afn")
    for key in (*keys, "layer_norm_epsilon", "attn_pdrop", "embd_pdrop"):
        found = getattr(model.config, key)
        assert found == getattr(_theirs(architecture).config, key), key


def test_names_of_the_released_file(tmp_path, folder):
    """It has a causal mask per layer, and no prefix."""
    source = folder("OpenAIGPTLMHeadModel")
    tensors = {
        name.removeprefix("transformer."): value.contiguous()
        for name, value in _theirs("OpenAIGPTLMHeadModel").state_dict().items()
        if name != "lm_head.weight"
    }
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 20, 20)
    tensors["position_ids"] = torch.arange(20)
    safetensors.save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes(
        (source / "config.json").read_bytes()
    )
    samples.assert_equal(str(tmp_path), str(source))


def test_a_bias_is_not_lost(tmp_path):
    model = samples.random_model("classification", CONFIG)
    source = samples.source(tmp_path / "ours", model, vocab=())
    with pytest.raises(errors.InputError, match=r"has no bias .*output_bias"):
        formats.write(str(tmp_path / "theirs"), "hf", source)


def test_biases_are_not_trained():
    model = heads.BertClassifier(families.make(CONFIG), 3)
    trained = {variable.path for variable in model.trained_variables}
    assert "output_weights" in trained
    assert "output_bias" not in trained
    (bias,) = heads.BertNextPiece(families.make(CONFIG)).next_piece.variables
    assert bias.path == "cls/next_piece/output_bias"
    assert not bias.trainable


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"afn": "gelu_new"}, "`afn` must be one of gelu, silu, swish, relu"),
        ({"n_special": 3}, "`n_special` must be 0"),
        ({"intermediate_size": 64}, "`intermediate_size` .* must be 128"),
        ({"type_vocab_size": 2}, "`type_vocab_size` .* must be 0"),
        ({"pooler_act": "tanh"}, "`pooler_act` must be one of none"),
        ({"hidden_act": "gelu_erf"}, "`hidden_act` .* must be gelu or silu"),
    ],
)
def test_other_models_are_an_error(values, message):
    config = {"vocab_size": V, "hidden_size": 32, "num_attention_heads": 4}
    with pytest.raises(errors.InputError, match=message):
        openai_gpt.OpenAIGPTConfig.from_dict(config | values)


@pytest.mark.parametrize("act", ["gelu", "silu", "relu"])
def test_activations_keep_their_names(act):
    config = transformers.OpenAIGPTConfig(**SIZES, afn=act).to_dict()
    ours = families.of_values(config).config.from_dict(config)
    assert ours.hidden_act == act
    found = openai_gpt.OPENAI_GPT.huggingface.keys.to_theirs(ours)
    assert found.items() <= config.items()
