"""Puts several short sequences into one row.

First-fit decreasing: longest first, each into the first row that has room for
its tokens and its predictions. It needs at most 11/9 of the fewest possible
rows (Johnson, 1973), and on text within a percent or two.

Shapes: n sequences, R rows, K sequences per row at most.
"""

from typing import NamedTuple

import numpy as np


class Packing(NamedTuple):
    """Where sequences go.

    Args:
        rows: [n] int64.
        slots: [n] int64, which sequence of the row, from 0 to K - 1.
        offsets: [n] int64, the first token in the row.
    """

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
    """Assigns sequences to rows.

    Args:
        lengths: [n], tokens of each sequence, [CLS] and [SEP] included.
        predictions: [n], of each sequence.
        max_length: Tokens of a row at most.
        max_predictions: Predictions of a row at most.
        max_sequences: K.
    """
    number = len(lengths)
    # Each row's room for tokens, predictions, sequences.
    tokens = np.full(number, max_length)
    places = np.full(number, max_predictions)
    slots = np.full(number, max_sequences)
    packing = Packing(*np.zeros((3, number), np.int64))
    first = used = 0  # rows before `first` have no room for anything
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
