"""Draws copies of rows with some words replaced.

The copies depend only on the seed, the row and the copy's number.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.tasks.augmentation import words

import numpy as np


@dataclasses.dataclass(frozen=True)
class Settings:
    """How many copies of a row are drawn, and how they differ from it.

    Attributes:
        copies: Max number of copies; duplicates are dropped.
        probability: Probability that a word is replaced.
        seed: Random seed.
    """

    copies: int = 30
    probability: float = 0.4
    seed: int = 12345


class Copy(NamedTuple):
    """The texts of a copy, and how many words were replaced."""

    texts: tuple[str, ...]
    replaced: int


def draw(
    texts: Sequence[words.Text],
    candidates: Sequence[Sequence[Sequence[str]]],
    settings: Settings,
    row: int,
) -> list[Copy]:
    """Returns copies of a row that differ from it and from each other.

    Args:
        texts: The row's one or two texts.
        candidates: Text -> word -> possible replacements.
        settings: Number of copies, probability and seed.
        row: The row's index in the table.
    """
    key = np.array([settings.seed, row], np.uint64)
    rng = np.random.Generator(np.random.Philox(key=key))
    # Copy by copy, so that asking for more leaves the first ones unchanged.
    count = sum(len(text.words) for text in texts)
    numbers = rng.random([settings.copies, count, 2]).tolist()
    seen = {tuple(text.text for text in texts)}
    found = []
    for numbers_of_copy in numbers:
        left = iter(numbers_of_copy)
        made = [
            _replace(text, of_words, left, settings.probability)
            for text, of_words in zip(texts, candidates, strict=True)
        ]
        copy = Copy(tuple(x for x, _ in made), sum(n for _, n in made))
        if copy.texts not in seen:
            seen.add(copy.texts)
            found.append(copy)
    return found


def _replace(
    text: words.Text,
    candidates: Sequence[Sequence[str]],
    numbers: Iterator[Sequence[float]],
    probability: float,
) -> tuple[str, int]:
    """Returns a text with words replaced, and the number of replacements.

    Each word takes two numbers in [0, 1) from `numbers`: one decides whether it
    is replaced, the other chooses the candidate.
    """
    parts, done, replaced = [], 0, 0
    for word, choices in zip(text.words, candidates, strict=True):
        whether, which = next(numbers)
        if whether < probability and choices:
            parts += [
                text.text[done : word.start],
                choices[int(which * len(choices))],
            ]
            done = word.end
            replaced += 1
    return "".join([*parts, text.text[done:]]), replaced
