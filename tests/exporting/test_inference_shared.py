"""The serving form of ALBERT and ELECTRA, and files with shared layers."""

import dataclasses
import itertools

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, names, tf1_files
from bert_tf.contrib import (
    bilstm,
    bilstm_lm,
    esim,
    left_to_right,
    left_to_right_bilstm,
    textcnn,
)
from bert_tf.encoders import albert, electra, families, layers
from bert_tf.exporting import inference
from bert_tf.training import accelerators
from tests import combinations
from tests import interop_samples as samples

import keras
import numpy as np
import pytest
import tensorflow as tf

CONFIG = albert.AlbertConfig(
    **samples.SMALL, embedding_size=16, initializer_range=0.3
)


_ELECTRA = electra.ElectraConfig(**samples.SMALL, embedding_size=16)
_CONFIGS = [
    *(
        dataclasses.replace(CONFIG, num_hidden_groups=x, inner_group_num=y)
        for x, y in ((1, 1), (2, 2), (3, 1))
    ),
    *(_ELECTRA, dataclasses.replace(_ELECTRA, pooler_act="gelu_erf")),
    dataclasses.replace(_ELECTRA, embedding_size=32),
]
_HEADS = ("encoder", "classification", "tagging", "masked_lm")


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize(
    "head, config",
    combinations.some(
        [*zip(_HEADS * 2, _CONFIGS, strict=False), ("masked_lm", _ELECTRA)],
        itertools.product(_HEADS, _CONFIGS),
    ),
)
def test_answers_are_those_of_training(head, config):
    model = samples.random_model(head, config)
    served = inference.make_inference_model(model)
    assert not isinstance(served, inference.AsTrained)
    batch = {n: tf.constant(x) for n, x in samples.batch(config).items()}
    found, wanted = served(batch), model(batch)
    is_token = batch["input_mask"].numpy() > 0
    if head == "encoder":
        np.testing.assert_allclose(found.pooled, wanted.pooled, atol=1e-5)
        found, wanted = found.sequence, wanted.sequence
    if head != "classification":
        found, wanted = found.numpy()[is_token], wanted.numpy()[is_token]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_shared_weights_are_kept_once():
    served = inference.make_inference_model(
        samples.random_model("classification", CONFIG)
    )
    size = sum(int(np.prod(v.shape)) for v in served.variables)
    assert size == names.parameters(CONFIG, "encoder") + sum(
        int(np.prod(shape))
        for name, shape in names.shapes(CONFIG, "classification", 3).items()
        if name.startswith("output_")
    )


def test_a_released_archive(tmp_path):
    model = heads.BertPretrainer(families.make(CONFIG))
    weights = {v.path: v.value for v in model.variables}
    tf1_files.write(str(tmp_path / "model.ckpt-best"), weights)
    released = """{"attention_probs_dropout_prob": 0, "hidden_act": "gelu",
        "hidden_dropout_prob": 0, "embedding_size": 16, "hidden_size": 32,
        "initializer_range": 0.3, "intermediate_size": 64,
        "max_position_embeddings": 20, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_hidden_groups": 1, "inner_group_num": 1,
        "net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0,
        "down_scale_factor": 1, "type_vocab_size": 2, "vocab_size": 40}"""
    path = tmp_path / "albert_config.json"
    path.write_text(released)
    source = formats.open_checkpoint(str(tmp_path / "model.ckpt-best"))
    assert source.config == CONFIG
    assert names.find_head(source.shapes, source.path) == "pretraining"
    path.write_text(released.replace('"gap_size": 0', '"gap_size": 1'))
    with pytest.raises(ValueError, match="`gap_size` must be 0"):
        formats.open_checkpoint(str(tmp_path / "model.ckpt-best"))


def test_work_counts_layers_as_often_as_they_run():
    few = accelerators.training_flops(CONFIG, 8, 800, 80000, 100)
    more = dataclasses.replace(CONFIG, num_hidden_layers=6)
    many = accelerators.training_flops(more, 8, 800, 80000, 100)
    # A layer: 8 D^2 + 4 D F per token, 4 D per pair; three passes.
    layer = 800 * (8 * 32**2 + 4 * 32 * 64) + 4 * 80000 * 32
    assert many - few == pytest.approx(3 * 3 * layer)
    assert accelerators.parameters(more) == accelerators.parameters(CONFIG)


_ONE_LAYER = samples.SMALL | {"num_hidden_layers": 1}
CONFIGS = {
    "bert": modeling.BertConfig(**_ONE_LAYER),
    "left_to_right": left_to_right.LeftToRightConfig(**_ONE_LAYER),
    "left_to_right_bilstm": left_to_right_bilstm.LeftToRightBiLstmConfig(
        **_ONE_LAYER
    ),
    "bilstm": bilstm.BiLstmConfig(
        vocab_size=40, embedding_size=5, hidden_size=6
    ),
    "bilstm_lm": bilstm_lm.BiLstmLmConfig(
        vocab_size=40, embedding_size=4, hidden_size=8
    ),
    "textcnn": textcnn.TextCnnConfig(
        vocab_size=40, embedding_size=5, hidden_size=6
    ),
    "esim": esim.EsimConfig(vocab_size=40, embedding_size=5, hidden_size=6),
}


def _make(config, kind, policy):
    with layers.of_policy(keras.DTypePolicy(policy)):
        return kind(families.make(config), 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            *(name, kind),
            marks=()
            if (kind is heads.BertClassifier) == (i % 2 == 1)
            else pytest.mark.exhaustive,
        )
        for i, name in enumerate(CONFIGS)
        for kind in (heads.BertClassifier, heads.BertTagger)
        if CONFIGS[name].gives_sequence or kind is heads.BertClassifier
    ],
)
def test_in_float32(name, kind):
    config = CONFIGS[name]
    plain = _make(config, kind, "float32")
    mixed = _make(config, kind, "mixed_bfloat16")
    for to, of in zip(mixed.variables, plain.variables, strict=True):
        to.assign(of)
    batch = {
        name: tf.constant(np.asarray(x)[:, :9], tf.int32)
        for name, x in samples.batch(CONFIGS["bert"]).items()
        if name in ("input_ids", "input_mask", "segment_ids")
    }
    served = inference.make_inference_model(mixed)
    traced = tf.function(served, autograph=False).get_concrete_function(batch)
    nodes = traced.graph.as_graph_def(add_shapes=False)
    assert "DT_BFLOAT16" not in str(nodes)
    expected = inference.make_inference_model(plain)(batch)
    np.testing.assert_array_equal(served(batch), expected)
    # Training can continue.
    trained = mixed(batch)
    assert mixed.compute_dtype == "bfloat16"
    assert np.any(trained != expected)
