"""Tests of a tagger's training labels."""

from bert_tf.tasks.tagging import conll, tagging_splits

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


def test_labels_of_iob1_without_neighbours_in_training():
    splits = _splits(train=("O", "I-x"), dev=("I-x", "B-x"))
    with pytest.raises(ValueError, match=r"--scheme=IOB1, .*label='B-x'"):
        tagging_splits.find_labels(None, None, splits, None)
    labels = (("B-x", "I-x", "O"), "IOB1")
    assert tagging_splits.find_labels(None, "IOB1", splits, None) == labels
    # A run that started with fewer labels resumes with them.
    known = ("O", "I-x")
    del splits["dev"]
    found = tagging_splits.find_labels(None, "IOB1", splits, known)
    assert found == (known, "IOB1")
    # For labels with B, the error does not suggest IO.
    splits = _splits(train=("O", "I-x"), dev=("I-x", "B-x"))
    with pytest.raises(
        ValueError, match=r"such as IOB1\. Received: scheme=BIO"
    ):
        tagging_splits.find_labels(("O", "B-x", "I-x"), None, splits, None)


def test_labels_that_may_be_iob1_or_bio(caplog):
    """The labels of a tagger are the same, and only files tell them apart."""
    caplog.set_level("INFO", "absl")
    labels, hint = ("B-x", "I-x", "O"), "pass --scheme=IOB1."
    splits = _splits(test=("O", "O"))
    for scheme in ("BIO", "IOB1"):
        found = tagging_splits.find_labels(None, scheme, splits, labels)
        assert found == (labels, scheme)
    assert hint not in caplog.text
    assert tagging_splits.find_labels(None, None, splits, labels)[1] == "BIO"
    assert hint in caplog.text


def test_given_labels_that_the_training_file_has_not(caplog):
    given = ("O", "B-x", "I-x", "B-z")
    splits = _splits(train=("O", "B-x"), dev=("O", "B-z"))
    assert tagging_splits.find_labels(given, None, splits, None)[0] == given
    assert "train.conll has no example of I-x, B-z, so" in caplog.text
