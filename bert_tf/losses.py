"""Losses and metrics as sums, divided once at the end by summed weights.

Each function takes logits and labels and returns a dict of float32 scalars;
`loss` is what training minimizes. Sums of parts of a batch add up to the sums
of the whole, so replicas and micro-batches need no care.

Shapes: B batch, P predictions per sequence, C classes, V vocabulary.
"""

import tensorflow as tf

Sums = dict[str, tf.Tensor]


def classification(
    logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> Sums:
    """Cross entropy and correct answers, each weighted, summed.

    Args:
        logits: float32 [..., C].
        labels: int32 [...].
        weights: float32 [...]; 0 leaves an entry out.
    """
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    best = tf.argmax(logits, axis=-1, output_type=labels.dtype)
    correct = tf.cast(best == labels, tf.float32)
    return {
        "loss": tf.reduce_sum(weights * entropy),
        "accuracy": tf.reduce_sum(weights * correct),
    }


def regression(
    scores: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> Sums:
    """Squared error, weighted, summed; all arguments float32 [B]."""
    return {"loss": tf.reduce_sum(weights * (scores - labels) ** 2)}
