"""A bidirectional LSTM language model, as ELMo, and its family entry.

One stack of layers reads a sequence forward and another backward (Peters et
al., 2018, https://arxiv.org/abs/1802.05365). Neither sees what the other has
read, so the first can learn to predict each next token and the second each
previous one. Layers after the first have a residual connection. Inputs are
tokens, where ELMo reads characters.

Shapes as in modeling.py, and H: units of a direction, D / 2, which is also the
size of the word vectors; G: gates of all units, 4 H.
"""

import dataclasses
from typing import Any, ClassVar

from bert_tf import modeling
from bert_tf.contrib import bilstm, students
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.encoders import families, family, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class BiLstmLmConfig(bilstm.BiLstmConfig):
    """Architecture of the model; each direction has half of `hidden_size`."""

    model_type: ClassVar[str] = "bilstm_lm"
    architectures: ClassVar[str] = "BiLstmLm"
    pretraining_head: ClassVar[str | None] = "both_directions"
    sizes: ClassVar[tuple[str, ...]] = (
        *StudentConfig.sizes,
        "num_hidden_layers",
    )
    unread: ClassVar[tuple[str, ...]] = StudentConfig.of_attention

    num_hidden_layers: int = 2  # L
    hidden_size: int = 1024  # D
    embedding_size: int = 512  # H

    def __post_init__(self):
        super().__post_init__()
        if self.embedding_size != self.units:
            raise InputError(
                "`embedding_size` must be half of `hidden_size`: so many "
                "numbers has a direction of every layer. Received: "
                f"embedding_size={self.embedding_size}, "
                f"hidden_size={self.hidden_size}"
            )

    @property
    def activations(self) -> int:
        """Activations per token kept for training: gates, states, words."""
        return (32 * self.num_hidden_layers + 3) * self.units


class Stack(keras.layers.Layer):
    """Layers of both directions; each layer reads the layer below."""

    def __init__(self, config: BiLstmLmConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = config.hidden_dropout_prob
        sizes = bilstm.Sizes(config.embedding_size, config.units)
        self.layers = [
            bilstm.BothWays(sizes, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        ]

    def build(self, input_shape=None):
        for layer in self.layers:
            layer.build()

    def call(self, x, is_token, dropout_seed):  # [B, S, H], [B, S], [2] or None
        """Returns the outputs of each layer, [B, S, D]: forward, backward."""
        seeds = ops.split_seed(dropout_seed, len(self.layers))
        ways, outputs = [x, x], []
        for i, (layer, seed) in enumerate(zip(self.layers, seeds, strict=True)):
            dropped = [
                ops.dropout(y, self.rate, own)
                for y, own in zip(ways, ops.split_seed(seed, 2), strict=True)
            ]
            states = layer(*dropped, is_token)
            # No residual connection around the first layer: its inputs are
            # words.
            ways = [*map(tf.add, states, ways)] if i else [*states]
            outputs.append(tf.concat(ways, axis=-1))
        return outputs


class BiLstmLm(students.Student):
    """The model without a head.

    In its outputs, `sequence` has the concatenated states of both directions.
    `pooled` reads the forward state of the last token and the backward state of
    the first one.
    """

    config: BiLstmLmConfig
    scope = "bilstm_lm"

    def make_parts(self):
        self.embeddings = students.Words(self.config, name="embeddings")
        self.encoder = Stack(self.config, name="lstm")
        self.pooler = modeling.Pooler(self.config, name="pooler")

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert; with dropout of layer inputs."""
        ids, is_token = self.read(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        x = self.embeddings(ids)  # [B, S, H]
        *below, states = self.encoder(x, is_token, dropout_seed)  # [B, S, D]
        pooled = self.pooler(bilstm.ends(states, is_token))  # [B, D]
        read = ops.gather_rows(states, positions)  # [B, S or R, D]
        return modeling.BertOutputs(read, pooled, x, [*below, read])


# ---- Family entry ----------------------------------------------------------


_POOLER = {
    "bilstm_lm/pooler/dense/kernel": "DD",
    "bilstm_lm/pooler/dense/bias": "D",
}

BILSTM_LM = family.Family(
    name="bilstm_lm",
    config=BiLstmLmConfig,
    model=BiLstmLm,
    variables={
        "bilstm_lm/embeddings/word_embeddings": "VH",
        **{
            f"bilstm_lm/lstm/layer_{{}}/{way}/{name}": x.replace("E", "H")
            for way in ("forward", "backward")
            for name, x in bilstm.DIRECTION.items()
        },
        **_POOLER,
    },
    words="bilstm_lm/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    sizes=lambda config: {"H": config.units, "G": 4 * config.units},
)
families.register(BILSTM_LM)
