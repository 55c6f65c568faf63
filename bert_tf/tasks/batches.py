"""Cuts a stream of texts into batches that fit into memory."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

# Whole books are tokenized a few at a time: a character takes 100 bytes.
_BATCH_CHARACTERS = 4_000_000
Item = TypeVar("Item")


def of_texts(
    items: Iterable[Item], characters: Callable[[Item], int], most: int
) -> Iterator[list[Item]]:
    """Cuts a stream into lists of at most `most` items, fewer of long texts."""
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
