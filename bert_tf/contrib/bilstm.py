"""The BiLSTM encoder and its family entry.

It is the student of Tang et al., 2019 (https://arxiv.org/abs/1903.12136): one
layer that reads a sequence in both directions (Hochreiter & Schmidhuber, 1997,
with the forget gate of Gers et al., 2000). Classifiers read the last state of
each direction, through a dense layer with ReLU.

Shapes as in modeling.py, and E: size of the word vectors; H: units of a
direction, D / 2; G: gates of all units, 4 H, in the order input, forget,
output, candidate.
"""

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

from bert_tf import modeling
from bert_tf.contrib import students
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.encoders import families, family, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf

# Added to a gate to close or open it: its sigmoid is then exactly 0 or 1.
CLOSED, OPEN = -1e4, 1e4


@dataclasses.dataclass(frozen=True)
class BiLstmConfig(StudentConfig):
    """Architecture of a BiLSTM; each direction has half of `hidden_size`."""

    model_type: ClassVar[str] = "bilstm"
    architectures: ClassVar[str] = "BiLstm"

    hidden_size: int = 600  # D
    pooler_act: str = "relu"

    def __post_init__(self):
        super().__post_init__()
        check_even(self.hidden_size)

    @property
    def units(self) -> int:
        """Units of a direction, H."""
        return self.hidden_size // 2

    @property
    def activations(self) -> int:
        """Activations per token kept for training: gates, states, words."""
        return 30 * self.units + 3 * self.embedding_size


def check_even(hidden_size: int) -> None:
    """Raises InputError if `hidden_size` can't be halved."""
    if hidden_size % 2:
        raise InputError(
            "`hidden_size` must be even: each direction has half of it. "
            f"Received: hidden_size={hidden_size}"
        )


