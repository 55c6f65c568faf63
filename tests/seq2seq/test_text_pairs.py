"""Pairs from files to records, and tokens back to texts."""

from bert_tf.seq2seq import text_pairs
from bert_tf.tasks import tables
from bert_tf.text import text_graph
from bert_tf.vocabularies import word_pieces
from tests import tiny_files

import numpy as np
import pytest
import tensorflow as tf

VOCABULARY = word_pieces.WordPiece(tuple(tiny_files.VOCAB), True)
PAIRS = [("the cat", "a bird sings"), ("it is, so", "yes"), ("no", "ran")]


@pytest.fixture
def folder(tmp_path):
    sources, targets = zip(*PAIRS, strict=True)
    (tmp_path / "a.en").write_text("\n".join(sources) + "\n")
    (tmp_path / "a.de").write_text("\n".join(targets) + "\n")
    rows = ["\t".join(pair) for pair in PAIRS]
    (tmp_path / "a.tsv").write_text("\n".join(["source\ttarget", *rows]))
    (tmp_path / "alone.tsv").write_text("\n".join(["source", *sources]))
    return tmp_path


class TestSources:
    def test_tables_and_parallel_files(self, folder):
        table = text_pairs.Source(f"{folder}/a.tsv")
        files = text_pairs.Source(f"{folder}/a.en", f"{folder}/a.de")
        assert list(table.pairs()) == PAIRS == list(files.pairs())
        swapped = text_pairs.Source(
            f"{folder}/a.tsv", None, "target", "0", has_header=True
        )
        assert list(swapped.pairs()) == [(b, a) for a, b in PAIRS]

    def test_sources_alone_to_predict(self, folder):
        expected = [(source, None) for source, _ in PAIRS]
        for source in (
            text_pairs.Source(f"{folder}/alone.tsv"),
            text_pairs.Source(f"{folder}/a.en", file_format="text"),
        ):
            assert list(source.pairs(needs_targets=False)) == expected
            with pytest.raises(ValueError, match="target"):
                list(source.pairs())
        unnamed = text_pairs.Source(f"{folder}/a.en")
        with pytest.raises(ValueError, match="give --file_format=text"):
            list(unnamed.pairs(needs_targets=False))

    def test_blank_targets_of_a_file_to_predict(self, folder):
        (folder / "blank.tsv").write_text("source\ttarget\na\t\nb\tc\n")
        (folder / "blank.en").write_text("a\nb\n")
        (folder / "blank.de").write_text(" \nc\n")
        table = text_pairs.Source(f"{folder}/blank.tsv")
        files = text_pairs.Source(f"{folder}/blank.en", f"{folder}/blank.de")
        expected = [("a", None), ("b", "c")]
        for source in (table, files):
            assert list(source.pairs(needs_targets=False)) == expected
        assert list(table.pairs()) == [("a", ""), ("b", "c")]

    def test_quotes_of_spreadsheets(self, folder, caplog):
        (folder / "q.tsv").write_text('source\ttarget\na\t"b ""c"""\n')
        assert len(list(text_pairs.Source(f"{folder}/q.tsv").pairs())) == 1
        assert "doubled quotes inside: 1, the first at line 2" in caplog.text

    def test_files_that_are_not_parallel(self, folder):
        (folder / "short").write_text("a\n")
        (folder / "empty").write_text("")
        for one, other, words in (
            ("a.en", "short", "short ends before line 2 of .*a.en"),
            ("short", "a.de", "short ends before line 2 of .*a.de"),
            ("empty", "empty", "empty: the file has no lines"),
            ("a.en", "empty", "empty: the file has no lines"),
        ):
            source = text_pairs.Source(f"{folder}/{one}", f"{folder}/{other}")
            with pytest.raises(ValueError, match=words):
                list(source.pairs())

    def test_sources_of_which_there_are_none(self, folder):
        (folder / "empty").write_text("")
        source = text_pairs.Source(f"{folder}/empty", file_format="text")
        with pytest.raises(ValueError, match="empty: the file has no lines"):
            list(source.pairs(needs_targets=False))

    def test_pipes_are_read_twice(self, folder):
        pipe = "/dev/null"  # A pipe would block if it is opened after all.
        for paths in ((pipe, f"{folder}/a.de"), (f"{folder}/a.en", pipe)):
            with pytest.raises(ValueError, match=r"read twice.*/dev/null$"):
                next(text_pairs.Source(*paths).pairs())

    def test_files_of_a_bucket(self, monkeypatch):
        """They have no size in the local file system."""
        monkeypatch.setattr(tables, "lines", lambda path: [(1, f"{path}\n")])
        source = text_pairs.Source("gs://b/a.en", "gs://b/a.de")
        assert list(source.pairs()) == [("gs://b/a.en", "gs://b/a.de")]

    def test_table_with_a_target_file(self, folder):
        source = text_pairs.Source(
            f"{folder}/a.tsv", f"{folder}/a.de", file_format="tsv"
        )
        with pytest.raises(ValueError, match=r"use file_format=text.*=tsv"):
            list(source.pairs())


@pytest.mark.slow
def test_records_have_both_texts_truncated(tmp_path, caplog):
    encoder = text_pairs.Encoder(text_graph.make_tokenizer(VOCABULARY), 5, 4)
    pairs = [text_pairs.Pair(*pair) for pair in PAIRS]
    with caplog.at_level("INFO", "absl"):
        records = encoder.write(str(tmp_path / "x.tf_record"), pairs)
    assert (
        "Read 3 pairs for x.tf_record; 1 sources were longer than 5 tokens and "
        "1 targets longer than 4, and were truncated." in caplog.text
    )
    assert records.lengths == {"S": 5, "T": 4}
    serialized = list(tf.data.TFRecordDataset(records.path).as_numpy_iterator())
    batch = text_pairs.RECORD.parse(tf.constant(serialized), records.lengths)
    expected = [
        ("[CLS] the cat [SEP] [PAD]", "[CLS] a bird [SEP]"),
        ("[CLS] it is , [SEP]", "[CLS] yes [SEP] [PAD]"),
        ("[CLS] no [SEP] [PAD] [PAD]", "[CLS] ran [SEP] [PAD]"),
    ]
    for i, name in enumerate(("input", "target")):
        ids = [[VOCABULARY.ids[x] for x in row[i].split()] for row in expected]
        np.testing.assert_array_equal(batch[f"{name}_ids"], ids)
        mask = np.array(ids) != 0
        np.testing.assert_array_equal(batch[f"{name}_mask"], mask)
    caplog.clear()
    rows = [("no", "ran"), ("no", None), (" ", "ran"), ("no", ""), ("", "")]
    pairs = [text_pairs.Pair(*row) for row in rows]
    encoder.write(str(tmp_path / "y.tf_record"), pairs)
    assert "y.tf_record: empty texts: 3, the first in pair 3." in caplog.text
