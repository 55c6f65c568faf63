"""CoVe (McCann et al., 2017, https://arxiv.org/abs/1708.00107).

The word vectors and the last states of a BiLSTM that was trained to translate
(bilstm_attention.py), for all tasks. As in the paper, a BiLSTM reads both. It
starts from random values, and heads read its states.

Shapes as in bilstm_attention.py, and W: size of the word vectors with the
states, 2 D.
"""

import dataclasses
from typing import ClassVar

from bert_tf import modeling
from bert_tf.contrib import bilstm, bilstm_attention
from bert_tf.encoders import families, ops

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class CoveConfig(bilstm_attention.BiLstmAttentionConfig):
    """Architecture of the model, with the values of the translation model."""

    model_type: ClassVar[str] = "bilstm_cove"
    architectures: ClassVar[str] = "Cove"

    @property
    def num_blocks(self) -> int:
        """The number of layers, with the task's BiLSTM."""
        return self.num_hidden_layers + 1

    @property
    def activations(self) -> int:
        """Activations per token kept for training, with the task's BiLSTM."""
        return super().activations + 32 * self.hidden_size


class Cove(bilstm_attention.BiLstmAttention):
    """A BiLSTM on the word vectors and states of a translation model.

    In its outputs, `sequence` and the last of `layers` have the concatenated
    states of both directions; `pooled` has the last state of each direction.
    """

    def make_parts(self):
        super().make_parts()
        D = self.config.hidden_size
        self.task = bilstm.BothWays(bilstm.Sizes(2 * D, D // 2), name="task")

    def build_parts(self):
        super().build_parts()
        self.task.build()

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert; with dropout of layer inputs."""
        ids, is_token = self.read(inputs)
        seeds = ops.split_seed(self._drawn.unless(dropout_seed, training), 2)
        words = self.embeddings(ids)  # [B, S, D]
        layers = self.encoder(words, is_token, seeds[0])  # L times [B, S, D]
        x = tf.concat([words, layers[-1]], axis=-1)  # [B, S, W]
        x = ops.dropout(x, self.config.hidden_dropout_prob, seeds[1])
        states = tf.concat(self.task(x, x, is_token), axis=-1)  # [B, S, D]
        pooled = bilstm.ends(states, is_token)  # [B, D]
        read = ops.gather_rows(states, positions)  # [B, S or R, D]
        return modeling.BertOutputs(read, pooled, words, [*layers, read])


# ---- Family entry ------------------------------------------------------------

_TASK = {
    f"bilstm/task/{way}/{name}": letters.replace("E", "W")
    for way in ("forward", "backward")
    for name, letters in bilstm.DIRECTION.items()
}
_BELOW = bilstm_attention.BILSTM_ATTENTION

COVE = dataclasses.replace(
    _BELOW,
    name="bilstm_cove",
    config=CoveConfig,
    model=Cove,
    variables={**_BELOW.variables, **_TASK},
    starts_from="bilstm_attention",
    on_top=frozenset(_TASK),
)
families.register(COVE)
