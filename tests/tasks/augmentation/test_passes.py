from bert_tf.tasks.augmentation import passes, words
from bert_tf.vocabularies import word_pieces
from tests import tiny_files

import numpy as np
import pytest

_VOCABULARY = word_pieces.WordPiece(tuple(tiny_files.VOCAB), True)
_TEXT = "The cats sat on the red bird, she said: old dogs sing no new"


def _read(text, length):
    return words.Reader(_VOCABULARY, {"the", "on"}, length).read(text)


def _rows(text, length, share):
    """Returns each row with the words that it masks."""
    how = (_VOCABULARY, length)
    return [
        (passes.lay_out(text, masked, *how), masked)
        for masked in passes.shares(text, *how, share)
    ]


def _pieces_of(ids):
    return [_VOCABULARY.pieces[x] for x in ids]


def _original(pieces, first, last, length):
    """Returns the row of TinyBERT's _masked_language_model, cut like ours."""
    masked = [*pieces[:first], "[MASK]", *pieces[last:]]
    room = length - len(masked) - 3
    second = [*pieces[:room], "[SEP]"] if room > 0 else []
    tokens = ["[CLS]", *masked, "[SEP]", *second]
    segments = [0] * (len(masked) + 2) + [1] * len(second)
    return tokens, segments, first + 1


@pytest.mark.parametrize("length", [64, 24, 17])
def test_one_mask_as_the_original(length):
    """Lengths with room for two texts, for one and a part, and for one."""
    text = _read(_TEXT, length)
    pieces = _VOCABULARY.tokenizer().tokenize(_TEXT)[: len(text.ids)]
    rows = _rows(text, length, 0)
    assert len(rows) == len(text.words)
    for number, (row, masked) in enumerate(rows):
        word = text.words[number]
        tokens, segments, place = _original(
            pieces, word.first, word.last, length
        )
        assert (_pieces_of(row.ids), row.segments) == (tokens, segments)
        assert (row.places, list(masked)) == ([place], [number])


@pytest.mark.parametrize("length", [64, 24, 17])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.25, 1.0])
def test_each_word_is_masked_once(length, share):
    text = _read(_TEXT, length)
    rows = _rows(text, length, share)
    numbers = [number for _, masked in rows for number in masked]
    assert sorted(numbers) == list(range(len(text.words)))
    for row, masked in rows:
        assert len(row.ids) <= length
        assert len(row.places) <= max(1, share * len(row.ids) + share)
        at = np.flatnonzero(np.array(row.ids) == _VOCABULARY.special.mask.id)
        assert at.tolist() == row.places
        expected = ["[CLS]", *_pieces_of(text.ids)]
        for number in reversed(masked):
            word = text.words[number]
            expected[1 + word.first : 1 + word.last] = ["[MASK]"]
        assert _pieces_of(row.ids)[: len(expected)] == expected
    for masked in passes.shares(_read(_TEXT, 64), _VOCABULARY, 64, 0.1):
        assert (np.diff(masked) > 1).all(), "they stand apart"
    assert passes.shares(_read("", 64), _VOCABULARY, 64) == []
