import dataclasses

from bert_tf.tasks import tables
from bert_tf.tasks.classification import classification_task, glue, own_files

import pytest


def test_ids_and_empty_texts(tmp_path, caplog):
    path = tmp_path / "test.tsv"
    path.write_text("sentence\tid\nx\ta1\n \ta2\ny\ta3\n\ta4\n")
    task = glue.find("sst2")
    found = list(classification_task.read(task, str(tmp_path), "test"))
    assert [x.guid for x in found] == [f"test-{i}" for i in range(2, 6)]
    assert "test.tsv: empty texts: 2, the first at line 3" in caplog.text
    row = dataclasses.replace(task.splits["test"], key="id")
    task = dataclasses.replace(task, splits={"test": row})
    found = list(classification_task.read(task, str(tmp_path), "test"))
    assert [example.guid for example in found] == ["a1", "a2", "a3", "a4"]


def test_pairs_in_both_orders():
    pair = tables.Example("train-2", "a", "b", 2.5)
    other = tables.Example("train-3", "c", "d", 0.0)
    found = list(classification_task.in_both_orders([pair, other]))
    texts = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    assert [(x.text_a, x.text_b) for x in found] == texts
    assert [x.label for x in found] == [2.5, 2.5, 0.0, 0.0]


def test_the_order_means_nothing_in_paraphrases():
    """Pairs that ELECTRA's classification_tasks.py doubles: not QQP."""
    names = [x for x in glue.NAMES if glue.find(x).is_symmetric]
    assert names == ["MRPC", "STS-B"]


def test_short_rows_are_skipped_only_where_there_are_labels(tmp_path, caplog):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    rows = "0\t1\t2\ta\tb\t1\n1\t3\t4\tc\n2\t5\t6\td\te\t0\n"
    (tmp_path / "train.tsv").write_text(header + rows)
    found = list(
        classification_task.read(glue.find("qqp"), str(tmp_path), "train")
    )
    assert [(x.text_a, x.label) for x in found] == [("a", "1"), ("d", "0")]
    assert "skipped 1 rows that lack a column, the first at line 3" in (
        caplog.text
    )
    test = "id\tquestion1\tquestion2\n0\ta\tb\n1\tc\n2\td\te\n"
    (tmp_path / "test.tsv").write_text(test)
    with pytest.raises(ValueError, match=r"test\.tsv, line 3: a column is mi"):
        list(classification_task.read(glue.find("qqp"), str(tmp_path), "test"))

    (tmp_path / "test.tsv").write_text(
        "sentence1\tsentence2\nx\ty\n\ty\nx\t \n\t\n"
    )
    found = list(
        classification_task.read(glue.find("rte"), str(tmp_path), "test")
    )
    assert len(found) == 4
    assert "test.tsv: empty texts: 3, the first at line 3" in caplog.text


@pytest.mark.parametrize(
    ("text", "is_warned"),
    [
        ('"He said ""hi"" to me"', True),
        ('"so"', False),
        ('""so""', False),
        ('"a "" b" "" c"', False),
    ],
)
def test_quotes_of_spreadsheets_in_tsv(text, is_warned, tmp_path, caplog):
    path = tmp_path / "a.tsv"
    path.write_text(f"text\tlabel\nso\tx\n{text}\ty\n")
    columns = own_files.Columns("text", None, "label")
    task = own_files.custom(columns, {"train": str(path)}, None, False)
    _, example = classification_task.read(task, "", "train")
    assert example.text_a == text
    warning = "doubled quotes inside: 1, the first at line 3"
    # The labels are learned in another reading.
    assert caplog.text.count(warning) == is_warned
    # The files of SST-2, as published, are read as they are.
    caplog.clear()
    (tmp_path / "train.tsv").write_text(f"sentence\tlabel\n{text}\t1\n")
    next(classification_task.read(glue.find("SST-2"), str(tmp_path), "train"))
    assert "doubled quotes" not in caplog.text
