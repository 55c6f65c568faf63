"""The encoder XLNet (Yang et al., 2019, https://arxiv.org/abs/1906.08237).

Attention adds three scores of a query and a key: by their contents, by the
distance between them (Dai et al., 2019, Transformer-XL), and by whether they
are in the same segment. There are no positions, so padding may be at either end
of a row. The last token of a row, <cls>, represents it.

This is the content stream with bidirectional attention, without memory, which
is all that fine-tuning needs. The second stream of pre-training, whose only
variable is `mask_emb`, is in xlnet_pretraining.py.

Every variable's path is its name in the released checkpoints, where the biases
and segment embeddings of all layers are one variable each.

Shapes as in modeling.py; U: distances from S down to 1 - S, 2 S.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bert_tf import modeling
from bert_tf.contrib import students, xlnet_vocabulary
from bert_tf.contrib.xlnet_config import XlnetConfig
from bert_tf.encoders import layers, model_inputs, ops, padding

import keras
import tensorflow as tf

CLS_ID = xlnet_vocabulary.FIRST.index(xlnet_vocabulary.CLS)
SEP_ID = xlnet_vocabulary.FIRST.index(xlnet_vocabulary.SEP)

# ---- Attention --------------------------------------------------------------


def encode_distances(length: tf.Tensor, size: int) -> tf.Tensor:
    """Returns the sinusoids of distances S, ..., 1 - S: [U, D], float32.

    The first half of a vector are sines, the second half cosines.
    """
    distances = tf.cast(tf.range(length, -length, -1), tf.float32)  # [U]
    exponents = tf.range(0, size, 2, dtype=tf.float32) / size  # [D / 2]
    angles = tf.expand_dims(distances, 1) * tf.pow(10000.0, -exponents)
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)


def align(scores: tf.Tensor) -> tf.Tensor:  # [B, N, S, U]
    """Moves the score of each distance to its key: [B, N, S, S].

    Query i has key j at distance i - j, which is column S - i + j.
    """
    B, N, S, U = tf.unstack(tf.shape(scores))
    # Rows that are one shorter move each query one column further.
    scores = tf.reshape(scores, [B, N, U, S])[:, :, 1:]
    return tf.reshape(scores, [B, N, S, U - 1])[..., :S]


class Relations(padding.Rows):
    """Sequences as rows, and how their tokens are related.

    Attributes:
        distances: The encodings of all distances, [U, D].
        differs: 1 where query and key are in different segments, otherwise 0,
            [B, 1, S, S].
    """

    def __init__(
        self, mask: tf.Tensor, distances: tf.Tensor, differs: tf.Tensor
    ):
        super().__init__(mask)
        self.distances = distances
        self.differs = differs

    def content(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the hidden states that keys and values are made of."""
        return x  # [B, S, D]

    def contexts(
        self,
        queries: tf.Tensor,
        dropout_seed: tf.Tensor | None,
        attend: Callable[..., tf.Tensor],
    ) -> tf.Tensor:
        """Returns `attend(queries, mask, dropout_seed)`, [B, N, S, H]."""
        return attend(queries, self.mask, dropout_seed)


class Biases(NamedTuple):
    """A layer's part of the variables that all layers share."""

    content: tf.Tensor  # [N, H], added to queries
    distance: tf.Tensor  # [N, H], likewise
    segment: tf.Tensor  # [N, H], likewise
    segments: tf.Tensor  # [2, N, H], embeddings of: the same, another


