"""ELMo (Peters et al., 2018, https://arxiv.org/abs/1802.05365).

A convolution over its characters makes a vector of each word (Kim et al., 2016,
https://arxiv.org/abs/1508.06615). Two stacks of LSTMs with projections read the
words, one from each end. Tasks read a mixture of all layers, whose weights they
learn: `gamma` times the mean by the softmax of `weights`.

Tokens are the characters of words (elmo_characters.py), so rows have more
tokens than words. All tokens of a word get the vector of the word.

Shapes as in modeling.py, and E: size of a character's vector; X: words of a
row; Y: characters of a word, `max_characters`; N: filters; K: values of all
filters for a character; H: highway layers; P: size of a direction's output, D /
2; I: inputs of a cell, 2 P; U: units of a cell; G: gates of all units, 4 U, in
the order input, candidate, forget, output; Q: layers of the mixture, L + 1.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from bert_tf import compiled, modeling
from bert_tf.contrib import bilstm, elmo_characters, elmo_weights, students
from bert_tf.contrib.elmo_config import ElmoConfig
from bert_tf.encoders import families, family, foreign, ops
from bert_tf.storage import weight_files

import keras
import tensorflow as tf

_FORGET = 1.0  # Added to the forget gate.
_EPSILON = 1e-12

# ---- Variables ---------------------------------------------------------------

# Name -> letters of the shape.
_WORDS = {
    "word_embeddings": "VE",
    "filter_kernel": "EK",
    "filter_bias": "N",
    "carry_kernel": "HNN",
    "carry_bias": "HN",
    "transform_kernel": "HNN",
    "transform_bias": "HN",
    "projection_kernel": "NP",
    "projection_bias": "P",
}
_CELL = {"kernel": "IG", "bias": "G", "projection": "UP"}
_MIXTURE = {"weights": "Q", "gamma": "1"}
# The mixture is the mean before training.
_START = {"weights": "zeros", "gamma": "ones"}


def _sizes(config: ElmoConfig) -> dict[str, int]:
    return {
        "K": sum(width * count for width, count in config.filters),
        "N": config.num_filters,
        "H": config.num_highways,
        "P": config.units,
        "I": 2 * config.units,
        "U": config.cell_size,
        "G": 4 * config.cell_size,
        "Q": config.num_hidden_layers + 1,
    }


class _Part(keras.layers.Layer):
    """A layer with the variables of a table."""

    table: ClassVar[Mapping[str, str]]

    def __init__(self, config: ElmoConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape=None):
        config = self.config
        sizes = {"V": config.vocab_size, "E": config.embedding_size, "1": 1}
        sizes |= _sizes(config)
        for name, letters in self.table.items():
            usual = "zeros" if "bias" in name else "glorot_uniform"
            weight = self.add_weight(
                name=name,
                shape=[sizes[x] for x in letters],
                initializer=_START.get(name, usual),
            )
            setattr(self, f"own_{name}", weight)

    def own(self, name: str) -> tf.Tensor:
        """Returns the value of a variable."""
        return tf.convert_to_tensor(getattr(self, f"own_{name}"))


# ---- Words -------------------------------------------------------------------


class Words(NamedTuple):
    """The words of rows of characters."""

    characters: tf.Tensor  # [B, X, Y] int32
    is_word: tf.Tensor  # [B, X] bool
    of_tokens: tf.Tensor  # [B, S] int32, the index of each token's word


def group(ids: tf.Tensor, is_token: tf.Tensor, length: int) -> Words:
    """Joins the tokens of each word.

    Args:
        ids: Ids of elmo_characters, int32 [B, S].
        is_token: 0 for padding, otherwise 1, int32 [B, S].
        length: Characters of a word, Y, with the marks at both ends. Longer
            words lose their end.
    """
    S, padding = tf.shape(ids)[1], elmo_characters.PAD
    # A window may begin inside a word: what it has of the word is one.
    follows = students.next_to(is_token, -1) > 0
    begins = (is_token > 0) & ((ids == elmo_characters.WORD) | ~follows)
    numbers = tf.cumsum(tf.cast(begins, tf.int32), axis=1)  # [B, S], from 1
    most = tf.maximum(tf.reduce_max(numbers), 1)
    # Compiled programs have fixed shapes, and any token may be a word.
    X = S if compiled.is_compiled() else most
    starts = tf.sort(tf.where(begins, tf.range(S), S), axis=1)[:, :X]
    places = tf.expand_dims(starts, 2) + tf.range(length - 1)  # [B, X, Y - 1]
    inside, places = places < S, tf.minimum(places, S - 1)
    found = tf.gather(numbers * is_token, places, batch_dims=1)
    own = inside & (found == tf.expand_dims(tf.range(X) + 1, 1))
    characters = tf.gather(ids, places, batch_dims=1)
    characters = tf.where(own, characters, padding)
    characters = tf.pad(
        characters, [[0, 0], [0, 0], [0, 1]], constant_values=padding
    )
    ends = tf.reduce_sum(tf.cast(own, tf.int32), axis=2, keepdims=True)
    is_end = tf.range(length) == ends  # [B, X, Y]
    return Words(
        tf.where(is_end, elmo_characters.END, characters),
        own[:, :, 0],
        tf.maximum(numbers - 1, 0),
    )


class Characters(_Part):
    """The vector of each word: filters, highway layers and a projection."""

    table = _WORDS

    def call(self, characters):  # [B, X, Y]
        """Returns the vectors of words, [B, X, P]."""
        config = self.config
        rows = tf.reshape(characters, [-1, config.max_characters])
        x = ops.embed(self.own("word_embeddings"), rows)  # [B * X, Y, E]
        sizes = [width * count for width, count in config.filters]
        kernels = tf.split(self.own("filter_kernel"), sizes, axis=1)
        found = []
        for (width, count), kernel in zip(config.filters, kernels, strict=True):
            kernel = tf.reshape(kernel, [-1, width, count])
            kernel = tf.transpose(kernel, [1, 0, 2])
            y = tf.nn.conv1d(x, kernel, stride=1, padding="VALID")
            found.append(tf.reduce_max(y, axis=1))  # [B * X, count]
        # The bias and the activation preserve order, so the max comes first.
        x = ops.add_bias(tf.concat(found, axis=-1), self.own("filter_bias"))
        x = ops.ACTIVATIONS[config.hidden_act](x)  # [B * X, N]
        gates, changes = (
            [self.own(f"{name}_{kind}") for kind in ("kernel", "bias")]
            for name in ("carry", "transform")
        )
        for i in range(config.num_highways):
            gate = tf.sigmoid(ops.affine(x, *(y[i] for y in gates)))
            change = tf.nn.relu(ops.affine(x, *(y[i] for y in changes)))
            x = gate * change + (1 - gate) * x
        x = ops.affine(
            x, self.own("projection_kernel"), self.own("projection_bias")
        )
        size = tf.concat([tf.shape(characters)[:2], [config.units]], axis=0)
        return tf.reshape(x, size)


# ---- LSTMs -------------------------------------------------------------------


class Lstm(_Part):
    """An LSTM with a projection, which clips cells and outputs.

    It reads a sequence forward, or backward with `from_end`. Nothing enters the
    cell state at padding, and the output is 0.
    """

    table = _CELL

    def __init__(self, config: ElmoConfig, from_end: bool, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.from_end = from_end

    def call(self, x, is_word):  # [B, X, P], [B, X] bool
        """Returns the outputs, [B, X, P]."""
        of_inputs, of_states = tf.split(self.own("kernel"), 2)  # [P, G] each
        gates = ops.affine(x, of_inputs, self.own("bias"))  # [B, X, G]
        closing = [bilstm.CLOSED, 0.0, bilstm.OPEN, bilstm.CLOSED]
        closing = tf.repeat(closing, self.config.cell_size)  # [G]
        no_word = tf.expand_dims(tf.cast(~is_word, tf.float32), 2)
        gates = tf.cast(gates, tf.float32) + no_word * closing
        gates = tf.transpose(gates, [1, 0, 2])  # [X, B, G]
        gates = tf.reverse(gates, [0]) if self.from_end else gates
        states = self._recur(
            gates,
            tf.cast(of_states, tf.float32),
            tf.cast(self.own("projection"), tf.float32),
        )
        states = tf.reverse(states, [0]) if self.from_end else states
        return tf.cast(tf.transpose(states, [1, 0, 2]), x.dtype)

    def _recur(self, gates, kernel, projection):  # [X, B, G], [P, G], [U, P]
        config = self.config
        steps, B, _ = tf.unstack(tf.shape(gates))

        # Not tf.gather: its gradient would have the size of all gates, in each
        # step.
        inputs = tf.TensorArray(
            tf.float32, steps, element_shape=gates.shape[1:]
        ).unstack(gates)

        def step(t, h, c, states):
            parts = inputs.read(t) + tf.matmul(h, kernel)  # [B, G]
            i, j, f, o = tf.split(parts, 4, axis=-1)
            c = tf.sigmoid(f + _FORGET) * c + tf.sigmoid(i) * tf.tanh(j)
            c = _clip(c, config.cell_clip)  # [B, U]
            h = tf.matmul(tf.sigmoid(o) * tf.tanh(c), projection)
            h = _clip(h, config.projection_clip)  # [B, P]
            return t + 1, h, c, states.write(t, h)

        h, c = (tf.zeros([B, x]) for x in (config.units, config.cell_size))
        states = tf.TensorArray(tf.float32, steps, element_shape=h.shape)
        *_, states = tf.while_loop(
            lambda t, *_: t < steps,
            step,
            (0, h, c, states),
            maximum_iterations=steps,  # XLA needs it for the gradient
        )
        return states.stack()  # [X, B, P]


def _clip(x: tf.Tensor, most: float | None) -> tf.Tensor:
    return x if most is None else tf.clip_by_value(x, -most, most)


class BothWays(bilstm.BothWays):
    """An LSTM for each direction."""

    def __init__(self, config: ElmoConfig, **kwargs: Any):
        keras.layers.Layer.__init__(self, **kwargs)
        self.forward = Lstm(config, from_end=False, name="forward")
        self.backward = Lstm(config, from_end=True, name="backward")


class Stack(keras.layers.Layer):
    """Layers of both directions; each layer reads the layer below."""

    def __init__(self, config: ElmoConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.skips = config.skip_connections
        self.layers = [
            BothWays(config, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        ]

    def build(self, input_shape=None):
        for layer in self.layers:
            layer.build()

    def call(self, x, is_word):  # [B, X, P], [B, X]
        """Returns `x` twice and the outputs of each layer, [B, X, D] each."""
        ways, outputs = [x, x], [tf.concat([x, x], axis=-1)]
        for i, layer in enumerate(self.layers):
            states = layer(*ways, is_word)
            is_added = self.skips and i > 0
            ways = [*map(tf.add, states, ways)] if is_added else [*states]
            outputs.append(tf.concat(ways, axis=-1))
        return outputs


# ---- The model ---------------------------------------------------------------


class Mixture(_Part):
    """The weighted mean of layers, scaled: the paper's equation 1."""

    table = _MIXTURE

    def call(self, layers):  # Q times [B, X, D]
        """Returns the mixture, [B, X, D]."""
        if self.config.mixture_norm:
            one = tf.ones_like(layers[0][0, 0], tf.float32)  # [D]
            how = (one, 0 * one, _EPSILON)
            layers = [ops.normalize_in_float32(x, *how) for x in layers]
        shares = tf.unstack(tf.nn.softmax(self.own("weights")))
        parts = [share * x for share, x in zip(shares, layers, strict=True)]
        return self.own("gamma") * tf.add_n(parts)


