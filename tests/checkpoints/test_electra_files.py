"""Checkpoints of ELECTRA's pre-training, resuming, and the generator."""

import dataclasses

from bert_tf import replaced_tokens
from bert_tf.checkpoints import (
    formats,
    generators,
    model_files,
    names,
    smaller,
    tf1_files,
)
from bert_tf.encoders import electra, families
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests import pretraining_runs as runs
from tests import reference
from tests.checkpoints.test_albert_files import dense, norm

import numpy as np
import pytest

_CONFIG = electra.ElectraConfig(
    **samples.SMALL, embedding_size=16, generator_hidden_size=0.5
)


def _pretrainer(config=_CONFIG):
    encoder = families.make(config)
    return replaced_tokens.ReplacedTokensPretrainer(
        encoder, electra.Generator(encoder)
    )


def _write(folder, config=_CONFIG):
    """Writes a model with random weights; returns it and its checkpoint."""
    model = _pretrainer(config)
    samples.randomize(model.variables)
    return model, samples.source(folder, model)


def _scopes(found):
    return {name.partition("/")[0] for name in found}


def originals(E=16, D=32, F=64, G=16, V=40, T=2, M=20, L=3):
    """Returns the variables of google-research/electra's graph, by its code.

    model/modeling.py: `BertModel` opens electra/embeddings for both models,
    whose own scopes are electra and generator, with embeddings_project where
    the sizes differ, and encoder; `transformer_model` those of each layer.
    run_pretraining.py: `_get_masked_lm_output`, `get_token_logits` and
    `_get_discriminator_output`, whose dense layers have no names, so TF1
    numbers them. Its `get_generator_config` makes feed-forward layers 4 G.
    """
    found = {
        "electra/embeddings/word_embeddings": [V, E],
        "electra/embeddings/token_type_embeddings": [T, E],
        "electra/embeddings/position_embeddings": [M, E],
        **norm("electra/embeddings/LayerNorm", E),
        **dense("generator_predictions/dense", G, E),
        **norm("generator_predictions/LayerNorm", E),
        "generator_predictions/output_bias": [V],
        **dense("discriminator_predictions/dense", D, D),
        **dense("discriminator_predictions/dense_1", D, 1),
    }
    for scope, size, wide in (("electra", D, F), ("generator", G, 4 * G)):
        if size != E:
            found |= dense(f"{scope}/embeddings_project", E, size)
        for i in range(L):
            layer = f"{scope}/encoder/layer_{i}"
            for part in ("self/query", "self/key", "self/value"):
                found |= dense(f"{layer}/attention/{part}", size, size)
            found |= dense(f"{layer}/attention/output/dense", size, size)
            found |= norm(f"{layer}/attention/output/LayerNorm", size)
            found |= dense(f"{layer}/intermediate/dense", size, wide)
            found |= dense(f"{layer}/output/dense", wide, size)
            found |= norm(f"{layer}/output/LayerNorm", size)
    return found


@pytest.mark.parametrize("E, G", [(16, 16), (32, 16), (16, 32)])
def test_names_are_the_originals(E, G):
    sizes = {"embedding_size": E, "generator_hidden_size": G / 32}
    model = _pretrainer(dataclasses.replace(_CONFIG, **sizes))
    found = {v.path: list(v.shape) for v in model.variables}
    assert found == originals(E=E, G=G)


def test_a_released_archive(tmp_path):
    """The checkpoint of a released archive, which has no config."""
    _write(tmp_path)
    (tmp_path / "bert_config.json").unlink()
    source = formats.open_checkpoint(str(tmp_path))
    assert source.config is None
    assert names.find_head(source.shapes, source.path) == "replaced_tokens"
    # One of its heads, although no config names it.
    one = formats.with_head(source, "replaced_tokens")
    assert _scopes(one.shapes) == {"electra", "discriminator_predictions"}
    (tmp_path / "bert_config.json").write_text(_CONFIG.to_json())
    assert formats.open_checkpoint(str(tmp_path)).config == _CONFIG


