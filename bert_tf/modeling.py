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

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

# Keys of the multilingual and Chinese releases. They describe the pooler that
# every BERT has, and the original never read them.
_POOLER_KEYS = frozenset(
    {
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    }
)
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


# ---- Configuration ----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Architecture of one BERT, as in the released bert_config.json."""

    vocab_size: int  # V
    hidden_size: int = 768  # D
    num_hidden_layers: int = 12  # L
    num_attention_heads: int = 12  # N
    intermediate_size: int = 3072  # F
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # M
    type_vocab_size: int = 16  # T; the original's default, releases say 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    # Of the dense layer before the vocabulary product, where they are others
    # than the encoder's, as in KerasHub.
    transform_act: str | None = None
    transform_layer_norm_eps: float | None = None

    def __post_init__(self):
        for name in _SIZES:
            value = getattr(self, name)
            if not _is_a(value, int) or value < 1:
                raise ValueError(
                    f"`{name}` must be a positive integer. "
                    f"Received: {name}={value!r}"
                )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = getattr(self, name)
            if not _is_a(value, int | float) or not 0 <= value < 1:
                raise ValueError(
                    f"`{name}` must be a number, at least 0 and below 1. "
                    f"Received: {name}={value!r}"
                )
        for name in (
            "initializer_range",
            "layer_norm_eps",
            "transform_layer_norm_eps",
        ):
            value = getattr(self, name)
            if name == "transform_layer_norm_eps" and value is None:
                continue
            if not _is_a(value, int | float) or not 0 < value < math.inf:
                raise ValueError(
                    f"`{name}` must be a positive number. "
                    f"Received: {name}={value!r}"
                )
        activation(self.hidden_act)
        activation(self.transform_act or self.hidden_act)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "BertConfig":
        """Returns the config of a parsed bert_config.json."""
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known - _POOLER_KEYS)
        if unknown:
            raise ValueError(
                f"The BERT config has unknown keys: {', '.join(unknown)}. "
                f"Known keys: {', '.join(sorted(known))}"
            )
        if "vocab_size" not in values:
            raise ValueError("The BERT config has no `vocab_size`.")
        return cls(**{k: v for k, v in values.items() if k in known})

    @classmethod
    def from_json_file(cls, path: str) -> "BertConfig":
        """Reads a bert_config.json, local or remote."""
        with tf.io.gfile.GFile(path, "rb") as file:
            text = file.read()
        try:
            values = json.loads(text)
        except ValueError as error:  # of the encoding or of the syntax
            raise ValueError(f"{path} is not JSON: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold one JSON object.")
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json(self) -> str:
        """Returns the text of a bert_config.json."""
        values = dataclasses.asdict(self).items()
        said = {name: value for name, value in values if value is not None}
        return json.dumps(said, indent=2) + "\n"

    def check_sequence_length(self, max_seq_length: int) -> None:
        """Raises ValueError if the position table has too few rows."""
        if max_seq_length > self.max_position_embeddings:
            raise ValueError(
                "`max_seq_length` is more than the model has positions for. "
                f"Received: max_seq_length={max_seq_length}, "
                f"max_position_embeddings={self.max_position_embeddings}"
            )

    def check_vocab_size(self, size: int, path: str) -> None:
        """Raises ValueError if a vocabulary of `size` pieces does not fit."""
        if size != self.vocab_size:
            raise ValueError(
                f"{path} does not belong to this BERT config: it has {size} "
                f"pieces, the config says vocab_size={self.vocab_size}."
            )


def _is_a(value: Any, kind: Any) -> bool:
    """Like isinstance, but `true` in a JSON file is no number."""
    return isinstance(value, kind) and not isinstance(value, bool)


# ---- Elementwise functions and small layers ---------------------------------


@tf.custom_gradient
def gelu(x: tf.Tensor) -> tf.Tensor:
    """The tanh form of GELU, as the original (Hendrycks & Gimpel, 2016).

    The gradient is written out: automatic differentiation of the formula
    makes twice as many passes over the largest activation of the model.
    """
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    tanh = tf.tanh(scale * x * (1 + cubic * square))

    def gradient(dy):
        slope = (1 - tanh * tanh) * x * (1 + 3 * cubic * square)
        return dy * (0.5 + 0.5 * (tanh + scale * slope))

    return 0.5 * x * (1 + tanh), gradient


