"""Chooses words to predict, and masks them.

All policies share one algorithm, both in data creation and while reading. Words
are taken in random order until enough tokens are chosen; a word that would
exceed the number is skipped, as in the original. The policy determines what a
word is, and how many are taken at once: `token` takes single tokens,
`whole_word` all tokens of a word, `span` several consecutive whole words, their
number from a geometric distribution (Joshi et al., 2020, SpanBERT, section
3.1), and `ngram` one to N consecutive whole words, with shorter ones more
likely (Lan et al., 2020, ALBERT, section 4.1).

Shapes: B batch, S sequence length, P predictions per row, K sequences of a
packed row, W words of all rows, N words of an n-gram, n all chosen tokens.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from bert_tf import options
from bert_tf.errors import InputError

import numpy as np

POLICIES = options.MASKING_POLICIES

_COUNTS = ("max_predictions_per_seq", "span_max_words", "ngram")
_SHARES = ("masked_lm_prob", "mask_share", "random_share", "span_success")
# Policies that draw how many words are taken at once.
_OF_SEVERAL_WORDS = ("span", "ngram")


@dataclasses.dataclass(frozen=True)
class Masking:
    """The settings for choosing and masking words.

    Attributes:
        policy: One of POLICIES.
        masked_lm_prob: Share of the tokens to predict.
        mask_share: Share of the chosen tokens that become [MASK].
        random_share: Share that become a random token. The rest stay.
        span_success: Parameter of the geometric distribution of span lengths.
        span_max_words: Max span length.
        cls_id: Never chosen, like `sep_id`.
        ngram: N, the max number of words in an n-gram.
        favor_shorter_ngram: Whether the probability of n words is proportional
            to 1/n; otherwise the probabilities are reversed, and N words are
            the most likely.
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
    # Missing in manifests of versions without n-grams.
    ngram: int = 3
    favor_shorter_ngram: bool = True

    @classmethod
    def of_manifest(cls, values: Mapping[str, Any], file: str) -> Self:
        """Returns a manifest's settings; InputError if any are missing."""
        fields = dataclasses.fields(cls)
        names = {field.name for field in fields}
        needed = {x.name for x in fields if x.default is dataclasses.MISSING}
        is_whole = needed <= values.keys() <= names
        if not is_whole:
            raise InputError(
                f"The manifest of {file} does not say how words are masked: "
                "copy it from where the records were made, or make them "
                f"again. Expected masking: {', '.join(sorted(names))}. "
                f"Received: masking={repr(dict(values))[:80]}"
            )
        made = cls(**values)
        made._check_values(file)
        return made

    def _check_values(self, file: str) -> None:
        """Raises InputError for impossible values."""

        def is_count(value: Any) -> bool:
            return type(value) is int and value > 0

        def is_share(value: Any) -> bool:
            return type(value) in (int, float) and 0 <= value <= 1

        def is_id(value: Any) -> bool:
            return type(value) is int and 0 <= value < self.vocab_size

        rules: dict[str, Callable[[Any], bool]] = {
            "policy": lambda value: value in POLICIES,
            "vocab_size": is_count,  # before the ids that it bounds
            **dict.fromkeys(_COUNTS, is_count),
            **dict.fromkeys(_SHARES, is_share),
            **dict.fromkeys(("cls_id", "sep_id", "mask_id"), is_id),
            "favor_shorter_ngram": lambda value: type(value) is bool,
        }
        for name, is_right in rules.items():
            value = getattr(self, name)
            if not is_right(value):
                raise InputError(
                    f"The manifest of {file} is damaged: no words are masked "
                    f"with {name}={value!r}. Copy it from where the records "
                    "were made, or make them again."
                )


def numbers_of_row(S: int, settings: Masking) -> int:
    """Returns how many random 64-bit numbers `mask` needs for each row.

    Every row uses the same number, so its masks only depend on its index, and a
    reader can draw just the numbers of the rows it reads. The number is a
    multiple of 4, the block size of numpy.random.Philox.
    """
    orders = 2 if settings.policy in _OF_SEVERAL_WORDS else 1
    return -(-(orders * S + 2 * settings.max_predictions_per_seq) // 4) * 4


def draw(
    rng: np.random.Generator, rows: int, S: int, settings: Masking
) -> np.ndarray:
    """Draws the input of `mask`: [rows, numbers_of_row] uint64, row by row."""
    shape = (rows, numbers_of_row(S, settings))
    return rng.integers(2**64, size=shape, dtype=np.uint64)


def mask(
    features: Mapping[str, np.ndarray],
    settings: Masking,
    draws: np.ndarray,
) -> dict[str, np.ndarray]:
    """Masks a batch with `draws` [B, numbers_of_row] uint64 from `draw`.

    The features are `input_ids`, `input_mask` and `word_starts`, each [B, S],
    and `sequence_ids` if rows are packed.

    Returns:
        `input_ids` [B, S] int32 with the masks, `masked_lm_positions` and
        `masked_lm_ids` [B, P] int32, `masked_lm_weights` [B, P] float32.
    """
    ids = features["input_ids"]
    S = ids.shape[1]
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
        draws[:, :S],
        draws[:, S : 2 * S],
    )
    P = settings.max_predictions_per_seq
    return _hide(ids, chosen, settings, draws[:, -2 * P : -P], draws[:, -P:])