def recur(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Runs an LSTM over the steps of a sequence, from a zero state.

    Args:
        x: The inputs' contribution to the gates, [S, B, G].
        kernel: The recurrent kernel, from states to gates, [H, G].

    Returns:
        The hidden states after each step, [S, B, H].
    """

    # The gradient is written out: the gates of all steps are recomputed in one
    # product, and so is the kernel's gradient. Only the products that depend on
    # each other stay in the loop.
    @tf.custom_gradient
    def function(x, kernel):
        states, cells = _run(x, kernel)

        def gradient(dy):
            before, cells_before = map(_delayed, (states, cells))
            gates = tf.matmul(_rows(before), kernel)  # [S * B, G]
            gates = x + tf.reshape(gates, tf.shape(x))  # [S, B, G]
            d_gates = _run_back(dy, _slopes(gates, cells, cells_before), kernel)
            # Over steps and rows, [H, S * B] by [S * B, G].
            d_kernel = tf.matmul(
                _rows(before), _rows(d_gates), transpose_a=True
            )
            return d_gates, d_kernel

        return states, gradient

    return function(x, kernel)


def _run(x: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the hidden states and the cell states, both [S, B, H]."""
    steps, H = tf.shape(x)[0], kernel.shape[0]
    zeros = tf.zeros_like(x[0, :, :H])  # [B, H]

    def step(t, h, c, states, cells):
        h, c = advance(tf.gather(x, t) + tf.matmul(h, kernel), c)
        return t + 1, h, c, states.write(t, h), cells.write(t, c)

    *_, states, cells = tf.while_loop(
        lambda t, *_: t < steps,
        step,
        (0, zeros, zeros, _array(x, zeros), _array(x, zeros)),
        maximum_iterations=x.shape[0],
    )
    return states.stack(), cells.stack()


def advance(gates: tf.Tensor, c: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the hidden state and the cell state after a step, [B, H] each.

    Args:
        gates: The gates before their activations, [B, G].
        c: The cell state before the step, [B, H].
    """
    H = c.shape[-1]
    i, f, o = tf.split(tf.sigmoid(gates[..., : 3 * H]), 3, axis=-1)
    c = f * c + i * tf.tanh(gates[..., 3 * H :])
    return o * tf.tanh(c), c


def _array(x: tf.Tensor, value: tf.Tensor) -> tf.TensorArray:
    """Returns an empty TensorArray with as many entries as `x` has steps."""
    return tf.TensorArray(x.dtype, tf.shape(x)[0], element_shape=value.shape)


def _delayed(states: tf.Tensor) -> tf.Tensor:
    """Returns the states before each step, [S, B, H]."""
    return tf.concat([tf.zeros_like(states[:1]), states[:-1]], axis=0)


def _slopes(gates: tf.Tensor, cells: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
    """Returns the local derivatives for the backward pass, [S, B, 6 H].

    The first four are the derivatives with respect to the gates, in their
    order: of the cell state, or, for the output gate, of the hidden state. The
    fifth is the derivative of the hidden state with respect to the cell state.
    The last is the derivative of the cell state with respect to the previous
    one, which is the forget gate itself.
    """
    H = cells.shape[-1]
    i, f, o = tf.split(tf.sigmoid(gates[..., : 3 * H]), 3, axis=-1)
    g, y = tf.tanh(gates[..., 3 * H :]), tf.tanh(cells)
    return tf.concat(
        [
            g * i * (1 - i),
            before * f * (1 - f),
            y * o * (1 - o),
            i * (1 - g * g),
            o * (1 - y * y),
            f,
        ],
        axis=-1,
    )


def _run_back(dy: tf.Tensor, slopes: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Returns the gradients of the gates, [S, B, G]."""
    steps, H = tf.shape(dy)[0], kernel.shape[0]
    zeros = tf.zeros_like(dy[0])  # [B, H]
    some = tf.zeros_like(slopes[0, ..., : 4 * H])  # [B, G]

    def step(t, dh, dc, found):
        i, f, o, g, cell, keeps = tf.split(tf.gather(slopes, t), 6, axis=-1)
        dh += tf.gather(dy, t)
        dc += dh * cell
        d_gates = tf.concat([dc * i, dc * f, dh * o, dc * g], axis=-1)
        dh = tf.matmul(d_gates, kernel, transpose_b=True)
        return t - 1, dh, dc * keeps, found.write(t, d_gates)

    *_, found = tf.while_loop(
        lambda t, *_: t >= 0,
        step,
        (steps - 1, zeros, zeros, _array(dy, some)),
        maximum_iterations=dy.shape[0],
    )
    return found.stack()


def _rows(x: tf.Tensor) -> tf.Tensor:  # [S, B, E]
    """Flattens steps and batch into rows, [S * B, E]."""
    return tf.reshape(x, [-1, x.shape[-1]])


# ---- Layers -----------------------------------------------------------------


class Sizes(NamedTuple):
    """The sizes of an input vector and of the state of one direction."""

    vectors: int  # E
    units: int  # H


class Lstm(keras.layers.Layer):
    """An LSTM that reads a sequence forward, or backward with `from_end`.

    At padding, the input and output gates are closed and the forget gate is
    open: nothing enters the cell state, and it stays the same.
    """

    def __init__(self, sizes: Sizes, from_end: bool, **kwargs: Any):
        super().__init__(**kwargs)
        self.sizes = sizes
        self.from_end = from_end

    def build(self, input_shape=None):
        E, H = self.sizes
        # Glorot's initialization for each gate's part of the kernel.
        most = math.sqrt(6 / (E + H))
        self.kernel = self.add_weight(
            name="kernel",
            shape=(E, 4 * H),
            initializer=keras.initializers.RandomUniform(-most, most),
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(H, 4 * H),
            initializer=keras.initializers.Orthogonal(),
        )
        self.bias = self.add_weight(
            name="bias", shape=(4 * H,), initializer=_of_gates
        )

    def call(self, x, is_token, kernel=None):  # [B, S, E], [B, S]
        """Returns the hidden states, [B, S, H]; 0 for padding.

        `kernel` replaces the recurrent kernel, such as one with dropout.
        """
        H = self.sizes.units
        kernel = self.recurrent_kernel if kernel is None else kernel
        gates = tf.cast(ops.affine(x, self.kernel, self.bias), tf.float32)
        no_token = 1 - tf.cast(is_token, tf.float32)[:, :, tf.newaxis]
        # Input, forget and output gates; the candidate is then unused.
        closing = tf.repeat([CLOSED, OPEN, CLOSED, 0.0], H)  # [G]
        gates = tf.transpose(gates + no_token * closing, [1, 0, 2])
        if self.from_end:
            gates = tf.reverse(gates, [0])
        states = recur(gates, tf.cast(kernel, tf.float32))
        if self.from_end:
            states = tf.reverse(states, [0])  # [S, B, H]
        return tf.cast(tf.transpose(states, [1, 0, 2]), x.dtype)


def _of_gates(shape: Any, dtype: Any = None) -> tf.Tensor:
    """Ones for forget gates, otherwise zeros (Jozefowicz et al., 2015)."""
    return tf.repeat(tf.constant([0.0, 1.0, 0.0, 0.0], dtype), shape[0] // 4)


class BothWays(keras.layers.Layer):
    """An LSTM for each direction."""

    def __init__(self, sizes: Sizes, **kwargs: Any):
        super().__init__(**kwargs)
        self.forward = Lstm(sizes, from_end=False, name="forward")
        self.backward = Lstm(sizes, from_end=True, name="backward")

    def build(self, input_shape=None):
        self.forward.build()
        self.backward.build()

    def call(self, ahead, back, is_token):  # [B, S, E] twice, [B, S]
        """Returns the hidden states of both directions, [B, S, H] each."""
        return self.forward(ahead, is_token), self.backward(back, is_token)


def ends(states: tf.Tensor, is_token: tf.Tensor) -> tf.Tensor:
    """Returns the last state of each direction, [B, 2 H].

    `states` are [B, S, 2 H], forward then backward. `is_token` is 0 or 1,
    [B, S].
    """
    last = is_token * (1 - students.next_to(is_token, 1))  # [B, S]
    first = is_token * (1 - students.next_to(is_token, -1))
    ways = tf.split(states, 2, axis=-1)  # [B, S, H] each
    found = [
        tf.reduce_sum(y * end[:, :, tf.newaxis], axis=1)
        for y, end in zip(ways, (last, first), strict=True)
    ]
    return tf.concat(found, axis=-1)


class BiLstm(students.Student):
    """A BiLSTM without a head.

    In its outputs, `sequence` has the concatenated states of both directions,
    and `layers` contains only these.
    """

    config: BiLstmConfig
    scope = "bilstm"

    def make_parts(self):
        self.embeddings = students.Words(self.config, name="embeddings")
        sizes = Sizes(self.config.embedding_size, self.config.units)
        self.encoder = BothWays(sizes, name="lstm")
        self.pooler = modeling.Pooler(self.config, name="pooler")

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert; with dropout of word vectors."""
        ids, is_token = self.read(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        x = self.embeddings(ids)  # [B, S, E]
        x = ops.dropout(x, self.config.hidden_dropout_prob, dropout_seed)
        states = tf.concat(self.encoder(x, x, is_token), axis=-1)  # [B, S, D]
        pooled = self.pooler(ends(states, is_token))  # [B, D]
        read = ops.gather_rows(states, positions)  # [B, S or R, D]
        return modeling.BertOutputs(read, pooled, x, [read])


# ---- Family entry ----------------------------------------------------------


DIRECTION = {"kernel": "EG", "recurrent_kernel": "HG", "bias": "G"}
_POOLER = {"bilstm/pooler/dense/kernel": "DD", "bilstm/pooler/dense/bias": "D"}

BILSTM = family.Family(
    name="bilstm",
    config=BiLstmConfig,
    model=BiLstm,
    variables={
        "bilstm/embeddings/word_embeddings": "VE",
        **{f"bilstm/lstm/forward/{n}": x for n, x in DIRECTION.items()},
        **{f"bilstm/lstm/backward/{n}": x for n, x in DIRECTION.items()},
        **_POOLER,
    },
    words="bilstm/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    sizes=lambda config: {"H": config.units, "G": 4 * config.units},
)
families.register(BILSTM)
