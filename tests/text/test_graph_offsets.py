"""Offsets in the graph, against the Python tokenizer's."""

import unicodedata

from bert_tf import tokenization
from bert_tf.text import graph_offsets

import numpy as np
import pytest
import tensorflow as tf

_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] a b c ##a ##b d e , - ca 博 ##e fi ##ος οδ x ##x
"""
_VOCAB = _PIECES.split()
_TEXTS = [
    "ab ca, (a-b)",
    "",
    " \t\n",
    "Ab\tCA\r\nd",
    "CA\u0301\u0300, e\u0301\u0301b",
    "\u0301\u0301a",
    "a\u200b\u0301b \x00c\x07d",
    "a\xa0b\u202fc\u3000d",
    "博a博博 b",
    "\ufb01x İ ǅ ΟΔΟΣ Σ",
    "가각 한a",
    "𝄞\U0001d15e a \U0001f600b",
    "a\u0345\u0301c \u0591b",
    "x" * 200 + " " + "x" * 201 + " a",
    "unheard-of words",
    "a\u2028b\u2029c\x85d",
    "e\u0323\u0307a",
]


def check(both, texts):
    """Compares ids and offsets of all texts."""
    tokenizer, reference = both
    pieces = tokenizer.tokenize_with_offsets(tf.constant(texts, tf.string))
    expected = [reference.tokenize_with_offsets(text) for text in texts]
    assert pieces.ids.to_list() == [
        reference.convert_tokens_to_ids([token.piece for token in tokens])
        for tokens in expected
    ]
    spans = np.stack([pieces.starts, pieces.ends], -1).tolist()
    wanted = [[token.start, token.end] for row in expected for token in row]
    assert spans == wanted


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def both(request):
    vocab = {piece: index for index, piece in enumerate(_VOCAB)}
    return (
        graph_offsets.OffsetTokenizer(_VOCAB, request.param),
        tokenization.FullTokenizer.from_vocab(vocab, request.param),
    )


def test_offsets_are_pythons(both):
    for texts in (_TEXTS, [], *([text] for text in _TEXTS)):
        check(both, texts)


def test_every_character_between_letters(both):
    # Surrogates have no UTF-8.
    codes = [*range(0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200)]
    assigned = [x for x in codes if unicodedata.category(chr(x)) != "Cn"][::29]
    texts = [f"a{chr(code)}b{chr(code)}\u0301 c" for code in assigned]
    check(both, texts)


def test_invalid_bytes_are_left_out(both):
    check(both, [b"a\xffb \xe5\x8d c\xc3"])


def test_real_text(shared_data):
    path = shared_data / "vocab" / "bert_uncased.txt"
    reference = tokenization.FullTokenizer(path)
    tokenizer = graph_offsets.OffsetTokenizer(list(reference.vocab), True)
    text = (shared_data / "text" / "blns.txt").read_text(encoding="utf-8")
    check((tokenizer, reference), text.split("\n"))
