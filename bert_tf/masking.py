"""Chooses words to predict, and hides them.

One algorithm for all policies, when data is made and while it is read. Words
are taken in random order until as many tokens are chosen as wanted; one that
would make them too many is passed over, as in the original. A policy says what
a word is, and how many follow the one that was drawn:
- token: each token is a word.
- whole_word: all pieces of a word.
- span: whole words, and as many in a row as a geometric distribution says
  (Joshi et al., 2020, SpanBERT, section 3.1).

Shapes:
- B: batch       S: sequence length     P: predictions per row
- K: sequences per row, more than one where they are packed
- W: words per row at most     n: all tokens chosen
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

POLICIES = ("token", "whole_word", "span")

# Random numbers for each token: its place in the order, the length of a span
# from it, what becomes of it, and the piece that may take its place. All are
# drawn whether used or not: a row's masks then depend on its number alone,
# and every reader of a batch can draw just those of its own rows.
NUMBERS = 4


@dataclasses.dataclass(frozen=True)
class Masking:
    """What to choose and how to hide it.

    Args:
        policy: One of POLICIES.
        masked_lm_prob: Share of the tokens to predict.
        max_predictions_per_seq: P.
        mask_share: Share of the chosen tokens that become [MASK].
        random_share: Share that become a random piece. The rest stay.
        span_success: Of the geometric distribution of span lengths.
        span_max_words: Where the distribution is cut off.
        vocab_size: Number of pieces.
        cls_id: The id of [CLS]; that and the next are never chosen.
        sep_id: The id of [SEP].
        mask_id: The id of [MASK].
    """

    policy: str
    masked_lm_prob: float
    max_predictions_per_seq: int
    mask_share: float
    random_share: float
    span_success: float
    span_max_words: int
    vocab_size: int
    cls_id: int
    sep_id: int
    mask_id: int


def mask(
    features: Mapping[str, np.ndarray],
    settings: Masking,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Masks a batch.

    Args:
        features: `input_ids`, `input_mask` and `word_starts`, each [B, S]; of
            packed rows also `sequence_ids`.
        settings: What to choose and how to hide it.
        rng: Gives NUMBERS * S numbers of 64 bits for each row, row by row.

    Returns:
        `input_ids` [B, S] int32 with the masks, `masked_lm_positions` and
        `masked_lm_ids` [B, P] int32, `masked_lm_weights` [B, P] float32.
    """
    ids = features["input_ids"]
    B, S = ids.shape
    draws = rng.integers(2**64, size=(B, NUMBERS, S), dtype=np.uint64)
    order, lengths, kinds, pieces = draws.transpose(1, 0, 2)  # each [B, S]
    is_text = (
        (features["input_mask"] > 0)
        & (ids != settings.cls_id)
        & (ids != settings.sep_id)
    )
    starts = is_text
    if settings.policy != "token":
        starts = is_text & (features["word_starts"] > 0)
    chosen = choose(
        is_text,
        starts,
        features.get("sequence_ids", features["input_mask"]),
        settings,
        order,
        lengths,
    )
    return _hide(ids, chosen, settings, kinds, pieces)


def wanted(lengths: np.ndarray, settings: Masking) -> np.ndarray:
    """How many tokens to choose of sequences of `lengths` tokens.

    As in the original [CLS] and [SEP] count, too.
    """
    counts = np.rint(lengths * settings.masked_lm_prob)
    return np.clip(counts, 1, settings.max_predictions_per_seq).astype(np.int64)


