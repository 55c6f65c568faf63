"""BERT with a head for each kind of task.

Shapes as in modeling.py, and:
- P: predictions per sequence           C: classes

Variables of the released checkpoints have their released names; those of
fine-tuned models have the names that the original's scripts gave them.
"""

from typing import Any

from bert_tf import modeling

import keras
import tensorflow as tf


class _Transform(keras.layers.Layer):
    """Dense, activation and layer norm before the vocabulary product."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.hidden_size
        self.activation = modeling.activation(config.hidden_act)
        self.dense = modeling.Dense(config, size, size, name="dense")
        self.norm = modeling.LayerNorm(size, name="LayerNorm")

    def build(self, input_shape=None):
        self.dense.build()
        self.norm.build()

    def call(self, x):  # [..., D]
        return self.norm(self.activation(self.dense(x)))


class MaskedLMHead(keras.layers.Layer):
    """Predicts words with the word embeddings as output weights."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size
        self.transform = _Transform(config, name="transform")

    def build(self, input_shape=None):
        self.transform.build()
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocab_size,), initializer="zeros"
        )

    def call(self, x, words):  # [B, P, D], [V, D]
        x = self.transform(x)
        rows = tf.reshape(x, [-1, x.shape[-1]])  # [B * P, D]
        logits = tf.matmul(rows, words, transpose_b=True)
        logits = tf.nn.bias_add(logits, self.output_bias)
        shape = tf.concat([tf.shape(x)[:2], [self.vocab_size]], axis=0)
        return tf.reshape(logits, shape)  # [B, P, V]


class NextSentenceHead(keras.layers.Layer):
    """Class 0: the second segment follows the first. Class 1: it does not."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape=None):
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, self.config.hidden_size),
            initializer=modeling.initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros"
        )

    def call(self, pooled):  # [B, D]
        logits = tf.matmul(pooled, self.output_weights, transpose_b=True)
        return tf.nn.bias_add(logits, self.output_bias)  # [B, 2]


class PretrainingHeads(keras.layers.Layer):
    """The two heads of pre-training, under the released name `cls`."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.predictions = MaskedLMHead(config, name="predictions")
        self.seq_relationship = NextSentenceHead(
            config, name="seq_relationship"
        )

    def build(self, input_shape=None):
        self.predictions.build()
        self.seq_relationship.build()

    def call(self, x, pooled, words):  # [B, P, D], [B, D], [V, D]
        return self.predictions(x, words), self.seq_relationship(pooled)


class BertPretrainer(keras.Model):
    """BERT with masked words and next sentences (paper, section 3.1)."""

    def __init__(self, config: modeling.BertConfig):
        super().__init__(name="pretrainer")
        self.bert = modeling.Bert(config)
        self.cls = PretrainingHeads(config, name="cls")
        self.cls.build()
        self.built = True

    def call(self, inputs, dropout_seed=None):
        """Returns float32 logits of words [B, P, V] and of sentences [B, 2].

        Args:
            inputs: what `Bert` takes, and int32 `masked_lm_positions` [B, P].
            dropout_seed: int32 [2], or None for no dropout.
        """
        outputs = self.bert(inputs, dropout_seed)
        masked = tf.gather(
            outputs.sequence, inputs["masked_lm_positions"], batch_dims=1
        )  # [B, P, D]
        words = self.bert.embeddings.word_embeddings
        logits, next_sentence = self.cls(masked, outputs.pooled, words)
        return tf.cast(logits, tf.float32), tf.cast(next_sentence, tf.float32)


class BertClassifier(keras.Model):
    """BERT with one linear layer over the pooled output.

    With one class it is a regression: the logit is the score.
    """

    def __init__(self, config: modeling.BertConfig, num_labels: int):
        super().__init__(name="classifier")
        if num_labels < 1:
            raise ValueError(
                "A classifier needs at least one label. "
                f"Received: num_labels={num_labels}"
            )
        self.rate = config.hidden_dropout_prob
        self.num_labels = num_labels
        self.bert = modeling.Bert(config)
        # Made outside any layer's scope: the original's names have no prefix.
        self.output_weights = keras.Variable(
            modeling.initializer(config)((num_labels, config.hidden_size)),
            name="output_weights",
        )
        self.output_bias = keras.Variable(
            tf.zeros([num_labels]), name="output_bias"
        )
        self.built = True

    def call(self, inputs, dropout_seed=None):
        """Returns float32 logits [B, C]; arguments as of `Bert`."""
        seeds = modeling.split_seed(dropout_seed, 2)
        pooled = self.bert(inputs, seeds[0]).pooled  # [B, D]
        pooled = modeling.dropout(pooled, self.rate, seeds[1])
        logits = tf.matmul(pooled, self.output_weights, transpose_b=True)
        return tf.cast(tf.nn.bias_add(logits, self.output_bias), tf.float32)