class Elmo(students.Student):
    """ELMo without a head.

    In its outputs, `layers` has the vectors of words, twice, the output of each
    LSTM layer, and the mixture, which is also `sequence`. `pooled` is computed
    from the mean of the mixture over all words.
    """

    config: ElmoConfig
    scope = "elmo"

    def make_parts(self):
        self.embeddings = Characters(self.config, name="embeddings")
        self.encoder = Stack(self.config, name="lstm")
        self.mixture = Mixture(self.config, name="mixture")
        self.pooler = modeling.Pooler(self.config, name="pooler")

    def build_parts(self):
        super().build_parts()
        self.mixture.build()

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert; only heads apply dropout."""
        ids, is_token = self.read(inputs)
        is_token = tf.cast(is_token, tf.int32)
        words = group(ids, is_token, self.config.max_characters)
        x = self.embeddings(words.characters)  # [B, X, P]
        layers = self.encoder(x, words.is_word)  # Q times [B, X, D]
        mixed = self.mixture(layers)  # [B, X, D]
        # The second character of <S> and </S> is no byte.
        is_text = words.characters[:, :, 1] < elmo_characters.START
        is_text = tf.cast(is_text & words.is_word, mixed.dtype)
        is_text = tf.expand_dims(is_text, 2)  # [B, X, 1]
        count = tf.maximum(tf.reduce_sum(is_text, axis=1), 1)
        pooled = self.pooler(tf.reduce_sum(mixed * is_text, axis=1) / count)
        places = words.of_tokens  # [B, S]
        below = [tf.gather(y, places, batch_dims=1) for y in layers]
        places = ops.gather_rows(places, positions)  # [B, S or R]
        read = tf.gather(mixed, places, batch_dims=1)  # [B, S or R, D]
        return modeling.BertOutputs(read, pooled, below[0], [*below, read])


# ---- Family entry ------------------------------------------------------------

_OF_MIXTURE = {f"elmo/mixture/{x}": y for x, y in _MIXTURE.items()}
_POOLER = {"elmo/pooler/dense/kernel": "DD", "elmo/pooler/dense/bias": "D"}

ELMO = family.Family(
    name="elmo",
    config=ElmoConfig,
    model=Elmo,
    variables={
        **{f"elmo/embeddings/{x}": y for x, y in _WORDS.items()},
        **{
            f"elmo/lstm/layer_{{}}/{way}/{x}": y
            for way in ("forward", "backward")
            for x, y in _CELL.items()
        },
        **_OF_MIXTURE,
        **_POOLER,
    },
    words="elmo/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    sizes=_sizes,
    vocabularies=(elmo_characters.WordCharacters.kind,),
    config_file="options.json",
    # It learns at the rate of heads, also with --layer_decay.
    on_top=frozenset(_OF_MIXTURE),
    weights_file=foreign.WeightsFile(
        weight_files.BILM, elmo_weights.open_weights, elmo_characters.CONTENTS
    ),
)
families.register(ELMO)
