"""What pre-training minimizes: masked words, and what two segments have to do.

Shapes:
- B: batch       P: predictions per row     V: vocabulary
- K: sequences per row, 1 where they are not packed
"""

from collections.abc import Sequence

from bert_tf import losses, training

import keras
import tensorflow as tf

# The objective of the data -> what the loss over two segments is called.
_SENTENCES = {"nsp": "next_sentence", "sop": "sentence_order", "none": None}
# Trained by that loss alone.
_OF_SENTENCES = ("bert/pooler/", "cls/seq_relationship/")


def objective(kind: str) -> training.Objective:
    """Returns what to minimize on data made for "nsp", "sop" or "none"."""
    sentences = _SENTENCES[kind]

    def weights(batch):
        totals = {"masked_lm": tf.reduce_sum(_mask_weights(batch))}
        if sentences is not None:
            totals[sentences] = tf.reduce_sum(_sentence_weights(batch))
        return totals

    def sums(model, batch, dropout_seed):
        words, orders = model(batch, dropout_seed)  # [B, P, V], [B, 2] or so
        found = {
            "masked_lm": losses.classification(
                words, batch["masked_lm_ids"], _mask_weights(batch)
            )
        }
        if sentences is not None:
            labels = batch["next_sentence_labels"]  # [B, K]
            found[sentences] = losses.classification(
                tf.reshape(orders, [-1, labels.shape[1], 2]),
                labels,
                _sentence_weights(batch),
            )
        return found

    return training.Objective(weights, sums)


def trained_variables(
    model: keras.Model, kind: str
) -> Sequence[keras.Variable]:
    """Returns what `objective` trains; the rest of the model stays as it is."""
    variables = model.trainable_variables
    if _SENTENCES[kind] is not None:
        return variables
    return [v for v in variables if not v.path.startswith(_OF_SENTENCES)]


def _mask_weights(batch: training.Batch) -> tf.Tensor:
    """1 for real predictions of real rows, else 0, [B, P]."""
    return batch["masked_lm_weights"] * batch["row_weights"][:, tf.newaxis]


def _sentence_weights(batch: training.Batch) -> tf.Tensor:
    """1 for real sequences of real rows, else 0, [B, K]."""
    weights = batch["row_weights"][:, tf.newaxis]
    if "next_sentence_weights" in batch:
        weights *= batch["next_sentence_weights"]
    return weights
