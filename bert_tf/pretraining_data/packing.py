"""Packs several short sequences into one row.

First-fit decreasing: longest first, each into the first row that has room for
its tokens and predictions. The number of rows is at most 11/9 of the minimum
(Johnson, 1973), and within a percent or two of it on text.

Shapes: n sequences, R rows, max K sequences per row.
"""

from typing import NamedTuple

import numpy as np


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
