import random

from bert_tf.pretraining_data import pretraining_sequences, segments
from tests import pretraining_documents as documents
from tests.pretraining_data.segment_texts import (
    cut,
    document_starts,
    documents_of,
    make_text,
    random_lengths,
)

import numpy as np
import pytest
from scipy import stats

assert_share = documents.assert_share


def pairs_of(text, *args, **kwargs):
    return cut(segments.next_sentences, text, text, *args, **kwargs)


class TestNextSentences:
    @pytest.mark.parametrize("short_seq_prob", [0, 0.1, 1])
    def test_distributions_are_the_originals(self, short_seq_prob):
        settings = pretraining_sequences.Settings(
            64, 10, short_seq_prob=short_seq_prob
        )
        lengths = random_lengths()
        text = make_text(lengths)
        ours = pairs_of(text, 61, short_seq_prob, repetitions=60)
        tokens = [[["w"] * n for n in document] for document in lengths]
        rng = random.Random(4)
        reference = [
            (len(a), len(b), is_random_next, repetition)
            for repetition in range(60)
            for index in range(len(tokens))
            for a, b, is_random_next in documents.reference_pairs(
                tokens, index, settings, rng
            )
        ]
        first, second, label, repetition = np.array(reference).T
        our_first, our_second = (ours.ends - ours.starts).T
        seeds = range(2, 62)
        each = [pairs_of(text, 61, short_seq_prob, seed=x) for x in seeds]
        numbers = [len(pairs.labels) for pairs in each]
        test = stats.ttest_ind(numbers, np.bincount(repetition))
        assert test.pvalue > documents.SIGNIFICANCE
        same = documents.assert_same_distribution
        same(our_first, first)
        same(our_second, second)
        same(our_first + our_second, first + second)
        for value in (0, 1):
            same(our_first[ours.labels == value], first[label == value])
        table = [np.bincount(ours.labels), np.bincount(label)]
        assert stats.chi2_contingency(table).pvalue > documents.SIGNIFICANCE

    def test_random_next_is_of_another_document(self):
        text = make_text(random_lengths(number=6))
        pairs = pairs_of(text, 61, 0.1, repetitions=200)
        first, second = documents_of(text, pairs.starts).T
        np.testing.assert_array_equal(first != second, pairs.labels)
        # The other documents are equally likely.
        for document in range(6):
            of_document = second[pairs.labels & (first == document)]
            counts = np.delete(np.bincount(of_document, minlength=6), document)
            pvalue = stats.chisquare(counts).pvalue
            assert pvalue > documents.SIGNIFICANCE

    def test_a_document_is_used_up_in_order(self):
        text = make_text(random_lengths())
        # So long that nothing is truncated.
        pairs = pairs_of(text, 4000, 1)
        position = 0
        for starts, ends, is_random in zip(
            pairs.starts, pairs.ends, pairs.labels, strict=True
        ):
            assert starts[0] == position
            assert np.isin([*starts, *ends], text.sentences).all()
            position = ends[0]
            if not is_random:
                assert starts[1] == ends[0]
                position = ends[1]
        assert position == text.sentences[-1]

    def test_fit(self):
        text = make_text([[500, 3], [1, 1000, 1], [2]])
        pairs = pairs_of(text, 13, 0.5, repetitions=50)
        sizes = pairs.ends - pairs.starts
        assert sizes.min() == 1
        assert sizes.sum(axis=1).max() == 13


class TestTruncate:
    def test_lengths_are_those_of_one_token_at_a_time(self):
        rng = random.Random(0)
        sides = [(a, b) for a in range(1, 25) for b in range(1, 25)]
        text = make_text(sides)
        chances = segments.Chances(text, 1, 0)
        whole = (
            text.sentences[:-1].reshape(-1, 2),
            (text.sentences[1:].reshape(-1, 2)),
        )
        first = 2 * np.arange(len(sides))
        for max_tokens in range(2, 30):
            starts, ends = (x.copy() for x in whole)
            segments.truncate(starts, ends, max_tokens, chances, first)
            expected = []
            for pair in sides:
                a, b = ([0] * n for n in pair)
                documents.reference_truncate(a, b, max_tokens, rng)
                expected.append([len(a), len(b)])
            np.testing.assert_array_equal(ends - starts, expected)
            assert (starts >= whole[0]).all() and (ends <= whole[1]).all()

    @pytest.mark.parametrize("surplus", [1, 10, 64, 65, 200])
    def test_front_and_back_are_even(self, surplus):
        number = 5000
        text = make_text([[4, surplus + 10]] * number)
        starts = text.sentences[:-1].reshape(number, 2).copy()
        ends = text.sentences[1:].reshape(number, 2).copy()
        first = starts[:, 1].copy()
        chances = segments.Chances(text, 1, 0)
        rows = 2 * np.arange(number)
        segments.truncate(starts, ends, 14, chances, rows)
        front = starts[:, 1] - first
        cells = stats.binom.ppf(np.linspace(0, 1, 11), surplus, 0.5)
        edges = np.unique([-1, *cells])
        expected = np.diff(stats.binom.cdf(edges, surplus, 0.5)) * number
        observed = np.histogram(front, edges + 0.5)[0]
        pvalue = stats.chisquare(observed, expected).pvalue
        assert pvalue > documents.SIGNIFICANCE


