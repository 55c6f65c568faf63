"""ELECTRA with random weights and its files, compared with transformers."""

import dataclasses
import json
import pathlib

from bert_tf import heads
from bert_tf.checkpoints import formats, huggingface_names, names, restoring
from bert_tf.encoders import electra, families
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest
import tensorflow as tf

_MODELS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
_SMALL = electra.ElectraConfig(**samples.SMALL, embedding_size=16)
_THEIRS = electra.ELECTRA.huggingface
assert _THEIRS is not None
_HEADS, _KEYS = _THEIRS.heads, _THEIRS.keys


def _released(name):
    return families.read_config(str(_MODELS / f"electra_{name}.json"))


def test_what_is_pooled_is_the_first_vector():
    model = samples.random_model("encoder", _SMALL)
    found = model(samples.batch(_SMALL))
    np.testing.assert_array_equal(found.pooled, found.sequence[:, 0])
    classifier = samples.random_model("classification", _SMALL)
    inputs = samples.batch(_SMALL)
    first = classifier.bert(inputs).sequence[:, 0]
    wanted = tf.matmul(first, classifier.output_weights, transpose_b=True)
    np.testing.assert_allclose(
        classifier(inputs), wanted + classifier.output_bias, atol=1e-5
    )


@pytest.mark.parametrize("head", ["classification", "multiple_choice"])
def test_a_classifier_without_their_layer_is_not_written(tmp_path, head):
    model = samples.random_model(head, _SMALL)
    source = samples.source(tmp_path / "tf1", model)
    with pytest.raises(InputError, match=r"a model without electra/pooler/den"):
        formats.write(str(tmp_path / "hf"), "hf", source)
    assert not (tmp_path / "hf").exists()
    with pytest.raises(InputError, match="KerasHub has no such encoder"):
        formats.write(str(tmp_path / "keras_hub"), "keras_hub", source)


def test_notes_say_nothing_of_a_pooler_that_is_nowhere(tmp_path):
    model = samples.random_model("encoder", _SMALL)
    source = samples.source(tmp_path / "tf1", model)
    assert formats.write(str(tmp_path / "hf"), "hf", source).notes == ()
    assert formats.write(str(tmp_path / "again"), "tf1", source).notes == ()


@pytest.mark.parametrize(
    "name, encoder, discriminator, generator",
    [
        # Parameters of ElectraModel, ElectraForPreTraining and
        # ElectraForMaskedLM, by their code, for the released config.json.
        ("small", 13_483_008, 13_549_057, 13_546_682),
        ("small_owt", 13_483_008, 13_549_057, 4_620_026),
        ("base", 108_891_648, 109_483_009, 33_740_602),
        ("large", 334_092_288, 335_142_913, 51_295_290),
    ],
)
def test_released_parameter_counts(name, encoder, discriminator, generator):
    config = _released(name)
    assert names.parameters(config, "encoder") == encoder
    assert names.parameters(config, "replaced_tokens") == discriminator
    assert names.parameters(config.generator, "masked_lm") == generator
    for own, kind, count in (
        (config, "ElectraForPreTraining", discriminator),
        (config.generator, "ElectraForMaskedLM", generator),
    ):
        values = transformers.ElectraConfig(**_KEYS.to_theirs(own))
        with torch.device("meta"):
            model = getattr(transformers, kind)(values)
        parameters = {id(x): x for x in model.parameters()}
        assert sum(x.numel() for x in parameters.values()) == count


class TestConfig:
    def test_the_generators_sizes(self):
        """As in the original's get_generator_config."""
        for name, sizes in {
            "small": (256, 12, 4, 1024),
            "small_owt": (64, 12, 1, 256),
            "base": (256, 12, 4, 1024),
            "large": (256, 24, 4, 1024),
        }.items():
            config = _released(name)
            made = config.generator
            assert sizes == (
                made.hidden_size,
                made.num_hidden_layers,
                made.num_attention_heads,
                made.intermediate_size,
            )
            assert made.embedding_size == config.embedding_size
        few = dataclasses.replace(_SMALL, generator_layers=0.5)
        assert few.generator.num_hidden_layers == 2

    def test_without_a_model_type(self, tmp_path):
        values = json.loads(_SMALL.to_json())
        del values["model_type"]
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        assert families.read_config(str(path)) == _SMALL

    @pytest.mark.parametrize("name", ["hidden_size", "layers"])
    @pytest.mark.parametrize(
        "value", [0, -1, True, "1", 1e308, 64, float("inf")]
    )
    def test_a_share_that_is_none(self, name, value):
        name = f"generator_{name}"
        with pytest.raises(InputError, match=f"`{name}` must be a positive nu"):
            dataclasses.replace(_SMALL, **{name: value})

    def test_a_generator_without_layers(self):
        config = dataclasses.replace(_SMALL, generator_layers=0.1)
        with pytest.raises(InputError, match="is no generator of these sizes"):
            _ = config.generator

    def test_another_summary(self):
        with pytest.raises(InputError, match="`summary_type` must be first"):
            huggingface_names.to_config(
                {"model_type": "electra", "summary_type": "mean"}
            )


@pytest.mark.slow
def test_all_heads_start_from_a_discriminator(tmp_path):
    model = samples.random_model("replaced_tokens", _SMALL)
    source = samples.source(tmp_path / "tf1", model)
    for make in (
        lambda bert: heads.BertClassifier(bert, 2),
        lambda bert: heads.BertTagger(bert, 3),
        heads.BertSpanFinder,
        heads.BertMultipleChoice,
    ):
        own = make(families.make(_SMALL))
        report = restoring.restore_weights(own.variables, source)
        assert all(not x.startswith("electra/") for x in report.fresh)
        assert len(report.fresh) == 2
        assert all(x.startswith("discriminator_") for x in report.unused)
