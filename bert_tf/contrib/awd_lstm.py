"""The AWD-LSTM of ULMFiT and its family entry.

LSTM layers read from left to right and learn to predict each next token, with
the table of words as output layer (Merity et al., 2017,
https://arxiv.org/abs/1708.02182). Classifiers read the last state, and max and
mean of all states, through a hidden layer (Howard & Ruder, 2018,
https://arxiv.org/abs/1801.06146, section 3.3). The details follow fastai.

Shapes as in modeling.py, and E: size of the word vectors and of the last layer;
H: size of the layers below; D: size of the hidden layer; W: size of its input,
3 E; G: gates of H units, 4 H; K: gates of E units, 4 E.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

from bert_tf import configuration, modeling
from bert_tf.contrib import bilstm, esim, fastai_names, students
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.encoders import families, family, layers, model_inputs, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf

# Of batch normalization, as in PyTorch; and its variables.
_MOMENTUM, _EPSILON = 0.1, 1e-5
_NORM = {
    "gamma": "ones",
    "beta": "zeros",
    "moving_mean": "zeros",
    "moving_variance": "ones",
}

# ---- Config ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class AwdLstmConfig(StudentConfig):
    """Architecture of an AWD-LSTM; the defaults are fastai's.

    `hidden_size` is the size of the classifier's hidden layer.
    """

    model_type: ClassVar[str] = "awd_lstm"
    architectures: ClassVar[str] = "AwdLstm"
    pretraining_head: ClassVar[str | None] = "next_piece"
    has_transform: ClassVar[bool] = False
    sizes: ClassVar[tuple[str, ...]] = (
        *StudentConfig.sizes,
        *("num_hidden_layers", "lstm_size"),
    )
    unread: ClassVar[tuple[str, ...]] = (
        *StudentConfig.of_attention,
        *StudentConfig.of_layers,
    )

    hidden_size: int = 50  # D
    num_hidden_layers: int = 3  # L
    embedding_size: int = 400  # E
    lstm_size: int = 1152  # H
    # Dropout between layers; of words; of word vectors; of recurrent kernels;
    # of the last layer, or the input of the hidden layer; of the hidden layer.
    hidden_dropout_prob: float = 0.15
    embedding_dropout_prob: float = 0.02
    input_dropout_prob: float = 0.25
    recurrent_dropout_prob: float = 0.2
    output_dropout_prob: float = 0.1
    classifier_dropout_prob: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        rates = (x for x in vars(self) if x.endswith("_dropout_prob"))
        for name in rates:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < 1:
                raise InputError(
                    f"`{name}` must be a number, at least 0 and below 1. "
                    f"Received: {name}={value!r}"
                )

    @property
    def head_dropout_prob(self) -> float:
        """The dropout rate of a classifier's input."""
        return self.classifier_dropout_prob

    @property
    def layer_sizes(self) -> list[bilstm.Sizes]:
        """The sizes of each layer. The last one has states of size E."""
        E, H, L = self.embedding_size, self.lstm_size, self.num_hidden_layers
        pairs = itertools.pairwise([E, *[H] * (L - 1), E])
        return [bilstm.Sizes(*pair) for pair in pairs]

    @property
    def activations(self) -> int:
        """Activations per token kept for training: gates, states, words."""
        return sum(15 * x.units + 2 * x.vectors for x in self.layer_sizes)

    def check_replicas(self, count: int) -> None:
        """Raises InputError on several replicas, with a batch for each."""
        if count > 1:
            raise InputError(
                "The classifier of an AWD-LSTM normalizes batches, and is "
                "trained on one device: use --distribution_strategy=default. "
                f"Received: {count} replicas"
            )

    def check_gives_sequence(self, reader: str) -> None:
        """Raises InputError for `reader`, which is not a language model."""
        raise InputError(
            "This encoder is for language models and classifiers: choose "
            f"another one for {reader}. "
            f"Received: model_type={self.model_type}"
        )

    def check_head(self, head: Any) -> None:
        """Raises InputError for heads over tokens, and over choices.

        Only the head of language models takes states of size E. Padding of
        choices would enter the statistics of a batch.
        """
        reads_others = head.reads_choices or head.reads_sequence
        if reads_others and not head.predicts_next:
            self.check_gives_sequence(f"the head {head.name}")


