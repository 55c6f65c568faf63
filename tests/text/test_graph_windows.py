"""Windows that are computed a few at a time."""

from bert_tf.text import graph_windows

import numpy as np
import pytest
import tensorflow as tf


@pytest.mark.parametrize(
    ("of_row", "most"),
    [
        (1, graph_windows.MOST_WINDOWS),
        (graph_windows.MOST_NUMBERS // 5, 5),
        (graph_windows.MOST_NUMBERS * 5, 1),
    ],
)
def test_memory_is_bounded(of_row, most):
    sizes = []

    def twice(inputs):
        sizes.append(len(inputs[0]))
        return 2 * inputs[0]

    found = graph_windows.in_parts(
        twice, [tf.range(128)], tf.TensorSpec([None], tf.int32), of_row
    )
    np.testing.assert_array_equal(found, 2 * np.arange(128))
    assert max(sizes) == most
