"""Tests of masked words in raw text."""

from bert_tf.tasks.masked_words import masked_texts
from bert_tf.vocabularies import word_pieces
from tests.tasks.masked_words import mask_filling

import pytest


@pytest.mark.parametrize(
    ("text", "number", "piece", "filled"),
    [
        ("a [MASK] b", 0, "x", "a x b"),
        ("[MASK][MASK]!", 1, "x", "[MASK]x!"),
        ("[MASK] and [MASK]", 0, "it", "it and [MASK]"),
        ("play \t[MASK].", 0, "##ing", "playing."),
        ("[MASK] [MASK]", 1, "##s", "[MASK]s"),
        ("[MASK]", 0, "##s", "s"),
        ("a [MASK]", 0, "##", "a ##"),
        ("a\u00a0[MASK]", 0, "##b", "a\u00a0b"),
    ],
)
def test_fill(text, number, piece, filled):
    (spelling,) = word_pieces.WordPiece((piece,), True).spellings
    assert mask_filling.fill(text, number, spelling) == filled


def test_only_the_mark_itself_is_a_mask():
    assert masked_texts.count("[MASK] [mask] [ MASK ] MASK [[MASK]]") == 2
    assert masked_texts.count("") == 0


@pytest.mark.parametrize(
    ("pieces", "top_k", "problem"),
    [
        (("[UNK]", "[CLS]", "[SEP]", "[MASK]"), 0, "Received: top_k=0"),
        (("[UNK]", "[CLS]", "[SEP]", "[MASK]"), 5, "Received: top_k=5"),
        (("[UNK]", "[CLS]", "[SEP]"), 1, r"has no token \[MASK\]"),
    ],
)
def test_vocabularies_that_do_not_fit(pieces, top_k, problem):
    with pytest.raises(ValueError, match=problem):
        masked_texts.check(word_pieces.WordPiece(pieces, True), top_k)
