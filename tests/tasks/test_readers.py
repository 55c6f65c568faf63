"""Edge cases of the readers of other projects' files."""

import collections

from bert_tf.errors import InputError
from bert_tf.tasks import label_column, tables, text_batches
from bert_tf.tasks.classification import own_files
from bert_tf.tasks.squad import squad_options, squad_questions, squad_windows
from bert_tf.tasks.tagging import conll
from bert_tf.vocabularies import word_pieces

import pytest


@pytest.mark.parametrize(
    ("file_format", "text"),
    [("tsv", 'a "b\tc\n1\t2\n'), ("csv", '"a ""b",c\n')],
)
def test_header(tmp_path, file_format, text):
    path = tmp_path / "table"
    path.write_text(text)
    assert tables.read_header(str(path), file_format) == ['a "b', "c"]


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("a, b,a,", ("a", "b")),
        ('["a, b", "c"]', ("a, b", "c")),
        (" [1, true] ", ("1", "true")),
        ("[]", ()),
        ("[a", ("[a",)),
        ("[a]", ("[a]",)),
    ],
)
def test_cells_of_several_labels(cell, labels):
    assert label_column.split(cell, ",", "x") == labels


@pytest.mark.parametrize("cell", ["['a', 'b']", "['a' 'b']"])
def test_lists_as_pandas_writes_them(cell):
    message = r'^x: .*not a list in JSON. Expected \["a", "b"\], or a\|b'
    with pytest.raises(ValueError, match=message):
        label_column.split(cell, "|", "x")


@pytest.mark.parametrize("cell", ["[null]", "[NaN]", '[["a"]]', '[{"a": 1}]'])
def test_labels_in_json_that_are_no_texts(cell):
    with pytest.raises(ValueError, match=r"^x: 'label' is no text"):
        label_column.split(cell, ",", "x")


def _vocabulary(*lines):
    return {word_pieces.FILE: "".join(f"{x}\n" for x in lines).encode()}


@pytest.mark.parametrize(
    ("own", "their", "problem"),
    [
        ("word", "[unused3]", ""),
        ("word", "", ""),
        # The first of two equal words is never found.
        ("word", "cat", ""),
        ("word", "dog", "line 2 is 'word', and the checkpoint's is 'dog'"),
    ],
)
def test_where_a_vocabulary_may_differ(own, their, problem):
    found = word_pieces.difference(
        _vocabulary("[PAD]", own, "cat"), _vocabulary("[PAD]", their, "cat")
    )
    assert found == problem


def test_an_answer_inside_a_token_is_found_in_its_word():
    """As in the original: the answer's tokens, if the word has them."""
    vocabulary = word_pieces.WordPiece(
        ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "japan", "japanese", "-"), True
    )
    context = "x japan-japanese x"
    answer = squad_questions.Answer("japan", context.index("japanese"))
    question = squad_questions.Question("1", "q", context, (answer,))
    cutter = squad_windows.Cutter(vocabulary, squad_options.Layout(16, 4, 4))
    pieces = squad_windows.split(vocabulary.tokenizer(), context)
    # Tokens: x japan - japanese x.
    assert cutter.answer_pieces(question, pieces) == (1, 1)


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
