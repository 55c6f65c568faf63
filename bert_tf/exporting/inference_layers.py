"""The layers of BERT for inference; see inference.py.

Shapes as in modeling.py. X: the computed positions, B * S or, if padding is
skipped, the J tokens.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import modeling
from bert_tf.encoders import ops
from bert_tf.exporting import kept_weights

import keras
import numpy as np
import tensorflow as tf

# The GELU of `ops` has a custom gradient, which exports would contain.
_ACTIVATIONS = ops.ACTIVATIONS | {
    "gelu": lambda x: tf.nn.gelu(x, approximate=True)
}


# ---- Products and norms ------------------------------------------------------


class _Dense:
    """Several dense layers as one, with a kernel [in, sum of outs]."""

    def __init__(
        self,
        weights: kept_weights.Weights,
        *dense: Any,
        scales: tuple[float, ...] = (),
    ):
        pairs = list(zip(dense, scales or (1.0,) * len(dense), strict=True))
        kernels = [_array(layer.kernel) * scale for layer, scale in pairs]
        biases = [_array(layer.bias) * scale for layer, scale in pairs]
        self._product = weights.kernel(np.concatenate(kernels, axis=1))
        self._bias = weights.keep(np.concatenate(biases))

    def __call__(self, rows: tf.Tensor) -> tf.Tensor:  # [X, in]
        return tf.nn.bias_add(self._product(rows), self._bias)  # [X, out]


class _Norm:
    def __init__(self, weights: kept_weights.Weights, norm: Any):
        self._gamma = weights.keep(_array(norm.gamma))
        self._beta = weights.keep(_array(norm.beta))
        self._epsilon = norm.epsilon

    def __call__(self, rows: tf.Tensor) -> tf.Tensor:  # [X, D]
        centred = rows - tf.reduce_mean(rows, axis=-1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + self._epsilon)  # [X, 1]
        return centred * scale * self._gamma + self._beta  # [X, D]


def _count(x: tf.Tensor) -> tf.Tensor:
    """Returns the number of rows, in fewer ops than a slice of the shape."""
    return tf.unstack(tf.shape(x))[0]


def _array(variable: keras.Variable) -> np.ndarray:
    return np.asarray(variable, np.float32)


# ---- Layouts of tokens ------------------------------------------------------


class Everything:
    """Computes all positions of a batch, X = B * S.

    Outputs that are read at some positions only are padded with zeros to at
    least `fewest` rows before products.
    """

    def __init__(self, input_mask: tf.Tensor, fewest: int = 0):  # [B, S]
        self._shape = tf.unstack(tf.shape(input_mask))
        self._fewest = fewest

    def flat(self, ids: tf.Tensor) -> tf.Tensor:  # [B, S]
        """Flattens values to the computed positions, [X]."""
        return tf.reshape(ids, [-1])

    def rows(self, x: tf.Tensor, *shape: int) -> tf.Tensor:  # [X, E]
        """Reshapes vectors to sequences: [B, S, E], or [B, S, *shape]."""
        return tf.reshape(x, [*self._shape, *(shape or x.shape[1:])])

    def joined(self, x: tf.Tensor) -> tf.Tensor:  # [B, S, ...]
        """Applies the inverse of `rows`, [X, E]."""
        return tf.reshape(x, [-1, math.prod(x.shape[2:])])

    def gather(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Gathers x [X, D] at `positions` [B, R]: [B * R, D]."""
        return tf.gather(x, self._numbers(positions))

    def filled(self, x: tf.Tensor) -> tf.Tensor:  # [Y, E]
        """Pads x with rows of zeros to the min number of rows."""
        if not self._fewest:
            return x
        missing = tf.maximum(self._fewest - _count(x), 0)
        return tf.pad(x, [[0, missing], [0, 0]])

    def unfilled(self, x: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Removes the padding of `filled`: returns the first `rows` of x."""
        return x[:rows] if self._fewest else x

    def _numbers(self, positions: tf.Tensor) -> tf.Tensor:  # [B, R]
        batch, length = self._shape
        starts = tf.range(batch)[:, tf.newaxis] * length  # [B, 1]
        return tf.reshape(starts + positions, [-1])  # [B * R]


class Tokens(Everything):
    """Computes the tokens of a batch, X = J, or `least` if J is less.

    The first position of a sequence is computed whatever its mask. So an output
    read for padding is a preceding token's, never another sequence's.
    Rows beyond J repeat the first position, and are not read.
    """

    def __init__(
        self,
        input_mask: tf.Tensor,  # [B, S]
        fewest: int = 0,
        least: int = 0,
    ):
        super().__init__(input_mask, fewest)
        is_first = tf.range(self._shape[1]) == 0  # [S]
        is_token = tf.reshape((input_mask > 0) | is_first, [-1])  # [B * S]
        places = tf.squeeze(tf.where(is_token), 1)  # [J]
        missing = tf.maximum(least - tf.size(places), 0)
        self._places = tf.pad(places, [[0, missing]])  # [X]
        # Position -> which of the J tokens is read.
        self._token = tf.cumsum(tf.cast(is_token, tf.int32)) - 1  # [B * S]

    def flat(self, ids):
        return tf.gather(super().flat(ids), self._places)

    def rows(self, x, *shape):
        return super().rows(tf.gather(x, self._token), *shape)

    def joined(self, x):
        return tf.gather(super().joined(x), self._places)

    def gather(self, x, positions):
        return tf.gather(x, tf.gather(self._token, self._numbers(positions)))


# ---- Layers -----------------------------------------------------------------


class Embeddings:
    """The sum of the embeddings, normalized."""

    def __init__(
        self,
        weights: kept_weights.Weights,
        embeddings: modeling.Embeddings,
        mapping: Any = None,
    ):
        self._words = weights.table(_array(embeddings.word_embeddings))
        self._types: tf.Variable | None = None
        if embeddings.config.type_vocab_size:
            types = _array(embeddings.token_type_embeddings)
            self._types = weights.keep(types)
        self._positions = weights.keep(_array(embeddings.position_embeddings))
        self._norm = _Norm(weights, embeddings.norm)
        self._mapping = mapping and _Dense(weights, mapping)

    @property
    def word_embeddings(self) -> tf.Tensor:
        """The embeddings of all tokens, [V, E]."""
        return self._words.all()

    def __call__(
        self, inputs: Mapping[str, tf.Tensor], layout: Everything
    ) -> tf.Tensor:
        """Returns the first layer's input, [X, D]."""
        ids, segments = inputs["input_ids"], inputs["segment_ids"]  # [B, S]
        places = tf.cumsum(tf.ones_like(ids), 1, exclusive=True)  # 0, 1, ...
        x = self._words.rows(layout.flat(ids))  # [X, E]
        if self._types is not None:
            x += tf.gather(self._types, layout.flat(segments))
        x += tf.gather(self._positions, layout.flat(places))
        x = self._norm(x)  # [X, E]
        return self._mapping(x) if self._mapping else x  # [X, D]


class Layer:
    """A transformer layer whose output is read everywhere, or at `positions`.

    If only R positions are read, queries are computed only for them. A shared
    layer that is also read everywhere computes all queries.
    """

    def __init__(
        self,
        weights: kept_weights.Weights,
        config: modeling.BertConfig,
        layer: Any,
        reads_all: bool,
    ):
        own = layer.attention.self_attention
        self._heads = config.num_attention_heads
        self._size = config.hidden_size // config.num_attention_heads
        scale = 1 / math.sqrt(self._size)
        kinds = own.query, own.key, own.value
        self._query: _Dense | None = None
        if reads_all:
            self._inputs = _Dense(weights, *kinds, scales=(scale, 1, 1))
        else:
            self._query = _Dense(weights, own.query, scales=(scale,))
            self._inputs = _Dense(weights, *kinds[1:])
        self._output = _Dense(weights, layer.attention.residual.dense)
        self._norm = _Norm(weights, layer.attention.residual.norm)
        self._activation = _ACTIVATIONS[config.hidden_act]
        self._intermediate = _Dense(weights, layer.intermediate.dense)
        self._feed_forward = _Dense(weights, layer.residual.dense)
        self._last_norm = _Norm(weights, layer.residual.norm)

    def __call__(
        self,
        x: tf.Tensor,  # [X, D]
        mask: tf.Tensor,  # [B, 1, 1, S]
        layout: Everything,
        positions: tf.Tensor | None,  # [B, R]
    ) -> tf.Tensor:
        """Returns [X, D] or, with `positions`, [B * R, D]."""
        y = self._inputs(x)  # [X, 3 D], or 2 D without queries
        y = layout.rows(y, y.shape[1] // x.shape[1], self._heads, self._size)
        # [B, N, S, H] each
        *queries, k, v = tf.unstack(tf.transpose(y, [2, 0, 3, 1, 4]))
        q = queries[0] if queries else None  # each [B, N, S, H]
        if positions is None:
            context = layout.joined(_attend(q, k, v, mask))  # [X, D]
        else:
            x = layout.gather(x, positions)  # [B * R, D]
            rows = _count(x)
            x = layout.filled(x)
            if self._query is None:
                own = tf.transpose(q, [0, 2, 1, 3])  # [B, S, N, H]
                own = tf.gather(own, positions, batch_dims=1)  # [B, R, N, H]
                q = tf.transpose(own, [0, 2, 1, 3])  # [B, N, R, H]
            else:
                shape = tf.unstack(tf.shape(positions))  # [B, R]
                own = layout.unfilled(self._query(x), rows)
                own = tf.reshape(own, [*shape, self._heads, self._size])
                q = tf.transpose(own, [0, 2, 1, 3])  # [B, N, R, H]
            context = _attend(q, k, v, mask)  # [B, R, N, H]
            context = tf.reshape(context, [-1, x.shape[-1]])  # [B * R, D]
            context = layout.filled(context)
        x = self._norm(x + self._output(context))
        y = self._activation(self._intermediate(x))  # [X or B * R, F]
        x = self._last_norm(x + self._feed_forward(y))
        return x if positions is None else layout.unfilled(x, rows)


def _attend(q, k, v, mask):  # [B, N, R, H], twice [B, N, S, H], [B, 1, 1, S]
    """Returns the attention output of each head: [B, R, N, H]."""
    scores = tf.matmul(q, k, transpose_b=True) + mask  # [B, N, R, S]
    context = tf.matmul(tf.nn.softmax(scores), v)  # [B, N, R, H]
    return tf.transpose(context, [0, 2, 1, 3])  # [B, R, N, H]


def pooler(
    weights: kept_weights.Weights,
    config: modeling.BertConfig,
    trained: modeling.Pooler | modeling.Identity,
) -> Callable[[tf.Tensor, Everything], tf.Tensor]:
    """Returns a function that maps [CLS] vectors to pooled ones, [B, D]."""
    if isinstance(trained, modeling.Identity):
        return _as_it_is
    return Pooler(weights, config, trained)


def _as_it_is(x, layout):  # [B, D], vectors of [CLS]
    del layout
    return x


class Pooler:
    """A dense layer over the vector of [CLS]."""

    def __init__(
        self,
        weights: kept_weights.Weights,
        config: modeling.BertConfig,
        pooler: modeling.Pooler,
    ):
        self._dense = _Dense(weights, pooler.dense)
        self._activation = _ACTIVATIONS[config.pooler_act]

    def __call__(self, x, layout):  # [B, D], vectors of [CLS]
        y = layout.unfilled(self._dense(layout.filled(x)), _count(x))
        return self._activation(y)  # [B, D]
