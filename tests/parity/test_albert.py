"""ALBERT against transformers and KerasHub, with random weights."""

import dataclasses
from typing import Any

from bert_tf.checkpoints import formats, names
from bert_tf.encoders import albert, families
from bert_tf.errors import InputError
from tests import huggingface_models as hf
from tests import interop_samples as samples

import numpy as np
import pytest

_SMALL = samples.SMALL | {"num_hidden_layers": 4}
_SIZES: dict[str, dict[str, Any]] = {
    "released": {"embedding_size": 16},
    "groups": {"embedding_size": 16, "num_hidden_groups": 2},
    "uneven": {"embedding_size": 16, "num_hidden_groups": 3},
    "inner": {
        "embedding_size": 16,
        "num_hidden_groups": 2,
        "inner_group_num": 2,
    },
    "equal": {"embedding_size": 32, "maps_embeddings": True},
}
_CONFIGS = {
    name: albert.AlbertConfig(**_SMALL, **sizes)
    for name, sizes in _SIZES.items()
}
_THEIRS = albert.ALBERT.huggingface
assert _THEIRS is not None
_HEADS, _KEYS = _THEIRS.heads, _THEIRS.keys


def encoders_agree(model, theirs, inputs):
    wanted = theirs(samples.keras_hub_inputs(inputs))
    found = model(inputs)
    for own, their in (
        (found.sequence, wanted["sequence_output"]),
        (found.pooled, wanted["pooled_output"]),
    ):
        np.testing.assert_allclose(own, their, rtol=0, atol=1e-5)


# ---- transformers -----------------------------------------------------------


@pytest.mark.parametrize(
    "head, sizes",
    [
        *(("encoder", sizes) for sizes in _CONFIGS),
        *((head, "released") for head in _HEADS if head != "encoder"),
        ("pretraining", "equal"),
    ],
)
def test_their_models_give_the_same_here(tmp_path, head, sizes):
    values = _KEYS.to_theirs(_CONFIGS[sizes])
    theirs = hf.make(_HEADS[head].architecture, **values)
    model, found = samples.load(hf.save(theirs, tmp_path))
    assert found == head
    hf.compare(model, head, theirs, samples.batch(_CONFIGS[sizes]))


@pytest.mark.parametrize(
    "head, sizes",
    [*((head, "released") for head in _HEADS), ("encoder", "inner")],
)
def test_they_load_what_is_written(tmp_path, head, sizes):
    model = samples.random_model(head, _CONFIGS[sizes])
    source = samples.source(tmp_path / "tf1", model)
    folder = str(tmp_path / "hf")
    formats.write(folder, "hf", source)
    theirs = hf.load(folder, _HEADS[head].architecture)
    hf.compare(model, head, theirs, samples.batch(_CONFIGS[sizes]))
    # And every bit comes back.
    if _HEADS[head].has_pooler:
        samples.convert(folder, "tf1", tmp_path / "back")
        samples.assert_equal(tmp_path / "tf1", tmp_path / "back")
        back = formats.open_checkpoint(str(tmp_path / "back"))
        assert back.config == source.config


def test_a_model_without_their_mapping_is_not_written(tmp_path):
    config = dataclasses.replace(_CONFIGS["equal"], maps_embeddings=False)
    model = samples.random_model("encoder", config)
    source = samples.source(tmp_path / "tf1", model)
    for kind in ("hf", "keras_hub"):
        with pytest.raises(InputError, match="embedding_hidden_mapping_in"):
            formats.write(str(tmp_path / kind), kind, source)
        assert not (tmp_path / kind).exists()


# ---- KerasHub ---------------------------------------------------------------


@pytest.mark.parametrize("sizes", ["released", "inner", "equal"])
def test_presets(tmp_path, sizes):
    keras_hub = pytest.importorskip("keras_hub")
    model = samples.random_model("encoder", _CONFIGS[sizes])
    source = samples.source(tmp_path / "tf1", model, vocab=())
    folder = str(tmp_path / "preset")
    assert not formats.write(folder, "keras_hub", source).left_out
    theirs = keras_hub.models.AlbertBackbone.from_preset(folder)
    encoders_agree(model, theirs, samples.batch(_CONFIGS[sizes]))
    samples.convert(folder, "tf1", tmp_path / "back")
    samples.assert_equal(tmp_path / "tf1", tmp_path / "back")


@pytest.mark.parametrize(
    "head, kind",
    [("classification", "TextClassifier"), ("masked_lm", "MaskedLM")],
)
def test_heads_of_presets(tmp_path, head, kind):
    keras_hub = pytest.importorskip("keras_hub")
    config = dataclasses.replace(
        _CONFIGS["released"],
        transform_act="gelu",
        transform_layer_norm_eps=1e-5,
    )
    model = samples.random_model(head, config)
    tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=())
    samples.convert(tf1, "keras_hub", tmp_path / "preset")
    kind = getattr(keras_hub.models, f"Albert{kind}")
    theirs = kind.from_preset(str(tmp_path / "preset"), preprocessor=None)
    inputs = samples.batch(config)
    given = samples.keras_hub_inputs(inputs)
    if head == "masked_lm":
        given["mask_positions"] = inputs["masked_lm_positions"]
    np.testing.assert_allclose(model(inputs), theirs(given), rtol=0, atol=1e-5)


# ---- Names and sizes --------------------------------------------------------


@pytest.mark.parametrize("sizes", _CONFIGS)
@pytest.mark.parametrize("head", ["encoder", "pretraining", "tagging"])
def test_each_variable_is_there_once(head, sizes):
    config = _CONFIGS[sizes]
    made = samples.model(head, config)
    found = [(v.path, tuple(v.shape)) for v in made.variables]
    wanted = names.shapes(config, head, samples.NUM_LABELS)
    assert dict(found) == wanted
    assert len(found) == len(wanted)
    assert len(made.trainable_variables) == len(wanted)


def test_layers_that_share_weights_learn_at_one_rate():
    row, config = families.of(_CONFIGS["inner"]), _CONFIGS["inner"]
    group = "bert/encoder/transformer/group_{}/inner_group_{}/LayerNorm/beta"
    depths = {
        "bert/pooler/dense/kernel": 0,
        "cls/predictions/output_bias": 0,
        group.format(1, 0): 1,
        group.format(1, 1): 1,
        group.format(0, 0): 2,
        "bert/encoder/embedding_hidden_mapping_in/kernel": 3,
        "bert/embeddings/word_embeddings": 3,
    }
    for name, depth in depths.items():
        assert row.depth(name, config) == depth, name
