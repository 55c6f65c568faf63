"""A BiLSTM encoder-decoder with attention, and its family entry.

It is the baseline of the original Transformer: the global attention of Luong et
al., 2015 (https://arxiv.org/abs/1508.04025, section 3.1) with the score
"general". There is no input feeding, so the states of a target do not depend on
its attention, and training computes the attention of all its tokens at once.
The encoder reads in both directions, and the decoder starts from its last
states, as in Bahdanau et al., 2014 (https://arxiv.org/abs/1409.0473, appendix
A.2.2). Encoder, decoder and output layer have the same table of word vectors.

Shapes as in modeling.py, with E = D, and H: units of a direction of the
encoder, D / 2; G: its gates, 4 H; Q: gates of the decoder, 4 D; T: length of
targets; K: targets for each source, which are separate rows, [B * K, T].
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple

from bert_tf import configuration, heads, modeling
from bert_tf.contrib import bilstm, bilstm_lm, encoder_decoders, students
from bert_tf.encoders import families, family, layers, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf

# Hidden state and cell state of a layer, [B * K, D] each.
States = list[tuple[tf.Tensor, tf.Tensor]]


@dataclasses.dataclass(frozen=True)
class BiLstmAttentionConfig(
    bilstm.BiLstmConfig, encoder_decoders.EncoderDecoderConfig
):
    """Architecture of both halves, which have the same number of layers."""

    model_type: ClassVar[str] = "bilstm_attention"
    architectures: ClassVar[str] = "BiLstmAttention"
    pooler_acts: ClassVar[tuple[str, ...]] = (configuration.NO_POOLER,)
    sizes: ClassVar[tuple[str, ...]] = bilstm_lm.BiLstmLmConfig.sizes
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = (
        *bilstm_lm.BiLstmLmConfig.unread,
        *bilstm.BiLstmConfig.of_layers,
    )

    hidden_size: int = 512  # D
    embedding_size: int = 512
    num_hidden_layers: int = 2  # L
    initializer_range: float = 0.05
    pooler_act: str = configuration.NO_POOLER
    shared: str = "embeddings"

    def __post_init__(self):
        super().__post_init__()
        for name, wanted in (
            ("embedding_size", self.hidden_size),
            ("shared", "embeddings"),
        ):
            if getattr(self, name) != wanted:
                raise InputError(
                    f"`{name}` must be {wanted}: the output layer is the table "
                    "of word vectors, which encoder and decoder share. "
                    f"Received: {name}={getattr(self, name)}"
                )

    @property
    def activations(self) -> int:
        """Activations per token kept for training: gates, states, words."""
        return (32 * self.num_hidden_layers + 9) * self.hidden_size


# ---- Encoder ----------------------------------------------------------------


class Stack(bilstm_lm.Stack):
    """Layers that read in both directions; each reads both of the one below."""

    def call(self, x, is_token, dropout_seed):  # [B, S, D], [B, S], [2] or None
        """Returns the states of each layer, [B, S, D]: forward, backward."""
        seeds = ops.split_seed(dropout_seed, len(self.layers))
        outputs = []
        for layer, seed in zip(self.layers, seeds, strict=True):
            x = ops.dropout(x, self.rate, seed)
            x = tf.concat(layer(x, x, is_token), axis=-1)
            outputs.append(x)
        return outputs


class BiLstmAttention(bilstm_lm.BiLstmLm):
    """The encoder. `pooled` has the last state of each direction."""

    scope = "bilstm"

    def make_parts(self):
        self.embeddings = students.Words(self.config, name="embeddings")
        self.encoder = Stack(self.config, name="lstm")
        self.pooler = modeling.make_pooler(self.config)


# ---- Decoder ----------------------------------------------------------------


class TargetLstm(bilstm.Lstm):
    """An LSTM that reads targets, from a state that depends on the source.

    The first cell state is tanh(W x + b) for the last states x of the encoder,
    and the first hidden state is its tanh.
    """

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        size = config.hidden_size
        super().__init__(bilstm.Sizes(size, size), from_end=False, **kwargs)
        self.start = layers.Dense(config, size, size, name="start")

    def build(self, input_shape=None):
        super().build()
        self.start.build()

    def read(self, x, start):  # [B * K, T, D], [B * K, D]
        """Returns the hidden states [B * K, T, D].

        `start` has the first cell states before their tanh.
        """
        # A step that sets the first state: its input and output gates are open,
        # and its candidate is the cell state.
        start = tf.cast(start, tf.float32)
        is_open = tf.fill(tf.shape(start), bilstm.OPEN)
        first = [is_open, tf.zeros_like(start), is_open, start]
        gates = tf.transpose(self._gates(x), [1, 0, 2])  # [T, B * K, Q]
        gates = tf.concat([tf.concat(first, axis=-1)[tf.newaxis], gates], 0)
        states = bilstm.recur(gates, self._recurrent_kernel())[1:]
        return tf.cast(tf.transpose(states, [1, 0, 2]), x.dtype)

    def step(self, x, h, c):  # [B * K, D], and states [B * K, D]
        """Returns the states after one more token."""
        gates = self._gates(x) + tf.matmul(h, self._recurrent_kernel())
        return bilstm.advance(gates, c)

    def _gates(self, x):
        """Returns the contribution of inputs [..., D] to the gates."""
        own = (tf.cast(y, x.dtype) for y in (self.kernel, self.bias))
        return tf.cast(ops.affine(x, *own), tf.float32)

    def _recurrent_kernel(self):
        return tf.cast(self.recurrent_kernel, tf.float32)


class Attention(keras.layers.Layer):
    """Luong's attention: tanh(W [context; state] + b)."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.hidden_size
        self.score_shape = (size, size)
        self.initializer = layers.initializer(config)
        self.dense = layers.Dense(config, 2 * size, size, name="output")

    def build(self, input_shape=None):
        self.score = self.add_weight(
            name="score", shape=self.score_shape, initializer=self.initializer
        )
        self.dense.build()

    def call(self, x, sequence, mask):  # [.., T, D], [B, S, D], [B, 1, 1, S]
        """Returns the attentional vectors of states, [B * K, T, D] as `x`."""
        size = x.shape[-1]
        queries = tf.matmul(
            tf.reshape(x, [-1, size]), tf.convert_to_tensor(self.score)
        )
        # Targets of the same source are queries of one row.
        shape = [tf.shape(sequence)[0], 1, -1, size]
        values = sequence[:, tf.newaxis]  # [B, 1, S, D]
        context = ops.attend(
            tf.reshape(queries, shape), values, values, mask, 0.0, None
        )
        context = tf.reshape(context, tf.shape(x))
        return tf.tanh(self.dense(tf.concat([context, x], axis=-1)))


