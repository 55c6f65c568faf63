"""The ESIM encoder of pairs of texts, and its family entry.

A BiLSTM reads each text; each token is compared with the tokens of the other
text that it attends to; a second BiLSTM reads the comparisons, and classifiers
read their mean and max (Chen et al., 2017, https://arxiv.org/abs/1609.06038).
The first text of a pair is the premise, the second the hypothesis.

Shapes as in modeling.py, and E: size of the word vectors; G: gates of all units
of a direction, 4 D; W: features of a token or a pair, 8 D. The first B of 2 B
rows are the first texts, the others the second texts.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from bert_tf import modeling
from bert_tf.contrib import bilstm, students
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.encoders import families, family, layers, model_inputs, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class EsimConfig(StudentConfig):
    """Architecture of an ESIM; the defaults are the paper's.

    `hidden_size` is the number of units of each direction and dense layer.
    """

    model_type: ClassVar[str] = "esim"
    architectures: ClassVar[str] = "Esim"
    gives_sequence: ClassVar[bool] = False
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = (
        *StudentConfig.unread,
        *StudentConfig.of_layers,
    )
    needs_pairs: ClassVar[bool] = True

    hidden_dropout_prob: float = 0.5
    type_vocab_size: int = 2

    @property
    def activations(self) -> int:
        """Activations per token kept for training: gates, comparisons, words.

        Every token is read twice, as padding of the other text's row, too.
        """
        return 2 * (2 * 60 + 3 * 8) * self.hidden_size + 6 * self.embedding_size

    def tells_apart(self, segments: Sequence[int]) -> bool:
        """Returns whether the segment ids of two texts differ."""
        return segments[0] != segments[1]

    def check_reads_pairs(self, segments: Sequence[int]) -> None:
        """Raises InputError if segment ids do not mark the second text."""
        if not self.tells_apart(segments):
            raise InputError(
                "This encoder finds the second text of a pair by its segment "
                "ids, and this vocabulary gives both texts the same: use a "
                "vocabulary such as BERT's. "
                f"Received: model_type={self.model_type}, segment ids "
                f"{segments[0]} and {segments[1]}"
            )


def attend(x: tf.Tensor, other: tf.Tensor, is_token: tf.Tensor) -> tf.Tensor:
    """Aligns each token of `x` with the tokens of the other text.

    `x`, `other` and the result are [2 B, S, 2 D]. The result is a weighted mean
    of `other`, with weights from the softmax of dot products. `is_token` is the
    mask of `other`, [2 B, S]. If it has no tokens, the result is 0, as its
    states are.
    """
    scores = tf.matmul(x, other, transpose_b=True)  # [2 B, S, S]
    scores = tf.cast(scores, tf.float32)
    scores += tf.expand_dims(-10000 * (1 - tf.cast(is_token, tf.float32)), 1)
    return tf.matmul(tf.cast(tf.nn.softmax(scores), x.dtype), other)


def pool(states: tf.Tensor, is_token: tf.Tensor) -> tf.Tensor:
    """Returns mean and max over tokens, [2 B, 4 D]; 0 without tokens.

    `states` are [2 B, S, 2 D] and 0 for padding; `is_token` is [2 B, S].
    """
    is_token = tf.expand_dims(is_token, -1)  # [2 B, S, 1]
    count = tf.reduce_sum(is_token, axis=1)  # [2 B, 1]
    mean = tf.math.divide_no_nan(tf.reduce_sum(states, axis=1), count)
    largest = tf.where(is_token > 0, states, states.dtype.min)
    largest = tf.where(count > 0, tf.reduce_max(largest, axis=1), 0)
    return tf.concat([mean, largest], axis=-1)


def _swapped(x: tf.Tensor) -> tf.Tensor:
    """Exchanges the first and the second texts, [2 B, ...]."""
    first, second = tf.split(x, 2)
    return tf.concat([second, first], axis=0)


class Esim(students.Student):
    """An ESIM without a head.

    In its outputs, `sequence` is None: there are no vectors of tokens.
    """

    config: EsimConfig
    scope = "esim"

    def make_parts(self):
        config = self.config
        E, D = config.embedding_size, config.hidden_size
        self.embeddings = students.Words(config, name="embeddings")
        self.encoder = bilstm.BothWays(bilstm.Sizes(E, D), name="encoding")
        self.projection = self._dense("projection")
        self.composition = bilstm.BothWays(
            bilstm.Sizes(D, D), name="composition"
        )
        self.pooler = self._dense("pooler")

    def _dense(self, name: str) -> layers.Dense:
        """Returns a layer from W to D with Glorot's initialization."""
        D = self.config.hidden_size
        dense = layers.Dense(self.config, 8 * D, D, name=name)
        dense.kernel_initializer = keras.initializers.GlorotUniform()
        return dense

    def build_parts(self):
        super().build_parts()
        self.projection.build()
        self.composition.build()

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert.

        `segment_ids` are 0 for the first text and 1 for the second. Dropout is
        applied to the inputs of all layers after it, as in the paper.
        """
        inputs = model_inputs.standard(inputs)
        ids, is_token = self.read(inputs)
        model_inputs.check_segments(inputs, self.config.type_vocab_size)
        rate = self.config.hidden_dropout_prob
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 3)
        words = self.embeddings(ids)  # [B, S, E]
        x = ops.dropout(words, rate, seeds[0])
        # A row for each text, in which the other text is padding.
        is_second = tf.cast(inputs["segment_ids"] > 0, is_token.dtype)  # [B, S]
        own = is_token * tf.stack([1 - is_second, is_second])  # [2, B, S]
        own = tf.concat(tf.unstack(own), axis=0)  # [2 B, S]
        x = tf.concat([x, x], axis=0)  # [2 B, S, E]
        x = tf.concat(self.encoder(x, x, own), axis=-1)  # [2 B, S, 2 D]
        aligned = attend(x, _swapped(x), _swapped(own))  # [2 B, S, 2 D]
        x = tf.concat([x, aligned, x - aligned, x * aligned], axis=-1)
        x = tf.nn.relu(self.projection(x))  # [2 B, S, D], from W
        x = ops.dropout(x, rate, seeds[1])
        x = tf.concat(self.composition(x, x, own), axis=-1)  # [2 B, S, 2 D]
        x = tf.concat(tf.split(pool(x, own), 2), axis=-1)  # [B, W]
        x = ops.dropout(x, rate, seeds[2])
        pooled = tf.tanh(self.pooler(x))  # [B, D]
        return modeling.BertOutputs(None, pooled, words, [])


# ---- Family entry ----------------------------------------------------------


ESIM = family.Family(
    name="esim",
    config=EsimConfig,
    model=Esim,
    variables={
        "esim/embeddings/word_embeddings": "VE",
        **{
            f"esim/{part}/{way}/{name}": letters
            for part, size in (("encoding", "E"), ("composition", "D"))
            for way in ("forward", "backward")
            for name, letters in (
                ("kernel", size + "G"),
                ("recurrent_kernel", "DG"),
                ("bias", "G"),
            )
        },
        **{
            f"esim/{part}/{name}": letters
            for part in ("projection", "pooler")
            for name, letters in (("kernel", "WD"), ("bias", "D"))
        },
    },
    words="esim/embeddings/word_embeddings",
    pooler=frozenset(),
    sizes=lambda config: {
        "G": 4 * config.hidden_size,
        "W": 8 * config.hidden_size,
    },
)
families.register(ESIM)
