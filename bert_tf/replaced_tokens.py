"""Replaced token detection: the pre-training objective of ELECTRA.

A generator fills in masked words, and a discriminator predicts for each token
whether it is the original one (Clark et al., 2020,
https://arxiv.org/abs/2003.10555, section 2). Variables have the names of
google-research/electra. Shapes as in modeling.py.
"""

from typing import Any, NamedTuple

from bert_tf import heads, modeling
from bert_tf.encoders import layers, model_inputs, ops

import keras
import tensorflow as tf

# Seed of samples if the caller passes none, so that evaluations are repeatable.
_SEED = (2003, 10555)


class TokenHead(keras.layers.Layer):
    """A layer that scores each token: above 0 means replaced."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.hidden_size
        self.activation = ops.ACTIVATIONS[config.hidden_act]
        self.dense = layers.Dense(config, size, size, name="dense")
        self.score = layers.Dense(config, size, 1, name="dense_1")
        # TensorFlow's default, because the original sets none.
        self.score.kernel_initializer = keras.initializers.GlorotUniform()

    def build(self, input_shape=None):
        self.dense.build()
        self.score.build()

    def call(self, x):  # [..., D]
        return tf.squeeze(self.score(self.activation(self.dense(x))), -1)


class GeneratorHead(heads.MaskedLMHead):
    """Predicts words, with variables named as in ELECTRA."""

    def build(self, input_shape=None):
        # There `transform` is not part of the names.
        self.transform.dense.build()
        self.transform.norm.build()
        self.transform.built = True
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocab_size,), initializer="zeros"
        )


class BertReplacedTokens(heads.Model):
    """An encoder with a head that predicts whether each token was replaced."""

    reads_all = True
    reads_pooled = False
    reads_sequence = True

    def __init__(
        self, bert: modeling.Bert, name: str = "replaced_tokens", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        with self._own_policy():
            self.discriminator_predictions = TokenHead(
                bert.config, name="discriminator_predictions"
            )
        self.discriminator_predictions.build()
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, S]; for the arguments see `Bert`."""
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        return discriminate(self, inputs, dropout_seed)


def discriminate(
    model: BertReplacedTokens, inputs: dict[str, tf.Tensor], seed: Any
) -> tf.Tensor:
    """Returns float32 logits [B, S] of inputs that are standard."""
    x = model.bert(inputs, seed).sequence  # [B, S, D]
    return tf.cast(model.discriminator_predictions(x), tf.float32)


class Outputs(NamedTuple):
    """The results for a batch in pre-training."""

    words: tf.Tensor  # float32 [B, P, V], the generator's logits
    sampled: tf.Tensor  # int32 [B, P], the generator's samples
    is_replaced: tf.Tensor  # float32 [B, S], 1 if the sample differs
    tokens: tf.Tensor  # float32 [B, S], the discriminator's logits


class ReplacedTokensPretrainer(BertReplacedTokens):
    """A discriminator, `bert`, with the generator that creates its inputs."""

    def __init__(
        self,
        bert: modeling.Bert,
        generator: modeling.Bert,
        name: str = "pretrainer",
        **kwargs: Any,
    ):
        super().__init__(bert, name=name, **kwargs)
        self.generator: modeling.Bert = generator
        with self._own_policy():
            self.generator_predictions = GeneratorHead(
                generator.config, name="generator_predictions"
            )
        self.generator_predictions.build()

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns `Outputs`.

        The inputs are the inputs of `Bert`, with masked words; int32
        `masked_lm_positions` [B, P], which must be distinct; int32
        `masked_lm_ids` [B, P], the original words; and `masked_lm_weights` [B,
        P], 0 for padding.
        """
        places = tf.cast(inputs["masked_lm_positions"], tf.int32)
        ids = tf.cast(inputs["masked_lm_ids"], tf.int32)
        is_masked = inputs["masked_lm_weights"] > 0  # [B, P]
        rows = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 3)
        x = self.generator(rows, seeds[0], places).sequence  # [B, P, D]
        words = self.bert.embeddings.word_embeddings
        logits = self.generator_predictions(x, words)
        logits = tf.cast(logits, tf.float32)  # [B, P, V]
        seed = seeds[2]
        if seed is None:  # A function of the masked words.
            # In int32, because XLA does not draw with seeds of int64.
            total = tf.reduce_sum(ids)
            seed = tf.random.fold_in(tf.constant(_SEED), total)
        sampled = sample(logits, seed)
        text = ops.put(rows["input_ids"], places, ids, is_masked)  # [B, S]
        seen = ops.put(rows["input_ids"], places, sampled, is_masked)
        changed = rows | {"input_ids": tf.cast(seen, tf.int32)}
        tokens = discriminate(self, changed, seeds[1])
        is_replaced = tf.cast(seen != text, tf.float32)
        return Outputs(logits, sampled, is_replaced, tokens)


def sample(logits: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Samples a word from softmax(logits) for each of [B, P, V]: int32 [B, P].

    It has no gradient. The original takes the argmax of logits with Gumbel
    noise, which has the same distribution but needs V random numbers per word;
    on CPUs, one number is enough.
    """
    shape = tf.shape(logits)
    rows = tf.reshape(tf.stop_gradient(logits), [-1, logits.shape[-1]])
    drawn = tf.random.stateless_categorical(rows, 1, seed, tf.int32)
    # On CPUs, NaN logits give V, which is not a word. The loss must report the
    # NaN, not a failing lookup.
    drawn = tf.minimum(drawn, logits.shape[-1] - 1)
    return tf.reshape(drawn, shape[:2])
