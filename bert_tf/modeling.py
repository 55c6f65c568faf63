"""The BERT encoder (Devlin et al., 2018, https://arxiv.org/abs/1810.04805).

Shapes:
- B: batch       S: sequence length     D: hidden size      N: attention heads
- R: places whose output is read
- H: head size, D = N * H               F: feed-forward size
- V: vocabulary  T: token types         L: layers
- M: max_position_embeddings

Layers are named so that every variable's path is its name in the released
checkpoints, for example bert/encoder/layer_0/attention/self/query/kernel.
Renaming a layer breaks loading. Layers are built where they are made, so all
variables exist, with these names, before any data is seen.

Dropout takes its randomness as an argument: `dropout_seed`, an int32 [2]
tensor, or None for no dropout. The same seed gives the same masks.
"""

import math
from typing import Any, NamedTuple

from bert_tf import configuration, functions, layouts

import keras
import tensorflow as tf

# Under the name that the original gives it.
BertConfig = configuration.BertConfig
MULTI_LABEL = configuration.MULTI_LABEL

# ---- Small layers -----------------------------------------------------------


def initializer(config: BertConfig) -> keras.initializers.Initializer:
    """The original's: normal, cut off at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


class Dense(keras.layers.Layer):
    """`x @ kernel + bias`; kernel [in_size, out_size]."""

    def __init__(
        self, config: BertConfig, in_size: int, out_size: int, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.shape = (in_size, out_size)
        self.kernel_initializer = initializer(config)

    def build(self, input_shape=None):
        self.kernel = self.add_weight(
            name="kernel",
            shape=self.shape,
            initializer=self.kernel_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=self.shape[1:], initializer="zeros"
        )

    def call(self, x):  # [..., in_size]
        return functions.affine(x, self.kernel, self.bias)  # [..., out_size]


class LayerNorm(keras.layers.Layer):
    """Layer normalization (Ba et al., 2016), computed in float32."""

    def __init__(self, size: int, epsilon: float, **kwargs: Any):
        super().__init__(**kwargs)
        self.size = size
        self.epsilon = epsilon

    def build(self, input_shape=None):
        self.beta = self.add_weight(
            name="beta",
            shape=(self.size,),
            initializer="zeros",
            autocast=False,
        )
        self.gamma = self.add_weight(
            name="gamma",
            shape=(self.size,),
            initializer="ones",
            autocast=False,
        )

    def call(self, x):  # [..., D]
        y = functions.normalize(
            tf.cast(x, tf.float32),
            tf.convert_to_tensor(self.gamma),
            tf.convert_to_tensor(self.beta),
            self.epsilon,
        )
        return tf.cast(y, x.dtype)


# ---- Embeddings -------------------------------------------------------------


class Embeddings(keras.layers.Layer):
    """Sums word, token-type and position embeddings, then normalizes."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.norm = LayerNorm(
            config.hidden_size, config.layer_norm_eps, name="LayerNorm"
        )

    def build(self, input_shape=None):
        for name, rows in (
            ("word_embeddings", self.config.vocab_size),
            ("token_type_embeddings", self.config.type_vocab_size),
            ("position_embeddings", self.config.max_position_embeddings),
        ):
            table = self.add_weight(
                name=name,
                shape=(rows, self.config.hidden_size),
                initializer=initializer(self.config),
            )
            setattr(self, name, table)
        self.norm.build()

    def call(self, input_ids, segment_ids, dropout_seed, position_ids=None):
        """Returns [B, S, D]; all ids are [B, S]."""
        config = self.config
        words = tf.convert_to_tensor(self.word_embeddings)  # [V, D]
        x = functions.embed(words, input_ids)  # [B, S, D]
        # Few token types: a one-hot product is faster than a gather on TPUs.
        types = tf.one_hot(segment_ids, config.type_vocab_size, dtype=x.dtype)
        table = tf.convert_to_tensor(self.token_type_embeddings)  # [T, D]
        flat = tf.reshape(types, [-1, config.type_vocab_size])
        x += tf.reshape(tf.matmul(flat, table), tf.shape(x))
        positions = tf.convert_to_tensor(self.position_embeddings)  # [M, D]
        if position_ids is None:
            x += positions[: tf.shape(input_ids)[1]]  # [S, D], for every row
        else:
            x += functions.embed(positions, position_ids)
        return functions.dropout(
            self.norm(x), config.hidden_dropout_prob, dropout_seed
        )


# ---- Encoder ----------------------------------------------------------------


def additive_mask(input_mask: tf.Tensor) -> tf.Tensor:  # [B, S]
    """Returns 0 for tokens and -10000 for padding, [B, 1, 1, S].

    Added to the scores it makes the softmax of padding exactly zero: float32
    underflows below exp(-104).
    """
    padding = 1 - tf.cast(input_mask, tf.float32)
    return -10000.0 * padding[:, tf.newaxis, tf.newaxis, :]


