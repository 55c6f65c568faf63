"""Tests of bert_tf/records/masking.py: n-grams."""

import collections
import itertools

from bert_tf.records import masking
from tests import pretraining_documents as documents
from tests.records.test_masking import (
    CLS,
    SEP,
    V,
    choose,
    chosen_of,
    make_rows,
    make_settings,
    mask,
    run_lengths,
)

import numpy as np
import pytest
from scipy import stats


def ngram_shares(there, longest, favor_shorter):
    """Returns the share of each n-gram length, with `there` words left."""
    shares = [1 / n for n in range(1, longest + 1)]
    shares = shares if favor_shorter else shares[::-1]
    return [share / sum(shares[:there]) for share in shares[:there]]


def ngram_outcomes(sizes, number, longest, favor_shorter):
    """Returns the words that ALBERT's create_masked_lm_predictions may choose.

    For one segment whose words have `sizes` tokens: the probability of each set
    of words, over all orders of the words and all lengths.
    """
    outcomes: collections.Counter[frozenset[int]] = collections.Counter()

    def take(order, chosen, probability):
        used = sum(sizes[word] for word in chosen)
        if not order or used >= number:
            outcomes[chosen] += probability
            return
        first, *rest = order
        words = range(first, min(first + longest, len(sizes)))
        shares = ngram_shares(len(words), longest, favor_shorter)
        for n, share in enumerate(shares, start=1):
            ngram = list(words[:n])
            while used + sum(sizes[word] for word in ngram) > number:
                ngram.pop()
            is_new = chosen.isdisjoint(ngram)
            new = chosen.union(ngram) if is_new else chosen
            take(rest, new, probability * share)

    orders = list(itertools.permutations(range(len(sizes))))
    for order in orders:
        take(order, frozenset(), 1 / len(orders))
    return outcomes


class TestNgrams:
    @pytest.mark.parametrize("favor_shorter", [True, False])
    @pytest.mark.parametrize("longest", [1, 3, 5])
    def test_lengths_are_as_drawn(self, longest, favor_shorter):
        settings = make_settings(
            "ngram", ngram=longest, favor_shorter_ngram=favor_shorter
        )
        rng = np.random.default_rng(0)
        for there in range(1, longest + 1):
            draws = rng.integers(2**64, size=50_000, dtype=np.uint64)
            remain = np.full(50_000, there)
            found = masking.ngram_lengths(draws, remain, settings)
            expected = np.array(ngram_shares(there, longest, favor_shorter))
            observed = np.bincount(found, minlength=there + 1)
            assert observed[0] == 0
            assert len(observed) == there + 1
            pvalue = stats.chisquare(observed[1:], 50_000 * expected).pvalue
            assert there == 1 or pvalue > documents.SIGNIFICANCE

    def test_lengths_at_the_ends_of_what_is_drawn(self):
        settings = make_settings("ngram")
        ends = np.array([0, 2**64 - 1], np.uint64)
        for there in (1, 2, 3):
            found = masking.ngram_lengths(ends, np.full(2, there), settings)
            assert found.tolist() == [1, there]

    @pytest.mark.parametrize("favor_shorter", [True, False])
    @pytest.mark.parametrize("sizes", [[1, 2, 1, 3, 1, 1], [1] * 6, [2] * 5])
    @pytest.mark.parametrize("number", [1, 3, 4])
    def test_distribution_is_alberts(self, sizes, number, favor_shorter):
        first, later = 5, len(V.pieces) - 1
        words = [[first] + [later] * (size - 1) for size in sizes]
        ids = np.array([[CLS, *itertools.chain(*words), SEP]] * 20_000)
        rows = {
            "input_ids": ids,
            "input_mask": np.ones_like(ids),
            "word_starts": ids == first,
        }
        settings = make_settings(
            "ngram",
            favor_shorter_ngram=favor_shorter,
            masked_lm_prob=number / ids.shape[1],
        )
        chosen = chosen_of(rows, mask(rows, settings, seed=5))
        begins = np.flatnonzero(ids[0] == first)
        # All tokens of a word are chosen, or no token.
        ends = begins + np.array(sizes) - 1
        np.testing.assert_array_equal(chosen[:, begins], chosen[:, ends])
        found = collections.Counter(
            frozenset(np.flatnonzero(row).tolist()) for row in chosen[:, begins]
        )
        expected = ngram_outcomes(sizes, number, 3, favor_shorter)
        assert found.keys() <= expected.keys()
        # Outcomes expected fewer than 5 times are pooled.
        rare = {x for x, share in expected.items() if share * 20_000 < 5}
        table = [
            (found[x], 20_000 * share)
            for x, share in expected.items()
            if x not in rare
        ]
        if rare:
            both = (found, expected)
            few, share = (sum(of[x] for x in rare) for of in both)
            table.append((few, 20_000 * share))
        assert len(table) > 1 or table[0][0] == 20_000
        if len(table) > 1:
            pvalue = stats.chisquare(*zip(*table, strict=True)).pvalue
            assert pvalue > documents.SIGNIFICANCE

    def test_end_where_a_segment_or_a_sequence_does(self):
        # Two sequences of a row: [CLS] a b [SEP] c d [SEP], [CLS] e f [SEP].
        ids = [CLS, 5, 6, SEP, 7, 8, SEP, CLS, 9, 10, SEP]
        is_text = ~np.isin([ids] * 2000, [CLS, SEP])
        sequences = np.array([[1] * 7 + [2] * 4] * 2000)
        settings = make_settings(
            "ngram", ngram=9, favor_shorter_ngram=False, masked_lm_prob=0.3
        )
        # b, d and f are drawn first and have no successor.
        order = np.full(is_text.shape, 2**64 - 1, np.uint64)
        order[:, [2, 5, 9]] = 0
        rng = np.random.default_rng(0)
        lengths = rng.integers(2**64, size=is_text.shape, dtype=np.uint64)
        chosen = masking.choose(
            is_text, is_text, sequences, settings, order, lengths
        )
        # Two tokens of the first sequence, one of the second.
        places = np.flatnonzero(chosen.all(axis=0)).tolist()
        assert places == [2, 5, 9]
        assert chosen.sum() == 3 * 2000

    def test_of_one_word_are_whole_words(self):
        rows = make_rows()
        of_one = choose(rows, make_settings("ngram", ngram=1))
        whole = choose(rows, make_settings("whole_word"))
        same = documents.assert_same_distribution
        same(of_one.sum(axis=1), whole.sum(axis=1))
        same(run_lengths(of_one)[2], run_lengths(whole)[2])

    def test_each_token_is_hidden_by_itself(self):
        rows = make_rows(one_piece_words=True)
        settings = make_settings("ngram", mask_share=0.5, random_share=0)
        masked = mask(rows, settings)
        chosen = chosen_of(rows, masked)
        is_mask = masked["input_ids"] == V.special.mask.id
        both = chosen[:, 1:] & chosen[:, :-1]
        same = is_mask[:, 1:] == is_mask[:, :-1]
        assert both.sum() > 5000
        documents.assert_share((same & both).sum(), both.sum(), 0.5)
