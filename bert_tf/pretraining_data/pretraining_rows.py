"""Builds the features of pre-training records from sequences.

A row has one sequence, or several packed ones. Words are masked (masking.py)
now, or when the records are read.

Shapes: n sequences to pack, r sequences to write, R rows, S sequence length of
a row, P predictions per row, K sequences per row.
"""

import collections
from collections.abc import Mapping
from typing import NamedTuple

from bert_tf import vocabularies
from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import masking

import numpy as np

# ---- Packing -----------------------------------------------------------------

# First-fit decreasing: longest first, each into the first row that has room for
# its tokens and predictions. The number of rows is at most 11/9 of the minimum
# (Johnson, 1973), and within a percent or two of it on text.


class Packing(NamedTuple):
    """The row, the slot (of K) and the first token of sequences: [n] int64."""

    rows: np.ndarray
    slots: np.ndarray
    offsets: np.ndarray


def pack(
    lengths: np.ndarray,
    predictions: np.ndarray,
    max_length: int,
    max_predictions: int,
    max_sequences: int,
) -> Packing:
    """Assigns sequences to rows within the given limits.

    `lengths` [n] are the numbers of tokens of sequences, including [CLS] and
    [SEP]; `predictions` [n] are their numbers of tokens to predict;
    `max_sequences` is K.
    """
    number = len(lengths)
    # The room of each row for tokens, predictions and sequences.
    tokens = np.full(number, max_length)
    places = np.full(number, max_predictions)
    slots = np.full(number, max_sequences)
    packing = Packing(*np.zeros((3, number), np.int64))
    first = used = 0  # rows before `first` are full
    shortest = int(lengths.min(initial=max_length))
    order = np.argsort(-lengths, kind="stable")
    for index in order.tolist():
        length, count = lengths[index], predictions[index]
        last = used + 1  # an empty row has room
        fits = tokens[first:last] >= length
        fits &= places[first:last] >= count
        fits &= slots[first:last] > 0
        row = first + int(fits.argmax())
        packing.rows[index] = row
        packing.slots[index] = max_sequences - slots[row]
        packing.offsets[index] = max_length - tokens[row]
        tokens[row] -= length
        places[row] -= count
        slots[row] -= 1
        used = max(used, row + 1)
        while first < used and (tokens[first] < shortest or not slots[first]):
            first += 1
    return packing


# ---- Features ----------------------------------------------------------------


