"""Splits a stream of texts into batches, or draws a sample from it."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

# Limits memory for streams of whole books: a character takes 100 bytes.
_BATCH_CHARACTERS = 4_000_000
Item = TypeVar("Item")


def of_texts(
    items: Iterable[Item], characters: Callable[[Item], int], most: int
) -> Iterator[list[Item]]:
    """Cuts a stream into lists of up to `most` items, fewer for long texts."""
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += characters(item)
        if len(batch) == most or total >= _BATCH_CHARACTERS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def drawn(items: Iterable[Item], most: int, seed: int) -> list[Item]:
    """Returns a uniform random sample of `most` items, or all if fewer.

    Uses reservoir sampling (Vitter, 1985, https://doi.org/10.1145/3147.3165),
    so only the sample is held in memory.
    """
    items = iter(items)
    kept = list(itertools.islice(items, most))
    numbers = random.Random(seed)
    for number, item in enumerate(items, len(kept)):
        place = numbers.randrange(number + 1)
        if place < most:
            kept[place] = item
    return kept
