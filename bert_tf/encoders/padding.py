"""Layouts of a batch's tokens inside the encoder.

Only attention needs sequences as rows, including the padding. All other layers
can compute on one row with the tokens of all sequences, and save the time for
padding.

Shapes as in modeling.py; the J tokens of a batch are padded to a multiple of
32. E: any number of features.
"""

from bert_tf.encoders import cudnn_attention, ops

import tensorflow as tf

# Kernels are prepared for each length, so this limits their number.
_MULTIPLE = 32


class Rows:
    """Sequences as rows: the encoder computes on [B, S, D].

    Attributes:
        mask: Added to the attention scores: 0 for the keys that a query sees,
            -10000 for others, [B, 1, 1, S] or [B, 1, R, S].
        positions: int32 [B, R], the positions that attend and that later
            layers get; None: all.
        is_fused: Whether layers call `attend_fused`.
    """

    is_fused = False

    def __init__(self, mask: tf.Tensor, positions: tf.Tensor | None = None):
        self.mask = mask
        self.positions = positions

    def reading(self, positions: tf.Tensor) -> "Rows":
        """Returns the layout for a layer whose output is read there only."""
        return Rows(_mask_at(self.mask, positions), positions)

    def of_layer(self, number: int) -> "Rows":
        """Returns the layout for the layer of this number in the stack."""
        del number
        return self

    def queries(self, x: tf.Tensor) -> tf.Tensor:
        """Returns the tokens that attend: `x`, or [B, R, D] at `positions`."""
        return ops.gather_rows(x, self.positions)

    def attend(self, q, k, v, rate, seed):
        """Returns `ops.attend` of q [B, N, S or R, H] and k, v [B, N, S, H]."""
        return ops.attend(q, k, v, self.mask, rate, seed)

    def to_rows(self, x: tf.Tensor) -> tf.Tensor:
        """Puts the vectors of all tokens where attention has them."""
        return x  # [B, S, E]

    def from_rows(self, x: tf.Tensor) -> tf.Tensor:
        """The inverse, for what attention returns for the queries."""
        return x  # [B, S or R, E]


class FusedRows(Rows):
    """Sequences as rows whose attention is one kernel of cuDNN.

    The shape of the batch is known, and padding is at the end of the rows. A
    layer that is read at some positions only attends as in `Rows`: it has too
    few queries for the kernel.
    """

    is_fused = True

    def __init__(
        self,
        mask: tf.Tensor,
        input_mask: tf.Tensor,
        is_causal: bool,
        number: int = 0,
    ):
        """Lays out a batch by its `input_mask`, int32 [B, S].

        Args:
            mask: As in `Rows`.
            input_mask: 1 for tokens, 0 for padding.
            is_causal: Whether tokens only see those before them and themselves.
            number: The layer's number, which dropout depends on.
        """
        super().__init__(mask)
        self._input_mask = input_mask
        self._is_causal = is_causal
        self._number = number

    def of_layer(self, number):
        number += self._number
        return FusedRows(self.mask, self._input_mask, self._is_causal, number)

    def attend_fused(self, q, k, v, scale, rate, seed):  # [B, S, N, H] each
        """Returns the output [B, S, N, H]; without a seed, the rate is 0."""
        is_token = tf.cast(self._input_mask, tf.int32)
        # A padding row of a batch has no token: avoids a division by 0.
        lengths = tf.maximum(tf.reduce_sum(is_token, axis=1), 1)
        rate = 0.0 if seed is None else rate
        options = cudnn_attention.Options(
            scale, rate, _replica() << 16 | self._number, self._is_causal
        )
        return cudnn_attention.attend(q, k, v, lengths, options)


class Tokens(Rows):
    """All tokens in one row: the encoder computes on [1, J, D].

    J differs by batch, so compilers that need shapes can't use this.
    """

    def __init__(self, mask: tf.Tensor, input_mask: tf.Tensor):
        """Lays out a batch by its `input_mask`, int32 [B, S].

        The first position is a token whatever its mask: outputs of an empty
        row never depend on other rows.
        """
        self.shape = tf.shape(input_mask)
        is_token = (input_mask > 0) | (tf.range(self.shape[1]) == 0)  # [B, S]
        # An empty row, where all keys are hidden alike, sees the first only.
        hidden = -10000.0 * tf.cast(~is_token, mask.dtype)
        super().__init__(mask + hidden[:, tf.newaxis, tf.newaxis])
        is_token = tf.reshape(is_token, [-1])
        tokens, padding = (
            tf.cast(tf.where(x)[:, 0], tf.int32) for x in (is_token, ~is_token)
        )
        filling = padding[: -tf.size(tokens) % _MULTIPLE]
        # Where each of the J stands among the B * S.
        self.places = tf.concat([tokens, filling], axis=0)

    def reading(self, positions):
        return _Reading(self, positions)

    def to_rows(self, x):  # [1, J, E]
        shape = tf.stack([tf.reduce_prod(self.shape), x.shape[-1]])
        flat = tf.scatter_nd(self.places[:, tf.newaxis], x[0], shape)
        return tf.reshape(flat, [*tf.unstack(self.shape), x.shape[-1]])

    def from_rows(self, x):  # [B, S, E]
        # The gradient of tf.gather would sum rows, but all indices differ.
        @tf.custom_gradient
        def function(x):
            flat = tf.reshape(x, [-1, x.shape[-1]])
            return tf.gather(flat, self.places)[tf.newaxis], self.to_rows

        return function(x)  # [1, J, E]

    def joined(self, x: tf.Tensor) -> tf.Tensor:
        """Takes the tokens of a batch's feature, [B, S]: [1, J]."""
        return tf.gather(tf.reshape(x, [-1]), self.places)[tf.newaxis]


class _Reading(Rows):
    """The layout of a layer whose output is read at some tokens, [B, R, D]."""

    def __init__(self, tokens: Tokens, positions: tf.Tensor):
        super().__init__(_mask_at(tokens.mask, positions), positions)
        self.tokens = tokens

    def queries(self, x):  # [1, J, D]
        places = self.tokens.places
        rows, length = tf.unstack(self.tokens.shape)
        # Which of the J stands at each of the B * S.
        numbers = tf.scatter_nd(
            places[:, tf.newaxis], tf.range(tf.size(places)), [rows * length]
        )
        starts = tf.range(rows)[:, tf.newaxis] * length
        wanted = tf.gather(numbers, starts + self.positions)  # [B, R]
        return ops.embed(x[0], wanted)

    def to_rows(self, x):
        return self.tokens.to_rows(x)


def _mask_at(mask: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns what the queries at `positions` add to their scores."""
    if mask.shape[2] == 1:
        return mask  # the same for all
    return tf.gather(mask, positions, axis=2, batch_dims=1)


def _replica() -> int:
    """Returns the number of the replica that is being traced."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return 0
    return int(tf.get_static_value(context.replica_id_in_sync_group) or 0)
