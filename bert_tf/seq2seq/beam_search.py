"""Beam search: the most likely targets, token by token.

Hypotheses are ordered and end as in transformers; the length penalty is GNMT's
(Wu et al., 2016, https://arxiv.org/abs/1609.08144, equation 14). All sources of
a batch are searched at once, in the graph.

Shapes: B sources, K beams, V vocabulary, T tokens so far, M max length. Beams
of a source are rows next to each other, [B * K, ...].
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from bert_tf.errors import InputError

import tensorflow as tf

# The score of a beam that does not exist.
_NONE = -1e9
Caches = list[tuple[tf.Tensor, tf.Tensor]]


@dataclasses.dataclass(frozen=True)
class Search:
    """How targets are found.

    Attributes:
        start: The id before the first token.
        end: The id that ends a target.
        pad: The id after it.
        tokens: V, the ids that may be predicted.
        max_length: Max number of tokens, with the end.
        beams: K; 1 takes the most likely token at each position.
        alpha: Exponent of the length penalty; 0 for none, larger for longer
            targets.
        caches: Whether the state after earlier tokens is cached. If not, it is
            computed again, which takes longer.
    """

    start: int
    end: int
    pad: int
    tokens: int
    max_length: int
    beams: int = 1
    alpha: float = 0.0
    caches: bool = True

    def __post_init__(self):
        for name, least in (("max_length", 1), ("beams", 1), ("alpha", 0)):
            if getattr(self, name) < least:
                raise InputError(
                    f"`{name}` must be at least {least}. "
                    f"Received: {name}={getattr(self, name)}"
                )

    def penalty(self, length: Any) -> Any:
        """Returns the divisor of a log-probability for a length."""
        return ((5.0 + length) / 6.0) ** self.alpha


class Predictor(NamedTuple):
    """A model that predicts the next token.

    Attributes:
        predict: (ids [B * K, T], position T - 1, caches of T - 1 tokens) ->
            (logits [B * K, V or more], caches of T tokens). Without caches it
            gets an empty list.
        first: The caches before the first token, a pair of tensors
            [B * K, ...] for each layer. A dimension of static size 0 grows with
            the tokens.
    """

    predict: Callable[[tf.Tensor, tf.Tensor, Caches], tuple[tf.Tensor, Caches]]
    first: Caches


class _State(NamedTuple):
    """The state before a token is predicted.

    Attributes:
        ids: The start and the tokens so far, [B, K, T].
        scores: Their log-probabilities, [B, K], in descending order.
        ended: Ended targets, [B, K, M + 1], padded.
        ended_scores: Their scores, [B, K]; _NONE if there are fewer.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    ended: tf.Tensor
    ended_scores: tf.Tensor
    caches: Any


def find(
    predictor: Predictor, sources: tf.Tensor, search: Search
) -> dict[str, tf.Tensor]:
    """Returns the best target of each source.

    Args:
        predictor: The model, which knows the sources.
        sources: B, an int32 scalar.
        search: How to search.

    Returns:
        `target_ids` int32 [B, M], with the end and then padding, and `score`
        float32 [B], the log-probability divided by the length penalty.
    """
    state = tf.while_loop(
        lambda state: (
            (tf.shape(state.ids)[-1] <= search.max_length)
            & tf.reduce_any(_is_open(state, search))
        ),
        lambda state: (_step(predictor, search, state),),
        (_first_state(predictor, sources, search),),
        shape_invariants=(_shapes(predictor, search),),
    )[0]
    ids, scores = state.ended[:, 0, 1:], state.ended_scores[:, 0]
    shape = [None, search.max_length]
    return {"target_ids": tf.ensure_shape(ids, shape), "score": scores}


def _first_state(predictor, sources, search):
    rows, beams = sources, search.beams
    # All beams begin alike: only the first one counts.
    scores = tf.where(tf.range(beams) == 0, 0.0, _NONE)
    return _State(
        tf.fill([rows, beams, 1], search.start),
        tf.tile(scores[tf.newaxis], [rows, 1]),
        tf.fill([rows, beams, search.max_length + 1], search.pad),
        tf.fill([rows, beams], _NONE),
        predictor.first if search.caches else [],
    )


