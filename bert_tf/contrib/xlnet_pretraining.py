"""Pre-training of XLNet on permutations, and XLNet's family entry.

The model predicts the chosen tokens of a row one after the other, in a random
order that is drawn anew for each row and step. As in the original's code, <sep>
and <cls> are in the order, but are not predicted. All other tokens are context:
they see each other, and every prediction sees them (Yang et al., 2019, sections
2.2 and 2.3, with partial prediction). There is no memory of earlier rows.

Two streams run through the same layers. The content stream knows the tokens,
the query stream only their positions, so it can predict them.

Shapes as in modeling.py and xlnet.py.
"""

from collections.abc import Mapping
from typing import Any

from bert_tf import heads, modeling
from bert_tf.contrib import xlnet, xlnet_config, xlnet_names, xlnet_vocabulary
from bert_tf.encoders import families, family, model_inputs, ops

import keras
import tensorflow as tf

_HEAD = xlnet_config.XlnetConfig.pretraining_head
_INPUTS = ("masked_lm_positions", "masked_lm_ids")
# Seed of orders if the caller passes none, so that evaluations are repeatable.
_SEED = (1906, 8237)


def draw_order(inputs: Mapping[str, tf.Tensor], seed: tf.Tensor) -> tf.Tensor:
    """Draws the order of predictions, <sep> and <cls>, as numbers: [B, S].

    Lower numbers, above 0, are earlier. Context and padding have 0. `inputs`
    are a batch, as in `PermutedWords.call`; `seed` is int32 [2].
    """
    ids, weights = inputs["input_ids"], inputs["masked_lm_weights"]
    places = inputs["masked_lm_positions"]  # [B, P]
    is_ordered = (ids == xlnet.CLS_ID) | (ids == xlnet.SEP_ID)  # [B, S]
    is_ordered = ops.put(is_ordered, places, weights, weights > 0) > 0
    drawn = 1 - tf.random.stateless_uniform(tf.shape(ids), seed)
    return tf.where(is_ordered, drawn, 0.0)


class TwoStreams(xlnet.Relations):
    """Rows of S content vectors, followed by P query vectors.

    A content vector attends to the context, to tokens earlier in the order, and
    to itself. A query vector does not attend to itself, so it can predict its
    token.

    Attributes:
        mask: Added to the scores of content vectors, [B, 1, S, S].
        query_mask: Likewise of query vectors, in the rows of their positions.
        positions: 1 for the position of each query vector, else 0, [B, 1, P,
            S]. Padding has no position.
    """

    def __init__(
        self,
        row: xlnet.Relations,
        positions: tf.Tensor,
        order: tf.Tensor,
    ):
        """Lays out the streams.

        Args:
            row: The relations of the content vectors.
            positions: 1 for the position of each prediction, [B, P, S].
            order: The numbers of `draw_order`, [B, S].
        """
        keys, queries = order[:, tf.newaxis], order[:, :, tf.newaxis]

        def hide(is_hidden: tf.Tensor) -> tf.Tensor:
            is_hidden = tf.cast(is_hidden, tf.float32)[:, tf.newaxis]
            # Padding has -10000: a query without context must attend to it, and
            # not to its own token.
            return row.mask - 20000.0 * is_hidden  # [B, 1, S, S]

        super().__init__(hide(keys > queries), row.distances, row.differs)
        self.query_mask = hide(keys >= queries)
        self.positions = positions[:, tf.newaxis]

    def content(self, x):  # [B, S + P, D]
        return x[:, : tf.shape(self.mask)[-1]]

    def contexts(self, queries, dropout_seed, attend):  # [B, N, S + P, H]
        seeds = ops.split_seed(dropout_seed, 2)
        S = tf.shape(self.mask)[-1]
        content, queries = queries[:, :, :S], queries[:, :, S:]
        positions = tf.cast(self.positions, queries.dtype)
        # Distances are counted from the position of a query.
        there = tf.matmul(positions, queries, transpose_a=True)  # [B, N, S, H]
        there = attend(there, self.query_mask, seeds[1])
        content = attend(content, self.mask, seeds[0])
        return tf.concat([content, tf.matmul(positions, there)], axis=2)


