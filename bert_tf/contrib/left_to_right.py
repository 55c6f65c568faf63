"""BERT that reads from left to right, and its row.

It is "LTR & No NSP" of the paper's ablations (Devlin et al., 2018, section
5.1), a GPT with BERT's layers, vocabulary and records: no token sees a later
one. Pre-training predicts the next token.

The last token represents a row, because the first, [CLS], only sees itself.
Variables have BERT's names.

Shapes as in modeling.py.
"""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

from bert_tf import modeling
from bert_tf.encoders import bert, families, foreign, model_inputs, ops

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class LeftToRightConfig(modeling.BertConfig):
    """Architecture of a left-to-right model: a BERT's."""

    model_type: ClassVar[str] = "left_to_right"
    architectures: ClassVar[str] = "Bert"
    pretraining_head: ClassVar[str | None] = "next_piece"
    pools_last: ClassVar[bool] = True


class LeftToRight(modeling.Bert):
    """A left-to-right model without a head.

    The output `pooled` is computed from the last token of each row.

    Attributes:
        keep: Gets the last hidden states of every call; see
            watching.keeping_sequence.
    """

    is_causal = True
    keep: Callable[[tf.Tensor], None] | None = None

    def mask(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns what is added to scores, float32 [B, 1, S, S]."""
        length = tf.shape(inputs["input_ids"])[1]
        return super().mask(inputs) + modeling.causal_mask(length)

    def seen(self, tokens: tf.Tensor, pairs: tf.Tensor) -> tf.Tensor:
        """Returns how often a token sees one before it, or itself."""
        return (pairs + tokens) / 2

    def call(
        self,
        inputs: dict[str, tf.Tensor],
        dropout_seed: tf.Tensor | None = None,
        positions: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> modeling.BertOutputs:
        """Encodes a batch, as modeling.Bert."""
        inputs = model_inputs.standard(inputs)
        last = model_inputs.last_tokens(inputs["input_mask"])  # [B, 1]
        if positions is None or self.keep is not None:
            outputs = super().call(inputs, dropout_seed, None, training)
            sequence = outputs.sequence  # [B, S, D]
            if self.keep is not None:
                self.keep(sequence)
            pooled = self.pooler(
                ops.gather_rows(sequence, last)[:, 0]
            )  # [B, D]
            sequence = ops.gather_rows(sequence, positions)
        else:
            # The first of the positions that are read is pooled.
            positions = tf.concat([last, positions], axis=1)  # [B, 1 + R]
            outputs = super().call(inputs, dropout_seed, positions, training)
            sequence, pooled = outputs.sequence[:, 1:], outputs.pooled
        layers = [*outputs.layers[:-1], sequence]
        return outputs._replace(sequence=sequence, pooled=pooled, layers=layers)


# There it is a BERT that is a decoder. Heads that read the pooled output are
# left out: theirs pool the first token.
_BERTS = ("encoder", "tagging", "span")
_HUGGINGFACE = dataclasses.replace(
    bert.HUGGINGFACE,
    heads={
        **{x: bert.HUGGINGFACE.heads[x] for x in _BERTS},
        "next_piece": foreign.HuggingFaceHead(
            "BertLMHeadModel",
            False,
            tuple(
                row._replace(ours=row.ours.replace("predictions", "next_piece"))
                for row in bert.HF_PREDICTIONS
            ),
        ),
    },
    keys=dataclasses.replace(
        bert.HUGGINGFACE.keys,
        written={**bert.HUGGINGFACE.keys.written, "is_decoder": True},
    ),
    model_type="bert",
    identified_by={"is_decoder": True},
)

LEFT_TO_RIGHT = dataclasses.replace(
    bert.BERT,
    name="left_to_right",
    config=LeftToRightConfig,
    model=LeftToRight,
    starts_from=None,
    huggingface=_HUGGINGFACE,
    # KerasHub has this mask in other models alone.
    keras_hub=None,
)
families.register(LEFT_TO_RIGHT)