def block_diagonal_mask(sequence_ids: tf.Tensor) -> tf.Tensor:  # [B, S]
    """Like `additive_mask`, -10000 for the other sequences: [B, 1, S, S]."""
    # For GPUs TensorFlow compares int32 on the host.
    sequence_ids = tf.cast(sequence_ids, tf.float32)
    queries = sequence_ids[:, tf.newaxis, :, tf.newaxis]
    keys = sequence_ids[:, tf.newaxis, tf.newaxis, :]
    return -10000.0 * tf.cast(queries != keys, tf.float32)


class SelfAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention (Vaswani et al., 2017)."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        size = config.hidden_size
        self.query = Dense(config, size, size, name="query")
        self.key = Dense(config, size, size, name="key")
        self.value = Dense(config, size, size, name="value")

    def build(self, input_shape=None):
        for layer in (self.query, self.key, self.value):
            layer.build()

    def call(self, x, queries, dropout_seed, layout):
        """Returns what each of the queries gathers from `x`, shaped as they.

        Args:
            x: [B, S, D], or as the layout has it.
            queries: Those of `x` that attend: `layout.queries(x)`.
            dropout_seed: int32 [2] or None.
            layout: Where the tokens lie.
        """
        # One product for the three: D is small beside what fills a processor.
        if queries is x:
            y = self._project(x, self.query, self.key, self.value)
            q, k, v = self._heads(layout.to_rows(y))
        else:
            (q,) = self._heads(self._project(queries, self.query))
            y = self._project(x, self.key, self.value)
            k, v = self._heads(layout.to_rows(y))
        rate = self.config.attention_probs_dropout_prob
        context = functions.attend(q, k, v, layout.mask, rate, dropout_seed)
        context = tf.transpose(context, [0, 2, 1, 3])
        batch, length = tf.unstack(tf.shape(context)[:2])
        return layout.from_rows(
            tf.reshape(context, [batch, length, self.config.hidden_size])
        )

    def _project(self, x, *layers):
        """Applies dense layers in one product: side by side, [..., D]."""
        # Weights are fewer than queries, or scores, to scale.
        size = self.config.hidden_size // self.config.num_attention_heads
        scales = [
            1 / math.sqrt(size) if layer is self.query else 1
            for layer in layers
        ]
        pairs = list(zip(layers, scales, strict=True))
        kernel = tf.concat([layer.kernel * s for layer, s in pairs], axis=1)
        bias = tf.concat([layer.bias * s for layer, s in pairs], axis=0)
        return functions.affine(x, kernel, bias)

    def _heads(self, y):
        """Takes apart what `_project` put together, each [B, N, S, H]."""
        heads = self.config.num_attention_heads
        count = y.shape[-1] // self.config.hidden_size
        size = self.config.hidden_size // heads
        batch, length = tf.unstack(tf.shape(y)[:2])
        y = tf.reshape(y, [batch, length, count, heads, size])
        return tf.unstack(tf.transpose(y, [2, 0, 3, 1, 4]))


