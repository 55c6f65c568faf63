"""Learning a vocabulary of symbols is counting."""

import collections

from bert_tf import errors
from bert_tf.text import learning, learning_symbols

import pytest

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_TEXTS = ["b a c_1 a", "", "a\tb\u3000 [SEP]", "[SEP] z \ud800 \ud800"]


def test_counts_what_white_space_separates(monkeypatch):
    wanted = collections.Counter(" ".join(_TEXTS).split())
    assert learning_symbols.count(_TEXTS) == wanted
    monkeypatch.setattr(learning, "_MAX_STRINGS", 1)
    assert learning_symbols.count(_TEXTS) == wanted
    assert learning_symbols.count(_TEXTS, 5) == {
        "a": 3, "b": 2, "[SEP]": 2, "\ud800": 2
    }  # fmt: skip


def test_takes_the_most_frequent():
    counts = learning_symbols.count(_TEXTS)
    found = learning_symbols.learn(counts, 100, min_frequency=1)
    # Of those that are as frequent the first by name.
    assert found.pieces == (*_SPECIAL, "a", "b", "c_1", "z")
    assert learning_symbols.learn(counts, 7).pieces == (*_SPECIAL, "a", "b")
    assert learning_symbols.learn(counts, 6).pieces == (*_SPECIAL, "a")
    six = learning_symbols.learn(counts, 6)
    total, unknown = learning_symbols.coverage(six, counts)
    assert (total, unknown) == (11, 8)


def test_what_was_forgotten_is_not_known(monkeypatch):
    """Half of a text are symbols that are all different."""
    texts = [f"often id_{number} seldom_{number % 50}" for number in range(600)]
    monkeypatch.setattr(learning, "_MAX_STRINGS", 100)
    counts = learning_symbols.count(texts, 60)
    assert len(counts) <= 60
    assert counts.forgotten == 1800 - sum(counts.values())
    found = learning_symbols.learn(counts, 6)
    assert found.pieces == (*_SPECIAL, "often")
    assert learning_symbols.coverage(found, counts) == (1800, 1200)


def test_what_can_not_be_learned():
    with pytest.raises(errors.InputError, match=r"6 at least.*vocab_size=5"):
        learning_symbols.learn({"a": 9}, 5)
    with pytest.raises(errors.InputError, match="occurs often enough"):
        learning_symbols.learn({"a": 1, "[SEP]": 9}, 50)
