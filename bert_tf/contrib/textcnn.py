"""The TextCNN encoder and its family entry.

Filters read windows of words, and classifiers read the largest value of each
filter in a sequence (Kim, 2014, https://arxiv.org/abs/1408.5882). There is no
vector for each token.

Shapes as in modeling.py, and E: size of the word vectors; F: filters of each
width; W: the sum of all widths.
"""

import dataclasses
import math
from typing import Any, ClassVar

from bert_tf import modeling
from bert_tf.contrib import students
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.encoders import families, family
from bert_tf.errors import InputError

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class TextCnnConfig(StudentConfig):
    """Architecture of a TextCNN; the defaults are the paper's.

    The `hidden_size` filters are divided evenly between the widths.
    """

    model_type: ClassVar[str] = "textcnn"
    architectures: ClassVar[str] = "TextCnn"
    gives_sequence: ClassVar[bool] = False
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = (
        *StudentConfig.unread,
        *StudentConfig.of_layers,
    )

    hidden_dropout_prob: float = 0.5
    filter_widths: tuple[int, ...] = (3, 4, 5)

    def __post_init__(self):
        super().__post_init__()
        widths = self.filter_widths
        if isinstance(widths, list | tuple):
            object.__setattr__(self, "filter_widths", tuple(widths))
        if (
            not isinstance(widths, list | tuple)
            or not widths
            or not all(type(x) is int and x > 0 for x in widths)
        ):
            raise InputError(
                "`filter_widths` must be a list of numbers of words, such as "
                f"[3, 4, 5]. Received: filter_widths={widths!r}"
            )
        if self.hidden_size % len(widths):
            raise InputError(
                "`hidden_size`, the number of all filters, must be a multiple "
                "of how many widths there are. "
                f"Received: hidden_size={self.hidden_size}, "
                f"filter_widths={list(widths)}"
            )

    @property
    def num_filters(self) -> int:
        """The number of filters of each width, F."""
        return self.hidden_size // len(self.filter_widths)

    @property
    def activations(self) -> int:
        """Activations per token kept for training: products, sums, words."""
        products = (sum(self.filter_widths) + 1) * self.num_filters
        return products + 2 * self.hidden_size + 3 * self.embedding_size


class Windows(keras.layers.Layer):
    """Filters over windows of words, with max pooling over the sequence.

    Words after the end of a sequence are zero. A window that reaches past the
    end is ignored, unless the whole sequence is shorter than the window: then
    the first window counts.
    """

    def __init__(self, config: TextCnnConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape=None):
        config = self.config
        E, F = config.embedding_size, config.num_filters
        W = sum(config.filter_widths)
        # Glorot's initialization, for filters of the mean width.
        most = math.sqrt(6 / (E + F) * len(config.filter_widths) / W)
        self.kernel = self.add_weight(
            name="kernel",
            shape=(E, W, F),
            initializer=keras.initializers.RandomUniform(-most, most),
        )
        self.bias = self.add_weight(
            name="bias", shape=(config.hidden_size,), initializer="zeros"
        )

    def call(self, x, is_token):  # [B, S, E], [B, S]
        """Returns the largest value of each filter, [B, D]."""
        widths = self.config.filter_widths
        length = tf.shape(x)[1]
        # LiteRT does not support slices with new axes.
        x *= tf.expand_dims(is_token, -1)
        x = tf.pad(x, [[0, 0], [0, max(widths) - 1], [0, 0]])
        # The product of each word with each position of each filter, all at
        # once.
        E = x.shape[-1]
        kernel = tf.reshape(self.kernel, [E, -1])  # [E, W * F]
        products = tf.matmul(tf.reshape(x, [-1, E]), kernel)
        batch, padded = tf.unstack(tf.shape(x)[:2])
        products = tf.reshape(products, [batch, padded, kernel.shape[1]])
        parts = iter(tf.split(products, sum(widths), axis=-1))  # [B, .., F]
        first = is_token * (1 - students.next_to(is_token, -1))  # [B, S]
        largest = []
        for width in widths:
            windows = tf.add_n(
                [next(parts)[:, i : i + length] for i in range(width)]
            )  # [B, S, F]
            last = is_token * students.next_to(is_token, width - 1)
            counts = tf.expand_dims(tf.maximum(first, last), -1) > 0
            windows = tf.where(counts, windows, windows.dtype.min)
            largest.append(tf.reduce_max(windows, axis=1))  # [B, F]
        # Adding the bias and ReLU preserve order, so the max can come first.
        return tf.nn.relu(tf.concat(largest, axis=-1) + self.bias)


class TextCnn(students.Student):
    """TextCNN without a head.

    In its outputs, `sequence` is None: there are no vectors of tokens.
    """

    config: TextCnnConfig
    scope = "textcnn"

    def make_parts(self):
        self.embeddings = students.Words(self.config, name="embeddings")
        self.encoder = Windows(self.config, name="windows")

    def build_parts(self):
        self.embeddings.build()
        self.encoder.build()

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert; only heads apply dropout."""
        ids, is_token = self.read(inputs)
        x = self.embeddings(ids)  # [B, S, E]
        pooled = self.encoder(x, is_token)  # [B, D]
        return modeling.BertOutputs(None, pooled, x, [])


# ---- Family entry ----------------------------------------------------------


TEXTCNN = family.Family(
    name="textcnn",
    config=TextCnnConfig,
    model=TextCnn,
    variables={
        "textcnn/embeddings/word_embeddings": "VE",
        "textcnn/windows/kernel": "EWF",
        "textcnn/windows/bias": "D",
    },
    words="textcnn/embeddings/word_embeddings",
    pooler=frozenset(),
    sizes=lambda config: {
        "F": config.num_filters,
        "W": sum(config.filter_widths),
    },
)
families.register(TEXTCNN)
