"""Random samples of a stream."""

import collections

from bert_tf.tasks import text_batches


def test_each_is_drawn_as_often_as_any_other():
    counts = collections.Counter(
        item
        for seed in range(3000)
        for item in text_batches.drawn(range(10), 3, seed)
    )
    # 900 each; five standard deviations are 125.
    assert sum(counts.values()) == 9000
    assert all(775 < counts[item] < 1025 for item in range(10))
    assert text_batches.drawn(range(10), 3, 7) == text_batches.drawn(
        range(10), 3, 7
    )


def test_all_where_there_are_no_more():
    assert text_batches.drawn(iter("abc"), 3, 1) == ["a", "b", "c"]
    assert text_batches.drawn([], 3, 1) == []
