from bert_tf.pretraining_data import pretraining_rows

import numpy as np
import pytest


def check(found, lengths, predictions, limits):
    """Checks that every row fits and holds consecutive sequences."""
    max_length, max_predictions, max_sequences = limits
    rows = range(found.rows.max() + 1)
    for row in rows:
        members = np.flatnonzero(found.rows == row)
        members = members[np.argsort(found.slots[members])]
        assert found.slots[members].tolist() == list(range(len(members)))
        ends = np.cumsum(lengths[members])
        assert found.offsets[members].tolist() == [0, *ends[:-1]]
        assert 0 < ends[-1] <= max_length
        assert predictions[members].sum() <= max_predictions
        assert len(members) <= max_sequences
    return len(rows)


@pytest.mark.parametrize("limits", [(128, 20, 8), (128, 20, 2), (128, 24, 1)])
def test_every_row_fits(limits):
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 129, 1000)
    predictions = np.clip(np.rint(0.15 * lengths), 1, 20).astype(int)
    found = pretraining_rows.pack(lengths, predictions, *limits)
    rows = check(found, lengths, predictions, limits)
    if limits[2] == 1:
        assert rows == 1000
    else:
        # No packing needs fewer rows than the tokens fill.
        assert rows <= 1.15 * lengths.sum() / 128
    again = pretraining_rows.pack(lengths, predictions, *limits)
    for one, two in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, two)


def test_predictions_are_a_limit_of_their_own():
    lengths, predictions = np.full(40, 16), np.full(40, 4)
    found = pretraining_rows.pack(lengths, predictions, 128, 20, 8)
    # 8 would fit by length, but only 5 by predictions.
    assert check(found, lengths, predictions, (128, 20, 8)) == 8


def test_best_by_hand():
    lengths = np.array([3, 7, 6, 4, 10])
    found = pretraining_rows.pack(lengths, np.ones(5, int), 10, 10, 4)
    assert found.rows.tolist() == [1, 1, 2, 2, 0]
    assert found.offsets.tolist() == [7, 0, 0, 6, 0]


def test_nothing():
    empty = np.zeros(0, int)
    assert pretraining_rows.pack(empty, empty, 128, 20, 8).rows.tolist() == []
