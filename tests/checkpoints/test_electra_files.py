"""What pre-training of ELECTRA saves, going on from it, and its generator."""

import dataclasses
import signal

from bert_tf import heads, replaced_tokens
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

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = electra.ElectraConfig(
    **samples.SMALL, embedding_size=16, generator_hidden_size=0.5
)


def _pretrainer(config=_CONFIG):
    encoder = families.make(config)
    return replaced_tokens.ReplacedTokensPretrainer(
        encoder, electra.Generator(encoder)
    )


def _write(folder, config=_CONFIG):
    """Writes a pre-trained model of random weights; returns it."""
    model = _pretrainer(config)
    rng = np.random.default_rng(0)
    for variable in model.variables:
        kind = variable.path.rpartition("/")[2]
        spread = samples.spread(kind, variable.shape[0])
        variable.assign(rng.normal(0, spread, variable.shape))
    samples.write_tf1(folder, model)
    return model


# ---- Names ------------------------------------------------------------------


def dense(name, inputs, outputs):
    return {f"{name}/kernel": [inputs, outputs], f"{name}/bias": [outputs]}


def norm(name, size):
    return {f"{name}/beta": [size], f"{name}/gamma": [size]}


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


@pytest.mark.parametrize(
    "sizes", [{"E": 16, "G": 16}, {"E": 32, "G": 16}, {"E": 16, "G": 32}]
)
def test_names_are_the_originals(sizes):
    config = dataclasses.replace(
        _CONFIG,
        embedding_size=sizes["E"],
        generator_hidden_size=sizes["G"] / 32,
    )
    found = {v.path: list(v.shape) for v in _pretrainer(config).variables}
    assert found == originals(**sizes)


def test_a_released_archive(tmp_path):
    """The checkpoint of an archive, which has no config beside it."""
    _write(tmp_path)
    config = tmp_path / "bert_config.json"
    text = config.read_text()
    config.unlink()
    source = formats.open_checkpoint(str(tmp_path))
    assert source.config is None
    assert names.find_head(source.shapes, source.path) == "replaced_tokens"
    # One head of it, though nothing says what it is.
    one = formats.with_head(source, "replaced_tokens")
    assert {x.partition("/")[0] for x in one.shapes} == {
        "electra",
        "discriminator_predictions",
    }
    config.write_text(text)
    assert formats.open_checkpoint(str(tmp_path)).config == _CONFIG


def test_transformers_has_the_discriminator(tmp_path):
    _write(tmp_path / "tf1")
    source = formats.open_checkpoint(str(tmp_path / "tf1"))
    written = formats.write(str(tmp_path / "hf"), "hf", source)
    assert {x.partition("/")[0] for x in written.left_out} == {
        "generator",
        "generator_predictions",
    }
    back = formats.open_checkpoint(str(tmp_path / "hf"))
    assert set(back.shapes) == set(written.weights)
    for name, value in back.read(list(back.shapes)).items():
        np.testing.assert_array_equal(value, source.read([name])[name])


# ---- The generator ----------------------------------------------------------


