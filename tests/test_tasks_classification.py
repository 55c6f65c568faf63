import dataclasses

from bert_tf.tasks import classification, glue

import pytest


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train\.tsv"):
        next(classification.read(glue.find("mrpc"), str(tmp_path), "train"))


def test_ids_and_empty_texts(tmp_path, caplog):
    path = tmp_path / "test.tsv"
    path.write_text("sentence\tid\nx\ta1\n \ta2\ny\ta3\n\ta4\n")
    task = glue.find("sst2")
    found = list(classification.read(task, str(tmp_path), "test"))
    assert [example.guid for example in found] == [
        "test-2",
        "test-3",
        "test-4",
        "test-5",
    ]
    assert "test.tsv: empty texts: 2, the first at line 3" in caplog.text
    row = dataclasses.replace(task.splits["test"], key="id")
    task = dataclasses.replace(task, splits={"test": row})
    found = list(classification.read(task, str(tmp_path), "test"))
    assert [example.guid for example in found] == ["a1", "a2", "a3", "a4"]


def test_empty_texts_of_pairs(tmp_path, caplog):
    (tmp_path / "test.tsv").write_text(
        "sentence1\tsentence2\nx\ty\n\ty\nx\t \n\t\n"
    )
    found = list(classification.read(glue.find("rte"), str(tmp_path), "test"))
    assert len(found) == 4
    assert "test.tsv: empty texts: 3, the first at line 3" in caplog.text