@pytest.mark.slow
def test_transformers_has_the_discriminator(tmp_path):
    _, source = _write(tmp_path / "tf1")
    written = formats.write(str(tmp_path / "hf"), "hf", source)
    assert _scopes(written.left_out) == {"generator", "generator_predictions"}
    back = samples.values(tmp_path / "hf")
    assert set(back) == set(written.weights)
    reference.assert_same(back, source.read(list(back)))


class TestGenerator:
    @pytest.mark.slow
    def test_says_the_words_of_pre_training(self, tmp_path):
        model, source = _write(tmp_path / "tf1")
        batch = samples.batch(_CONFIG)
        places = batch["masked_lm_positions"]
        found = model(
            batch
            | {"masked_lm_ids": places}
            | {"masked_lm_weights": np.ones(places.shape, np.float32)}
        )
        taken = generators.take_out(source)
        for form in ("tf1", "hf"):
            formats.write(str(tmp_path / f"of_{form}"), form, taken)
            alone, head = samples.load(str(tmp_path / f"of_{form}"))
            assert head == "masked_lm"
            assert alone.bert.config == _CONFIG.generator
            np.testing.assert_allclose(alone(batch), found.words, atol=1e-5)

    def test_leaves_out_the_rest(self, tmp_path):
        found = generators.take_out(_write(tmp_path)[1])
        assert not found.state
        left = {"discriminator_predictions", "electra"}
        assert _scopes(found.left_over) == left
        assert found.shapes == names.shapes(_CONFIG.generator, "masked_lm")

    def test_stays_behind_where_layers_go(self, tmp_path):
        found = smaller.keep_layers(_write(tmp_path)[1], [0])
        config = dataclasses.replace(_CONFIG, num_hidden_layers=1)
        assert found.shapes == names.shapes(config, "replaced_tokens")
        left = {"generator", "generator_predictions"}
        assert _scopes(found.left_over) == left
        with pytest.raises(InputError, match="holds no generator, as checkp"):
            generators.take_out(found)

    def test_of_other_sizes(self, tmp_path):
        other = dataclasses.replace(_CONFIG, generator_hidden_size=0.25)
        source = dataclasses.replace(_write(tmp_path)[1], config=other)
        message = "embeddings_project/bias is not the"
        with pytest.raises(InputError, match=message):
            generators.take_out(source)


@pytest.mark.parametrize("forms", [[], ["hf"], ["hf", "tf1"]])
def test_its_config_goes_with_files_that_name_no_generator(tmp_path, forms):
    """For Hugging Face's files and their conversions the default is known."""
    _, source = _write(tmp_path)
    for form in forms:
        formats.write(str(tmp_path / form), form, source)
        source = formats.open_checkpoint(str(tmp_path / form))

    def find(**changes):
        config = dataclasses.replace(_CONFIG, **changes)
        (tmp_path / "given.json").write_text(config.to_json())
        found = model_files.find_config(str(tmp_path / "given.json"), source)
        assert found == config

    find()
    with pytest.raises(InputError, match="num_hidden_layers is 4 there and 3"):
        find(num_hidden_layers=4)
    if forms:
        find(generator_hidden_size=0.25)
        return
    with pytest.raises(InputError, match=r"_size is 0\.25 there and 0\.5 in"):
        find(generator_hidden_size=0.25)


# With dropout.
_RUN = {
    "model_type": "electra",
    "hidden_act": "gelu_erf",
    "embedding_size": 4,
    "generator_hidden_size": 0.5,
    "num_hidden_layers": 2,
}


@pytest.mark.exhaustive
def test_a_kill_changes_nothing(tmp_path):
    stored = runs.Setting.make(
        tmp_path, **_RUN
    ).check_that_a_kill_changes_nothing()
    weights = {x for x in stored if tf1_files.is_weight(x)}
    wanted = originals(E=4, D=8, F=16, G=4, L=2).keys()
    assert weights == {x for x in wanted if "generator/embeddings_p" not in x}
    assert all(f"{x}/adam_{m}" in stored for x in weights for m in "mv")