def wanted(lengths: np.ndarray, settings: Masking) -> np.ndarray:
    """Returns the number of tokens to choose; [CLS] and [SEP] count, too."""
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
    """Chooses random words, up to the wanted tokens per sequence: [B, S] bool.

    `is_text` [B, S] bool are the tokens that may be chosen, `starts` [B, S]
    bool the tokens that begin a word, including the first of each segment,
    `sequence_ids` [B, S] the sequence of each token, from 1, or 0 for padding.
    The random numbers `order` [B, S] uint64 determine the order of words, and
    `lengths` [B, S] uint64 the lengths of spans and n-grams.
    """
    B, S = is_text.shape
    K = int(sequence_ids.max(initial=1))
    # Flat indices for all tokens, and for all sequences.
    sequence = (sequence_ids + np.arange(B)[:, np.newaxis] * (K + 1)).ravel()
    lanes = B * (K + 1)
    left = wanted(np.bincount(sequence, minlength=lanes), settings)
    words = _shuffled(starts, sequence_ids, order)  # [W]
    counts = np.bincount(sequence[words], minlength=lanes)
    begins = np.cumsum(counts) - counts
    if settings.policy == "token":
        chosen = np.zeros(B * S, bool)
        rank = np.arange(len(words)) - np.repeat(begins, counts)
        chosen[words[rank < np.repeat(left, counts)]] = True
        return chosen.reshape(B, S)

    borders = np.flatnonzero(starts | ~is_text)
    sizes = np.zeros(B * S, np.int64)  # size of the word that begins here
    sizes[borders] = np.diff(borders, append=B * S)
    spans = np.ones(B * S, np.int64)
    if settings.policy == "span":
        spans[words] = span_lengths(lengths.ravel()[words], settings)
    words_of = _Words(words, begins, counts, sizes, spans)
    if settings.policy == "ngram":
        draws = lengths.ravel()
        chosen = _ngrams(
            words_of, sequence, left, is_text.ravel(), draws, settings
        )
    else:
        chosen = _whole_words(words_of, sequence, left, is_text.ravel())
    return np.repeat(chosen[borders], sizes[borders]).reshape(B, S)


class _Words(NamedTuple):
    """The words of all sequences in the order in which they are chosen.

    `places` [W] are their first tokens, `begins` and `counts` [sequences] the
    first word and the number of words of each sequence. `sizes` [B * S] are the
    numbers of tokens of the words that begin at each token, and `spans` [B * S]
    the numbers of words of the spans that begin there.
    """

    places: np.ndarray
    begins: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray
    spans: np.ndarray


def _whole_words(
    words: _Words, sequence: np.ndarray, left: np.ndarray, is_text: np.ndarray
) -> np.ndarray:
    """Chooses words or spans while there is room: their first tokens, [B * S].

    `sequence` [B * S] is the sequence of each token. `left`, the number of
    tokens left to choose in each sequence, is decremented in place.
    """
    chosen = np.zeros(len(is_text), bool)
    active, done = np.flatnonzero(words.counts), 0
    while len(active):
        # The next word of every sequence, and the words after it in its span.
        place = words.places[words.begins[active] + done]
        place = place[~chosen[place]]
        in_span = words.spans[place]
        while len(place):
            of = sequence[place]
            # A word that is already chosen does not count again.
            size = np.where(chosen[place], 0, words.sizes[place])
            fits = size <= left[of]
            place, in_span = place[fits], in_span[fits]
            chosen[place] = True
            left[of[fits]] -= size[fits]
            place = place + words.sizes[place]
            goes_on = (in_span > 1) & is_text[place]
            place, in_span = place[goes_on], in_span[goes_on] - 1
        done += 1
        active = active[(left[active] > 0) & (words.counts[active] > done)]
    return chosen