class Residual(keras.layers.Layer):
    """Dense, dropout, sum with the block's input, layer norm."""

    def __init__(self, config: BertConfig, in_size: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = config.hidden_dropout_prob
        self.dense = Dense(config, in_size, config.hidden_size, name="dense")
        self.norm = LayerNorm(
            config.hidden_size, config.layer_norm_eps, name="LayerNorm"
        )

    def build(self, input_shape=None):
        self.dense.build()
        self.norm.build()

    def call(self, y, x, dropout_seed):  # [B, S, in_size], [B, S, D]
        return self.norm(
            functions.dropout(self.dense(y), self.rate, dropout_seed) + x
        )


class Attention(keras.layers.Layer):
    """Self-attention and its output projection."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.self_attention = SelfAttention(config, name="self")
        self.residual = Residual(config, config.hidden_size, name="output")

    def build(self, input_shape=None):
        self.self_attention.build()
        self.residual.build()

    def call(self, x, dropout_seed, layout):  # [B, S, D]
        seeds = functions.split_seed(dropout_seed, 2)
        queries = layout.queries(x)
        context = self.self_attention(x, queries, seeds[0], layout=layout)
        return self.residual(context, queries, seeds[1])


class Intermediate(keras.layers.Layer):
    """The widening half of the feed-forward network."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.activation = functions.activation(config.hidden_act)
        self.dense = Dense(
            config, config.hidden_size, config.intermediate_size, name="dense"
        )

    def build(self, input_shape=None):
        self.dense.build()

    def call(self, x):  # [B, S, D]
        return self.activation(self.dense(x))  # [B, S, F]


class TransformerLayer(keras.layers.Layer):
    """Attention and feed-forward, each with a residual and a norm after it."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.attention = Attention(config, name="attention")
        self.intermediate = Intermediate(config, name="intermediate")
        self.residual = Residual(
            config, config.intermediate_size, name="output"
        )

    def build(self, input_shape=None):
        self.attention.build()
        self.intermediate.build()
        self.residual.build()

    def call(self, x, dropout_seed, layout):
        """Returns the output of the layout's queries.

        Args:
            x: [B, S, D], or as the layout has it.
            dropout_seed: int32 [2] or None.
            layout: Where the tokens lie, and which of them are read.
        """
        seeds = functions.split_seed(dropout_seed, 2)
        x = self.attention(x, seeds[0], layout=layout)
        return self.residual(self.intermediate(x), x, seeds[1])


class Encoder(keras.layers.Layer):
    """A stack of transformer layers.

    Attributes:
        remat: Whether the backward pass computes what is inside a layer again,
            with the same dropout, instead of keeping it.
    """

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.remat = False
        self.layers = [
            TransformerLayer(config, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        ]

    def build(self, input_shape=None):
        for layer in self.layers:
            layer.build()

    def call(self, x, dropout_seed, layout, positions=None):  # [B, S, D]
        seeds = functions.split_seed(dropout_seed, len(self.layers))
        outputs = []
        for layer, seed in zip(self.layers[:-1], seeds[:-1], strict=True):
            x = self._run(layer, x, seed, layout)
            outputs.append(layout.to_rows(x))
        if positions is None:
            x = layout.to_rows(self._run(self.layers[-1], x, seeds[-1], layout))
        else:
            # Only there nobody but the caller reads the output.
            layout = layout.reading(positions)
            x = self._run(self.layers[-1], x, seeds[-1], layout)
        return [*outputs, x]  # L times [B, S, D], the last perhaps [B, R, D]

    def _run(self, layer, x, seed, layout):
        if not self.remat:
            return layer(x, seed, layout=layout)
        return functions.recomputed(
            lambda x, seed: layer(x, seed, layout=layout), x, seed
        )


class Pooler(keras.layers.Layer):
    """A tanh layer over the vector of [CLS]."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.hidden_size
        self.dense = Dense(config, size, size, name="dense")

    def build(self, input_shape=None):
        self.dense.build()

    def call(self, x):  # [..., D], vectors of [CLS]
        return tf.tanh(self.dense(x))  # [..., D]


# ---- BERT -------------------------------------------------------------------


class BertOutputs(NamedTuple):
    """What the encoder returns."""

    sequence: tf.Tensor  # [B, S, D] or [B, R, D], the last layer's output
    pooled: tf.Tensor  # [B, D]
    embeddings: tf.Tensor  # [B, S, D], the first layer's input
    layers: list[tf.Tensor]  # L times [B, S, D]; the last is `sequence`


class Bert(keras.Model):
    """BERT without a head.

    Attributes:
        skips_padding: Whether what a layer does for each token by itself is
            done for tokens only: the same numbers in less time, where shapes
            may be others in each batch. What it returns for padding is then
            not to be read.
    """

    def __init__(self, config: BertConfig, name: str = "bert", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.skips_padding = False
        self.embeddings = Embeddings(config, name="embeddings")
        self.encoder = Encoder(config, name="encoder")
        self.pooler = Pooler(config, name="pooler")
        self.build()

    def build(self, input_shape=None):
        self.embeddings.build()
        self.encoder.build()
        self.pooler.build()

    def call(
        self,
        inputs: dict[str, tf.Tensor],
        dropout_seed: tf.Tensor | None = None,
        positions: tf.Tensor | None = None,
    ) -> BertOutputs:
        """Encodes a batch.

        Args:
            inputs: int32 `input_ids`, `input_mask` (1 for tokens, 0 for
                padding) and `segment_ids`, each [B, S]. Where rows hold
                several sequences also `sequence_ids`, their numbers from 1 (0
                for padding), and `position_ids`, which start anew in each.
                Other keys are ignored.
            dropout_seed: int32 [2], or None for no dropout.
            positions: int32 [B, R], the places whose last-layer output is
                read, the first to be pooled. By default all. The rest is not
                computed, which saves most of a layer.
        """
        seeds = functions.split_seed(dropout_seed, 2)
        if "sequence_ids" in inputs:
            mask = block_diagonal_mask(inputs["sequence_ids"])
        else:
            mask = additive_mask(inputs["input_mask"])
        layout = layouts.Rows(mask)
        ids = [inputs["input_ids"], inputs["segment_ids"]]
        position_ids = inputs.get("position_ids")
        if self.skips_padding:
            layout = layouts.Tokens(mask, inputs["input_mask"])
            if position_ids is None:
                position_ids = _numbered(ids[0])
            ids = [layout.joined(x) for x in ids]
            position_ids = layout.joined(position_ids)
        x = self.embeddings(*ids, seeds[0], position_ids)
        layers = self.encoder(x, seeds[1], layout=layout, positions=positions)
        pooled = self.pooler(layers[-1][:, 0])
        return BertOutputs(layers[-1], pooled, layout.to_rows(x), layers)


def _numbered(ids: tf.Tensor) -> tf.Tensor:
    """The position of each place of `ids` [B, S] in its row, [B, S]."""
    return tf.zeros_like(ids) + tf.range(tf.shape(ids)[1], dtype=ids.dtype)
