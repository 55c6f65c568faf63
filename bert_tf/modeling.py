"""The BERT encoder (Devlin et al., 2018, https://arxiv.org/abs/1810.04805).

Shapes, by the same letters in all files about models:
- B: batch       S: sequence length     D: hidden size      N: attention heads
- H: head size, D = N * H               F: feed-forward size
- V: vocabulary  T: token types         L: layers
- E: size of word embeddings, D in BERT
- M: max_position_embeddings            R: positions whose output is read
- J: tokens of the batch joined in one row, and its padding
- P: predictions per row                C: classes
- K: sequences of a row or a problem: those packed in it, or its choices

Layers are named so that every variable's path is its name in the released
checkpoints, for example bert/encoder/layer_0/attention/self/query/kernel.
Renaming a layer breaks loading. Layers are built where they are made, so all
variables exist, with these names, before any data is seen.

Dropout takes its randomness as an argument: `dropout_seed`, an int32 [2]
tensor, or None for no dropout. The same seed gives the same masks.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bert_tf import compiled, configuration
from bert_tf.encoders import layers, model_inputs, ops, padding
from bert_tf.errors import InputError

import keras
import tensorflow as tf

# Under the name that the original gives it.
BertConfig = configuration.BertConfig
MULTI_LABEL = configuration.MULTI_LABEL

# Twice the mask of padding: if there is only padding before a token, the
# softmax still gives exactly 0 to the tokens after it.
_BEHIND = -20000.0

# ---- Embeddings -------------------------------------------------------------


class Embeddings(keras.layers.Layer):
    """Sums word, token-type and position embeddings, then normalizes.

    Attributes:
        computes_as_bert: Of a class, not of those that derive from it: that it
            may be served in the form that BERT is served in.
    """

    computes_as_bert = True

    def __init__(self, config: BertConfig, size: int, **kwargs: Any):
        """Makes tables of vectors of `size`, D where nothing follows."""
        super().__init__(**kwargs)
        self.config = config
        self.size = size
        self.norm = self.make_norm()

    def make_norm(self) -> keras.layers.Layer:
        """Makes the layer that normalizes the sum."""
        return layers.LayerNorm(
            self.size, self.config.layer_norm_eps, name="LayerNorm"
        )

    def build(self, input_shape=None):
        for name, rows in (
            ("word_embeddings", self.config.vocab_size),
            ("token_type_embeddings", self.config.type_vocab_size),
            ("position_embeddings", self.config.max_position_embeddings),
        ):
            if not rows:
                continue
            table = self.add_weight(
                name=name,
                shape=(rows, self.size),
                initializer=layers.initializer(self.config),
            )
            setattr(self, name, table)
        self.norm.build()

    def call(
        self,
        input_ids,
        segment_ids,
        dropout_seed,
        position_ids=None,
        inputs_embeds=None,
    ):
        """Returns [B, S, D], D the tables' own; all ids are [B, S].

        `inputs_embeds` [B, S, D] replace the word embeddings of the ids.
        """
        if inputs_embeds is None:
            words = tf.convert_to_tensor(self.word_embeddings)  # [V, D]
            x = ops.embed(words, input_ids)  # [B, S, D]
        else:
            x = inputs_embeds
        if self.config.type_vocab_size:
            # Few types: a one-hot product is faster than a gather on TPUs.
            count = self.config.type_vocab_size
            types = tf.one_hot(segment_ids, count, dtype=x.dtype)  # [B, S, T]
            table = tf.convert_to_tensor(self.token_type_embeddings)  # [T, D]
            flat = tf.reshape(types, [-1, count])  # [B * S, T]
            x += tf.reshape(tf.matmul(flat, table), tf.shape(x))
        x += self._positions(input_ids, position_ids)
        return ops.dropout(
            self.norm(x), self.config.hidden_dropout_prob, dropout_seed
        )

    def _positions(self, input_ids, position_ids):
        """Returns position embeddings [B, S, D], or [S, D] for every row."""
        table = tf.convert_to_tensor(self.position_embeddings)  # [M, D]
        if position_ids is None:
            return table[: tf.shape(input_ids)[1]]
        return ops.embed(table, position_ids)


# ---- Encoder ----------------------------------------------------------------


def additive_mask(input_mask: tf.Tensor) -> tf.Tensor:  # [B, S]
    """Returns 0 for tokens and -10000 for padding, [B, 1, 1, S].

    Added to the scores it makes the softmax of padding exactly zero: float32
    underflows below exp(-104).
    """
    is_padding = 1 - tf.cast(input_mask, tf.float32)  # [B, S]
    # LiteRT has no slices with new axes.
    is_padding = tf.expand_dims(tf.expand_dims(is_padding, 1), 1)
    return -10000.0 * is_padding


def block_diagonal_mask(sequence_ids: tf.Tensor) -> tf.Tensor:  # [B, S]
    """Like `additive_mask`, -10000 for the other sequences: [B, 1, S, S]."""
    # For GPUs TensorFlow compares int32 on the host.
    sequence_ids = tf.cast(sequence_ids, tf.float32)
    queries = sequence_ids[:, tf.newaxis, :, tf.newaxis]  # [B, 1, S, 1]
    keys = sequence_ids[:, tf.newaxis, tf.newaxis, :]  # [B, 1, 1, S]
    return -10000.0 * tf.cast(queries != keys, tf.float32)


def causal_mask(length: tf.Tensor) -> tf.Tensor:
    """Returns -20000 for the keys after each query, else 0: [1, 1, S, S]."""
    # For GPUs TensorFlow compares int32 on the host.
    places = tf.cast(tf.range(length), tf.float32)  # [S]
    is_behind = tf.expand_dims(places, 0) > tf.expand_dims(places, 1)
    mask = _BEHIND * tf.cast(is_behind, tf.float32)  # [S, S], queries first
    # LiteRT has no slices with new axes.
    return tf.expand_dims(tf.expand_dims(mask, 0), 0)


class Encoder(keras.layers.Layer):
    """A stack of transformer layers, which may repeat a layer.

    With `remat` the backward pass recomputes the activations inside a layer,
    with the same dropout, instead of keeping them.
    """

    computes_as_bert = True

    def __init__(self, stack: Iterable[layers.TransformerLayer], **kwargs: Any):
        super().__init__(**kwargs)
        self.remat = False
        self.layers = list(stack)

    def build(self, input_shape=None):
        for layer in self.layers:
            if not layer.built:
                layer.build()

    def call(self, x, dropout_seed, layout, positions=None):  # [B, S, D]
        *first, last = ops.split_seed(dropout_seed, len(self.layers))
        outputs = []
        for i, (layer, seed) in enumerate(
            zip(self.layers[:-1], first, strict=True)
        ):
            x = self._run(layer, x, seed, layout.of_layer(i))  # [B, S, D]
            outputs.append(layout.to_rows(x))
        if positions is None:
            layout = layout.of_layer(len(outputs))
            x = layout.to_rows(self._run(self.layers[-1], x, last, layout))
        else:
            # Only there nobody but the caller reads the output.
            layout = layout.reading(positions)
            x = self._run(self.layers[-1], x, last, layout)  # [B, R, D]
        return [*outputs, x]  # L times [B, S, D], the last perhaps [B, R, D]

    def _run(self, layer, x, seed, layout):
        if not self.remat:
            return layer(x, seed, layout=layout)
        return ops.recomputed(
            lambda x, seed: layer(x, seed, layout=layout), x, seed
        )


class Pooler(keras.layers.Layer):
    """A dense layer over the vector of [CLS], and tanh in BERT itself."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.hidden_size
        self.activation = ops.ACTIVATIONS[config.pooler_act]
        self.dense = layers.Dense(config, size, size, name="dense")

    def build(self, input_shape=None):
        self.dense.build()

    def call(self, x):  # [..., D], vectors of [CLS]
        return self.activation(self.dense(x))  # [..., D]


