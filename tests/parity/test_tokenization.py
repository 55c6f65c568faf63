"""Tokenizers: the original's rules, both of ours, transformers' differences.

A sample; benchmarks/parity/tokenization.py compares all texts.
"""

import collections

from bert_tf import tokenization
from tests import sample_texts, tokenizer_rules

import pytest

pytest.importorskip("transformers", reason="needs the extra `parity`")
from benchmarks.parity import tokenization as parity


def assert_proven(vocab, do_lower_case, texts):
    """Returns how often each rule explains a difference from transformers."""
    counts = parity.Comparison(vocab, do_lower_case).count(texts)
    assert counts.texts == len(texts)
    assert counts.not_the_originals == 0, counts.unproven[:3]
    assert counts.not_as_in_the_graph == 0, counts.unproven[:3]
    assert counts.wrong_offsets == 0, counts.unproven[:3]
    assert counts.unexplained == 0, counts.unproven[:3]
    return counts.explained


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.exhaustive)]
)
def test_spelled_texts(do_lower_case, every):
    texts = parity.characters(every)[:: 1 if every else 20]
    texts += sample_texts.random_texts(12, 20_000 if every else 500)
    texts += ["z" * 150, "the [MASK]ed", "a[CLS", "ΟΔΟΣ", "\U00011938"]
    explained = assert_proven(
        parity.spelling_vocab(every), do_lower_case, texts
    )
    cased = {"final sigma", "decompositions"}  # no effect on cased text
    expected = set(tokenizer_rules.RULES) - (set() if do_lower_case else cased)
    assert set(explained) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", parity.RELEASED)
def test_real_texts(name, shared_data):
    vocab = tokenization.load_vocab(shared_data / "vocab" / f"{name}.txt")
    texts = []
    for _, group in parity.files(shared_data):
        texts += group[:: max(1, len(group) // 150)]
    explained = assert_proven(vocab, parity.RELEASED[name], texts)
    assert explained == collections.Counter()


def test_wrong_pieces_are_not_explained():
    vocab = {"[UNK]": 0, "a": 1, "b": 2, "z": 3, "##z": 4}
    tokenizer = tokenizer_rules.Tokenizer(vocab, do_lower_case=True)
    assert not tokenizer_rules.explain(tokenizer, "a b", ["a"])
    assert tokenizer_rules.explain(tokenizer, "z" * 101, ["[UNK]"]) == (
        "word limit",
    )


def test_wrong_offsets_are_found(monkeypatch):
    vocab = {piece: i for i, piece in enumerate(["[UNK]", "a", "##b", "c"])}
    vocab |= {"[CLS]": 4, "[SEP]": 5, "[PAD]": 6, "[MASK]": 7}
    comparison = parity.Comparison(vocab, do_lower_case=True)
    right = comparison.ours.tokenize_with_offsets
    assert comparison.offsets_hold("ab  c\u0301 d")
    for index, start, end in [(0, 0, 2), (1, 2, 3), (2, 3, 4), (3, 6, 6)]:

        def wrong(text, index=index, start=start, end=end):
            tokens = right(text)
            tokens[index] = tokens[index]._replace(start=start, end=end)
            return tokens

        monkeypatch.setattr(comparison.ours, "tokenize_with_offsets", wrong)
        assert not comparison.offsets_hold("ab  c\u0301 d"), index
