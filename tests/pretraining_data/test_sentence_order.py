"""Sentence-order segments, compared with ALBERT's own algorithm."""

import itertools
import random

from bert_tf.pretraining_data import segments
from tests import pretraining_documents as documents
from tests.pretraining_data.segment_texts import (
    cut,
    make_text,
    random_lengths,
)

import numpy as np
import pytest
from scipy import stats

assert_share = documents.assert_share


class TestSentenceOrder:
    def test_all_text_is_used(self):
        lengths = [[max(n, 2) for n in x] for x in random_lengths()]
        text = make_text(lengths)
        found = segments.sentence_order(text, 4000, 1, 1, 0)
        starts, ends = found.starts.min(axis=1), found.ends.max(axis=1)
        np.testing.assert_array_equal(starts[1:], ends[:-1])
        assert (starts[0], ends[-1]) == (0, text.sentences[-1])

    def test_a_sentence_alone_is_cut_anywhere(self):
        text = make_text([[12]] * 5000)
        found = segments.sentence_order(text, 61, 0, 1, 0)
        cuts = found.starts.max(axis=1) % 12
        counts = np.bincount(cuts, minlength=12)
        assert counts[0] == 0
        assert stats.chisquare(counts[1:]).pvalue > documents.SIGNIFICANCE

    def test_a_token_alone_is_left_out(self):
        found = segments.sentence_order(make_text([[1], [2]]), 61, 0, 1, 0)
        assert np.sort(found.starts).tolist() == [[1, 2]]

    def test_fit(self):
        text = make_text([[500, 3], [1, 1000, 1], [2]])
        found = cut(segments.sentence_order, text, 13, 0.5, repetitions=50)
        assert (found.ends - found.starts).sum(axis=1).max() == 13
        assert (found.ends - found.starts).min() == 1


class TestAsAlberts:
    @pytest.mark.parametrize("max_tokens", [60, 61])
    @pytest.mark.parametrize("short_seq_prob", [0, 0.5])
    def test_distributions_are_the_originals(self, max_tokens, short_seq_prob):
        lengths = random_lengths(tokens=40)
        text = make_text(lengths)
        sizes = (max_tokens, short_seq_prob)
        ours = cut(segments.sentence_order, text, *sizes, repetitions=60)
        rng = random.Random(4)
        reference = np.array(
            [
                pair
                for document in lengths * 60
                for pair in reference_orders(document, *sizes, rng)
            ]
        )
        starts, ends, labels = np.split(reference, [2, 4], axis=1)
        labels = labels[:, 0]
        our_sizes, sizes = ours.ends - ours.starts, ends - starts
        same = documents.assert_same_distribution
        same(our_sizes[:, 0], sizes[:, 0])
        same(our_sizes[:, 1], sizes[:, 1])
        same(our_sizes.sum(axis=1), sizes.sum(axis=1))
        # The truncation between the two segments, and the label.
        gaps = []
        for a, b, swapped in (
            (ours.starts, ours.ends, ours.labels.astype(int)),
            (starts, ends, labels),
        ):
            rows = np.arange(len(swapped))
            gaps.append(a[rows, 1 - swapped] - b[rows, swapped])
        same(*gaps)
        for label in (0, 1):
            same(our_sizes[ours.labels == label, 0], sizes[labels == label, 0])

    @pytest.mark.parametrize("max_tokens", [60, 61])
    def test_lengths_do_not_tell_the_label(self, max_tokens):
        text = make_text([[40, 200]] * 5000)
        found = segments.sentence_order(text, max_tokens, 0, 1, 0)
        sizes = found.ends - found.starts
        assert (sizes[:, 0] == -(-max_tokens // 2)).all()
        assert (sizes[:, 1] == max_tokens // 2).all()
        assert_share(found.labels.sum(), 5000, 0.5)


def reference_orders(lengths, max_tokens, short_seq_prob, rng):
    """ALBERT's create_instances_from_document, for a document's sentences.

    Yields starts and ends of both segments, and the label. A chunk of one
    sentence is split at random; the original takes another document instead.
    """
    borders = [0, *itertools.accumulate(lengths)]
    target = max_tokens
    if rng.random() < short_seq_prob:
        target = rng.randint(2, max_tokens)
    chunk = []
    for i in range(len(lengths)):
        chunk.append(i)
        size = borders[i + 1] - borders[chunk[0]]
        if i < len(lengths) - 1 and size < target:
            continue
        first, last = borders[chunk[0]], borders[i + 1]
        middle = borders[chunk[0] + 1]
        if len(chunk) >= 2:
            middle = borders[chunk[0] + rng.randint(1, len(chunk) - 1)]
        elif size > 1:
            middle = first + rng.randint(1, size - 1)
        chunk = []
        if size == 1:
            continue
        a, b = list(range(first, middle)), list(range(middle, last))
        is_swapped = rng.random() < 0.5
        if is_swapped:
            a, b = b, a
        documents.reference_truncate(a, b, max_tokens, rng)
        yield a[0], b[0], a[-1] + 1, b[-1] + 1, int(is_swapped)
