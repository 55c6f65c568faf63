"""The encoder of the original Transformer, with sinusoidal positions.

Vaswani et al., 2017, sections 3.4 and 3.5. The layers are BERT's; the
embeddings have no token types and no layer norm, and are scaled by the root of
their size. All
projections have biases.

Shapes as in modeling.py.
"""

import math

from bert_tf import modeling
from bert_tf.encoders import layers, ops

import numpy as np
import tensorflow as tf


def table(positions: int, size: int) -> np.ndarray:
    """Returns the vectors of positions from 0, float32 [positions, size].

    The first half has sines and the second half cosines of the same angles, as
    in Marian; the paper interleaves them.
    """
    number = -(-size // 2)
    rates = 1e4 ** -(np.arange(number) / max(size / 2, 1))
    angles = np.arange(positions)[:, np.newaxis] * rates
    both = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return both[:, :size].astype(np.float32)


class Embeddings(modeling.Embeddings):
    """Sums scaled word embeddings and sinusoidal positions."""

    computes_as_bert = False

    def build(self, input_shape=None):
        self.word_embeddings = self.add_weight(
            name="word_embeddings",
            shape=(self.config.vocab_size, self.size),
            initializer=layers.initializer(self.config),
        )

    def call(
        self,
        input_ids,
        segment_ids,
        dropout_seed,
        position_ids=None,
        inputs_embeds=None,
    ):
        """Returns [B, S, D]; segments are ignored."""
        x = inputs_embeds
        if x is None:
            words = tf.convert_to_tensor(self.word_embeddings)  # [V, D]
            x = ops.embed(words, input_ids)  # [B, S, D]
        x *= math.sqrt(self.size)
        x += tf.cast(self._positions(input_ids, position_ids), x.dtype)
        return ops.dropout(x, self.config.hidden_dropout_prob, dropout_seed)

    @property
    def position_embeddings(self):
        """The vectors of all positions, float32 [M, D]."""
        return table(self.config.max_position_embeddings, self.size)


class Encoder(modeling.Bert):
    """The encoder without a head."""

    embeddings_class = Embeddings
