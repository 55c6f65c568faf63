"""An encoder with the joint head for answers of ALBERT and XLNet.

The head scores the ends of an answer given its start, for the best starts. A
separate score is for whether there is an answer (google-research/albert,
run_squad_v2.py; XLNet, Yang et al., 2019). Variables have ALBERT's names.

Shapes as in modeling.py; K best starts and J best ends of a sequence.
"""

from typing import Any, NamedTuple

from bert_tf import heads, modeling
from bert_tf.encoders import layers, model_inputs, ops

import keras
import tensorflow as tf

# The logit of positions that cannot be answers.
_NOWHERE = -1e30
# Of TensorFlow's contrib.layers.layer_norm.
_EPSILON = 1e-12


class Scores(NamedTuple):
    """The logits of a batch whose starts are known, as in training."""

    starts: tf.Tensor  # float32 [B, S]
    ends: tf.Tensor  # float32 [B, S], given the start
    no_answer: tf.Tensor  # float32 [B]


class Beams(NamedTuple):
    """The likeliest starts of each sequence, and the likeliest ends of each."""

    start_scores: tf.Tensor  # float32 [B, K], logarithms of probabilities
    starts: tf.Tensor  # int32 [B, K]
    end_scores: tf.Tensor  # float32 [B, K, J], likewise, given the start
    ends: tf.Tensor  # int32 [B, K, J]
    no_answer: tf.Tensor  # float32 [B], the logit that there is no answer


class _Starts(keras.layers.Layer):
    """Scores each position as the start."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.dense = layers.Dense(config, config.hidden_size, 1, name="dense")

    def build(self, input_shape=None):
        self.dense.build()

    def call(self, x):  # [B, S, D]
        return tf.squeeze(self.dense(x), -1)


class _Ends(keras.layers.Layer):
    """Scores each position as the end, for each of some starts."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        D = config.hidden_size
        self.hidden = layers.Dense(config, 2 * D, D, name="dense_0")
        self.norm = layers.LayerNorm(D, _EPSILON, name="LayerNorm")
        self.score = layers.Dense(config, D, 1, name="dense_1")

    def build(self, input_shape=None):
        for part in (self.hidden, self.norm, self.score):
            part.build()

    def call(self, x, starts):  # [B, S, D], [B, K, D]
        """Returns logits [B, K, S]."""
        kernel = tf.convert_to_tensor(self.hidden.kernel)
        # The product of the two joined: each position is multiplied once.
        own, given = tf.split(kernel, 2)
        found = tf.expand_dims(tf.matmul(x, own), 1)
        found += tf.expand_dims(tf.matmul(starts, given), 2)  # [B, K, S, D]
        found = tf.tanh(ops.add_bias(found, self.hidden.bias))
        return tf.squeeze(self.score(self.norm(found)), -1)


class _NoBias(keras.layers.Layer):
    """`x @ kernel` for one output."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape=None):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.config.hidden_size, 1),
            initializer=layers.initializer(self.config),
        )

    def call(self, x):  # [B, D]
        return tf.squeeze(tf.matmul(x, self.kernel), -1)


class _NoAnswer(keras.layers.Layer):
    """Scores whether there is no answer, by the likely starts and [CLS]."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        D = config.hidden_size
        self.rate = config.head_dropout_prob
        self.hidden = layers.Dense(config, 2 * D, D, name="dense_0")
        self.score = _NoBias(config, name="dense_1")

    def build(self, input_shape=None):
        self.hidden.build()
        self.score.build()

    def call(self, start, first, seed):  # [B, D] each
        x = tf.tanh(self.hidden(tf.concat([start, first], axis=-1)))
        return self.score(ops.dropout(x, self.rate, seed))  # [B]


