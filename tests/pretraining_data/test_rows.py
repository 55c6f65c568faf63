"""Sequences become rows of records."""

import itertools

from bert_tf import options
from bert_tf.pretraining_data import pretraining_rows, pretraining_sequences
from bert_tf.records import masking, record_types
from tests import pretraining_documents as documents

import numpy as np
import pytest

V = documents.VOCABULARY
OBJECTIVES = options.OBJECTIVES


def make(corpus=None, vocabulary=V, seed=1, **settings):
    """Returns settings, sequences, and the features of their records."""
    if corpus is None:
        corpus = documents.make_corpus(documents.make_documents())
    settings = {"max_seq_length": 64, "max_predictions_per_seq": 9} | settings
    made = pretraining_sequences.Settings(**settings)
    sequences = pretraining_sequences.create_sequences(
        corpus, None, made, V.template, 1, 0
    )
    rng = np.random.default_rng(seed)
    rows = pretraining_rows.features(sequences, vocabulary, made, rng)
    return made, sequences, rows


def expected_rows(sequences, vocabulary=V):
    """Returns (ids, segments, label) of every sequence."""
    rows = []
    borders = itertools.pairwise(sequences.starts)
    both = zip(borders, sequences.middles, sequences.labels, strict=True)
    for (start, end), middle, label in both:
        tokens = sequences.tokens[start:end].tolist()
        first, second = tokens[:middle], tokens[middle:]
        ids = [vocabulary.special.cls.id, *first, vocabulary.special.sep.id]
        segments = [0] * len(ids)
        if second:
            ids += [*second, vocabulary.special.sep.id]
            segments += [1] * (len(second) + 1)
        rows.append((ids, segments, int(label)))
    return rows


def found_rows(rows):
    """Returns the same from padded or packed features without masks."""
    found = []
    for i, ids in enumerate(rows["input_ids"]):
        numbers = rows.get("sequence_ids", rows["input_mask"])[i]
        for slot in range(numbers.max()):
            inside = numbers == slot + 1
            label = int(rows["next_sentence_labels"][i, slot])
            parts = ids[inside], rows["segment_ids"][i][inside]
            found.append((*(x.tolist() for x in parts), label))
    return found


class TestFeatures:
    @pytest.mark.parametrize("objective", OBJECTIVES)
    @pytest.mark.parametrize("policy", masking.POLICIES)
    @pytest.mark.parametrize("pack", [False, True])
    def test_are_made_of_the_text(self, objective, policy, pack):
        _, sequences, rows = make(
            objective=objective, masking=policy, pack=pack
        )
        rows["input_ids"] = documents.restore(rows)
        found, expected = found_rows(rows), expected_rows(sequences)
        if pack:
            found, expected = sorted(found), sorted(expected)
        assert found == expected
        counts = rows["masked_lm_weights"].sum(axis=1)
        assert counts.max() <= 9
        # A sequence of one long word has none, as in the original.
        assert np.mean(counts == 0) < (0.05 if policy != "token" else 1e-9)

    @pytest.mark.parametrize("dynamic", [False, True])
    @pytest.mark.parametrize("pack", [False, True])
    def test_are_records_of_their_type(self, dynamic, pack):
        own = {"max_sequences_per_row": 5} if pack else {}
        settings, _, rows = make(dynamic_masking=dynamic, pack=pack, **own)
        record_type = record_types.PRETRAINING_TYPES[settings.record_type]
        serialized = record_type.encode_batch(rows)
        parsed = record_type.parse(serialized, {"S": 64, "P": 9, "K": 5})
        assert parsed.keys() == rows.keys()
        for name, array in rows.items():
            np.testing.assert_array_equal(parsed[name], array)

    def test_unmasked_ones_say_where_words_begin(self):
        _, sequences, rows = make(dynamic_masking=True)
        assert found_rows(rows) == expected_rows(sequences)
        ids = rows["input_ids"]
        is_text = ~np.isin(ids, [0, V.special.cls.id, V.special.sep.id])
        begins = np.zeros_like(is_text)
        begins[:, 1:] = ~is_text[:, :-1]
        np.testing.assert_array_equal(
            rows["word_starts"], is_text & (begins | ~V.continues[ids])
        )
        # Some segments begin inside a word, where they were truncated.
        assert (begins & is_text & V.continues[ids]).any()

    def test_same_seed_same_features(self):
        one, two, other = (make(seed=i, pack=True)[2] for i in (1, 1, 2))
        for name, array in one.items():
            np.testing.assert_array_equal(array, two[name])
        assert not np.array_equal(one["input_ids"], other["input_ids"])


class TestPacked:
    def test_borders(self):
        _, sequences, rows = make(pack=True, short_seq_prob=0.9)
        assert len(rows["input_ids"]) < 0.8 * len(sequences)
        ids, numbers = documents.restore(rows), rows["sequence_ids"]
        np.testing.assert_array_equal(numbers > 0, rows["input_mask"])
        # Positions restart at each [CLS], and only there.
        np.testing.assert_array_equal(
            (rows["position_ids"] == 0) & (numbers > 0), ids == V.special.cls.id
        )
        steps = np.diff(rows["position_ids"], axis=1)
        same = (np.diff(numbers, axis=1) == 0) & (numbers[:, 1:] > 0)
        assert (steps[same] == 1).all()
        for row in range(len(ids)):
            count = numbers[row].max()
            weights = rows["next_sentence_weights"][row]
            assert weights.tolist() == [1] * count + [0] * (8 - count)
            expected = np.flatnonzero(ids[row] == V.special.cls.id)
            found = rows["cls_positions"][row, :count]
            np.testing.assert_array_equal(found, expected)
            assert not rows["cls_positions"][row, count:].any()

        # Every sequence has its predictions.
        at, slot = np.nonzero(rows["masked_lm_weights"])
        place = rows["masked_lm_positions"][at, slot]
        chosen = np.zeros_like(rows["input_ids"])
        chosen[at, place] = 1
        for number in range(1, 9):
            inside = rows["sequence_ids"] == number
            lengths = inside.sum(axis=1)
            expected = np.clip(np.rint(0.15 * lengths), 1, 9) * (lengths > 0)
            own = (chosen * inside).sum(axis=1)
            np.testing.assert_array_equal(own, expected)


class TestStatistics:
    @pytest.mark.parametrize("pack", [False, True])
    def test_counts(self, pack):
        _, sequences, rows = make(pack=pack)
        counts = pretraining_rows.statistics(rows, V)
        real = sequences.lengths(V.template).sum()
        predictions = rows["masked_lm_weights"].sum()
        changed = (documents.restore(rows) != rows["input_ids"]).sum()
        number = len(rows["input_ids"])
        masked = (rows["input_ids"] == V.special.mask.id).sum()
        expected = {
            "instances": len(sequences),
            "rows": number,
            "random_next": sequences.labels.sum(),
            "real_tokens": real,
            "padding_tokens": 64 * number - real,
            "predictions": predictions,
            "predictions_unchanged": predictions - changed,
            "predictions_masked": masked,
        }
        assert expected.items() <= counts.items()

    def test_without_masks(self):
        _, sequences, rows = make(dynamic_masking=True)
        counts = pretraining_rows.statistics(rows, V)
        assert counts["instances"] == len(sequences)
        assert counts["predictions"] == 0


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
