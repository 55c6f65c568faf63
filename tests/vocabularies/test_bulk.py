"""Bulk tokenization gives the same ids as the Python tokenizer."""

import random

from bert_tf import tokenization
from bert_tf.vocabularies import bulk as bulk_tokenization
from tests import sample_texts

import numpy as np
import pytest

_PIECES = [
    *tokenization.SPECIAL_TOKENS,
    *(chr(code) for code in range(0x21, 0x7F)),
    *(f"##{chr(code)}" for code in range(0x30, 0x7B)),
    *("un", "##aff", "##able", "é", "e", "α", "##ς", "##σ", "中", "文"),
    *("Un", "ÉCOLE", "ecole", "[MASK", "²", "##²", "\ud800"),
]
_VOCAB = {piece: index for index, piece in enumerate(_PIECES)}


def different(texts, vocab, do_lower_case):
    """Returns the texts whose ids differ from the reference's."""
    bulk = bulk_tokenization.BulkTokenizer(vocab, do_lower_case)
    ids, lengths = bulk.tokenize(texts)
    assert ids.dtype == np.int32
    assert len(lengths) == len(texts)
    ours = np.split(ids, np.cumsum(lengths)[:-1])
    reference = tokenization.FullTokenizer.from_vocab(vocab, do_lower_case)
    return [
        text
        for text, got in zip(texts, ours, strict=True)
        if got.tolist()
        != reference.convert_tokens_to_ids(reference.tokenize(text))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_gives_the_references_ids(do_lower_case):
    texts = [
        *sample_texts.random_texts(seed=1, count=300),
        "unaffable UNAFFABLE Unaffable.",
        "a\x00b a\x0bb a\x1cb a\u2028b a\u00a0b a\u0085b",
        "ΑΣ'Α ΑΣ' ΑΣ.Α Α\u0301Σ",
        "\ud800 a\udfff",
        "long " * 100_000,
    ]
    assert not different(texts, _VOCAB, do_lower_case)


def test_forgets_words_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(bulk_tokenization, "_MAX_WORDS", 100)
    monkeypatch.setattr(bulk_tokenization, "_BATCH_BYTES", 1000)
    rng = random.Random(0)
    texts = [
        "".join(rng.choices("ab12 .", k=rng.randrange(60))) for _ in range(500)
    ]
    assert not different(texts, _VOCAB, True)


def test_forgets_pieces_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(bulk_tokenization, "_MAX_PIECES", 200)
    monkeypatch.setattr(bulk_tokenization, "_BATCH_BYTES", 1000)
    bulk = bulk_tokenization.BulkTokenizer({"[UNK]": 0, "東": 1}, True)
    # A word is a part of a text without ASCII punctuation.
    for size in range(1, 100):
        ids, _ = bulk.tokenize(["東" * size])
        assert ids.tolist() == [1] * size
        assert len(bulk._pieces) <= 200 + size


def test_words_share_slots(monkeypatch):
    monkeypatch.setattr(bulk_tokenization, "_SLOT_BITS", 2)
    texts = [f"{a}{b} {b}." for a in "abcdef" for b in "uvwxyz"] * 2
    assert not different(texts, _VOCAB, True)
    bulk = bulk_tokenization.BulkTokenizer(_VOCAB, True)
    ids, lengths = bulk.tokenize([])
    assert ids.shape == lengths.shape == (0,)
