"""What encoders have in common that are no transformers.

Shapes as in modeling.py, and E: size of the word vectors.
"""

from typing import Any

from bert_tf import modeling
from bert_tf.encoders import layers, model_inputs, ops
from bert_tf.encoders.student_config import StudentConfig

import keras
import tensorflow as tf


class Words(keras.layers.Layer):
    """The vectors of words, and nothing else."""

    def __init__(self, config: StudentConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.shape = (config.vocab_size, config.embedding_size)
        self.initializer = layers.initializer(config)

    def build(self, input_shape=None):
        self.word_embeddings = self.add_weight(
            name="word_embeddings",
            shape=self.shape,
            initializer=self.initializer,
        )

    def call(self, input_ids):  # [B, S]
        words = tf.convert_to_tensor(self.word_embeddings)  # [V, E]
        return ops.embed(words, input_ids)  # [B, S, E]


class Student(modeling.Bert):
    """An encoder of rows of words, called as BERT.

    Segments are not read: the texts of a pair are told apart by the pieces
    between them. Padding stands behind the tokens of a row, or before them.
    """

    config: StudentConfig

    def read(self, inputs: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids, int32 [B, S], and which are tokens: 0 or 1 [B, S].

        It raises InputError for what the model can't read.
        """
        inputs = model_inputs.standard(inputs)
        ids = inputs["input_ids"]
        self._check_length(ids.shape[1])
        model_inputs.check_one_sequence(inputs)
        return ids, tf.cast(inputs["input_mask"] != 0, self.compute_dtype)


def next_to(mask: tf.Tensor, places: int) -> tf.Tensor:
    """Returns the mask [B, S] of the tokens so many places further on.

    Before them, where `places` is negative; beyond the ends there is none.
    """
    before, behind = max(-places, 0), max(places, 0)
    mask = tf.pad(mask, [[0, 0], [before, behind]])
    length = tf.shape(mask)[1] - abs(places)
    return mask[:, behind : behind + length]