# ---- Layers ------------------------------------------------------------------


def dropout_of_all_steps(
    x: tf.Tensor, rate: float, seed: tf.Tensor | None
) -> tf.Tensor:
    """Zeroes the same features of `x` [B, S, E] at all positions."""
    if seed is None:
        return x
    return x * ops.dropout(tf.ones_like(x[:, :1]), rate, seed)


class Stack(keras.layers.Layer):
    """LSTM layers with dropout of recurrent kernels and between the layers."""

    def __init__(self, config: AwdLstmConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.layers = [
            bilstm.Lstm(sizes, from_end=False, name=f"layer_{i}")
            for i, sizes in enumerate(config.layer_sizes)
        ]

    def build(self, input_shape=None):
        for layer in self.layers:
            layer.build()

    def call(self, x, is_token, seeds):  # [B, S, E], [B, S], 2 L seeds
        """Returns the outputs of each layer, [B, S, H] or [B, S, E]."""
        config, outputs = self.config, []
        for i, layer in enumerate(self.layers):
            if i:
                rate = config.hidden_dropout_prob
                x = dropout_of_all_steps(x, rate, seeds[2 * i + 1])
            kernel = ops.dropout(
                tf.convert_to_tensor(layer.recurrent_kernel),
                config.recurrent_dropout_prob,
                seeds[2 * i],
            )
            x = layer(x, is_token, kernel)
            outputs.append(x)
        return outputs


class BatchNorm(keras.layers.Layer):
    """Batch normalization over rows, with the statistics of PyTorch."""

    def __init__(self, config: AwdLstmConfig, size: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.size = size

    def build(self, input_shape=None):
        for name, value in _NORM.items():
            variable = self.add_weight(
                name=name,
                shape=(self.size,),
                initializer=value,
                trainable=not name.startswith("moving"),
                autocast=False,
            )
            setattr(self, name, variable)

    def call(self, x, learns):  # [B, size]
        """Normalizes by statistics of the batch if `learns`, else moving ones.

        Raises InputError on several replicas, whose statistics would differ,
        and for a single row, whose values would be the mean.
        """
        dtype, x = x.dtype, tf.cast(x, tf.float32)
        moving = (self.moving_mean, self.moving_variance)
        mean, variance = map(tf.convert_to_tensor, moving)
        if learns and x.shape[0] == 1:
            raise InputError(
                "The norms of this classifier need several examples at a time. "
                "Raise --train_batch_size, or lower "
                "--gradient_accumulation_steps. Received: batches of 1 example"
            )
        if learns:
            context = tf.distribute.get_replica_context()
            if context is not None:
                self.config.check_replicas(context.num_replicas_in_sync)
            before, rows = (mean, variance), tf.cast(tf.shape(x)[0], tf.float32)
            mean, variance = tf.nn.moments(x, axes=[0])
            unbiased = variance * rows / tf.maximum(rows - 1, 1)
            pairs = zip(moving, before, (mean, unbiased), strict=True)
            for variable, old, new in pairs:
                variable.value.assign(old + _MOMENTUM * (new - old))
        x = (x - mean) * tf.math.rsqrt(variance + _EPSILON)
        return tf.cast(x * self.gamma + self.beta, dtype)


class Pooler(keras.layers.Layer):
    """The hidden layer of the classifier, between batch normalizations."""

    def __init__(self, config: AwdLstmConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = config.output_dropout_prob
        W, D = 3 * config.embedding_size, config.hidden_size
        self.norms = tuple(
            BatchNorm(config, size, name=f"batch_norm_{i}")
            for i, size in enumerate((W, D))
        )
        self.dense = layers.Dense(config, W, D, name="dense")
        self.dense.kernel_initializer = keras.initializers.HeUniform()

    def build(self, input_shape=None):
        self.dense.build()
        for norm in self.norms:
            norm.build()

    def call(self, x, dropout_seed, learns):  # [B, W]
        x = self.norms[0](x, learns=learns)
        x = tf.nn.relu(self.dense(ops.dropout(x, self.rate, dropout_seed)))
        return self.norms[1](x, learns=learns)  # [B, D]


class AwdLstm(students.Student):
    """An AWD-LSTM without a head.

    In its outputs, `sequence` is the last layer, [B, S, E], and `pooled` the
    classifier's hidden layer.

    Attributes:
        keep: Gets the last states of every call; see watching.keeping_sequence.
    """

    config: AwdLstmConfig
    scope = "awd_lstm"
    keep: Callable[[tf.Tensor], None] | None = None

    def make_parts(self):
        self.embeddings = students.Words(self.config, name="embeddings")
        self.encoder = Stack(self.config, name="lstm")
        self.pooler = Pooler(self.config, name="pooler")

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert.

        Heads over `pooled` pass `positions`. The pooler's moving statistics
        change only then, and with dropout: language models do not use it.
        """
        inputs, config = model_inputs.standard(inputs), self.config
        ids, is_token = self.read(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        rows, vectors, output, pooler, *others = ops.split_seed(
            dropout_seed, 4 + 2 * config.num_hidden_layers
        )
        words = x = self.embeddings(ids)  # [B, S, E]
        if rows is not None:
            kept = tf.ones([config.vocab_size, 1], x.dtype)
            kept = ops.dropout(kept, config.embedding_dropout_prob, rows)
            x *= tf.gather(kept, ids)
        x = dropout_of_all_steps(x, config.input_dropout_prob, vectors)
        *below, states = self.encoder(x, is_token, others)  # [B, S, E]
        last = model_inputs.last_tokens(inputs["input_mask"])  # [B, 1]
        last = ops.gather_rows(states, last)[:, 0]  # [B, E]
        mean, largest = tf.split(esim.pool(states, is_token), 2, axis=-1)
        pooled = self.pooler(
            tf.concat([last, largest, mean], axis=-1),  # [B, W]
            pooler,
            learns=dropout_seed is not None and positions is not None,
        )
        rate = config.output_dropout_prob
        states = dropout_of_all_steps(states, rate, output)
        if self.keep is not None:
            self.keep(states)
        states = ops.gather_rows(states, positions)  # [B, S or R, E]
        return modeling.BertOutputs(states, pooled, words, [*below, states])


# ---- Family entry ----------------------------------------------------------


class Family(family.Family):
    """A family whose first and last layers have other shapes."""

    def names(self, config: configuration.BertConfig) -> dict[str, str]:
        """Returns name -> letters of its shape, of a config's model."""
        first, last = (
            f"awd_lstm/lstm/layer_{i}/{{}}".format
            for i in (0, config.num_hidden_layers - 1)
        )
        found = super().names(config)
        found |= {last(n): x.replace("G", "K") for n, x in _LSTM.items()}
        found[last("recurrent_kernel")] = "EK"
        kernel = first("kernel")
        return found | {kernel: found[kernel].replace("H", "E")}


def _sizes(config: AwdLstmConfig) -> dict[str, int]:
    E, H = config.embedding_size, config.lstm_size
    return {"H": H, "G": 4 * H, "K": 4 * E, "W": 3 * E}


# Of the layers between the first and the last.
_LSTM = {"kernel": "HG", "recurrent_kernel": "HG", "bias": "G"}
_POOLER = {
    **{f"awd_lstm/pooler/batch_norm_0/{name}": "W" for name in _NORM},
    "awd_lstm/pooler/dense/kernel": "WD",
    "awd_lstm/pooler/dense/bias": "D",
    **{f"awd_lstm/pooler/batch_norm_1/{name}": "D" for name in _NORM},
}

AWD_LSTM = Family(
    name="awd_lstm",
    config=AwdLstmConfig,
    model=AwdLstm,
    variables={
        "awd_lstm/embeddings/word_embeddings": "VE",
        **{f"awd_lstm/lstm/layer_{{}}/{n}": x for n, x in _LSTM.items()},
        **_POOLER,
    },
    words="awd_lstm/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    sizes=_sizes,
    huggingface=fastai_names.TABLES,
)
families.register(AWD_LSTM)