class BertJointSpanFinder(heads.Model):
    """BERT that scores starts, ends given a start, and "no answer".

    Attributes:
        start_n_top: Starts that are listed.
        end_n_top: Ends that are listed for each.
    """

    reads_all = True
    reads_pooled = False
    reads_sequence = True

    def __init__(
        self,
        bert: modeling.Bert,
        start_n_top: int = 5,
        end_n_top: int = 5,
        name: str = "joint_span_finder",
        **kwargs: Any,
    ):
        super().__init__(bert, name=name, **kwargs)
        self.start_n_top, self.end_n_top = start_n_top, end_n_top
        with self._own_policy():
            self.start_logits = _Starts(bert.config, name="start_logits")
            self.end_logits = _Ends(bert.config, name="end_logits")
            self.answer_class = _NoAnswer(bert.config, name="answer_class")
        for part in (self.start_logits, self.end_logits, self.answer_class):
            part.build()
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns `Beams`; of inputs with `start_positions` [B], `Scores`.

        Positions of the question are no answer. The position 0 means no answer,
        also if the last token represents a row. Other arguments as of `Bert`.
        """
        known = inputs.get("start_positions")
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 2)
        x = self.bert(inputs, seeds[0]).sequence  # [B, S, D]
        config = self.bert.config
        nowhere = _no_answer(config, inputs["input_mask"])  # [B, 1]
        may_be = _may_be_answers(config, inputs) | (
            tf.range(tf.shape(x)[1]) == nowhere
        )  # [B, S]

        def masked(logits):  # [B, ..., S]
            return tf.where(may_be, tf.cast(logits, tf.float32), _NOWHERE)

        starts = masked(self.start_logits(x))
        likely = tf.cast(tf.nn.softmax(starts), x.dtype)[:, tf.newaxis]
        no_answer = self.answer_class(
            tf.squeeze(tf.matmul(likely, x), 1),
            ops.gather_rows(x, nowhere)[:, 0],
            seeds[1],
        )
        no_answer = tf.cast(no_answer, tf.float32)
        may_be = may_be[:, tf.newaxis]
        if known is not None:
            known = scored_positions(config, inputs["input_mask"], known)
            found = ops.gather_rows(x, known[:, tf.newaxis])
            ends = masked(self.end_logits(x, found))
            return Scores(starts, tf.squeeze(ends, 1), no_answer)
        length = tf.shape(starts)[1]
        scores, places = tf.math.top_k(
            tf.nn.log_softmax(starts), tf.minimum(self.start_n_top, length)
        )
        ends = tf.nn.log_softmax(
            masked(self.end_logits(x, ops.gather_rows(x, places)))
        )
        best, ends = tf.math.top_k(ends, tf.minimum(self.end_n_top, length))
        return Beams(scores, places, best, ends, no_answer)


def _no_answer(config: modeling.BertConfig, input_mask: tf.Tensor) -> tf.Tensor:
    """Returns the position scored as no answer, the one that is pooled: [B, 1].

    The mask is int32 [B, S].
    """
    if config.pools_last:
        return model_inputs.last_tokens(input_mask)
    return tf.zeros_like(input_mask[:, :1], tf.int32)


def scored_positions(
    config: modeling.BertConfig, input_mask: tf.Tensor, positions: Any
) -> tf.Tensor:
    """Returns the labels of logits for positions [B] of answers, 0 for none."""
    positions = tf.cast(positions, tf.int32)
    nowhere = tf.squeeze(_no_answer(config, input_mask), 1)
    return tf.where(positions == 0, nowhere, positions)


def _may_be_answers(
    config: modeling.BertConfig, inputs: dict[str, tf.Tensor]
) -> tf.Tensor:
    """Returns which positions are of the context, [B, S].

    ELECTRA's code counts the context's [SEP]; ALBERT's and XLNet's do not.
    If no token type marks the context, as in RoBERTa, all tokens are.
    """
    is_token = inputs["input_mask"] > 0
    is_context = (inputs["segment_ids"] > 0) & is_token
    is_told = tf.reduce_any(is_context, axis=1, keepdims=True)
    last = model_inputs.last_tokens(inputs["input_mask"])  # [B, 1]
    is_context &= (
        tf.range(tf.shape(is_token)[1]) <= last - config.unscored_tokens
    )
    return tf.where(is_told, is_context, is_token)