class TestGenerator:
    def test_says_the_words_of_pre_training(self, tmp_path):
        model = _write(tmp_path / "tf1")
        source = generators.take_out(
            formats.open_checkpoint(str(tmp_path / "tf1"))
        )
        for form in ("tf1", "hf"):
            formats.write(str(tmp_path / f"of_{form}"), form, source)
            alone, head = samples.load(str(tmp_path / f"of_{form}"))
            assert head == "masked_lm"
            assert alone.bert.config == _CONFIG.generator
            batch = samples.batch(_CONFIG)
            places = batch["masked_lm_positions"]
            found = model(
                batch
                | {
                    "masked_lm_ids": places,
                    "masked_lm_weights": np.ones(places.shape, np.float32),
                }
            )
            np.testing.assert_allclose(alone(batch), found.words, atol=1e-5)

    def test_leaves_out_the_rest(self, tmp_path):
        _write(tmp_path)
        source = formats.open_checkpoint(str(tmp_path))
        found = generators.take_out(source)
        assert not found.state
        assert {x.partition("/")[0] for x in found.left_over} == {
            "discriminator_predictions",
            "electra",
        }
        wanted = names.shapes(_CONFIG.generator, "masked_lm")
        assert found.shapes == wanted

    def test_stays_behind_where_layers_go(self, tmp_path):
        _write(tmp_path / "whole")
        source = formats.open_checkpoint(str(tmp_path / "whole"))
        found = smaller.keep_layers(source, [0])
        config = dataclasses.replace(_CONFIG, num_hidden_layers=1)
        assert found.shapes == names.shapes(config, "replaced_tokens")
        assert {x.partition("/")[0] for x in found.left_over} == {
            "generator",
            "generator_predictions",
        }
        with pytest.raises(InputError, match="holds no generator, as checkp"):
            generators.take_out(found)

    def test_of_no_pre_training(self, tmp_path):
        made = heads.BertTagger(families.make(_CONFIG), 3)
        samples.write_tf1(tmp_path, made)
        source = formats.open_checkpoint(str(tmp_path))
        with pytest.raises(InputError, match="holds no generator, as checkp"):
            generators.take_out(source)

    def test_of_other_sizes(self, tmp_path):
        _write(tmp_path)
        source = formats.open_checkpoint(str(tmp_path))
        other = dataclasses.replace(_CONFIG, generator_hidden_size=0.25)
        with pytest.raises(
            InputError, match="embeddings_project/bias is not the"
        ):
            generators.take_out(dataclasses.replace(source, config=other))

    def test_of_another_family(self, tmp_path):
        config = families.BERT.config(**samples.SMALL)
        samples.write_tf1(tmp_path, families.make(config))
        source = formats.open_checkpoint(str(tmp_path))
        with pytest.raises(InputError, match="no family that is pre-trained w"):
            generators.take_out(source)


@pytest.mark.parametrize("forms", [[], ["hf"], ["hf", "tf1"]])
def test_its_config_goes_with_files_that_name_no_generator(tmp_path, forms):
    """Of Hugging Face's, and what is made of them, the default is known."""
    _write(tmp_path)
    (tmp_path / "bert_config.json").write_text(_CONFIG.to_json())
    source = formats.open_checkpoint(str(tmp_path))
    for form in forms:
        formats.write(str(tmp_path / form), form, source)
        source = formats.open_checkpoint(str(tmp_path / form))
    given = tmp_path / "given.json"
    given.write_text(_CONFIG.to_json())
    assert model_files.find_config(str(given), source) == _CONFIG
    other = dataclasses.replace(_CONFIG, num_hidden_layers=4)
    given.write_text(other.to_json())
    with pytest.raises(InputError, match="num_hidden_layers is 4 there and 3"):
        model_files.find_config(str(given), source)
    other = dataclasses.replace(_CONFIG, generator_hidden_size=0.25)
    given.write_text(other.to_json())
    if forms:
        assert model_files.find_config(str(given), source) == other
        return
    with pytest.raises(InputError, match=r"_size is 0\.25 there and 0\.5 in"):
        model_files.find_config(str(given), source)


# ---- Going on ---------------------------------------------------------------

# With dropout.
_RUN = {
    "model_type": "electra",
    "hidden_act": "gelu_erf",
    "embedding_size": 4,
    "generator_hidden_size": 0.5,
    "num_hidden_layers": 2,
}


@pytest.mark.exhaustive
def test_kill_9_changes_nothing(tmp_path):
    setting = runs.Setting.make(tmp_path, **_RUN)
    flags = ("--num_train_steps=40", "--save_checkpoints_steps=5")
    whole, output = tmp_path / "whole", tmp_path / "out"
    run = setting.run(whole, *flags)
    assert run.wait() == 0, run.stderr
    run = setting.start(output, *flags, log="killed")
    runs.wait_for((output / "model.ckpt-10.index").exists, run)
    run.kill(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert not (output / "model.ckpt-40.index").exists()
    run = setting.run(output, *flags)
    assert run.wait() == 0, run.stderr
    assert "Going on from step" in run.stderr
    assert runs.metrics(output) == runs.metrics(whole)
    # The moments, too, are those of the whole run, byte for byte.
    data = "model.ckpt-40.data-00000-of-00001"
    assert (output / data).read_bytes() == (whole / data).read_bytes()
    stored = dict(tf.train.list_variables(str(output)))
    weights = {x for x in stored if tf1_files.is_weight(x)}
    wanted = originals(E=4, D=8, F=16, G=4, L=2).keys()
    assert weights == {x for x in wanted if "generator/embeddings_p" not in x}
    assert all(f"{x}/adam_{m}" in stored for x in weights for m in "mv")
