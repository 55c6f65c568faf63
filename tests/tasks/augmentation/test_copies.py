import collections
import itertools
import re

from bert_tf.tasks.augmentation import copies, words
from bert_tf.vocabularies import word_pieces
from tests import tiny_files

import numpy as np
import pytest
from scipy import stats

_READER = words.Reader(
    word_pieces.WordPiece(tuple(tiny_files.VOCAB), True), {"the"}, 64
)
_TEXTS = list(map(_READER.read, ["The old cat, ran -- said Anna", "no dog!"]))
_CHOICES = [
    [[f"{word.text}{k}" for k in range(5)] for word in text.words]
    for text in _TEXTS
]


def _draw(number=30, probability=0.4, seed=7, row=3, choices=_CHOICES):
    settings = copies.Settings(number, probability, seed)
    return copies.draw(_TEXTS, choices, settings, row)


def test_a_function_of_seed_row_and_copy():
    found = _draw()
    assert found == _draw()
    assert found != _draw(seed=8)
    assert found != _draw(row=4)
    # More copies do not change the first copies.
    fewer = _draw(number=10)
    assert found[: len(fewer)] == fewer


def test_only_words_change():
    for copy in _draw(number=200):
        first, second = copy.texts
        assert first.startswith("The ")
        assert second.endswith("!")
        plain = [re.sub(r"\d", "", text) for text in copy.texts]
        assert plain == [text.text for text in _TEXTS]
        replaced = sum(x.isdigit() for text in copy.texts for x in text)
        assert replaced == copy.replaced > 0


def test_no_copy_twice_nor_the_row_itself():
    found = [copy.texts for copy in _draw(number=3000)]
    assert len(found) == len(set(found)) < 3000
    assert tuple(text.text for text in _TEXTS) not in found


def test_shares_of_words_and_of_candidates():
    """The replaced words by a binomial test, their candidates by chi-square."""
    probability, number = 0.4, 4000
    counts: collections.Counter[str] = collections.Counter()
    for row in range(number):
        for copy in _draw(1, probability, row=row):
            counts.update(
                word.strip(",!") for text in copy.texts for word in text.split()
            )
    of_words = [
        [counts[choice] for choice in choices]
        for choices in itertools.chain(*_CHOICES)
    ]
    for of_word in of_words:
        share = stats.binomtest(sum(of_word), number, probability)
        assert share.pvalue > 1e-3
    assert stats.chisquare(np.sum(of_words, axis=0)).pvalue > 1e-3


@pytest.mark.parametrize("probability", [1e-9, 1.0])
def test_none_or_all(probability):
    found = _draw(probability=probability)
    if probability < 1:
        assert not found
    assert {copy.replaced for copy in found} <= {7}


def test_words_without_candidates_stay():
    choices: list[list[list[str]]]
    choices = [[[] for _ in text.words] for text in _TEXTS]
    assert not _draw(probability=1.0, choices=choices)
    choices[0][1] = ["bird"]
    assert _draw(probability=1.0, choices=choices) == [
        copies.Copy(("The old bird, ran -- said Anna", "no dog!"), 1)
    ]
