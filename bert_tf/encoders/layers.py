"""The layers that encoders are made of, as the original's.

Shapes and names are explained in modeling.py.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from bert_tf import compiled
from bert_tf.configuration import BertConfig
from bert_tf.encoders import ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf

# ---- Small layers -----------------------------------------------------------


def initializer(config: BertConfig) -> keras.initializers.Initializer:
    """The original's: normal, cut off at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


@contextlib.contextmanager
def of_policy(policy: keras.DTypePolicy) -> Iterator[None]:
    """Layers made under it compute in a model's own data types."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


class Dense(keras.layers.Layer):
    """`x @ kernel + bias`; kernel [in_size, out_size].

    `enable_lora` adds a product of two small matrices to the kernel, and trains
    these instead of it (Hu et al., 2021, LoRA).
    """

    lora_scale: float | None = None  # of that product; None without LoRA

    def __init__(
        self, config: BertConfig, in_size: int, out_size: int, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.shape = (in_size, out_size)
        self.kernel_initializer = initializer(config)

    def build(self, input_shape=None):
        self._kernel = self.add_weight(
            name="kernel",
            shape=self.shape,
            initializer=self.kernel_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=self.shape[1:], initializer="zeros"
        )

    @property
    def kernel(self):
        """What `x` is multiplied by, [in_size, out_size]."""
        if self.lora_scale is None:
            return self._kernel
        product = tf.matmul(
            tf.convert_to_tensor(self.lora_a), tf.convert_to_tensor(self.lora_b)
        )
        # Rounded once: in 16 bits most of a small product would be lost.
        total = self._kernel + self.lora_scale * product
        return tf.cast(total, self.bias.value.dtype)

    def enable_lora(self, rank: int, scale: float = 1.0) -> None:
        """Adds `scale * a @ b`: [in_size, rank] and zeros [rank, out_size]."""
        self._tracker.unlock()
        self.lora_a = self.add_weight(
            name="lora_a",
            shape=(self.shape[0], rank),
            initializer="he_uniform",
            autocast=False,
        )
        self.lora_b = self.add_weight(
            name="lora_b",
            shape=(rank, self.shape[1]),
            initializer="zeros",
            autocast=False,
        )
        self._tracker.lock()
        self._kernel._autocast = False  # `kernel` casts the sum.
        self._kernel.trainable = False
        self.lora_scale = scale

    def merge_lora(self) -> None:
        """Makes the product a part of the kernel, which is trained again."""
        self._kernel.assign(self.kernel)
        self._tracker.unlock()
        for variable in (self.lora_a, self.lora_b):
            self._untrack_variable(variable)
        self._tracker.lock()
        self._kernel._autocast = True
        self._kernel.trainable = True
        self.lora_scale = None

    def quantize(self, mode=None, **kwargs):
        """Raises InputError: Keras would skip these layers silently."""
        raise InputError(
            "Keras cannot quantize the layers of bert_tf. Export the model "
            "with 8-bit weights: bert_tf.export(model, path, format="
            f'"litert" or "onnx", weights="int8"). Received: mode={mode!r}'
        )

    def call(self, x):  # [..., in_size]
        return ops.affine(x, self.kernel, self.bias)  # [..., out_size]


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

    def call(self, x):  # [..., D], as what it returns
        how = (self.gamma, self.beta, self.epsilon)
        return ops.normalize_in_float32(x, *how)


# ---- A transformer layer -----------------------------------------------------


# Attention, from a layer's input x to what is added to it:
#
#   x [B, S, D]    queries, key and value: one product       [B, S, 3 D]
#                  split into heads                          3 x [B, N, S, H]
#   q k^T          each query's scores of all keys, masked   [B, N, S, S]
#   softmax, drop  how much a query takes of each value      [B, N, S, S]
#   times v        what it gathers                           [B, N, S, H]
#   heads joined   into one vector for each token            [B, S, D]
#   output/dense   and then dropout, + x, layer norm         [B, S, D]
#
# If a layer's output is read at R positions only, these are its queries: the
# scores are [B, N, R, S], and S is R in all later shapes. A layout may keep the
# tokens of a batch in one row, x [1, J, D]: then sequences are rows, [B, S, D],
# only between `to_rows` and `from_rows`.


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
        """Returns the attention output, in the shape of `queries`.

        `x` is [B, S, D] or in the layout's shape, and `queries` are the tokens
        of it that attend: `layout.queries(x)`. `dropout_seed` is int32 [2] or
        None. The layout defines where the tokens are, and which tokens see each
        other. If it is fused, `x` is a list of three tensors, for queries, keys
        and values.
        """
        if layout.is_fused:
            return self._fused(x, dropout_seed, layout)  # [B, S, D]
        if compiled.is_for_tpus():
            q, k, v = self._apart(x, queries)  # [B, N, R, H], [B, N, S, H]
        # One product for all three: D alone is too small to use a processor
        # fully.
        elif queries is x:
            y = self._project(x, self.query, self.key, self.value)  # [.., 3 D]
            y = layout.to_rows(y)  # [B, S, 3 D]
            q, k, v = self.split_heads(y)  # each [B, N, S, H]
        else:
            y = self._project(queries, self.query)  # [B, R, D]
            (q,) = self.split_heads(y)  # [B, N, R, H]
            y = self._project(x, self.key, self.value)  # [.., 2 D]
            y = layout.to_rows(y)  # [B, S, 2 D]
            k, v = self.split_heads(y)  # each [B, N, S, H]
        rate = self.config.attention_probs_dropout_prob
        context = layout.attend(q, k, v, rate, dropout_seed)  # [B, N, R, H]
        return layout.from_rows(self.join_heads(context))  # as the queries

    def _fused(self, xs, dropout_seed, layout):  # 3 x [B, S, D]
        """Attends by one kernel, which takes heads where products write them.

        There is one input for each of three products: to take apart one product
        of all three would be copies.
        """
        heads = self.config.num_attention_heads
        size = self.config.hidden_size // heads
        q, k, v = (
            tf.reshape(
                ops.affine(x, layer.kernel, layer.bias),
                [*x.shape[:2], heads, size],
            )
            for x, layer in zip(
                xs, (self.query, self.key, self.value), strict=True
            )
        )
        rate = self.config.attention_probs_dropout_prob
        context = layout.attend_fused(
            *(q, k, v, 1 / math.sqrt(size), rate, dropout_seed)
        )
        return tf.reshape(context, xs[0].shape)  # [B, S, D]

    def _apart(self, x, queries):  # [B, S, D], [B, S or R, D]
        """Returns queries, keys and values by a product each.

        On TPUs a product can write its heads apart, and taking apart one
        product of all three would be copies.
        """
        heads = self.config.num_attention_heads
        size = self.config.hidden_size // heads

        def heads_of(x, layer, scale=1.0):
            kernel = tf.reshape(layer.kernel * scale, [-1, heads, size])
            bias = tf.reshape(layer.bias * scale, [heads, 1, size])
            return tf.einsum("bsd,dnh->bnsh", x, kernel) + bias

        q = heads_of(queries, self.query, 1 / math.sqrt(size))
        return q, heads_of(x, self.key), heads_of(x, self.value)

    def _project(self, x, *layers):  # [..., D]
        """Applies dense layers in one product: side by side, [..., D each]."""
        # Weights are fewer than queries, or scores, to scale.
        size = self.config.hidden_size // self.config.num_attention_heads

        def scaled(layer, x):
            return x * (1 / math.sqrt(size)) if layer is self.query else x

        kernels = [scaled(layer, layer.kernel) for layer in layers]
        biases = [scaled(layer, layer.bias) for layer in layers]
        return ops.affine(x, tf.concat(kernels, 1), tf.concat(biases, 0))

    def split_heads(self, y):  # [B, S, D each]
        """Takes apart what `_project` put together, each [B, N, S, H]."""
        heads = self.config.num_attention_heads
        count = y.shape[-1] // self.config.hidden_size
        size = self.config.hidden_size // heads
        batch, length = tf.unstack(tf.shape(y)[:2])
        y = tf.reshape(y, [batch, length, count, heads, size])
        y = tf.transpose(y, [2, 0, 3, 1, 4])  # [1 to 3, B, N, S, H]
        return tf.unstack(y)

    def join_heads(self, context):  # [B, N, S, H]
        """Concatenates the heads of each token, [B, S, D]."""
        context = tf.transpose(context, [0, 2, 1, 3])  # [B, S, N, H]
        batch, length = tf.unstack(tf.shape(context)[:2])
        return tf.reshape(context, [batch, length, self.config.hidden_size])


def _branches(x: tf.Tensor, count: int) -> list[tf.Tensor]:
    """Returns `x` `count` times, and makes its gradient a chain of sums.

    XLA fuses the addition of the previous sum into a matrix product if the
    product is the left operand.
    """

    @tf.custom_gradient
    def function(x):
        def gradient(total, *others):
            for dy in others:
                total = dy + total
            return total

        return [tf.identity(x) for _ in range(count)], gradient

    return function(x)


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
        y = ops.dropout(self.dense(y), self.rate, dropout_seed)  # [B, S, D]
        return self.norm(y + x)  # [B, S, D]


class Attention(keras.layers.Layer):
    """Self-attention and its output projection."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.self_attention = SelfAttention(config, name="self")
        self.residual = Residual(config, config.hidden_size, name="output")
        self.residual.rate = config.projection_dropout_prob

    def build(self, input_shape=None):
        self.self_attention.build()
        self.residual.build()

    def call(self, x, dropout_seed, layout):  # [B, S, D]
        seeds = ops.split_seed(dropout_seed, 2)
        queries = layout.queries(x)  # x itself, or [B, R, D]
        if layout.is_fused:
            queries, *x = _branches(x, 4)
        context = self.self_attention(x, queries, seeds[0], layout=layout)
        return self.residual(context, queries, seeds[1])  # as the queries


class Intermediate(keras.layers.Layer):
    """The widening half of the feed-forward network."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.activation = ops.ACTIVATIONS[config.hidden_act]
        self.dense = Dense(
            config, config.hidden_size, config.intermediate_size, name="dense"
        )

    def build(self, input_shape=None):
        self.dense.build()

    def call(self, x):  # [B, S, D]
        return self.activation(self.dense(x))  # [B, S, F]


class TransformerLayer(keras.layers.Layer):
    """Attention and feed-forward, each with a residual and a norm after it."""

    computes_as_bert = True

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
        """Returns the output of `layout.queries(x)`; see SelfAttention.call."""
        seeds = ops.split_seed(dropout_seed, 2)
        x = self.attention(x, seeds[0], layout=layout)  # [B, S or R, D]
        y = self.intermediate(x)  # [B, S or R, F]
        return self.residual(y, x, seeds[1])  # [B, S or R, D]
