"""Predicts the labels of the words of a batch, and their losses.

Shapes: B batch, S sequence length, C labels.
"""

import functools
from collections.abc import Callable, Mapping

from bert_tf import heads, losses

import tensorflow as tf


@functools.lru_cache(maxsize=1)
def best_labels(
    model: heads.BertTagger, num_labels: int, max_seq_length: int
) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Returns a prediction function for one model, which is traced once."""

    def outputs(batch):
        logits = model(batch)  # [B, S, C]
        is_word = batch["label_weights"] > 0
        entropy, best = (
            tf.reshape(x, tf.shape(is_word))
            for x in losses.cross_entropy(
                tf.reshape(logits, [-1, num_labels]),
                tf.reshape(batch["label_ids"], [-1]),
            )
        )
        # Replicas trim to different lengths, but gather needs equal ones.
        end = max_seq_length - tf.shape(best)[1]
        return {
            "labels": tf.pad(
                tf.where(is_word, best, -1),
                [[0, 0], [0, end]],
                constant_values=-1,
            ),
            "losses": tf.reduce_sum(tf.where(is_word, entropy, 0), axis=1),
        }

    return outputs