def choose(
    is_text: np.ndarray,
    starts: np.ndarray,
    sequence_ids: np.ndarray,
    settings: Masking,
    order: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """Chooses words at random, so many tokens of each sequence.

    Args:
        is_text: [B, S] bool, the tokens that may be chosen.
        starts: [B, S] bool, those that begin a word; every segment begins with
            one.
        sequence_ids: [B, S], which sequence of the row a token belongs to,
            from 1; 0 for padding.
        settings: The policy.
        order: [B, S] uint64, random numbers to order words by.
        lengths: [B, S] uint64, random numbers for the lengths of spans.

    Returns:
        [B, S] bool.
    """
    B, S = is_text.shape
    # All tokens in one row, so that one index says where.
    first = np.flatnonzero(starts)
    borders = np.flatnonzero(starts | ~is_text)
    sizes = np.zeros(B * S, np.int32)  # of the word that begins here
    sizes[borders] = np.diff(borders, append=B * S)
    K = int(sequence_ids.max(initial=1))
    sequence = (sequence_ids + np.arange(B)[:, np.newaxis] * (K + 1)).ravel()
    left = wanted(np.bincount(sequence, minlength=B * (K + 1)), settings)
    words = _shuffled(starts, order)  # [W, B]
    spans = np.ones(B * S, np.int8)
    if settings.policy == "span":
        spans[first] = span_lengths(lengths.ravel()[first], settings)
    is_text, chosen = is_text.ravel(), np.zeros(B * S, bool)

    for row in words:
        place = row[row >= 0]
        place = place[left[sequence[place]] > 0]
        place = place[~chosen[place]]
        in_span = spans[place]
        while len(place):
            of = sequence[place]
            # A word that an earlier span chose costs nothing more.
            size = np.where(chosen[place], 0, sizes[place])
            fits = size <= left[of]
            place, in_span = place[fits], in_span[fits]
            chosen[place] = True
            left[of[fits]] -= size[fits]
            # On to the next word of the span.
            place = place + sizes[place]
            goes_on = (in_span > 1) & is_text[place]
            place, in_span = place[goes_on], in_span[goes_on] - 1
    return np.repeat(chosen[borders], sizes[borders]).reshape(B, S)


def _shuffled(starts: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Orders the words of each row at random.

    Returns:
        [W, B], where the words begin, in all rows' tokens; -1 after the last.
    """
    B, S = starts.shape
    # The place replaces the lowest bits, which spares an indirect sort.
    bits = np.uint64((S - 1).bit_length())
    keys = order >> bits << bits | np.arange(S, dtype=np.uint64)
    keys[~starts] = ~np.uint64(0)
    counts = np.count_nonzero(starts, axis=1)  # [B]
    keys = np.sort(keys, axis=1)[:, : counts.max(initial=0)]  # [B, W]
    places = (keys & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    places += S * np.arange(B)[:, np.newaxis]
    places[np.arange(keys.shape[1]) >= counts[:, np.newaxis]] = -1
    return np.ascontiguousarray(places.T)


def span_lengths(draws: np.ndarray, settings: Masking) -> np.ndarray:
    """Turns random numbers of 64 bits into span lengths, in words."""
    lengths = np.arange(settings.span_max_words)
    weights = (1 - settings.span_success) ** lengths
    below = np.cumsum(weights)[:-1] / weights.sum()
    return 1 + np.searchsorted(below, _unit(draws), side="right")


def _hide(
    ids: np.ndarray,
    chosen: np.ndarray,
    settings: Masking,
    kinds: np.ndarray,
    pieces: np.ndarray,
) -> dict[str, np.ndarray]:
    """Replaces the chosen tokens, and notes where and what they were."""
    B, S = ids.shape
    P = settings.max_predictions_per_seq
    place = np.flatnonzero(chosen)  # [n], in all rows' tokens
    labels = ids.ravel()[place]  # [n]
    kind = _unit(kinds[chosen])  # [n]
    if settings.policy == "span":
        # As in SpanBERT the same becomes of a whole span.
        is_first = np.diff(place, prepend=-2) > 1
        kind = kind[is_first][np.cumsum(is_first) - 1]
    piece = (_unit(pieces[chosen]) * settings.vocab_size).astype(np.int32)
    shown = np.where(kind < settings.mask_share, settings.mask_id, labels)
    shown = np.where(kind >= 1 - settings.random_share, piece, shown)
    masked = ids.astype(np.int32).ravel()
    masked[place] = shown

    counts = np.count_nonzero(chosen, axis=1)  # [B]
    # Where in [B, P] each goes: to the first slots of its row.
    before = P * np.arange(B) - (np.cumsum(counts) - counts)
    slot = np.repeat(before, counts) + np.arange(len(place))
    positions = np.zeros(B * P, np.int32)
    positions[slot] = place % S
    label_ids = np.zeros(B * P, np.int32)
    label_ids[slot] = labels
    weights = np.zeros(B * P, np.float32)
    weights[slot] = 1
    return {
        "input_ids": masked.reshape(B, S),
        "masked_lm_positions": positions.reshape(B, P),
        "masked_lm_ids": label_ids.reshape(B, P),
        "masked_lm_weights": weights.reshape(B, P),
    }


def _unit(x: np.ndarray) -> np.ndarray:
    """Turns 64 random bits into a number from 0 to below 1."""
    return (x >> np.uint64(11)) * 2.0**-53
