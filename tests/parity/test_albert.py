"""ALBERT against transformers and KerasHub, with random weights."""

import dataclasses
from typing import Any

from bert_tf.checkpoints import formats
from bert_tf.encoders import albert
from bert_tf.errors import InputError
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
