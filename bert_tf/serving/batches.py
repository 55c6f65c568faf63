"""Answers many lines with one model, in order and in bounded memory.

Shapes: B lines per batch, C classes, K choices, or tokens per mask.
"""

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from bert_tf.errors import InputError
from bert_tf.serving import answers, served_heads, serving_lines, serving_model

import tensorflow as tf

# Max characters that are held in memory and tokenized at a time, including
# the answers; a single line may have more.
_MOST_IN_WINDOW = 1 << 24
_MOST_IN_BATCH = 1 << 20


class Predictor:
    """Applies a model to lines, batching lines of similar length."""

    def __init__(self, model: serving_model.Model, batch_size: int):
        if model.unit == "token":
            raise InputError(
                "The SavedModel gives a vector for each token. Export it with "
                "--unit=mean or cls, or use extract_features.py."
            )
        self._model = model
        self._batch_size = batch_size

    def answer(
        self,
        asked: Sequence[serving_lines.Query],
        done: Callable[[int], None] = lambda _: None,
    ) -> list[answers.Answer]:
        """Returns answers in order; calls `done` with each batch's size."""
        # Lines of a batch have equally many choices. The longest come first, so
        # that a lack of memory shows at once.
        order = sorted(
            range(len(asked)),
            key=lambda i: (asked[i].choices, -asked[i].length),
        )
        answered: list[answers.Answer] = [{}] * len(asked)
        for batch in self._batches(asked, order):
            found = self._serve([asked[i] for i in batch])
            for i, answer in zip(batch, found, strict=True):
                answered[i] = answer
            done(len(batch))
        return answered

    def _batches(
        self, asked: Sequence[serving_lines.Query], order: Sequence[int]
    ) -> Iterator[list[int]]:
        batch: list[int] = []
        size = 0
        for i in order:
            size += asked[i].length
            is_full = len(batch) == self._batch_size or size > _MOST_IN_BATCH
            if batch and (
                is_full or asked[i].choices != asked[batch[0]].choices
            ):
                yield batch
                batch, size = [], asked[i].length
            batch.append(i)
        if batch:
            yield batch

    def _serve(
        self, asked: Sequence[serving_lines.Query]
    ) -> list[answers.Answer]:
        columns = {
            name: tf.constant([query.columns[name] for query in asked])
            for name in asked[0].columns
        }
        outputs = self._model.serve(**columns)
        arrays = {name: x.numpy() for name, x in outputs.items()}
        rows = [
            {name: x[i] for name, x in arrays.items()}
            for i in range(len(asked))
        ]
        describe = served_heads.HEADS[self._model.head].describe
        return [describe(row, self._model.labels) for row in rows]


# ---- Queues of lines --------------------------------------------------------


def windows(
    asked: Iterable[serving_lines.Query], rows: int
) -> Iterator[list[serving_lines.Query]]:
    """Cuts a stream into lists of up to `rows` that fit into memory."""
    window: list[serving_lines.Query] = []
    size = 0
    for query in asked:
        if window and (
            len(window) == rows or size + query.size > _MOST_IN_WINDOW
        ):
            yield window
            window, size = [], 0
        window.append(query)
        size += query.size
    if window:
        yield window


def as_they_come(
    asked: Iterable[serving_lines.Query], rows: int
) -> Iterator[list[serving_lines.Query]]:
    """Yields lists of the lines that arrived since the last list.

    It never waits to fill a list. A list has up to `rows` lines, and reading
    pauses while that many are queued.
    """
    waiting: list[serving_lines.Query] = []
    size = 0
    ends: list[Exception | None] = []
    changed = threading.Condition()

    def is_room(query: serving_lines.Query) -> bool:
        return not waiting or (
            len(waiting) < rows and size + query.size <= _MOST_IN_WINDOW
        )

    def read() -> None:
        nonlocal size
        failure = None
        try:
            for query in asked:
                with changed:
                    changed.wait_for(functools.partial(is_room, query))
                    waiting.append(query)
                    size += query.size
                    changed.notify_all()
        except Exception as error:
            failure = error
        with changed:
            ends.append(failure)
            changed.notify_all()

    threading.Thread(target=read, daemon=True).start()
    while True:
        with changed:
            changed.wait_for(lambda: waiting or ends)
            window = waiting.copy()
            waiting.clear()
            size = 0
            changed.notify_all()
        if window:
            yield window
        elif ends[0]:
            raise ends[0]
        else:
            return
