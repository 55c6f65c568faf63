"""The decoder, and the encoder-decoder model.

Shapes as in modeling.py, and T: length of targets; K: targets for each source,
which are separate rows, [B * K, T].
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from bert_tf import heads, modeling
from bert_tf.contrib import encoder_decoders
from bert_tf.encoders import families, layers, model_inputs, ops, padding
from bert_tf.errors import InputError
from bert_tf.seq2seq import beam_search

import keras
import tensorflow as tf

# Keys and values of a layer, [B, N, S, H] each.
KeysValues = tuple[tf.Tensor, tf.Tensor]


# ---- Layers ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Source:
    """What tokens of the targets attend to.

    Attributes:
        keys: Of the source's tokens, [B, N, S, H]; `values` likewise.
        mask: Added to their scores, [B, 1, 1, S].
    """

    keys: tf.Tensor
    values: tf.Tensor
    mask: tf.Tensor


class CrossAttention(layers.Attention):
    """Attention of the target's tokens to the source's, and its projection."""

    def keys_and_values(self, memory: tf.Tensor) -> KeysValues:
        """Returns what all target tokens attend to, of the encoder's output.

        The output is [B, S, D].
        """
        own = self.self_attention
        (keys,) = own.split_heads(own.key(memory))
        (values,) = own.split_heads(own.value(memory))
        return keys, values

    def call(self, x, dropout_seed, layout):
        """Returns [B * K, T, D], as `x`; the layout is a `Source`."""
        seeds = ops.split_seed(dropout_seed, 2)
        # Targets of the same source are queries of one row, as they have the
        # same keys.
        rows = tf.reshape(x, [tf.shape(layout.keys)[0], -1, x.shape[-1]])
        own = self.self_attention
        (queries,) = own.split_heads(own.query(rows))
        queries /= math.sqrt(queries.shape[-1])
        rate = own.config.attention_probs_dropout_prob
        context = ops.attend(
            *(queries, layout.keys, layout.values, layout.mask, rate, seeds[0])
        )
        context = tf.reshape(own.join_heads(context), tf.shape(x))
        return self.residual(context, x, seeds[1])


class DecoderLayer(keras.layers.Layer):
    """Self-attention, cross-attention and feed-forward, each with its norm."""

    def __init__(
        self,
        config: modeling.BertConfig,
        shared: layers.TransformerLayer | None,
        **kwargs: Any,
    ):
        """Uses the parts of a layer of the encoder, if one is passed."""
        super().__init__(**kwargs)
        if shared is None:
            self.attention = layers.Attention(config, name="attention")
            self.intermediate = layers.Intermediate(config, name="intermediate")
            self.residual = layers.Residual(
                config, config.intermediate_size, name="output"
            )
        else:
            self.attention = shared.attention
            self.intermediate = shared.intermediate
            self.residual = shared.residual
        self.crossattention = CrossAttention(config, name="crossattention")

    def build(self, input_shape=None):
        for part in (self.attention, self.intermediate, self.residual):
            if not part.built:
                part.build()
        self.crossattention.build()

    def call(self, x, dropout_seed, layout, source):
        """Returns [B * K, T, D], as `x`; see CrossAttention.call."""
        seeds = ops.split_seed(dropout_seed, 3)
        x = self.attention(x, seeds[0], layout=layout)
        x = self.crossattention(x, seeds[1], layout=source)
        return self.residual(self.intermediate(x), x, seeds[2])


class Cache(padding.Rows):
    """The layout of a target's next token, which sees all before it.

    Attributes:
        keys: Of the tokens so far, [B * K, N, T, H]; `values` likewise.
    """

    def __init__(self, keys: tf.Tensor, values: tf.Tensor):
        super().__init__(tf.zeros([1, 1, 1, 1]))
        self.keys, self.values = keys, values

    def attend(self, q, k, v, rate, seed):
        """Adds the keys and values of the token, and attends to all."""
        self.keys = tf.concat([self.keys, k], axis=2)
        self.values = tf.concat([self.values, v], axis=2)
        return ops.attend(q, self.keys, self.values, self.mask, rate, seed)


@dataclasses.dataclass(frozen=True)
class Memory:
    """What the decoder reads of a source.

    Attributes:
        keys_values: Of each layer.
        mask: Added to scores of source tokens, [B, 1, 1, S].
    """

    keys_values: Sequence[KeysValues]
    mask: tf.Tensor


class Decoder(keras.layers.Layer):
    """Predicts the token after each token of a target."""

    def __init__(self, bert: modeling.Bert, **kwargs: Any):
        """Shares what the config of the encoder says with the encoder."""
        super().__init__(**kwargs)
        self.config = config = encoder_decoders.checked(bert.config)
        shares_all = config.shared == "all"
        self.embeddings = (
            bert.embeddings_class(config, config.hidden_size, name="embeddings")
            if config.shared == "none"
            else bert.embeddings
        )
        self.layers = [
            DecoderLayer(
                config, layer if shares_all else None, name=f"layer_{i}"
            )
            for i, layer in enumerate(bert.encoder.layers)
        ]
        kind = heads.MaskedLMHead if config.has_transform else heads.OutputBias
        self.predictions = kind(config, name="predictions")

    def build(self, input_shape=None):
        for part in (self.embeddings, *self.layers, self.predictions):
            if not part.built:
                part.build()

    def memory(self, sequence: tf.Tensor, input_mask: tf.Tensor) -> Memory:
        """Returns what it reads of the encoder's output [B, S, D]."""
        return Memory(
            [x.crossattention.keys_and_values(sequence) for x in self.layers],
            modeling.additive_mask(input_mask),
        )

    def hidden(
        self,
        ids: tf.Tensor,
        memory: Memory,
        dropout_seed: tf.Tensor | None = None,
        position: tf.Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> tf.Tensor:
        """Returns the last layer's output, [B * K, T, D].

        Args:
            ids: The tokens, [B * K, T].
            memory: The source.
            dropout_seed: int32 [2], or None for no dropout.
            position: The position of the first token, by default 0; with
                `caches` only, for T = 1.
            caches: Of each layer, the tokens before. They get this one.
        """
        seeds = ops.split_seed(dropout_seed, len(self.layers) + 1)
        places = None
        layouts: Sequence[padding.Rows]
        if caches is None:
            mask = modeling.causal_mask(tf.shape(ids)[1])
            layouts = [padding.Rows(mask)] * len(self.layers)
        else:
            places = tf.zeros_like(ids) + position
            layouts = caches
        x = self.embeddings(ids, tf.zeros_like(ids), seeds[0], places)
        for layer, pair, seed, layout in zip(
            self.layers, memory.keys_values, seeds[1:], layouts, strict=True
        ):
            source = Source(*pair, memory.mask)
            x = layer(x, seed, layout=layout, source=source)
        return x

    def first_caches(
        self, memory: Memory, targets: tf.Tensor
    ) -> beam_search.Caches:
        """Returns the caches of B * K `targets` before their first token."""
        _, heads_count, _, size = memory.keys_values[0][0].shape
        none = tf.zeros([targets, heads_count, 0, size])
        none = tf.cast(none, memory.keys_values[0][0].dtype)
        return [(none, none) for _ in self.layers]

    def step(
        self,
        ids: tf.Tensor,
        position: tf.Tensor,
        memory: Memory,
        caches: beam_search.Caches,
    ) -> tuple[tf.Tensor, beam_search.Caches]:
        """Returns `hidden` of one more token, [B * K, 1, D], and its caches.

        The tokens are [B * K, 1], all at the same `position`.
        """
        own = [Cache(*pair) for pair in caches]
        x = self.hidden(ids, memory, None, position, caches=own)
        return x, [(cache.keys, cache.values) for cache in own]

    def logits(self, x: tf.Tensor) -> tf.Tensor:  # [B, T, D]
        """Returns float32 logits [B, T, V]."""
        words = tf.convert_to_tensor(self.embeddings.word_embeddings)
        return tf.cast(self.predictions(x, words), tf.float32)


# ---- The model ---------------------------------------------------------------


class Seq2Seq(heads.Model):
    """Encoder and decoder.

    The decoder is a `Decoder` unless the encoder's family has another one, with
    the methods `memory`, `hidden`, `logits`, `first_caches` and `step`.

    Attributes:
        search: How targets are found; needed where none are passed.
    """

    reads_all = True
    reads_pooled = False
    reads_sequence = True
    has_estimates = False
    search: beam_search.Search | None = None

    def __init__(
        self, bert: modeling.Bert, name: str = "seq2seq", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        with self._own_policy():
            kind = families.find(bert.config).decoder or Decoder
            self.decoder = kind(bert, name="decoder")
        self.decoder.build()
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns the logits of targets, or without targets the best ones.

        Args:
            inputs: As for `Bert`; and `target_ids` int32 [B, T], which begin
                with the start token, or not.
            dropout_seed: int32 [2], or None for no dropout.
            training: Whether to draw a dropout seed if `dropout_seed` is None.

        Returns:
            float32 [B, T, V], the logits of the token after each target token;
            without `target_ids` what `beam_search.find` returns.
        """
        targets = inputs.get("target_ids")
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 2)
        sequence = self.bert(inputs, seeds[0]).sequence  # [B, S, D]
        memory = self.decoder.memory(sequence, inputs["input_mask"])
        if targets is not None:
            x = self.decoder.hidden(targets, memory, seeds[1])  # [B, T, D]
            return self.decoder.logits(x)
        if self.search is None:
            raise InputError(
                "Set the model's `search`, or pass `target_ids`. "
                f"Received: {', '.join(sorted(inputs))}"
            )
        count = tf.shape(sequence)[0]
        first = self.decoder.first_caches(memory, count * self.search.beams)
        return beam_search.find(
            beam_search.Predictor(self._predict(memory), first),
            count,
            self.search,
        )

    def _predict(self, memory):
        """Returns a function that predicts the next token of each target."""

        def predict(ids, position, caches):  # [B * K, T]
            if not caches:
                x = self.decoder.hidden(ids, memory)[:, -1:]
                return self.decoder.logits(x)[:, 0], caches
            x, caches = self.decoder.step(ids[:, -1:], position, memory, caches)
            return self.decoder.logits(x)[:, 0], caches

        return predict
