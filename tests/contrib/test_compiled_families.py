"""Encoders of contrib compute the same in compiled steps, for any length.

tests/contrib/test_elmo.py has its own test, tests/seq2seq encoder-decoders.
"""

from typing import Any

from bert_tf import compiled, heads
from bert_tf.encoders import families
from tests import combinations

import keras
import numpy as np
import pytest
import tensorflow as tf

_ATTENTION = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
}
_LSTM = {"hidden_size": 6, "embedding_size": 6}
_VALUES: dict[str, dict[str, Any]] = {
    "awd_lstm": {"lstm_size": 10, "num_hidden_layers": 2, **_LSTM},
    "bilstm": _LSTM,
    "bilstm_cove": {"hidden_size": 8, "embedding_size": 8},
    "bilstm_lm": {"hidden_size": 8, "embedding_size": 4},
    "esim": _LSTM,
    "left_to_right": _ATTENTION,
    "left_to_right_bilstm": _ATTENTION,
    "openai-gpt": {x: y for x, y in _ATTENTION.items() if x[0] != "i"},
    "textcnn": {"filter_widths": [2, 4], **_LSTM},
    "xlnet": _ATTENTION,
}


def _step(name):
    """Returns a function of tensors: logits and gradients of all variables."""
    keras.utils.set_random_seed(1)
    config = families.from_values(
        {"model_type": name, "vocab_size": 40, **_VALUES[name]}
    )
    model = heads.BertClassifier(families.make(config), 3)
    variables = [v.value for v in model.trained_variables]

    def step(inputs):
        with tf.GradientTape() as tape:
            logits = model(inputs)
            loss = tf.reduce_sum(tf.nn.log_softmax(logits)[:, 0])
        gradients = tape.gradient(loss, variables)
        return [logits, *map(tf.convert_to_tensor, gradients)]

    return step


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", combinations.some(["bilstm", "bilstm_cove", "xlnet"], list(_VALUES))
)
def test_same_logits_and_gradients(name):
    step = _step(name)
    spec = tf.TensorSpec([2, None], tf.int32)
    names = ("input_ids", "input_mask", "segment_ids")
    whole: Any = compiled.whole(step)
    compiled_step = whole.get_concrete_function(dict.fromkeys(names, spec))
    for length in (6, 9):
        mask = np.arange(length) < [[length], [4]]
        ids = np.random.default_rng(1).integers(5, 40, [2, length])
        arrays = ids * mask, mask, (np.arange(length) > 2) & mask
        inputs = {
            x: tf.constant(y, tf.int32)
            for x, y in zip(names, arrays, strict=True)
        }
        found, expected = compiled_step(inputs), step(inputs)
        for one, other in zip(found, expected, strict=True):
            scale = max(np.abs(other).max(), 0.1)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * scale)


def test_each_encoder_of_contrib_is_compared():
    ours = {
        x.name
        for x in families.FAMILIES.values()
        if x.model.__module__.startswith("bert_tf.contrib.")
    }
    others = {"elmo", "encoder-decoder", "vaswani", "bilstm_attention"}
    assert ours - others == _VALUES.keys()
