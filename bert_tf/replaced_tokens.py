"""Replaced tokens: what ELECTRA is pre-trained on.

A generator fills in words that are masked, and a discriminator tells of each
token whether it is the text's own (Clark et al., 2020,
https://arxiv.org/abs/2003.10555, section 2). Variables have the names of
google-research/electra. Shapes as in modeling.py.
"""

from typing import Any, NamedTuple

from bert_tf import heads, modeling
from bert_tf.encoders import layers, model_inputs, ops

import keras
import tensorflow as tf

# Of what is sampled where nobody gives a seed: so evaluations are repeatable.
_SEED = (2003, 10555)


class TokenHead(keras.layers.Layer):
    """A score for each token: above 0 it is taken for a replaced one."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.hidden_size
        self.activation = ops.ACTIVATIONS[config.hidden_act]
        self.dense = layers.Dense(config, size, size, name="dense")
        self.score = layers.Dense(config, size, 1, name="dense_1")
        # TensorFlow's own, as the original names none.
        self.score.kernel_initializer = keras.initializers.GlorotUniform()

    def build(self, input_shape=None):
        self.dense.build()
        self.score.build()

    def call(self, x):  # [..., D]
        return tf.squeeze(self.score(self.activation(self.dense(x))), -1)


class GeneratorHead(heads.MaskedLMHead):
    """Predicts words, with its variables under ELECTRA's names."""

    def build(self, input_shape=None):
        # There `transform` is no part of their names.
        self.transform.dense.build()
        self.transform.norm.build()
        self.transform.built = True
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocab_size,), initializer="zeros"
        )


class BertReplacedTokens(heads.Model):
    """An encoder that tells of each token whether it was replaced."""

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
        """Returns float32 logits [B, S]; arguments as of `Bert`."""
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        return self._discriminate(inputs, dropout_seed)

    def _discriminate(self, inputs, seed):
        x = self.bert(inputs, seed).sequence  # [B, S, D]
        return tf.cast(self.discriminator_predictions(x), tf.float32)


class Outputs(NamedTuple):
    """What is computed of a batch in pre-training."""

    words: tf.Tensor  # float32 [B, P, V], the generator's logits
    sampled: tf.Tensor  # int32 [B, P], what was put in their places
    is_replaced: tf.Tensor  # float32 [B, S], 1 where that is another word
    tokens: tf.Tensor  # float32 [B, S], the discriminator's logits


class ReplacedTokensPretrainer(BertReplacedTokens):
    """A discriminator, `bert`, beside the generator that makes its inputs."""

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

        The inputs are those of `Bert`, with words masked, and of these int32
        `masked_lm_positions` and `masked_lm_ids` [B, P], the words of the text,
        and `masked_lm_weights` [B, P], 0 for what fills up the predictions. No
        place is there twice.
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
        sampled = sample(
            logits, _seed_of(ids) if seeds[2] is None else seeds[2]
        )
        text = ops.put(rows["input_ids"], places, ids, is_masked)  # [B, S]
        seen = ops.put(rows["input_ids"], places, sampled, is_masked)
        changed = rows | {"input_ids": tf.cast(seen, tf.int32)}
        tokens = self._discriminate(changed, seeds[1])
        is_replaced = tf.cast(seen != text, tf.float32)
        return Outputs(logits, sampled, is_replaced, tokens)


def _seed_of(ids: tf.Tensor) -> tf.Tensor:
    """Returns a seed, int32 [2], that is a function of what is to be found."""
    total = tf.reduce_sum(tf.cast(ids, tf.int64))
    return tf.random.fold_in(tf.constant(_SEED), total)


def sample(logits: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Draws a word by softmax(logits) for each of [B, P, V]: int32 [B, P].

    No gradient goes through it. The original takes the largest of the logits
    with Gumbel noise added, which has this distribution and draws V numbers for
    each word; on CPUs one is enough.
    """
    shape = tf.shape(logits)
    rows = tf.reshape(tf.stop_gradient(logits), [-1, logits.shape[-1]])
    drawn = tf.random.stateless_categorical(rows, 1, seed, tf.int32)
    # On CPUs that is V where logits are not numbers, and V is no word: the loss
    # has to say what happened, and no lookup.
    drawn = tf.minimum(drawn, logits.shape[-1] - 1)
    return tf.reshape(drawn, shape[:2])
