"""The loss of encoder-decoders by its formula."""

from bert_tf.seq2seq import seq2seq_objective

import numpy as np
import pytest
import tensorflow as tf

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=[2, 3, 7]).astype(np.float32)
LABELS = np.array([[1, 2, 0], [6, 3, 4]], np.int32)
WEIGHTS = np.array([[1, 1, 0], [1, 1, 1]], np.float32)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_label_smoothing(smoothing):
    logs = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))
    right = np.eye(7)[LABELS] * (1 - smoothing) + smoothing / 7
    expected = -(right * logs).sum(-1)
    # Logits beyond the vocabulary are padding.
    logits = np.pad(LOGITS, [[0, 0], [0, 0], [0, 2]], constant_values=-1e4)
    found = seq2seq_objective.loss(
        tf.constant(logits), LABELS, WEIGHTS, smoothing, 7
    )
    np.testing.assert_allclose(found["loss"], (WEIGHTS * expected).sum(), 1e-5)
    plain = -np.take_along_axis(logs, LABELS[..., None], -1)[..., 0]
    np.testing.assert_allclose(found["nll"], (WEIGHTS * plain).sum(), 1e-5)


def test_padding_of_targets_does_not_count():
    batch = {
        "target_ids": tf.constant([[2, 7, 3, 0, 0], [2, 7, 8, 3, 0]]),
        "target_mask": tf.constant([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]),
        "row_weights": tf.constant([1.0, 0.0]),
    }
    trimmed = seq2seq_objective.trimmed(batch)
    assert trimmed["target_ids"].shape == [2, 4]
    weights = seq2seq_objective.token_weights(trimmed)
    np.testing.assert_array_equal(weights, [[1, 1, 0], [0, 0, 0]])
