"""Edge cases of the readers of other projects' files."""

from bert_tf.tasks import label_column, tables
from bert_tf.tasks.squad import squad_options, squad_questions, squad_windows
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
