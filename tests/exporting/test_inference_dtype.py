"""What is served computes in float32, whatever it was trained in."""

from bert_tf import heads, modeling
from bert_tf.encoders import (
    bilstm,
    bilstm_lm,
    families,
    layers,
    left_to_right,
    left_to_right_bilstm,
    textcnn,
)
from bert_tf.exporting import inference
from tests import interop_samples as samples

import keras
import numpy as np
import pytest
import tensorflow as tf

CONFIGS = {
    "bert": modeling.BertConfig(**samples.SMALL),
    "left_to_right": left_to_right.LeftToRightConfig(**samples.SMALL),
    "left_to_right_bilstm": left_to_right_bilstm.LeftToRightBiLstmConfig(
        **samples.SMALL
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
        # Tokens have no vectors of their own in TextCNN.
        if name != "textcnn" or kind is heads.BertClassifier
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
    served = inference.of(mixed)
    traced = tf.function(served).get_concrete_function(batch)
    nodes = traced.graph.as_graph_def(add_shapes=False)
    assert "DT_BFLOAT16" not in str(nodes)
    expected = tf.function(inference.of(plain))(batch)
    np.testing.assert_array_equal(traced(batch), expected)
    # It trains on as before.
    trained = mixed(batch)
    assert mixed.compute_dtype == "bfloat16"
    assert np.any(trained != expected)
