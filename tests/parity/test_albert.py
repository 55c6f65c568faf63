"""ALBERT against transformers and KerasHub, with random weights."""

import dataclasses
from typing import Any

from bert_tf.checkpoints import formats, names
from bert_tf.encoders import albert, families
from bert_tf.errors import InputError
from tests import interop_samples as samples

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)

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
_HEADS = _THEIRS.heads


def their_inputs(inputs):
    renamed = {
        "input_ids": "input_ids",
        "attention_mask": "input_mask",
        "token_type_ids": "segment_ids",
    }
    return {
        theirs: torch.tensor(np.int64(inputs[name]))
        for theirs, name in renamed.items()
    }


def outputs(model, head, inputs):
    """What a model of ours returns, and each layer's output."""
    if head == "encoder":
        found = model(inputs)
        return [found.sequence, found.pooled, found.embeddings, *found.layers]
    found = model(inputs)
    return list(found) if isinstance(found, tuple) else [found]


def their_outputs(model, head, inputs):
    with torch.no_grad():
        found = model(
            **their_inputs(inputs), output_hidden_states=head == "encoder"
        )
    if head == "encoder":
        return [
            found.last_hidden_state,
            found.pooler_output,
            *found.hidden_states,
        ]
    return list(found.to_tuple())


def of_head(inputs, head):
    if head != "multiple_choice":
        return inputs
    inputs = {n: x[:, None].repeat(2, 1) for n, x in inputs.items()}
    inputs["input_ids"][:, 1] = inputs["input_ids"][::-1, 0]
    return inputs


def close(ours, theirs):
    for own, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, their, rtol=0, atol=1e-5)


def theirs_of(config, head):
    """A model of transformers, with random weights that say something."""
    torch.manual_seed(0)
    assert _THEIRS is not None
    values = _THEIRS.keys.to_theirs(config)
    few = head in ("span", "pretraining")
    labels = {"num_labels": 2 if few else samples.NUM_LABELS}
    made = transformers.AlbertConfig(**values, **labels)
    name = _HEADS[head].architecture
    model = getattr(transformers, name)(made).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            kind = name.rpartition(".")[0].rpartition(".")[2]
            value.normal_(0, samples.spread(kind, value.shape[-1]))
            if "norm.weight" in name.lower():
                value.uniform_(0.5, 1.5)
    return model


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
    theirs = theirs_of(_CONFIGS[sizes], head)
    theirs.save_pretrained(tmp_path)
    model, found = samples.load(str(tmp_path))
    assert found == head
    assert model.bert.config if head != "encoder" else model.config
    inputs = of_head(samples.batch(_CONFIGS[sizes]), head)
    close(
        outputs(model, head, inputs),
        their_outputs(theirs, head, inputs),
    )


@pytest.mark.parametrize(
    "head, sizes",
    [*((head, "released") for head in _HEADS), ("encoder", "inner")],
)
def test_they_load_what_is_written(tmp_path, head, sizes):
    model = samples.random_model(head, _CONFIGS[sizes])
    tf1 = samples.write_tf1(tmp_path / "tf1", model)
    source = formats.open_checkpoint(tf1)
    folder = str(tmp_path / "hf")
    formats.write(folder, "hf", source)
    kind = getattr(transformers, _HEADS[head].architecture)
    theirs, info = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    inputs = of_head(samples.batch(_CONFIGS[sizes]), head)
    close(
        outputs(model, head, inputs),
        their_outputs(theirs.eval(), head, inputs),
    )
    # And every bit comes back.
    if _HEADS[head].has_pooler:
        formats.write(
            str(tmp_path / "back"), "tf1", formats.open_checkpoint(folder)
        )
        samples.assert_equal(tf1, str(tmp_path / "back"))
        back = formats.open_checkpoint(str(tmp_path / "back"))
        assert back.config == source.config


def test_a_model_without_their_mapping_is_not_written(tmp_path):
    config = dataclasses.replace(_CONFIGS["equal"], maps_embeddings=False)
    model = samples.random_model("encoder", config)
    source = formats.open_checkpoint(samples.write_tf1(tmp_path / "tf1", model))
    for kind in ("hf", "keras_hub"):
        with pytest.raises(InputError, match="embedding_hidden_mapping_in"):
            formats.write(str(tmp_path / kind), kind, source)
        assert not (tmp_path / kind).exists()


# ---- KerasHub ---------------------------------------------------------------


@pytest.mark.parametrize("sizes", ["released", "inner", "equal"])
def test_presets(tmp_path, sizes):
    keras_hub = pytest.importorskip("keras_hub")
    config = _CONFIGS[sizes]
    model = samples.random_model("encoder", config)
    tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=())
    source = formats.open_checkpoint(tf1)
    folder = str(tmp_path / "preset")
    written = formats.write(folder, "keras_hub", source)
    assert not written.left_out
    theirs = keras_hub.models.AlbertBackbone.from_preset(folder)
    inputs = samples.batch(config)
    wanted = theirs(
        {
            "token_ids": inputs["input_ids"],
            "padding_mask": inputs["input_mask"],
            "segment_ids": inputs["segment_ids"],
        }
    )
    found = model(inputs)
    close(
        [found.sequence, found.pooled],
        [wanted["sequence_output"], wanted["pooled_output"]],
    )
    formats.write(
        str(tmp_path / "back"), "tf1", formats.open_checkpoint(folder)
    )
    samples.assert_equal(tf1, str(tmp_path / "back"))


@pytest.mark.parametrize("head", ["classification", "masked_lm"])
def test_heads_of_presets(tmp_path, head):
    keras_hub = pytest.importorskip("keras_hub")
    config = dataclasses.replace(
        _CONFIGS["released"],
        transform_act="gelu",
        transform_layer_norm_eps=1e-5,
    )
    model = samples.random_model(head, config)
    tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=())
    folder = str(tmp_path / "preset")
    formats.write(folder, "keras_hub", formats.open_checkpoint(tf1))
    kind = {"classification": "TextClassifier", "masked_lm": "MaskedLM"}[head]
    theirs = getattr(keras_hub.models, f"Albert{kind}").from_preset(
        folder, preprocessor=None
    )
    inputs = samples.batch(config)
    wanted = theirs(
        {
            "token_ids": inputs["input_ids"],
            "padding_mask": inputs["input_mask"],
            "segment_ids": inputs["segment_ids"],
            "mask_positions": inputs["masked_lm_positions"],
        }
        if head == "masked_lm"
        else {
            "token_ids": inputs["input_ids"],
            "padding_mask": inputs["input_mask"],
            "segment_ids": inputs["segment_ids"],
        }
    )
    found = model(inputs)
    close([found], [wanted])


# ---- Names and sizes --------------------------------------------------------


def test_released_parameter_counts():
    """Those of the released models, with pooler."""
    sizes = {
        11_683_584: (768, 12, 12, 3072),
        17_683_968: (1024, 24, 16, 4096),
        58_724_864: (2048, 24, 16, 8192),
        222_595_584: (4096, 12, 64, 16384),
    }
    for count, (D, L, N, F) in sizes.items():
        config = albert.AlbertConfig(
            vocab_size=30000,
            hidden_size=D,
            num_hidden_layers=L,
            num_attention_heads=N,
            intermediate_size=F,
        )
        shapes = names.shapes(config, "encoder").values()
        assert sum(int(np.prod(shape)) for shape in shapes) == count


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
