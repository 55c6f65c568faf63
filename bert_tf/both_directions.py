"""A bidirectional language model: predicts the next and the previous token.

Shapes as in modeling.py.
"""

from typing import Any

from bert_tf import heads, modeling
from bert_tf.encoders import model_inputs
from bert_tf.errors import InputError

import keras
import tensorflow as tf

HEAD = "both_directions"


class BothDirections(heads.Model):
    """A language model in both directions, like ELMo's (Peters et al., 2018).

    In the encoder's output for a token, the first half depends on the tokens
    before it, and the second half on the tokens after it. A single head
    predicts from each half alone, with the other half zero. So both directions
    share the layer norm, the biases and the word embeddings.
    """

    reads_all = True
    reads_pooled = False
    reads_sequence = True

    def __init__(self, bert: modeling.Bert, name: str = HEAD, **kwargs: Any):
        super().__init__(bert, name=name, **kwargs)
        config = bert.config
        if config.pretraining_head != HEAD:
            raise InputError(
                "Pieces on both sides are predicted by encoders that read them "
                "apart. Give a config with model_type=bilstm_lm. Received: "
                f"model_type={config.model_type}"
            )
        with self._own_policy():
            self.both_directions = heads.MaskedLMHead(config, name=HEAD)
        with keras.name_scope("cls"):
            self.both_directions.build()
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits of the tokens after and before each position.

        Both are [B, S, V]. For the arguments see `Bert`.
        """
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        x = self.bert(inputs, dropout_seed).sequence  # [B, S, D]
        words = self.bert.embeddings.word_embeddings
        ahead, back = tf.split(x, 2, axis=-1)
        logits = [
            self.both_directions(tf.concat(halves, axis=-1), words)
            for halves in (
                [ahead, tf.zeros_like(back)],
                [tf.zeros_like(ahead), back],
            )
        ]
        return [tf.cast(x, tf.float32) for x in logits]
