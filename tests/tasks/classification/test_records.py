from bert_tf.records import record_types
from bert_tf.tasks import tables, text_batches
from bert_tf.tasks.classification import text_records
from bert_tf.text import long_documents, text_graph

import pytest
import tensorflow as tf

_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]


def _encoder(*documents):
    tokenizer = text_graph.BertTokenizer(_VOCAB, True)
    return text_records.Encoder(tokenizer, 6, *documents)


@pytest.fixture(scope="module")
def encoder():
    return _encoder()


def _read(written):
    (rows,) = tf.data.TFRecordDataset(written.path).batch(10)
    batch = written.record_type.parse(rows, written.lengths)
    return {name: value.numpy().tolist() for name, value in batch.items()}


@pytest.mark.slow
def test_singles_pairs_and_what_is_cut(encoder, tmp_path, caplog):
    examples = [
        tables.Example("1", "A b", "", "yes"),
        tables.Example("2", "a", "b", "no"),
        tables.Example("3", "a b c a", "b c", None),
        tables.Example("4", "a b c a b", "", "no"),
        tables.Example("5", "a", " ", "no"),
    ]
    path = str(tmp_path / "x.tf_record")
    with caplog.at_level("INFO", logger="absl"):
        written = encoder.write(path, iter(examples), ("no", "yes"))
    assert written.count == 5
    assert written.record_type == record_types.CLASSIFICATION
    rows = (
        ([2, 5, 6, 3, 0, 0], 4, [0] * 6),
        ([2, 5, 3, 6, 3, 0], 5, [0, 0, 0, 1, 1, 0]),
        ([2, 5, 6, 3, 6, 3], 6, [0, 0, 0, 0, 1, 1]),
        ([2, 5, 6, 7, 5, 3], 6, [0] * 6),
        ([2, 5, 3, 0, 0, 0], 3, [0] * 6),
    )
    assert _read(written) == {
        "input_ids": [x[0] for x in rows],
        "input_mask": [[1] * n + [0] * (6 - n) for _, n, _ in rows],
        "segment_ids": [x[2] for x in rows],
        "label_ids": [1, 0, 0, 0, 0],
        "is_real_example": [1] * 5,
    }
    assert "Read 5 examples" in caplog.text
    assert "2 were longer than 6 tokens" in caplog.text


def test_a_sorted_table_is_shuffled(encoder, tmp_path):
    # Labels stay with their texts.
    examples = [
        tables.Example(str(i), "ab"[i > 499], "", ("no", "yes")[i > 499])
        for i in range(1000)
    ]
    path = str(tmp_path / "x.tf_record")
    written = encoder.write(path, examples, ("no", "yes"), seed=1)
    assert written.count == 1000
    dataset = tf.data.TFRecordDataset(path).batch(100)
    for serialized in dataset:
        rows = written.record_type.parse(serialized, written.lengths)
        labels = rows["label_ids"].numpy()
        assert (rows["input_ids"].numpy()[:, 1] - 5 == labels).all()
        # Hypergeometric, 500 of 1,000: a standard deviation of 4.7.
        assert abs(labels.sum() - 50) < 20


def test_scores_and_several_labels(encoder, tmp_path):
    examples = [tables.Example("1", "a", "", 2.5), tables.Example("2", "b")]
    path = str(tmp_path / "x.tf_record")
    written = encoder.write(path, examples, None)
    assert written.record_type is record_types.REGRESSION
    assert _read(written)["label_ids"] == [2.5, 0.0]
    examples = [
        tables.Example("1", "a", "", ("yes", "no")),
        tables.Example("2", "b", "", ()),
        tables.Example("3", "c"),
    ]
    written = encoder.write(path, examples, ("no", "maybe", "yes"), True)
    assert _read(written)["label_ids"] == [[1, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_an_error_leaves_no_file(encoder, tmp_path):
    def broken():
        yield tables.Example("1", "a", "", "no")
        raise ValueError("line 2")

    with pytest.raises(ValueError, match="line 2"):
        encoder.write(str(tmp_path / "x.tf_record"), broken(), ("no", "yes"))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_documents_in_windows(tmp_path, caplog, monkeypatch):
    # Documents are numbered across batches.
    monkeypatch.setattr(text_batches, "_BATCH_CHARACTERS", 8)
    encoder = _encoder(long_documents.LongDocuments("windows", 3))
    examples = [
        tables.Example("1", "a b c a b c a", "", "yes"),
        tables.Example("2", "", "", "no"),
        tables.Example("3", "a b c a b", "", "yes"),
    ]
    path = str(tmp_path / "x.tf_record")
    with caplog.at_level("INFO", logger="absl"):
        written = encoder.write(path, examples, ("no", "yes"))
    assert written.count == 5
    found = _read(written)
    assert found["input_ids"] == [
        [2, 5, 6, 7, 5, 3],
        [2, 5, 6, 7, 5, 3],  # The last one ends with the document.
        [2, 3, 0, 0, 0, 0],
        [2, 5, 6, 7, 5, 3],
        [2, 6, 7, 5, 6, 3],
    ]
    assert found["document_ids"] == [0, 0, 1, 2, 2]
    assert found["window_weights"] == [0.5, 0.5, 1, 0.5, 0.5]
    assert found["label_ids"] == [1, 1, 0, 1, 1]
    assert "Read 3 examples" in caplog.text
    assert "2 were longer than 6 tokens and were read in windows, 5 in" in (
        caplog.text
    )
    encoder = _encoder(long_documents.LongDocuments("head_tail"))
    examples = [tables.Example("1", "c a a a b b b", "", "yes")]
    written = encoder.write(path, examples, ("no", "yes"))
    assert _read(written)["input_ids"] == [[2, 7, 6, 6, 6, 3]]