class Projection(keras.layers.Layer):
    """A kernel [D, N, H] between hidden states and heads, without a bias."""

    def __init__(self, config: XlnetConfig, **kwargs: Any):
        super().__init__(**kwargs)
        D, N = config.hidden_size, config.num_attention_heads
        self.shape = (D, N, D // N)
        self.initializer = layers.initializer(config)

    def build(self, input_shape=None):
        self.kernel = self.add_weight(
            name="kernel", shape=self.shape, initializer=self.initializer
        )

    def call(self, x):  # [..., S, D]
        """Returns the heads of hidden states, [..., N, S, H]."""
        return tf.einsum("...sd,dnh->...nsh", x, self.kernel)


class Output(Projection):
    """A projection in the other direction."""

    def call(self, x):  # [B, N, S, H]
        """Returns the sum over heads, [B, S, D]."""
        return tf.einsum("bnsh,dnh->bsd", x, self.kernel)


class RelativeAttention(keras.layers.Layer):
    """Self-attention by contents, distances and segments."""

    def __init__(self, config: XlnetConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.q, self.k, self.v, self.r = (
            Projection(config, name=name) for name in ("q", "k", "v", "r")
        )
        self.o = Output(config, name="o")
        self.norm = _norm(config)

    def build(self, input_shape=None):
        for part in (self.q, self.k, self.v, self.o, self.r, self.norm):
            part.build()

    def call(self, x, dropout_seed, layout, biases):  # [B, S, D]
        seeds = ops.split_seed(dropout_seed, 2)
        content = layout.content(x)
        k, v, r = self.k(content), self.v(content), self.r(layout.distances)
        rate = self.config.attention_probs_dropout_prob

        def attend(q, mask, seed):  # [B, N, S, H], [B, 1, 1 or S, S]
            def score(bias, keys):
                queries = q + tf.expand_dims(bias, 1)  # [B, N, S, H]
                return tf.matmul(queries, keys, transpose_b=True)

            same, other = tf.unstack(
                # [B, N, S, H] by [N, 2, H]
                score(biases.segment, tf.transpose(biases.segments, [1, 0, 2])),
                axis=-1,
            )
            # Of the same segment, the score is the same for all keys, and
            # softmax ignores it.
            of_segments = tf.expand_dims(other - same, -1)  # [B, N, S, 1]
            scores = (
                score(biases.content, k)
                + align(score(biases.distance, r))
                + of_segments * layout.differs
            )  # [B, N, S, S]
            scores = tf.cast(scores, tf.float32) / math.sqrt(q.shape[-1])
            probs = tf.cast(tf.nn.softmax(scores + mask), v.dtype)
            return tf.matmul(ops.dropout(probs, rate, seed), v)

        context = layout.contexts(self.q(x), seeds[0], attend)
        y = self.o(context)  # [B, S, D]
        y = ops.dropout(y, self.config.hidden_dropout_prob, seeds[1])
        return self.norm(y + x)


class FeedForward(keras.layers.Layer):
    """The feed-forward network, with dropout inside as well."""

    def __init__(self, config: XlnetConfig, **kwargs: Any):
        super().__init__(**kwargs)
        D, F = config.hidden_size, config.intermediate_size
        self.rate = config.hidden_dropout_prob
        self.activation = ops.ACTIVATIONS[config.hidden_act]
        self.wide = layers.Dense(config, D, F, name="layer_1")
        self.narrow = layers.Dense(config, F, D, name="layer_2")
        self.norm = _norm(config)

    def build(self, input_shape=None):
        for part in (self.wide, self.narrow, self.norm):
            part.build()

    def call(self, x, dropout_seed):  # [B, S, D]
        seeds = ops.split_seed(dropout_seed, 2)
        y = self.activation(self.wide(x))  # [B, S, F]
        y = self.narrow(ops.dropout(y, self.rate, seeds[0]))  # [B, S, D]
        return self.norm(ops.dropout(y, self.rate, seeds[1]) + x)


def _norm(config: XlnetConfig) -> layers.LayerNorm:
    return layers.LayerNorm(
        config.hidden_size, config.layer_norm_eps, name="LayerNorm"
    )


class Layer(keras.layers.Layer):
    """Attention and feed-forward, each with a residual and a norm after it."""

    def __init__(self, config: XlnetConfig, number: int):
        super().__init__(name=f"layer_{number}")
        self.number = number
        self.attention = RelativeAttention(config, name="rel_attn")
        self.feed_forward = FeedForward(config, name="ff")

    def build(self, input_shape=None):
        self.attention.build()
        self.feed_forward.build()

    def call(self, x, dropout_seed, layout, biases):  # [B, S, D]
        seeds = ops.split_seed(dropout_seed, 2)
        x = self.attention(x, seeds[0], layout=layout, biases=biases)
        return self.feed_forward(x, seeds[1])


# ---- The encoder ------------------------------------------------------------


class Words(students.Words):
    """The table of word embeddings, with the original's name."""

    variable_name = "lookup_table"


class MaskedWord(keras.layers.Layer):
    """The vector that the query stream of pre-training starts from."""

    def __init__(self, config: XlnetConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.shape = (1, 1, config.hidden_size)
        self.initializer = layers.initializer(config)

    def build(self, input_shape=None):
        self.vector = self.add_weight(
            name="mask_emb",
            shape=self.shape,
            initializer=self.initializer,
        )
        # Only for optimizers: tapes still record it, for pre-training.
        self.vector.trainable = False
        # Setting `trainable` of a layer, as to unfreeze a model, sets it of all
        # variables that Keras has tracked as trainable.
        self._untrack_variable(self.vector)
        self._track_variable(self.vector)


class Encoder(modeling.Encoder):
    """The stack of layers, and the variables that they share."""

    def __init__(self, config: XlnetConfig, **kwargs: Any):
        L, N = config.num_hidden_layers, config.num_attention_heads
        super().__init__([Layer(config, i) for i in range(L)], **kwargs)
        self.shape = (L, N, config.hidden_size // N)
        self.initializer = layers.initializer(config)

    def build(self, input_shape=None):
        L, N, H = self.shape
        self._shared = [
            self.add_weight(name=name, shape=shape, initializer=initializer)
            for name, shape, initializer in (
                ("r_w_bias", self.shape, self.initializer),
                ("r_r_bias", self.shape, self.initializer),
                ("r_s_bias", self.shape, self.initializer),
                ("seg_embed", (L, 2, N, H), self.initializer),
            )
        ]
        super().build(input_shape)

    def _run(self, layer, x, seed, layout):
        def run(x, seed):
            # Inside, so that recomputed layers have gradients of them.
            shared = (tf.convert_to_tensor(y) for y in self._shared)
            biases = Biases(*(y[layer.number] for y in shared))
            return layer(x, seed, layout=layout, biases=biases)

        return ops.recomputed(run, x, seed) if self.remat else run(x, seed)


class Xlnet(modeling.Bert):
    """XLNet without a head.

    The output `pooled` is computed from the last token of each row.
    """

    config: XlnetConfig
    scope = "model"
    can_fuse_attention = False

    def make_parts(self):
        config = self.config
        self.embeddings = Words(config, name="word_embedding")
        self.masked_word = MaskedWord(config, name="mask_emb")
        self.encoder = Encoder(config, name="transformer")
        # The released name, with its spelling.
        self.pooler = modeling.Pooler(config, name="sequnece_summary")
        self.pooler.dense.name = "summary"

    def build_parts(self):
        with keras.name_scope("transformer"):
            self.embeddings.build()
            self.masked_word.build()
        self.encoder.build()
        self.pooler.build()

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert.

        <cls> (id 3) always is in a separate segment, as in the original's rows.
        """
        inputs = model_inputs.standard(inputs)
        self._check_length(inputs["input_ids"].shape[1])
        model_inputs.check_one_sequence(inputs)
        model_inputs.check_no_positions(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 4)
        rate = self.config.hidden_dropout_prob
        x = inputs.get("inputs_embeds")
        x = self.embeddings(inputs["input_ids"]) if x is None else x
        x = ops.dropout(tf.cast(x, self.compute_dtype), rate, seeds[0])
        # All rows have the same dropout of distances.
        distances = ops.dropout(self.distances(inputs), rate, seeds[1])
        layout = Relations(self.mask(inputs), distances, self.differ(inputs))
        outputs = self.encoder(x, seeds[2], layout=layout)
        sequence = ops.dropout(outputs[-1], rate, seeds[3])  # [B, S, D]
        last = model_inputs.last_tokens(inputs["input_mask"])  # [B, 1]
        pooled = self.pooler(ops.gather_rows(sequence, last)[:, 0])  # [B, D]
        sequence = ops.gather_rows(sequence, positions)  # [B, S or R, D]
        return modeling.BertOutputs(
            sequence, pooled, x, [*outputs[:-1], sequence]
        )

    def distances(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the encodings of all distances in rows, [U, D]."""
        length = tf.shape(inputs["input_ids"])[1]
        encoded = encode_distances(length, self.config.hidden_size)
        return tf.cast(encoded, self.compute_dtype)

    def differ(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns 1 for pairs of different segments, else 0, [B, 1, S, S]."""
        is_cls = inputs["input_ids"] == CLS_ID
        of_cls = xlnet_vocabulary.CLS_SEGMENT
        segments = tf.where(is_cls, of_cls, inputs["segment_ids"])
        # For GPUs TensorFlow compares int32 on the host.
        segments = tf.expand_dims(tf.cast(segments, tf.float32), 1)  # [B, 1, S]
        differs = tf.expand_dims(segments, 3) != tf.expand_dims(segments, 2)
        return tf.cast(differs, self.compute_dtype)
