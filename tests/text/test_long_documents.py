from bert_tf.text import long_documents

import numpy as np
import pytest
import tensorflow as tf

_TEXTS = [list(range(i * 100, i * 100 + n)) for i, n in enumerate((3, 0, 8, 9))]
_ROOM = 4


def _cut(texts=_TEXTS, room=_ROOM, **settings):
    documents = long_documents.LongDocuments(**settings)
    rows, owners = documents.cut(tf.ragged.constant(texts, tf.int32), room)
    return rows.to_list(), owners.numpy().tolist()


def test_the_end_and_both_ends():
    rows, owners = _cut(method="tail")
    assert rows == [text[-_ROOM:] for text in _TEXTS]
    assert owners == [0, 1, 2, 3]
    # A quarter of the room is for the head: 128 of 510.
    rows, owners = _cut(method="head_tail")
    assert rows == [
        text if len(text) <= _ROOM else text[:1] + text[-3:] for text in _TEXTS
    ]
    (row,), _ = _cut([list(range(600))], 510, method="head_tail")
    assert row == [*range(128), *range(600 - 382, 600)]
    rows, _ = _cut(method="head")
    assert rows == _TEXTS  # Packing them keeps the head.


@pytest.mark.parametrize(
    ("stride", "step"), [(None, 2), (1, 1), (3, 3), (4, 4)]
)
def test_windows(stride, step):
    rows, owners = _cut(method="windows", stride=stride)
    expected, of = [], []
    for i, text in enumerate(_TEXTS):
        last = max(len(text) - _ROOM, 0)
        for start in [*range(0, last, step), last]:
            expected.append(text[start : start + _ROOM])
            of.append(i)
    assert (rows, owners) == (expected, of)


@pytest.mark.parametrize("method", long_documents.METHODS)
def test_no_texts(method):
    lengths = tf.zeros([0], tf.int64)
    none = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), lengths)
    rows, owners = long_documents.LongDocuments(method).cut(none, _ROOM)
    assert (rows.to_list(), owners.numpy().tolist()) == ([], [])


def test_average():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 2)).astype(np.float32)
    found, first = long_documents.average(logits, np.array([0, 1, 1, 1, 2, 5]))
    expected = [logits[:1], logits[1:4], logits[4:5], logits[5:]]
    np.testing.assert_allclose(found, [x.mean(0) for x in expected], rtol=1e-6)
    assert first.tolist() == [0, 1, 4, 5]


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match=r"one of head, tail.*=middle"):
        long_documents.LongDocuments("middle")
    with pytest.raises(ValueError, match=r"window_stride belongs to.*=tail"):
        long_documents.LongDocuments("tail", 3)
    long_documents.LongDocuments("windows", 4).check(4)
    with pytest.raises(ValueError, match="window_stride=5"):
        long_documents.LongDocuments("windows", 5).check(4)