def _shapes(predictor, search):
    """Returns what stays the same from token to token."""
    beams = search.beams
    return _State(
        tf.TensorShape([None, beams, None]),
        tf.TensorShape([None, beams]),
        tf.TensorShape([None, beams, search.max_length + 1]),
        tf.TensorShape([None, beams]),
        tf.nest.map_structure(
            lambda x: tf.TensorShape([None, *(n or None for n in x.shape[1:])]),
            predictor.first if search.caches else [],
        ),
    )


def _is_open(state: _State, search: Search) -> tf.Tensor:
    """Returns whether better targets may still be found, [B]."""
    worst = tf.reduce_min(state.ended_scores, axis=1)
    if search.beams == 1:
        return worst == _NONE
    # Log-probabilities are negative, so the longest target has the best score.
    best = state.scores[:, 0] / search.penalty(float(search.max_length))
    return best > worst


def _step(predictor: Predictor, search: Search, state: _State) -> _State:
    """Adds a token to each beam."""
    beams, tokens = search.beams, search.tokens
    rows, length = tf.shape(state.ids)[0], tf.shape(state.ids)[-1]
    logits, caches = predictor.predict(
        tf.reshape(state.ids, [rows * beams, length]), length - 1, state.caches
    )
    found = tf.nn.log_softmax(logits[:, :tokens])  # [B * K, V]
    scores = tf.reshape(found, [rows, beams, tokens])
    scores = tf.reshape(state.scores[:, :, tf.newaxis] + scores, [rows, -1])
    # Twice as many as beams: half of them may end.
    count = min(2 * beams, beams * tokens)
    scores, places = tf.math.top_k(scores, count)  # [B, 2 K]
    origins, last = places // tokens, places % tokens
    ids = tf.gather(state.ids, origins, batch_dims=1)
    ids = tf.concat([ids, last[:, :, tf.newaxis]], axis=-1)  # [B, 2 K, T + 1]
    is_end = (last == search.end) | (length == search.max_length)
    ended, ended_scores = _with_ended(
        search, state, ids, tf.where(is_end, scores, _NONE), length
    )
    scores, kept = tf.math.top_k(tf.where(is_end, _NONE, scores), beams)
    origins = tf.gather(origins, kept, batch_dims=1)  # [B, K]
    if beams > 1:
        first = tf.range(rows)[:, tf.newaxis] * beams
        owners = tf.reshape(first + origins, [-1])
        caches = tf.nest.map_structure(lambda x: tf.gather(x, owners), caches)
    return _State(
        tf.gather(ids, kept, batch_dims=1), scores, ended, ended_scores, caches
    )


def _with_ended(
    search: Search,
    state: _State,
    ids: tf.Tensor,
    scores: tf.Tensor,
    length: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the K best ended targets, and their scores.

    Args:
        search: How to search.
        state: Has those that have ended before.
        ids: The start and `length` tokens of candidates, [B, 2 K, T + 1].
        scores: Their log-probabilities; _NONE if they continue.
        length: T.
    """
    beams = search.beams
    # An end that is less likely than K others is not taken.
    scores = scores[:, :beams]
    is_taken = _is_open(state, search)[:, tf.newaxis] & (scores > _NONE / 2)
    scores /= search.penalty(tf.cast(length, tf.float32))
    scores = tf.where(is_taken, scores, _NONE)
    missing = search.max_length - length
    padded = tf.pad(
        ids[:, :beams],
        [[0, 0], [0, 0], [0, missing]],
        constant_values=search.pad,
    )
    all_scores = tf.concat([state.ended_scores, scores], axis=1)
    all_ids = tf.concat([state.ended, padded], axis=1)
    best, places = tf.math.top_k(all_scores, beams)
    return tf.gather(all_ids, places, batch_dims=1), best
