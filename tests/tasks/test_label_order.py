"""The order of labels that are found in a file."""

from bert_tf.errors import InputError
from bert_tf.tasks import label_column
from bert_tf.tasks.classification import own_files
from bert_tf.tasks.tagging import conll

import pytest


@pytest.mark.parametrize(
    ("found", "known", "order"),
    [
        ({"10", "2", "0", "-1"}, None, ("-1", "0", "2", "10")),
        ({"10", "2", "x"}, None, ("10", "2", "x")),
        ({"1.5", "10", "2"}, None, ("1.5", "10", "2")),
        # A run of an earlier version keeps its order.
        ({"10", "2", "0"}, ("0", "10", "2"), ("0", "10", "2")),
        ({"10", "2", "0"}, ("0", "2"), ("0", "2", "10")),
    ],
)
def test_whole_numbers_are_in_the_order_of_numbers(found, known, order):
    assert label_column.ordered(found, known) == order


@pytest.mark.parametrize("label", ["a\nb", "a\r", "a\r\n", " "])
def test_labels_that_are_not_a_line(label):
    with pytest.raises(InputError, match="must not be empty or hold a line"):
        label_column.check(("x", label))


def test_tags(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("a 10\nb 9\nc 1\n")
    sentences = conll.read(str(path), conll.Columns())
    assert conll.known_labels(sentences) == ("1", "9", "10")
    assert conll.known_labels(sentences, ("1", "10", "9")) == ("1", "10", "9")


def test_a_row_that_would_be_taken_for_a_header(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("good film\t1\nbad film\t0\nso\t1\n")
    columns = own_files.Columns("0", None, "1")
    with pytest.raises(InputError, match=r"looks like a row.*has_header=false"):
        own_files.custom(columns, {"train": str(path)}, None, False)
    # Also in files to predict, where the labels are only copied.
    with pytest.raises(InputError, match=r"looks like a row.*label='1'"):
        own_files.custom(columns, {"test": str(path)}, ("0", "1"), False)
    with pytest.raises(InputError, match=r"it has a score.*has_header=false"):
        own_files.custom(columns, {"train": str(path)}, None, True)
    path.write_text("good film\ta,b\nbad film\tb\nso\ta\n")
    with pytest.raises(InputError, match=r"looks like a row.*label='a,b'"):
        own_files.custom(columns, {"train": str(path)}, None, False, ",")
    # A label name that looks like a number is a name.
    path.write_text("0\t1\na\t1\nb\t0\n")
    task = own_files.custom(columns, {"train": str(path)}, None, False)
    assert task.labels == ("0", "1")
