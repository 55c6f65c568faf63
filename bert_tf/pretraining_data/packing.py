"""Puts several short sequences into one row.

First-fit decreasing: longest first, each into the first row that has room for
its tokens and predictions. It needs at most 11/9 of the fewest possible rows
(Johnson, 1973), and on text within a percent or two.

Shapes: n sequences, R rows, K sequences per row at most.
"""

from typing import NamedTuple

import numpy as np


class Packing(NamedTuple):
    """Each sequence's row, slot (of K), and first token in it: [n] int64."""

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
    """Assigns sequences to rows that hold at most so much.

    `lengths` [n] count the tokens of sequences, [CLS] and [SEP] included,
    `predictions` [n] what is to be predicted; `max_sequences` is K.
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