class Memory(NamedTuple):
    """What the decoder reads of a source."""

    starts: list[tf.Tensor]  # of each layer [B, D], see TargetLstm.read
    sequence: tf.Tensor  # [B, S, D]
    mask: tf.Tensor  # [B, 1, 1, S], added to scores of tokens


class Decoder(keras.layers.Layer):
    """Predicts the token after each token of a target.

    It has the methods of `seq2seq.decoder.Decoder`.
    """

    def __init__(self, bert: BiLstmAttention, **kwargs: Any):
        super().__init__(**kwargs)
        config = bert.config
        self.rate = config.hidden_dropout_prob
        self.embeddings = bert.embeddings
        self.layers = [
            TargetLstm(config, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        ]
        self.attention = Attention(config, name="attention")
        self.predictions = heads.OutputBias(config, name="predictions")

    def build(self, input_shape=None):
        for layer in self.layers:
            layer.build()
        self.attention.build()
        self.predictions.build()

    def memory(self, sequence: tf.Tensor, input_mask: tf.Tensor) -> Memory:
        """Returns the decoder's memory of the encoder's output [B, S, D]."""
        is_token = tf.cast(input_mask != 0, sequence.dtype)
        last = bilstm.ends(sequence, is_token)  # [B, D]
        starts = [layer.start(last) for layer in self.layers]
        return Memory(starts, sequence, modeling.additive_mask(input_mask))

    def hidden(self, ids, memory, dropout_seed=None):  # [B * K, T]
        """Returns the attentional vectors of tokens, [B * K, T, D]."""
        *seeds, last = ops.split_seed(dropout_seed, len(self.layers) + 1)
        x = self.embeddings(ids)  # [B * K, T, D]
        starts = _repeated(memory, tf.shape(ids)[0])
        for layer, start, seed in zip(self.layers, starts, seeds, strict=True):
            x = layer.read(ops.dropout(x, self.rate, seed), start)
        x = self.attention(x, memory.sequence, memory.mask)
        return ops.dropout(x, self.rate, last)

    def first_caches(self, memory: Memory, targets: tf.Tensor) -> States:
        """Returns the states of B * K `targets` before their first token."""
        starts = _repeated(memory, targets)
        cells = [tf.tanh(tf.cast(start, tf.float32)) for start in starts]
        return [(tf.tanh(c), c) for c in cells]

    def step(self, ids, position, memory, caches):  # [B * K, 1]
        """Returns `hidden` of one more token, and the states after it."""
        del position  # The states belong to it.
        x = self.embeddings(ids)  # [B * K, 1, D]
        states = []
        for layer, pair in zip(self.layers, caches, strict=True):
            h, c = layer.step(x[:, 0], *pair)
            states.append((h, c))
            x = tf.cast(h, x.dtype)[:, tf.newaxis]
        return self.attention(x, memory.sequence, memory.mask), states

    def logits(self, x: tf.Tensor) -> tf.Tensor:  # [B, T, D]
        """Returns float32 logits [B, T, V]."""
        words = tf.convert_to_tensor(self.embeddings.word_embeddings)
        return tf.cast(self.predictions(x, words), tf.float32)


def _repeated(memory: Memory, targets: tf.Tensor) -> list[tf.Tensor]:
    """Returns the `starts` of B * K targets, [B * K, D]."""
    count = targets // tf.shape(memory.sequence)[0]
    tiled = (tf.tile(x[:, tf.newaxis], [1, count, 1]) for x in memory.starts)
    return [tf.reshape(x, [-1, x.shape[-1]]) for x in tiled]


# ---- Family entry ----------------------------------------------------------

_WAYS = {
    f"bilstm/lstm/layer_{{}}/{way}/{name}": letters.replace("E", "D")
    for way in ("forward", "backward")
    for name, letters in bilstm.DIRECTION.items()
}

_ATTENTION = {
    "decoder/attention/score": "DD",
    "decoder/attention/output/kernel": "WD",
    "decoder/attention/output/bias": "D",
}

BILSTM_ATTENTION = family.Family(
    name="bilstm_attention",
    config=BiLstmAttentionConfig,
    model=BiLstmAttention,
    variables={
        "bilstm/embeddings/word_embeddings": "VD",
        **_WAYS,
        "decoder/layer_{}/kernel": "DQ",
        "decoder/layer_{}/recurrent_kernel": "DQ",
        "decoder/layer_{}/bias": "Q",
        "decoder/layer_{}/start/kernel": "DD",
        "decoder/layer_{}/start/bias": "D",
        **_ATTENTION,
    },
    words="bilstm/embeddings/word_embeddings",
    pooler=frozenset(),
    # Above all layers, so they learn at the rate of heads.
    on_top=frozenset(_ATTENTION),
    sizes=lambda config: {
        "H": config.units,
        "G": 4 * config.units,
        "Q": 4 * config.hidden_size,
    },
    vocabularies=encoder_decoders.VASWANI.vocabularies,
    decoder=Decoder,
)
families.register(BILSTM_ATTENTION)
