from bert_tf.records import reading, record_types
from bert_tf.tasks.squad import (
    squad_options,
    squad_questions,
    squad_records,
    squad_windows,
)
from bert_tf.vocabularies import word_pieces

import pytest
import tensorflow as tf

_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c")


@pytest.fixture
def cutter():
    vocabulary = word_pieces.WordPiece(_PIECES, True)
    return squad_windows.Cutter(vocabulary, squad_options.Layout(8, 2, 2))


_QUESTIONS = [
    squad_questions.Question(
        "1", "a", "b c a c a", (squad_questions.Answer("c a", 2),)
    ),
    squad_questions.Question("2", "b c", "c", (), True),
]


def read(written):
    """Returns the file's records as tf.train.Example."""
    serialized = tf.data.TFRecordDataset(written.path).as_numpy_iterator()
    examples = map(tf.train.Example.FromString, serialized)
    return [
        {k: list(v.int64_list.value) for k, v in x.features.feature.items()}
        for x in examples
    ]


def expected(with_labels=True):
    rows = (
        ([2, 5, 3, 6, 7, 5, 7, 3], 8, [0, 0, 0, 1, 1, 1, 1, 1], [4, 5, 0]),
        ([2, 5, 3, 5, 7, 5, 3, 0], 7, [0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 0]),
        ([2, 6, 7, 3, 7, 3, 0, 0], 6, [0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 1]),
    )
    names = ("start_positions", "end_positions", "is_impossible")
    return [
        {
            "unique_ids": [1000000000 + i],
            "input_ids": ids,
            "input_mask": [1] * length + [0] * (8 - length),
            "segment_ids": segments,
        }
        | {x: [y] for x, y in zip(names, labels, strict=True) if with_labels}
        for i, (ids, length, segments, labels) in enumerate(rows)
    ]


@pytest.mark.parametrize("batch_size", [1, 2, 1024])
def test_training_records(cutter, batch_size, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(squad_records, "_BATCH_SIZE", batch_size)
    path = str(tmp_path / "train.tf_record")
    with caplog.at_level("INFO", logger="absl"):
        written = squad_records.write_to_train(path, cutter, _QUESTIONS)
    assert (written.count, written.lengths) == (3, {"S": 8})
    assert "Read 3 windows of 2 questions" in caplog.text
    assert read(written) == expected()
    reading.check(record_types.SPAN, [path], written.lengths)


def test_records_to_predict(cutter, tmp_path):
    path = str(tmp_path / "eval.tf_record")
    written, windows = squad_records.write_to_predict(path, cutter, _QUESTIONS)
    assert read(written) == expected(with_labels=False)
    assert [len(x.starts) for x in windows] == [2, 1]
    assert [x.question for x in windows] == _QUESTIONS
    reading.check(record_types.SPAN_QUESTION, [path], written.lengths)


def test_a_context_without_words_is_predicted(cutter, tmp_path, caplog):
    path = str(tmp_path / "eval.tf_record")
    bad = squad_questions.Question("3", "a", "\x00", file="x.json")
    written, windows = squad_records.write_to_predict(
        path, cutter, [bad, *_QUESTIONS]
    )
    assert [len(x.starts) for x in windows] == [1, 2, 1]
    assert [x.is_empty for x in windows] == [True, False, False]
    first, *others = read(written)
    assert first["input_ids"] == [2, 5, 3, 3, 0, 0, 0, 0]
    assert [x["input_ids"] for x in others] == [
        x["input_ids"] for x in expected()
    ]
    assert "x.json: 1 questions have a context without words" in caplog.text
    assert "the first is 3." in caplog.text


def test_an_error_leaves_no_file(cutter, tmp_path):
    bad = squad_questions.Question("3", "a", "\x00", (), True)
    with pytest.raises(ValueError, match="Question 3: the context has no word"):
        squad_records.write_to_train(
            str(tmp_path / "x"), cutter, [*_QUESTIONS, bad]
        )
    assert not list(tmp_path.iterdir())
