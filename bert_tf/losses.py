"""Losses and metrics as sums, divided once at the end by summed weights.

Each function takes logits and labels and returns a dict of float32 scalars;
training minimizes `loss`. The sums of parts of a batch add up to the sums of
the whole, so replicas and micro-batches need no special handling.

Shapes: B batch, P predictions per sequence, C classes, V vocabulary.
"""

from bert_tf import compiled
from bert_tf.encoders import ops

import tensorflow as tf

Sums = dict[str, tf.Tensor]


def classification(
    logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> Sums:
    """Returns the weighted sums of cross entropy and correct answers.

    The logits are float32 [..., C], the labels int32 [...], and the weights
    float32 [...], where 0 excludes an entry.
    """
    labels, weights = tf.reshape(labels, [-1]), tf.reshape(weights, [-1])
    entropy, best = cross_entropy(
        tf.reshape(logits, [-1, logits.shape[-1]]), labels
    )
    correct = tf.cast(best == labels, tf.float32)
    return {
        "loss": tf.reduce_sum(weights * entropy),
        "accuracy": tf.reduce_sum(weights * correct),
    }


def multi_label(
    logits: tf.Tensor,
    labels: tf.Tensor,
    weights: tf.Tensor,
    label_weights: tf.Tensor | float = 1.0,
) -> Sums:
    """Returns the weighted sums of binary cross entropy and exact matches.

    The cross entropy is the mean over labels; a row matches if all its labels
    are right. The logits are float32 [B, C], the labels int32 [B, C], 1 if a
    row has the label, else 0. The weights are float32 [B], where 0 excludes a
    row. `label_weights`, float32 [C], multiply the loss where a row has the
    label.
    """
    entropy = tf.nn.weighted_cross_entropy_with_logits(
        tf.cast(labels, tf.float32), logits, label_weights
    )  # [B, C]
    is_right = tf.reduce_all((logits > 0) == (labels > 0), axis=-1)
    return {
        "loss": tf.reduce_sum(weights * tf.reduce_mean(entropy, axis=-1)),
        "accuracy": tf.reduce_sum(weights * tf.cast(is_right, tf.float32)),
    }


def cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns -log softmax(logits)[label] and the best class of each row.

    They are float32 [B] and int32 [B], for float32 logits [B, C] and int32
    labels [B].
    """
    if compiled.is_compiled():
        return _compiled_cross_entropy(logits, labels)
    return _cross_entropy(logits, labels)


@tf.custom_gradient
def _cross_entropy(logits, labels):
    """Computes cross entropy in few passes over the logits.

    TensorFlow's own kernel for sparse labels takes three times as long on CPUs.
    With a vocabulary as classes, it was the longest part of a step of
    BERT-tiny.
    """
    probabilities = tf.nn.softmax(logits)
    best = tf.cast(ops.best(logits), labels.dtype)

    def chosen(x, classes):
        return tf.gather(x, classes, batch_dims=1)

    # The largest is at least 1 / C, so its logarithm is precise.
    largest = chosen(probabilities, best)
    log_sum = chosen(logits, best) - tf.math.log(largest)

    def gradient(dy, _):
        scaled = probabilities * dy[:, tf.newaxis]
        places = tf.stack([tf.range(tf.size(labels)), labels], axis=-1)
        return tf.tensor_scatter_nd_sub(scaled, places, dy), None

    return (log_sum - chosen(logits, labels), best), gradient


@tf.custom_gradient
def _compiled_cross_entropy(logits, labels):
    """Computes cross entropy without gathers and scatters: they do not fuse."""
    classes = tf.range(tf.shape(logits)[-1], dtype=labels.dtype)
    is_label = labels[:, tf.newaxis] == classes  # [B, C]
    shifted = logits - tf.reduce_max(logits, axis=-1, keepdims=True)
    total = tf.reduce_sum(tf.exp(shifted), axis=-1, keepdims=True)  # [B, 1]
    chosen = tf.reduce_sum(tf.where(is_label, shifted, 0.0), axis=-1)
    best = tf.cast(ops.best(logits), labels.dtype)

    def gradient(dy, _):
        d_logits = tf.exp(shifted) / total - tf.cast(is_label, tf.float32)
        return d_logits * dy[:, tf.newaxis], None

    return (tf.math.log(total[:, 0]) - chosen, best), gradient


def binary(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> Sums:
    """Returns the weighted sums of binary cross entropy and of counts.

    All arguments are float32 of one shape; labels are 1 (positive) or 0, and a
    weight of 0 excludes an entry. Besides the loss and the correct answers, the
    positives, the predicted positives and the true positives are counted.
    """
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
    predicted = tf.cast(logits > 0, tf.float32)
    values = {
        "loss": entropy,
        "accuracy": tf.cast(predicted == labels, tf.float32),
        "positives": labels,
        "predicted": predicted,
        "true_positives": predicted * labels,
    }
    return {n: tf.reduce_sum(weights * x) for n, x in values.items()}


def regression(
    scores: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> Sums:
    """Returns the weighted squared error, summed; arguments are float32 [B]."""
    return {"loss": tf.reduce_sum(weights * (scores - labels) ** 2)}