def features(
    sequences: pretraining_sequences.Sequences,
    vocabulary: vocabularies.Vocabulary,
    settings: pretraining_sequences.Settings,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Arranges sequences in rows, and masks words unless the reader does.

    Pass thousands of sequences at a time if they are packed. `rng` draws the
    masks, and the order of packed rows.

    Returns:
        The features of `settings.record_type` records, each [R, ...]. R is the
        number of sequences, or less if they are packed.
    """
    masks = pretraining_sequences.masking_of(settings, vocabulary)
    if settings.pack:
        rows = _packed(sequences, vocabulary, settings, masks, rng)
    else:
        r, S = len(sequences), settings.max_seq_length
        rows = _lay_out(sequences, vocabulary, r, S, S * np.arange(r))
        rows["next_sentence_labels"] = sequences.labels[:, np.newaxis]
    if settings.dynamic_masking:
        return rows
    B, S = rows["input_ids"].shape
    draws = masking.draw(rng, B, S, masks)
    rows |= masking.mask(rows, masks, draws)
    del rows["word_starts"]
    return rows


def _lay_out(
    sequences: pretraining_sequences.Sequences,
    vocabulary: vocabularies.Vocabulary,
    R: int,
    S: int,
    offsets: np.ndarray,
) -> dict[str, np.ndarray]:
    """Writes r sequences with their special tokens into R rows of S positions.

    `offsets` [r] are the start of each among all R * S positions.
    """
    template, pad = vocabulary.template, vocabulary.special.pad.id
    front, between = len(template.before), len(template.between)
    sizes = np.diff(sequences.starts)  # [r]
    middles, lengths = sequences.middles, sequences.lengths(template)  # [r]
    # Positions of the tokens in their sequences, and then in the rows.
    inside = np.arange(len(sequences.tokens))
    inside -= np.repeat(sequences.starts[:-1], sizes)
    middle = np.repeat(middles, sizes)
    is_second = inside >= middle
    place = np.repeat(offsets + front, sizes) + inside + between * is_second
    ids = np.full(R * S, pad, np.int32)
    ids[place] = sequences.tokens
    is_pair = middles < sizes
    middle_ends = (offsets + front + middles)[is_pair]
    ends = offsets + lengths - len(template.after)
    number_1, number_2 = template.segments
    segments = np.full(R * S, number_1, np.int8)
    segments[place] = np.where(is_second, number_2, number_1)
    for starts, pieces in (
        (offsets, template.before),
        (middle_ends, template.between),
        (ends, template.after),
    ):
        for number, piece in enumerate(pieces):
            ids[starts + number] = piece
    for number in range(len(template.after)):
        segments[ends + number] = np.where(is_pair, number_2, number_1)
    word_starts = np.zeros(R * S, np.int8)
    # A segment may begin inside a word, which then begins there.
    begins = (inside == 0) | (inside == middle)
    word_starts[place] = sequences.word_starts | begins
    used = np.bincount(offsets // S, lengths, R)  # tokens of each row, [R]
    return {
        "input_ids": ids.reshape(R, S),
        "input_mask": (np.arange(S) < used[:, np.newaxis]).view(np.int8),
        "segment_ids": segments.reshape(R, S),
        "word_starts": word_starts.reshape(R, S),
    }


def _packed(
    sequences: pretraining_sequences.Sequences,
    vocabulary: vocabularies.Vocabulary,
    settings: pretraining_sequences.Settings,
    masks: masking.Masking,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    S, K = settings.max_seq_length, settings.max_sequences_per_row
    template = vocabulary.template
    lengths = sequences.lengths(template)
    rows, slots, starts = pack(
        lengths,
        masking.wanted(lengths, masks),
        S,
        settings.max_predictions_per_seq,
        K,
    )
    R = int(rows.max(initial=-1)) + 1
    # Packing sorts sequences by length.
    rows = rng.permutation(R)[rows]
    offsets = rows * S + starts
    result = _lay_out(sequences, vocabulary, R, S, offsets)
    place, begins = pretraining_sequences.ranges(offsets, lengths)
    positions = np.arange(len(place)) - np.repeat(begins[:-1], lengths)
    for name, values in (
        ("sequence_ids", np.repeat(slots + 1, lengths)),
        ("position_ids", positions),
    ):
        result[name] = np.zeros((R, S), np.int32)
        result[name].ravel()[place] = values
    for name, values, dtype in (
        ("cls_positions", starts + template.pooled, np.int32),
        ("next_sentence_labels", sequences.labels, np.int32),
        ("next_sentence_weights", np.ones(len(rows)), np.float32),
    ):
        result[name] = np.zeros((R, K), dtype)
        result[name][rows, slots] = values
    return result


def statistics(
    rows: Mapping[str, np.ndarray], vocabulary: vocabularies.Vocabulary
) -> collections.Counter[str]:
    """Counts the contents of features.

    The counts are `rows`, `instances` (sequences), `random_next` (labels of 1),
    `real_tokens` and `padding_tokens`; for masked rows also `predictions`, and
    those masked (`predictions_masked`) and kept (`predictions_unchanged`).
    """
    number, S = rows["input_ids"].shape
    real = int(rows["input_mask"].sum())
    weights = rows.get("next_sentence_weights", np.ones(number))
    counts: collections.Counter[str] = collections.Counter(
        rows=number,
        instances=int(weights.sum()),
        random_next=int(rows["next_sentence_labels"].sum()),
        real_tokens=real,
        padding_tokens=number * S - real,
    )
    if "masked_lm_ids" not in rows:
        return counts
    is_prediction = rows["masked_lm_weights"] > 0
    shown = np.take_along_axis(
        rows["input_ids"], rows["masked_lm_positions"], axis=1
    )[is_prediction]
    labels = rows["masked_lm_ids"][is_prediction]
    counts.update(
        predictions=len(labels),
        predictions_masked=int((shown == vocabulary.special.mask.id).sum()),
        predictions_unchanged=int((shown == labels).sum()),
    )
    return counts
