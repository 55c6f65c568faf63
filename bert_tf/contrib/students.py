"""The common base of encoders that are not transformers.

Shapes as in modeling.py, and E: size of the word vectors.
"""

from typing import Any

from bert_tf import modeling
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.encoders import layers, model_inputs, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf


class Words(keras.layers.Layer):
    """The table of word vectors, without positions or segments."""

    variable_name = "word_embeddings"

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.shape = (config.vocab_size, config.embedding_size)
        self.initializer = layers.initializer(config)

    def build(self, input_shape=None):
        self.word_embeddings = self.add_weight(
            name=self.variable_name,
            shape=self.shape,
            initializer=self.initializer,
        )

    def call(self, input_ids):  # [B, S]
        words = tf.convert_to_tensor(self.word_embeddings)  # [V, E]
        return ops.embed(words, input_ids)  # [B, S, E]


class Student(modeling.Bert):
    """An encoder of sequences of words, with the interface of BERT.

    Segment IDs are ignored unless a class reads them: separator tokens mark the
    two texts of a pair. Padding may be before or after the tokens of a row.
    """

    config: StudentConfig

    def read(self, inputs: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns IDs, int32 [B, S], and the mask of tokens: 0 or 1 [B, S].

        Raises InputError for inputs that the model can't read.
        """
        if "inputs_embeds" in inputs:
            raise InputError(
                "`inputs_embeds` are for transformers: this model reads "
                "`input_ids` only. Received: inputs_embeds, model_type="
                f"{self.config.model_type}"
            )
        inputs = model_inputs.standard(inputs)
        ids = inputs["input_ids"]
        self._check_length(ids.shape[1])
        model_inputs.check_one_sequence(inputs)
        model_inputs.check_no_positions(inputs)
        return ids, tf.cast(inputs["input_mask"] != 0, self.compute_dtype)


def next_to(mask: tf.Tensor, places: int) -> tf.Tensor:
    """Returns the mask [B, S] shifted: entry i is `mask[:, i + places]`.

    `places` may be negative; entries outside the sequence are 0.
    """
    before, behind = max(-places, 0), max(places, 0)
    mask = tf.pad(mask, [[0, 0], [before, behind]])
    length = tf.shape(mask)[1] - abs(places)
    return mask[:, behind : behind + length]
