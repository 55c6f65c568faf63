"""Tests of the labels that a tagger is trained with."""

from bert_tf.tasks.tagging import conll
from bert_tf.tasks.tagging import splits as tagging_splits

import pytest


def _splits(**files):
    return {
        name: tagging_splits.Split(
            f"{name}.conll",
            conll.Columns(),
            [conll.Sentence(tuple(labels), tuple(labels), (1, 2), 0)],
        )
        for name, labels in files.items()
    }


def test_labels_of_the_training_file_are_learned(caplog):
    splits = _splits(train=("O", "B-x"), dev=("O", "O"))
    found = tagging_splits.find_labels(None, None, splits, ("O", "B-y"))
    assert found == (("B-x", "O"), "BIO")
    assert "no example" not in caplog.text
    with pytest.raises(ValueError, match=r"dev\.conll, line 2: .*label='B-z'"):
        tagging_splits.find_labels(
            None, None, _splits(train=("O", "B-x"), dev=("O", "B-z")), None
        )


def test_given_labels_that_the_training_file_has_not(caplog):
    given = ("O", "B-x", "I-x", "B-z")
    splits = _splits(train=("O", "B-x"), dev=("O", "B-z"))
    assert tagging_splits.find_labels(given, None, splits, None)[0] == given
    assert "train.conll has no example of I-x, B-z, so" in caplog.text
