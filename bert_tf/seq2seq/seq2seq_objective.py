"""The objective of encoder-decoders: predict each token of the target.

Shapes as in decoder.py.
"""

from bert_tf import compiled, losses
from bert_tf.training import loop

import tensorflow as tf

LOSS = "target"


def make_objective(label_smoothing: float) -> loop.Objective:
    """Returns the objective over records of text_pairs.

    With label smoothing the loss is `1 - label_smoothing` times the cross
    entropy, plus `label_smoothing` times the mean of the negative
    log-probabilities of all tokens (Szegedy et al., 2016, section 7).
    """

    def weights(batch):
        return {LOSS: tf.reduce_sum(token_weights(batch))}

    def sums(model, batch, dropout_seed):
        batch = trimmed(batch)
        ids = batch["target_ids"]  # [B, T]
        logits = model({**batch, "target_ids": ids[:, :-1]}, dropout_seed)
        size = model.bert.config.vocab_size
        own = (ids[:, 1:], token_weights(batch))
        return {LOSS: loss(logits, *own, label_smoothing, size)}

    return loop.Objective(weights, sums, sizes=_sizes)


def trimmed(batch: loop.Batch) -> loop.Batch:
    """Removes the padding that all targets of a batch have.

    Compiled steps need a fixed length, and keep it.
    """
    if compiled.is_compiled():
        return batch
    longest = tf.reduce_max(tf.reduce_sum(batch["target_mask"], axis=1))
    own = {x: batch[x][:, :longest] for x in ("target_ids", "target_mask")}
    return {**batch, **own}


def token_weights(batch: loop.Batch) -> tf.Tensor:
    """Returns 1 for each token after the first, 0 for padding: [B, T - 1]."""
    mask = tf.cast(batch["target_mask"][:, 1:], tf.float32)
    return mask * batch["row_weights"][:, tf.newaxis]


def loss(
    logits: tf.Tensor,
    labels: tf.Tensor,
    weights: tf.Tensor,
    label_smoothing: float,
    size: int,
) -> losses.Sums:
    """Returns the weighted sums of the loss, cross entropy and accuracy.

    Args:
        logits: float32 [B, T, V or more].
        labels: int32 [B, T].
        weights: float32 [B, T].
        label_smoothing: The share of the labels that is spread over all tokens.
        size: V.
    """
    found = losses.classification(logits, labels, weights)
    found["nll"] = found["loss"]
    if label_smoothing:
        own = logits[..., :size]
        spread = tf.reduce_logsumexp(own, -1) - tf.reduce_mean(own, -1)
        found["loss"] = (1 - label_smoothing) * found["nll"] + (
            label_smoothing * tf.reduce_sum(weights * spread)
        )
    return found


def _sizes(batch: loop.Batch) -> dict[str, tf.Tensor]:
    """Counts the tokens of both texts."""
    lengths = sum(
        tf.reduce_sum(tf.cast(batch[name], tf.float32), axis=1)
        for name in ("input_mask", "target_mask")
    )
    return loop.sizes_of(lengths, tf.reduce_sum(batch["row_weights"]))
