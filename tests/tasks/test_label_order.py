"""The order of labels that are learned from a file."""

from bert_tf.tasks import labels
from bert_tf.tasks.tagging import conll

import pytest


@pytest.mark.parametrize(
    ("found", "known", "order"),
    [
        ({"10", "2", "0", "-1"}, None, ("-1", "0", "2", "10")),
        ({"10", "2", "x"}, None, ("10", "2", "x")),
        ({"1.5", "10", "2"}, None, ("1.5", "10", "2")),
        # A run of an earlier version goes on with its order.
        ({"10", "2", "0"}, ("0", "10", "2"), ("0", "10", "2")),
        ({"10", "2", "0"}, ("0", "2"), ("0", "2", "10")),
    ],
)
def test_whole_numbers_are_in_the_order_of_numbers(found, known, order):
    assert labels.ordered(found, known) == order


def test_tags(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("a 10\nb 9\nc 1\n")
    sentences = conll.read(str(path), conll.Columns())
    assert conll.known_labels(sentences) == ("1", "9", "10")
    assert conll.known_labels(sentences, ("1", "10", "9")) == ("1", "10", "9")
