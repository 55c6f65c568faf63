"""A BiLSTM on top of a left-to-right model, and its family entry.

It is "LTR & No NSP + BiLSTM" in the paper's ablations (Devlin et al., 2018,
section 5.1). The left-to-right model starts from its pre-trained weights, and
the BiLSTM, which sees both directions, from random weights. It is only used for
fine-tuning.

Shapes as in modeling.py, and H: units of a direction, D / 2; G: gates of all
units, 4 H.
"""

import dataclasses
from typing import ClassVar

from bert_tf.contrib import bilstm, left_to_right
from bert_tf.encoders import families, model_inputs, ops

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class LeftToRightBiLstmConfig(left_to_right.LeftToRightConfig):
    """Architecture of the model; each direction has half of D."""

    model_type: ClassVar[str] = "left_to_right_bilstm"
    architectures: ClassVar[str] = "LeftToRightBiLstm"
    pretraining_head: ClassVar[str | None] = None

    def __post_init__(self):
        super().__post_init__()
        bilstm.check_even(self.hidden_size)


class LeftToRightBiLstm(left_to_right.LeftToRight):
    """A BiLSTM on top of a left-to-right model, without a head.

    In its outputs, `sequence` and the last of `layers` have the concatenated
    states of both directions; `pooled` reads the last state of each direction.
    """

    def make_parts(self):
        super().make_parts()
        D = self.config.hidden_size
        self.bilstm = bilstm.BothWays(bilstm.Sizes(D, D // 2), name="bilstm")

    def build_parts(self):
        super().build_parts()
        self.bilstm.build()

    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        """Encodes a batch, as modeling.Bert; rows hold one sequence each."""
        inputs = model_inputs.standard(inputs)
        model_inputs.check_one_sequence(inputs)
        # The BiLSTM reads all positions, even if only some of its outputs are
        # read.
        outputs = super().call(inputs, dropout_seed, None, training)
        is_token = tf.cast(inputs["input_mask"] != 0, self.compute_dtype)
        x = outputs.sequence
        states = tf.concat(self.bilstm(x, x, is_token), axis=-1)  # [B, S, D]
        read = ops.gather_rows(states, positions)  # [B, S or R, D]
        return outputs._replace(
            sequence=read,
            pooled=self.pooler(bilstm.ends(states, is_token)),  # [B, D]
            layers=[*outputs.layers[:-1], read],
        )


_BILSTM = {
    f"bert/bilstm/{way}/{name}": letters.replace("E", "D")
    for way in ("forward", "backward")
    for name, letters in bilstm.DIRECTION.items()
}

LEFT_TO_RIGHT_BILSTM = dataclasses.replace(
    left_to_right.LEFT_TO_RIGHT,
    name="left_to_right_bilstm",
    config=LeftToRightBiLstmConfig,
    model=LeftToRightBiLstm,
    variables={**left_to_right.LEFT_TO_RIGHT.variables, **_BILSTM},
    sizes=lambda config: {
        "H": config.hidden_size // 2,
        "G": 2 * config.hidden_size,
    },
    starts_from="left_to_right",
    on_top=frozenset(_BILSTM),
)
families.register(LEFT_TO_RIGHT_BILSTM)
