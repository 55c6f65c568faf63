"""The objective of a bidirectional language model: next and previous tokens.

The training data are masked-word records, as in training/next_pieces.py.
Shapes: B batch, S sequence length, V vocabulary.
"""

from collections.abc import Callable

from bert_tf import losses
from bert_tf.training import loop, next_pieces

import tensorflow as tf

LOSSES = ("next_piece", "previous_piece")


def objective(
    sizes: Callable[[loop.Batch], dict[str, tf.Tensor]],
) -> loop.Objective:
    """Returns the objective; `sizes` measures a batch for the meter."""

    def weights(batch):
        # As many tokens have a successor as have a predecessor.
        total = tf.reduce_sum(next_pieces.piece_weights(batch))
        return dict.fromkeys(LOSSES, total)

    def sums(model, batch, dropout_seed):
        inputs = next_pieces.inputs_of(batch)
        ahead, back = model(inputs, dropout_seed)  # [B, S, V] each
        ids = inputs["input_ids"]
        before = tf.pad(ids[:, :-1], [[0, 0], [1, 0]])
        has_before = next_pieces.piece_weights(batch)[:, :-1]
        has_before = tf.pad(has_before, [[0, 0], [1, 0]])
        return {
            "next_piece": next_pieces.loss(ahead, ids, batch),
            "previous_piece": losses.classification(back, before, has_before),
        }

    return loop.Objective(weights, sums, sizes=sizes)