class WordHead(heads.MaskedLMHead):
    """Predicts words, with the released name of its bias."""

    def build(self, input_shape=None):
        self.output_bias = self.add_weight(
            name="bias", shape=(self.vocab_size,), initializer="zeros"
        )


class PermutedWords(heads.Model):
    """An XLNet that predicts tokens of a row in a random order."""

    reads_all = True
    reads_pooled = False
    reads_sequence = True
    has_estimates = False

    def __init__(
        self, bert: modeling.Bert, name: str = str(_HEAD), **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        bert.masked_word.vector.trainable = True
        with self._own_policy():
            self.lm_loss = WordHead(bert.config, name="lm_loss")
        with keras.name_scope(bert.scope):
            self.lm_loss.build()
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, P, V] of the records' chosen tokens.

        The inputs are the inputs of `Bert` and int32 `masked_lm_positions` [B,
        P], which must be distinct; int32 `masked_lm_ids` [B, P], the tokens
        there, which replace masks; and `masked_lm_weights` [B, P], 0 for
        padding. The order is a function of the seed.
        """
        seed = self._drawn.unless(dropout_seed, training)
        order_seed, seed = ops.split_seed(seed, 2)
        if order_seed is None:
            total = tf.reduce_sum(tf.cast(inputs["masked_lm_ids"], tf.int64))
            order_seed = tf.random.fold_in(tf.constant(_SEED), total)
        return self.predict_in(draw_order(inputs, order_seed), inputs, seed)

    def predict_in(
        self,
        order: tf.Tensor,
        inputs: Mapping[str, tf.Tensor],
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns the logits with an order [B, S] from `draw_order`."""
        bert, rate = self.bert, self.bert.config.hidden_dropout_prob
        places, ids = (tf.cast(inputs[x], tf.int32) for x in _INPUTS)
        is_predicted = inputs["masked_lm_weights"] > 0  # [B, P]
        rows = model_inputs.standard(inputs)
        model_inputs.check_one_sequence(rows)
        text = ops.put(rows["input_ids"], places, ids, is_predicted)
        rows["input_ids"] = tf.cast(text, tf.int32)
        places = tf.where(is_predicted, places, -1)  # no position
        positions = tf.one_hot(places, tf.shape(text)[1])  # [B, P, S]
        seeds = ops.split_seed(dropout_seed, 4)
        x = bert.embeddings(rows["input_ids"])  # [B, S, D]
        vector = tf.cast(bert.masked_word.vector[0], x.dtype)  # [1, D]
        queries = tf.ones_like(positions[:, :, :1], x.dtype) * vector
        x = ops.dropout(tf.concat([x, queries], axis=1), rate, seeds[0])
        distances = ops.dropout(bert.distances(rows), rate, seeds[1])
        row = xlnet.Relations(bert.mask(rows), distances, bert.differ(rows))
        layout = TwoStreams(row, positions, order)
        x = bert.encoder(x, seeds[2], layout=layout)[-1]  # [B, S + P, D]
        x = ops.dropout(x[:, tf.shape(text)[1] :], rate, seeds[3])  # [B, P, D]
        logits = self.lm_loss(x, bert.embeddings.word_embeddings)
        return tf.cast(logits, tf.float32)


# ---- Family entry -----------------------------------------------------------

XLNET = family.Family(
    name="xlnet",
    config=xlnet_config.XlnetConfig,
    model=xlnet.Xlnet,
    variables=xlnet_names.VARIABLES | xlnet_names.POOLER,
    words=xlnet_names.WORDS,
    pooler=frozenset(xlnet_names.POOLER),
    sizes=xlnet_names.sizes,
    vocabularies=(xlnet_vocabulary.XlnetSentencePieces.kind,),
    config_file="xlnet_config.json",
    pretrainer=family.Pretrainer(
        PermutedWords,
        {"model/lm_loss/bias": "V"},
        "The chosen tokens are predicted one after the other in a random "
        "order, each from the tokens earlier in the order and from all tokens "
        f"that are not in it. <sep> (ID {xlnet.SEP_ID}) and <cls> (ID "
        f"{xlnet.CLS_ID}) are in it, but not predicted.",
    ),
    huggingface=xlnet_names.HUGGINGFACE,
)
families.register(XLNET)
