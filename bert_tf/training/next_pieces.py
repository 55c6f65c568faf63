"""The objectives of left-to-right models: predict the next token.

A bidirectional language model also predicts the previous token.

The training data are masked-word records, which contain the original words.
Shapes: B batch, S sequence length, P predictions per row, V vocabulary.
"""

import dataclasses
from collections.abc import Callable

from bert_tf import losses
from bert_tf.encoders import ops, watching
from bert_tf.training import loop

import keras
import tensorflow as tf

LOSS = "next_piece"
LOSSES = (LOSS,)
BOTH_LOSSES = (LOSS, "previous_piece")

# The features of a batch that an encoder reads.
_INPUTS = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "sequence_ids",
    "position_ids",
)


def objective(
    sizes: Callable[[loop.Batch], dict[str, tf.Tensor]],
) -> loop.Objective:
    """Returns the objective; `sizes` measures a batch for the meter."""

    def weights(batch):
        return {LOSS: tf.reduce_sum(piece_weights(batch))}

    def sums(model, batch, dropout_seed):
        inputs = inputs_of(batch)
        logits = model(inputs, dropout_seed)  # [B, S, V]
        return {LOSS: loss(logits, inputs["input_ids"], batch)}

    return loop.Objective(weights, sums, sizes=sizes)


def both_directions(
    sizes: Callable[[loop.Batch], dict[str, tf.Tensor]],
) -> loop.Objective:
    """Returns the objective of a bidirectional language model, likewise."""

    def weights(batch):
        # As many tokens have a successor as have a predecessor.
        total = tf.reduce_sum(piece_weights(batch))
        return dict.fromkeys(BOTH_LOSSES, total)

    def sums(model, batch, dropout_seed):
        inputs = inputs_of(batch)
        ahead, back = model(inputs, dropout_seed)  # [B, S, V] each
        ids = inputs["input_ids"]
        before = tf.pad(ids[:, :-1], [[0, 0], [1, 0]])
        has_before = piece_weights(batch)[:, :-1]
        has_before = tf.pad(has_before, [[0, 0], [1, 0]])
        found = (
            loss(ahead, ids, batch),
            losses.classification(back, before, has_before),
        )
        return dict(zip(BOTH_LOSSES, found, strict=True))

    return loop.Objective(weights, sums, sizes=sizes)


def inputs_of(batch: loop.Batch) -> dict[str, tf.Tensor]:
    """Returns the encoder's inputs with the original words unmasked."""
    inputs = {n: batch[n] for n in _INPUTS if n in batch}
    return inputs | {"input_ids": original_ids(batch)}


def loss(logits: tf.Tensor, ids: tf.Tensor, batch: loop.Batch) -> losses.Sums:
    """Compares logits [B, S, V] with the token after each of `ids` [B, S]."""
    following = tf.pad(ids[:, 1:], [[0, 0], [0, 1]])
    return losses.classification(logits, following, piece_weights(batch))


def original_ids(batch: loop.Batch) -> tf.Tensor:
    """Returns the token IDs of a batch before masking, [B, S]."""
    ids = batch["input_ids"]
    if "masked_lm_positions" not in batch:
        return ids
    original = ops.put(
        ids,
        batch["masked_lm_positions"],  # [B, P]
        batch["masked_lm_ids"],
        batch["masked_lm_weights"] > 0,  # not padding
    )
    return tf.cast(original, ids.dtype)


def piece_weights(batch: loop.Batch) -> tf.Tensor:
    """1 for positions followed by a token of the same sequence: [B, S].

    All tokens but the first of a sequence are predicted, including [SEP].
    Padding has 0.
    """
    # For GPUs TensorFlow compares int32 on the host.
    sequences = batch.get("sequence_ids", batch["input_mask"])
    sequences = tf.cast(sequences, tf.float32)  # [B, S], 0 for padding
    following = sequences[:, 1:]
    goes_on = (following == sequences[:, :-1]) & (following > 0)
    goes_on = tf.pad(tf.cast(goes_on, tf.float32), [[0, 0], [0, 1]])
    return goes_on * batch["row_weights"][:, tf.newaxis]


# ---- Auxiliary objective -----------------------------------------------------


def auxiliary(
    own: loop.Objective,
    factor: float,
    head: keras.layers.Layer,
    encoder: keras.Model,
) -> loop.Objective:
    """Adds the next-token loss, times a factor, to the objective of a task.

    This is GPT's auxiliary objective (Radford et al., 2018, section 3.2), whose
    factor is 0.5. Both objectives share one pass of the encoder. The variables
    of the head, except for the words, belong to the objective: exports do not
    need them.

    Args:
        own: The objective of the task, over rows of texts.
        factor: The factor of the next-token loss.
        head: (hidden states [B, S, D], words [V, E]) -> logits [B, S, V].
        encoder: The encoder of the task's model.
    """

    def weights(batch):
        pieces = tf.reduce_sum(piece_weights(batch))
        return own.weights(batch) | {LOSS: pieces}

    def sums(model, batch, dropout_seed):
        with watching.keeping_sequence(encoder) as kept:
            found = own.sums(model, batch, dropout_seed)
        logits = head(kept[0], encoder.embeddings.word_embeddings)
        logits = tf.cast(logits, tf.float32)  # [B, S, V]
        return found | {LOSS: loss(logits, batch["input_ids"], batch)}

    return dataclasses.replace(
        own,
        weights=weights,
        sums=sums,
        factors={**own.factors, LOSS: factor},
        own=(*own.own, *head.variables),
    )