class TestChance:
    @pytest.mark.parametrize(
        "function", [segments.sentence_order, segments.single_segments]
    )
    def test_a_documents_cuts_are_its_own(self, function):
        lengths = random_lengths()
        among = function(make_text(lengths), 61, 0.5, 1, 0)
        alone = function(make_text(lengths[7:8], 7), 61, 0.5, 1, 0)
        begin = sum(map(sum, lengths[:7]))
        end = begin + sum(lengths[7])
        first = among.starts.min(axis=1)
        own = (first >= begin) & (first < end)
        np.testing.assert_array_equal(among.starts[own] - begin, alone.starts)
        np.testing.assert_array_equal(among.labels[own], alone.labels)

    def test_first_segments_do_not_depend_on_other_documents(self):
        lengths = random_lengths()
        end = sum(map(sum, lengths[:20]))
        one = pairs_of(make_text(lengths), 4000, 1)
        two = pairs_of(make_text([*lengths[:20], *lengths[:20]]), 4000, 1)
        np.testing.assert_array_equal(
            *(x.ends[x.starts[:, 0] < end][:, 0] for x in (one, two))
        )

    @pytest.mark.parametrize("seed, repetition", [(2, 0), (1, 1), (2**63, 0)])
    def test_differs_by_seed_and_repetition(self, seed, repetition):
        text = make_text([[1] * 2000])
        base = segments.sentence_order(text, 61, 0, 1, 0)
        other = segments.sentence_order(text, 61, 0, seed, repetition)
        again = segments.sentence_order(text, 61, 0, 1, 0)
        np.testing.assert_array_equal(base.starts, again.starts)
        assert not np.array_equal(base.labels, other.labels)


class TestSingleSegments:
    def test_whole_sentences_as_many_as_fit(self):
        text = make_text(random_lengths())
        found = segments.single_segments(text, 61, 0, 1, 0)
        starts, ends = found.starts[:, 0], found.ends[:, 0]
        np.testing.assert_array_equal(starts[1:], ends[:-1])
        assert (starts[0], ends[-1]) == (0, text.sentences[-1])
        assert np.isin(ends, text.sentences).all()
        assert (ends - starts).max() <= 61
        np.testing.assert_array_equal(
            documents_of(text, starts), documents_of(text, ends - 1)
        )
        # The next sentence would not fit, or is in the next document.
        after = np.searchsorted(text.sentences, ends[:-1]) + 1
        is_last = np.isin(ends[:-1], document_starts(text))
        too_long = text.sentences[after] - starts[:-1] > 61
        assert (is_last | too_long).all()

        # There is no second segment.
        found = segments.single_segments(text, 61, 0.1, 1, 0)
        np.testing.assert_array_equal(found.starts[:, 1], found.ends[:, 1])
        assert not found.labels.any()
        # Long sentences continue in the next segment.
        text = make_text([[3, 100, 4, 61, 62]])
        found = segments.single_segments(text, 61, 0, 1, 0)
        assert found.ends[:, 0].tolist() == [3, 64, 107, 168, 229, 230]

    def test_short_ones_have_whole_sentences_too(self):
        text = make_text([[20] * 50] * 2000)
        found = segments.single_segments(text, 61, 1, 1, 0)
        sizes = (found.ends - found.starts)[:, 0]
        assert set(sizes.tolist()) == {20, 40, 60}
        # Target lengths are 2 to 61: with 40 to 59 two sentences fit.
        of_document = documents_of(text, found.starts[:, 0])
        longest = np.zeros(2000, int)
        np.maximum.at(longest, of_document, sizes)
        assert_share((longest == 60).sum(), 2000, 2 / 60)
        assert_share((longest == 40).sum(), 2000, 20 / 60)


class TestFullSentences:
    """Their tokens are tested in test_sequences.py."""

    def test_long_sentences_go_on(self):
        # With separators: 0-3, 4-104, 104-108 | 109-170, 170-232.
        text = make_text([[3], [100, 4], [61, 62]])
        found = segments.full_sentences(text, 61, 0, 1, 0)
        assert found.starts[:, 0].tolist() == [0, 4, 65, 109, 170, 231]
        assert found.ends[:, 0].tolist() == [3, 65, 108, 170, 231, 232]
        np.testing.assert_array_equal(found.starts[:, 1], found.ends[:, 1])

    def test_a_separator_takes_a_place(self):
        for lengths, ends in (
            ([[30, 31]], [61]),
            ([[30], [30]], [61]),
            ([[30], [31]], [30, 62]),
            ([[1]] * 4, [7]),
        ):
            found = segments.full_sentences(make_text(lengths), 61, 0, 1, 0)
            assert found.ends[:, 0].tolist() == ends

    def test_so_many_are_shorter(self):
        # Sentences of one token: every length is possible.
        text = make_text([[1] * 400_000])
        found = segments.full_sentences(text, 61, 0.25, 1, 0)
        sizes = (found.ends - found.starts)[:-1, 0]
        number = len(sizes)
        assert number > 5000
        # Short sequences have 2 to 61 tokens, uniformly.
        assert_share((sizes < 61).sum(), number, 0.25 * 59 / 60)
        counts = np.bincount(sizes)[2:61]
        assert stats.chisquare(counts).pvalue > documents.SIGNIFICANCE

    def test_differs_by_seed_and_repetition_where_some_are_short(self):
        text = make_text(random_lengths())
        base = segments.full_sentences(text, 61, 0.5, 1, 0)
        for seed, repetition in ((2, 0), (1, 1)):
            other = segments.full_sentences(text, 61, 0.5, seed, repetition)
            assert not np.array_equal(base.starts, other.starts)
        again = segments.full_sentences(text, 61, 0.5, 1, 0)
        np.testing.assert_array_equal(base.starts, again.starts)