class Identity(keras.layers.Layer):
    """Returns its input, in place of a part that a model does not have."""

    def build(self, input_shape=None):
        """Has nothing to make."""

    def call(self, x):
        return x


def make_pooler(config: BertConfig) -> Pooler | Identity:
    """Makes the pooler of a config, without variables."""
    if config.pooler_act == configuration.NO_POOLER:
        return Identity(name="pooler")
    return Pooler(config, name="pooler")


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
        embeddings_class: What makes the first layer's input.
        scope: What the names of all its variables begin with.
        is_causal: Whether tokens see no token after them.
        mapping: What makes D of the embeddings' E, where these differ.
        skips_padding: Whether layers compute tokens only: the same numbers in
            less time, where shapes may differ from batch to batch. What is
            returned for padding is then not to be read.
        fuses_attention: Whether attention is cuDNN's kernel in programs that
            XLA compiles for GPUs; see training/fused_attention.py.
        laid_out: What the layout of a batch goes through before layers have
            it; see encoders/watching.py.
    """

    embeddings_class = Embeddings
    scope = "bert"
    # Whether another Bert may call `make_parts` and `build_parts`: they define
    # all of it, without `super`.
    lends_parts = False
    is_causal = False
    # Whether `call` reads `fuses_attention`.
    can_fuse_attention = True
    # The number of its first layer, which dropout of that attention depends on.
    first_number = 0

    def __init__(self, config: BertConfig, name: str = "bert", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.mapping: layers.Dense | None = None
        self.skips_padding = False
        self.fuses_attention = False
        self.laid_out: Callable[[padding.Rows], padding.Rows] = _as_it_is
        self._drawn = model_inputs.DrawnSeeds()
        with layers.of_policy(self.dtype_policy):
            self.make_parts()
        # Whatever the model is called, its variables have these names.
        with keras.name_scope(self.scope):
            self.build_parts()
        self.built = True

    def make_parts(self) -> None:
        """Makes `embeddings`, `encoder` and `pooler`, without variables."""
        config = self.config
        self.embeddings = self.embeddings_class(
            config, config.hidden_size, name="embeddings"
        )
        stack = [
            layers.TransformerLayer(config, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        ]
        self.encoder = Encoder(stack, name="encoder")
        self.pooler: Pooler | Identity = make_pooler(config)

    def build_parts(self) -> None:
        """Makes their variables."""
        for part in (self.embeddings, self.encoder, self.pooler):
            part.build()

    def call(
        self,
        inputs: dict[str, tf.Tensor],
        dropout_seed: tf.Tensor | None = None,
        positions: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> BertOutputs:
        """Encodes a batch.

        Args:
            inputs: Integers `input_ids` [B, S]; `input_mask`, 1 for tokens and
                0 for padding, by default all 1; `segment_ids`, by default 0.
                The last two also as `attention_mask` and `token_type_ids`.
                Where rows hold several sequences also `sequence_ids`, their
                numbers from 1 (0 for padding), and `position_ids`, which start
                anew in each. `inputs_embeds` [B, S, E] replace the word
                embeddings of `input_ids`, which may then be left out. Other
                keys are ignored.
            dropout_seed: int32 [2], or None for no dropout.
            positions: int32 [B, R], the positions whose last-layer output is
                read; the first is pooled. By default all. The rest is not
                computed, which saves most of a layer.
            training: Whether to draw a dropout seed if `dropout_seed` is None.
        """
        inputs = model_inputs.standard(inputs)
        model_inputs.check_positions(inputs)
        self._check_length(inputs["input_ids"].shape[1])
        if self.config.type_vocab_size:
            model_inputs.check_segments(inputs, self.config.type_vocab_size)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 2)
        mask = self.mask(inputs)  # [B, 1, 1, S] or [B, 1, S, S]
        ids = [inputs["input_ids"], inputs["segment_ids"]]  # [B, S] each
        position_ids = inputs.get("position_ids")  # [B, S] or None
        vectors = inputs.get("inputs_embeds")  # [B, S, E] or None
        layout = padding.Rows(mask)
        if self._fuses_attention_of(inputs):
            layout = padding.FusedRows(
                *(mask, inputs["input_mask"], self.is_causal),
                number=self.first_number,
            )
        elif (
            self.skips_padding
            and vectors is None
            # Padding differs between batches: shapes would, too.
            and not compiled.is_compiled()
        ):
            layout = padding.Tokens(mask, inputs["input_mask"])
            if position_ids is None:
                numbers = tf.range(tf.shape(ids[0])[1], dtype=ids[0].dtype)
                position_ids = tf.zeros_like(ids[0]) + numbers
            ids = [layout.joined(x) for x in ids]  # [1, J] each
            position_ids = layout.joined(position_ids)
        layout = self.laid_out(layout)
        x = self.embeddings(*ids, seeds[0], position_ids, vectors)  # [B, S, E]
        if self.mapping is not None:
            x = self.mapping(x)  # [B, S, D]
        outputs = self.encoder(x, seeds[1], layout=layout, positions=positions)
        pooled = self.pooler(outputs[-1][:, 0])  # [B, D]
        return BertOutputs(outputs[-1], pooled, layout.to_rows(x), outputs)

    def _fuses_attention_of(self, inputs: dict[str, tf.Tensor]) -> bool:
        has_known_shape = inputs["input_ids"].shape.is_fully_defined()
        is_plain = has_known_shape and "sequence_ids" not in inputs
        return self.fuses_attention and compiled.is_compiled() and is_plain

    def _check_length(self, length: int | None) -> None:
        most = self.config.max_position_embeddings
        if length is not None and length > most:
            raise InputError(
                f"Rows are longer than the model has positions for, {most}: "
                f"cut them. Received: input_ids of {length} columns"
            )

    def mask(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the mask added to scores: -10000 where a key is hidden.

        It takes the inputs of `call`. The mask is float32 [B, 1, 1, S], or [B,
        1, S, S] if rows hold several sequences, which do not see each other.
        """
        if "sequence_ids" in inputs:
            return block_diagonal_mask(inputs["sequence_ids"])
        return additive_mask(inputs["input_mask"])

    def seen(self, tokens: tf.Tensor, pairs: tf.Tensor) -> tf.Tensor:
        """Returns how often a token sees one of its sequence, or itself.

        Given are sums over sequences: of their lengths, and of the squares.
        """
        del tokens
        return pairs


def _as_it_is(layout: padding.Rows) -> padding.Rows:
    return layout