def activation(name: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns the function that a config calls `name`."""
    functions = {
        "gelu": gelu,
        "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
        "relu": tf.nn.relu,
        "tanh": tf.tanh,
        "linear": tf.identity,
    }
    if not isinstance(name, str) or name not in functions:
        raise ValueError(
            f"`hidden_act` must be one of {', '.join(functions)}. "
            f"Received: hidden_act={name!r}"
        )
    return functions[name]


def dropout(x: tf.Tensor, rate: float, seed: tf.Tensor | None) -> tf.Tensor:
    """Zeroes a share `rate` of `x` and scales up the rest."""
    if seed is None or rate == 0:
        return x
    # Comparing raw 32-bit integers saves the conversion to floats. [-2^31, ..)
    bits = tf.random.stateless_uniform(
        tf.shape(x), seed, minval=None, maxval=None, dtype=tf.int32
    )
    keep = bits >= round(rate * 2**32) - 2**31
    return x * (tf.cast(keep, x.dtype) * (1 / (1 - rate)))


def split_seed(seed: tf.Tensor | None, count: int) -> list[Any]:
    """Returns `count` independent seeds, or as many Nones."""
    if seed is None:
        return [None] * count
    return tf.unstack(tf.random.split(seed, count))


def initializer(config: BertConfig) -> keras.initializers.Initializer:
    """The original's: normal, cut off at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


@tf.custom_gradient
def embed(table: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Rows of `table` [V, D] by `ids` [...], with a dense gradient.

    Sparse gradients would have to be merged with the dense one of the tied
    output layer, and densified for clipping and for the all-reduce.
    """

    def gradient(dy):
        rows = tf.shape(table)[0]
        return tf.math.unsorted_segment_sum(dy, ids, rows), None

    return tf.gather(table, ids), gradient


def at(x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Rows of `x` [B, S, D] at `positions` [B, R]: [B, R, D]."""
    return tf.gather(x, positions, batch_dims=1)


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
        return affine(x, self.kernel, self.bias)  # [..., out_size]


def affine(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Returns x @ kernel + bias over the last axis of `x`."""
    # One large matrix product: tf.matmul of 3-D by 2-D is a batch of them.
    rows = tf.reshape(x, [-1, x.shape[-1]])
    y = tf.nn.bias_add(tf.matmul(rows, kernel), bias)
    return tf.reshape(y, tf.concat([tf.shape(x)[:-1], [y.shape[-1]]], axis=0))


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
        y = normalize(
            tf.cast(x, tf.float32),
            tf.convert_to_tensor(self.gamma),
            tf.convert_to_tensor(self.beta),
            self.epsilon,
        )
        return tf.cast(y, x.dtype)


def normalize(x, gamma, beta, epsilon):  # [..., D], [D], [D]
    """Normalizes the last axis, then scales and shifts it."""

    # The gradient is written out (Ba et al., 2016, equation 4): it needs half
    # the passes over memory that automatic differentiation makes.
    @tf.custom_gradient
    def function(x, gamma, beta):
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)  # [..., 1]
        unit = centred * scale

        def gradient(dy):
            d_unit = dy * gamma
            mean = tf.reduce_mean(d_unit, axis=-1, keepdims=True)
            slope = tf.reduce_mean(d_unit * unit, axis=-1, keepdims=True)
            axes = list(range(len(x.shape) - 1))
            return (
                scale * (d_unit - mean - unit * slope),
                tf.reduce_sum(dy * unit, axis=axes),
                tf.reduce_sum(dy, axis=axes),
            )

        return unit * gamma + beta, gradient

    return function(x, gamma, beta)


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
        x = embed(words, input_ids)  # [B, S, D]
        # Few token types: a one-hot product is faster than a gather on TPUs.
        types = tf.one_hot(segment_ids, config.type_vocab_size, dtype=x.dtype)
        table = tf.convert_to_tensor(self.token_type_embeddings)  # [T, D]
        flat = tf.reshape(types, [-1, config.type_vocab_size])
        x += tf.reshape(tf.matmul(flat, table), tf.shape(x))
        positions = tf.convert_to_tensor(self.position_embeddings)  # [M, D]
        if position_ids is None:
            x += positions[: tf.shape(input_ids)[1]]  # [S, D], for every row
        else:
            x += embed(positions, position_ids)
        return dropout(self.norm(x), config.hidden_dropout_prob, dropout_seed)


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

    def call(self, x, mask, dropout_seed, rows=None):
        """Returns what each of `rows` gathers from `x`, [B, R, D].

        Args:
            x: [B, S, D].
            mask: [B, 1, 1, S] or [B, 1, R, S], added to the scores.
            dropout_seed: int32 [2] or None.
            rows: [B, R, D], those of `x` that attend; None for all.
        """
        config = self.config
        heads = config.num_attention_heads
        size = config.hidden_size // heads  # H
        # One product for the three: D is small beside what fills a processor.
        if rows is None:
            q, k, v = self._project(x, self.query, self.key, self.value)
        else:
            (q,) = self._project(rows, self.query)
            k, v = self._project(x, self.key, self.value)
        # Scaling q costs S * H multiplications, scaling the scores S * S.
        scores = tf.matmul(q * (1 / math.sqrt(size)), k, transpose_b=True)
        scores = tf.cast(scores, tf.float32) + tf.cast(mask, tf.float32)
        probs = tf.cast(tf.nn.softmax(scores), v.dtype)  # [B, N, R, S]
        # Whole tokens are dropped from attention, as in the original.
        rate = config.attention_probs_dropout_prob
        probs = dropout(probs, rate, dropout_seed)
        context = tf.transpose(tf.matmul(probs, v), [0, 2, 1, 3])
        batch, length = tf.unstack(tf.shape(context)[:2])
        return tf.reshape(context, [batch, length, config.hidden_size])

    def _project(self, x, *layers):
        """Applies dense layers in one product, each [B, N, S, H]."""
        heads = self.config.num_attention_heads
        kernel = tf.concat([layer.kernel for layer in layers], axis=1)
        bias = tf.concat([layer.bias for layer in layers], axis=0)
        y = affine(x, kernel, bias)
        batch, length = tf.unstack(tf.shape(x)[:2])
        size = self.config.hidden_size // heads
        y = tf.reshape(y, [batch, length, len(layers), heads, size])
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
        return self.norm(dropout(self.dense(y), self.rate, dropout_seed) + x)


class Attention(keras.layers.Layer):
    """Self-attention and its output projection."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.self_attention = SelfAttention(config, name="self")
        self.residual = Residual(config, config.hidden_size, name="output")

    def build(self, input_shape=None):
        self.self_attention.build()
        self.residual.build()

    def call(self, x, mask, dropout_seed, positions=None):  # [B, S, D]
        seeds = split_seed(dropout_seed, 2)
        rows = None if positions is None else at(x, positions)
        context = self.self_attention(x, mask, seeds[0], rows)
        return self.residual(context, x if rows is None else rows, seeds[1])


class Intermediate(keras.layers.Layer):
    """The widening half of the feed-forward network."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.activation = activation(config.hidden_act)
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

    def call(self, x, mask, dropout_seed, positions=None):
        """Returns the layer's output, [B, S, D] or [B, R, D].

        Args:
            x: [B, S, D].
            mask: [B, 1, 1, S], or a row for each place whose output is wanted,
                added to the scores.
            dropout_seed: int32 [2] or None.
            positions: int32 [B, R], the places whose output is wanted; None
                for all. The rest is not computed.
        """
        seeds = split_seed(dropout_seed, 2)
        x = self.attention(x, mask, seeds[0], positions)
        return self.residual(self.intermediate(x), x, seeds[1])


def recomputed(
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    x: tf.Tensor,
    seed: tf.Tensor | None,
) -> tf.Tensor:
    """Returns function(x, seed), computed again in the backward pass.

    Between the passes only `x` is kept (Chen et al., 2016,
    https://arxiv.org/abs/1604.06174).
    """

    @tf.custom_gradient
    def compute(x):
        def gradient(dy, variables=()):
            # Not before the gradient comes: without this dependency the second
            # pass could run right after the first.
            with tf.control_dependencies([dy]):
                again = tf.identity(x)
                own = None if seed is None else tf.identity(seed)
            with tf.GradientTape() as tape:
                tape.watch(again)
                y = function(again, own)
            sources = [again, *variables]
            dx, *rest = tape.gradient(y, sources, output_gradients=dy)
            return dx, rest

        return function(x, seed), gradient

    return compute(x)


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

    def call(self, x, mask, dropout_seed, positions=None):  # [B, S, D]
        seeds = split_seed(dropout_seed, len(self.layers))
        outputs = []
        for layer, seed in zip(self.layers[:-1], seeds[:-1], strict=True):
            x = self._run(layer, x, mask, seed)
            outputs.append(x)
        if positions is not None and mask.shape[2] != 1:
            mask = tf.gather(mask, positions, axis=2, batch_dims=1)
        # Only there nobody but the caller reads the output.
        outputs.append(
            self._run(self.layers[-1], x, mask, seeds[-1], positions)
        )
        return outputs  # L times [B, S, D], the last perhaps [B, R, D]

    def _run(self, layer, x, mask, seed, positions=None):
        if not self.remat:
            return layer(x, mask, seed, positions)
        return recomputed(
            lambda x, seed: layer(x, mask, seed, positions), x, seed
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
    """BERT without a head."""

    def __init__(self, config: BertConfig, name: str = "bert", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
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
        seeds = split_seed(dropout_seed, 2)
        if "sequence_ids" in inputs:
            mask = block_diagonal_mask(inputs["sequence_ids"])
        else:
            mask = additive_mask(inputs["input_mask"])
        embeddings = self.embeddings(
            inputs["input_ids"],
            inputs["segment_ids"],
            seeds[0],
            inputs.get("position_ids"),
        )
        layers = self.encoder(embeddings, mask, seeds[1], positions)
        pooled = self.pooler(layers[-1][:, 0])
        return BertOutputs(layers[-1], pooled, embeddings, layers)