def _ngrams(
    words: _Words,
    sequence: np.ndarray,
    left: np.ndarray,
    is_text: np.ndarray,
    draws: np.ndarray,
    settings: Masking,
) -> np.ndarray:
    """Chooses n-grams while there is room: their words' first tokens, [B * S].

    As in the original, an n-gram without enough room loses words at its end,
    possibly all; if it then overlaps another one, it is skipped. For
    `sequence`, `left` and `is_text` see `_whole_words`. `draws` [B * S] uint64
    determine the length of the n-gram at each word.
    """
    chosen = np.zeros(len(sequence), bool)
    # Sentinel after the last token.
    is_text, sequence = np.append(is_text, False), np.append(sequence, -1)
    active, done = np.flatnonzero(words.counts), 0
    while len(active):
        # The n-gram at the next word of every sequence: the starts of its
        # words, up to the end of the segment.
        place = words.places[words.begins[active] + done]
        draw, room = draws[place], left[active]
        places = [place]
        goes_on = np.ones(len(place), bool)
        there = goes_on.astype(np.int64)
        for _ in range(settings.ngram - 1):
            after = place + words.sizes[place]
            goes_on &= is_text[after] & (sequence[after] == active)
            place = np.where(goes_on, after, place)
            there += goes_on
            places.append(place)
        number = ngram_lengths(draw, there, settings)
        size, used, fits = np.zeros((3, len(place)), np.int64)
        is_free = np.ones(len(place), bool)
        for n, place in enumerate(places):
            size += words.sizes[place]
            is_own = (n < number) & (size <= room)
            used = np.where(is_own, size, used)
            is_free &= ~(is_own & chosen[place])
            fits += is_own
        fits[~is_free] = 0
        left[active] -= np.where(is_free, used, 0)
        for n, place in enumerate(places):
            chosen[place[n < fits]] = True
        done += 1
        active = active[(left[active] > 0) & (words.counts[active] > done)]
    return chosen


def _shuffled(
    starts: np.ndarray, sequence_ids: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Returns word starts [W], in random order within each sequence."""
    B, S = starts.shape
    # The sequence replaces the highest 16 bits and the position the lowest,
    # which avoids an indirect sort. The 32 random bits between them collide
    # once in half a million rows; then the earlier position comes first.
    keys = order & np.uint64(0x0000FFFFFFFF0000)
    keys |= sequence_ids.astype(np.uint64) << np.uint64(48)
    keys |= np.arange(S, dtype=np.uint64)
    keys[~starts] = ~np.uint64(0)  # to the end of the row
    keys.sort(axis=1)
    places = (keys & np.uint64(0xFFFF)).astype(np.int64)
    places += S * np.arange(B)[:, np.newaxis]
    counts = np.count_nonzero(starts, axis=1)  # [B]
    return places[np.arange(S) < counts[:, np.newaxis]]


def span_lengths(draws: np.ndarray, settings: Masking) -> np.ndarray:
    """Converts random 64-bit numbers to span lengths, in words."""
    lengths = np.arange(settings.span_max_words)
    weights = (1 - settings.span_success) ** lengths
    below = np.cumsum(weights)[:-1] / weights.sum()
    return 1 + np.searchsorted(below, unit(draws), side="right")


def ngram_lengths(
    draws: np.ndarray, there: np.ndarray, settings: Masking
) -> np.ndarray:
    """Converts random 64-bit numbers to lengths of n-grams, in words: [W].

    If fewer than N words are `there` [W], only their probabilities count.
    """
    shares = 1 / np.arange(1, settings.ngram + 1)
    if not settings.favor_shorter_ngram:
        shares = shares[::-1]
    below = np.cumsum(shares)  # [N]
    draw = unit(draws) * below[there - 1]
    lengths = 1 + np.searchsorted(below, draw, side="right")
    return np.minimum(lengths, there)  # a product may be rounded up


def _hide(
    ids: np.ndarray,
    chosen: np.ndarray,
    settings: Masking,
    kinds: np.ndarray,
    pieces: np.ndarray,
) -> dict[str, np.ndarray]:
    """Replaces the chosen tokens, and records their positions and ids.

    The random numbers `kinds` [B, P] determine if each token is masked,
    replaced or kept, `pieces` [B, P] the replacements.
    """
    B, S = ids.shape
    P = settings.max_predictions_per_seq
    place = np.flatnonzero(chosen)  # [n], among the tokens of all rows
    counts = np.count_nonzero(chosen, axis=1)  # [B]
    # Their flat indices in [B, P]: the first slots of their rows.
    slot = np.arange(len(place)) + np.repeat(
        P * np.arange(B) - (np.cumsum(counts) - counts), counts
    )
    labels = ids.ravel()[place]  # [n]
    kind = unit(kinds.ravel()[slot])  # [n]
    if settings.policy == "span":
        # As in SpanBERT, all tokens of a span are treated alike.
        is_first = np.diff(place, prepend=-2) > 1
        kind = kind[is_first][np.cumsum(is_first) - 1]
    piece = (unit(pieces.ravel()[slot]) * settings.vocab_size).astype(np.int32)
    shown = np.where(kind < settings.mask_share, settings.mask_id, labels)
    shown = np.where(kind >= 1 - settings.random_share, piece, shown)
    masked = ids.astype(np.int32).ravel()
    masked[place] = shown
    result = {"input_ids": masked.reshape(B, S)}
    for name, values, dtype in (
        ("masked_lm_positions", place % S, np.int32),
        ("masked_lm_ids", labels, np.int32),
        ("masked_lm_weights", 1, np.float32),
    ):
        result[name] = np.zeros((B, P), dtype)
        result[name].ravel()[slot] = values
    return result


def unit(x: np.ndarray) -> np.ndarray:
    """Converts 64 random bits to a number in [0, 1)."""
    return (x >> np.uint64(11)) * 2.0**-53
