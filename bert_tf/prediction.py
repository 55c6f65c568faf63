"""Answers many lines with one model: in batches, in order, in bounded memory.

Shapes:
- B: lines of a batch     C: classes     K: choices, or pieces for a mask
"""

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import serving
from bert_tf.tasks import queries

import numpy as np
import tensorflow as tf

# Characters that are kept in memory, with those of the answers, and that are
# tokenized, at a time; a line may have more by itself.
_MOST_IN_WINDOW = 1 << 24
_MOST_IN_BATCH = 1 << 20
Answer = dict[str, Any]


class Predictor:
    """Applies a model to lines, those of about one length together."""

    def __init__(self, model: serving.Model, batch_size: int):
        """Takes the model, and how many lines it reads at a time."""
        if model.unit == "token":
            raise ValueError(
                "The SavedModel gives a vector for each token. Export it with "
                "--unit=mean or cls, or use extract_features.py."
            )
        self._model = model
        self._batch_size = batch_size

    def answer(
        self,
        asked: Sequence[queries.Query],
        done: Callable[[int], None] = lambda _: None,
    ) -> list[Answer]:
        """Returns an answer for each, in order.

        Args:
            asked: What the lines ask.
            done: Called with the number of lines of each batch.
        """
        # Lines of a batch have equally many choices; the longest come first,
        # so that memory that is too little shows at once.
        order = sorted(
            range(len(asked)),
            key=lambda i: (asked[i].choices, -asked[i].length),
        )
        answers: list[Answer] = [{}] * len(asked)
        for batch in self._batches(asked, order):
            found = self._serve([asked[i] for i in batch])
            for i, answer in zip(batch, found, strict=True):
                answers[i] = answer
            done(len(batch))
        return answers

    def _batches(
        self, asked: Sequence[queries.Query], order: Sequence[int]
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

    def _serve(self, asked: Sequence[queries.Query]) -> list[Answer]:
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
        describe = _DESCRIBE[self._model.head]
        return [describe(row, self._model.labels) for row in rows]


# ---- From outputs to answers ------------------------------------------------

_Row = Mapping[str, Any]


def _number(value: np.floating) -> float:
    """As many digits as float32 has: 0.1, not 0.10000000149011612."""
    return float(f"{value:.7g}")


def _numbers(values: np.ndarray) -> list[float]:
    return [_number(value) for value in values]


def _classification(row: _Row, labels: Sequence[str]) -> Answer:
    if "score" in row:
        return {"score": _number(row["score"])}
    found: Answer
    if "labels" in row:
        found = {"labels": [x.decode() for x in row["labels"] if x]}
    else:
        found = {"label": row["label"].decode()}
    probabilities = _numbers(row["probabilities"])
    return found | {
        "probabilities": dict(zip(labels, probabilities, strict=True)),
    }


def _masked_lm(row: _Row, _: Sequence[str]) -> Answer:
    columns = [row[name][: row["count"]] for name in ("piece", "score", "text")]
    return {
        "masks": [
            [
                {
                    "piece": piece.decode(),
                    "score": _number(score),
                    "text": text.decode(),
                }
                for piece, score, text in zip(*mask, strict=True)
            ]
            for mask in zip(*columns, strict=True)
        ]
    }


def _tagging(row: _Row, _: Sequence[str]) -> Answer:
    names = ("type", "start", "end", "text")
    columns = [row[name][: row["count"]] for name in names]
    return {
        "entities": [
            {
                "type": kind.decode(),
                "start": int(start),
                "end": int(end),
                "text": text.decode(),
            }
            for kind, start, end, text in zip(*columns, strict=True)
        ]
    }


def _span(row: _Row, _: Sequence[str]) -> Answer:
    return {
        "answer": row["answer"].decode(),
        "start": int(row["start"]),
        "end": int(row["end"]),
        "score": _number(row["score"]),
        "null_score": _number(row["null_score"]),
    }


_DESCRIBE: Mapping[str, Callable[[_Row, Sequence[str]], Answer]] = {
    "encoder": lambda row, _: {"vector": _numbers(row["vectors"].ravel())},
    "masked_lm": _masked_lm,
    "next_sentence": lambda row, _: {"is_next": _number(row["is_next"])},
    "classification": _classification,
    "tagging": _tagging,
    "span": _span,
    "multiple_choice": lambda row, _: {
        "choice": int(row["choice"]),
        "probabilities": _numbers(row["probabilities"]),
    },
}


# ---- Lines that wait to be answered -----------------------------------------


def windows(
    asked: Iterable[queries.Query], rows: int
) -> Iterator[list[queries.Query]]:
    """Cuts a stream into lists that fit into memory.

    Args:
        asked: What is asked.
        rows: The most in a list.
    """
    window: list[queries.Query] = []
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
    asked: Iterable[queries.Query], rows: int
) -> Iterator[list[queries.Query]]:
    """Yields what has come since the last list, without waiting for more.

    Args:
        asked: A stream that may wait.
        rows: The most in a list. As much as fits into one waits at the most.
    """
    waiting: list[queries.Query] = []
    size = 0
    ends: list[Exception | None] = []
    changed = threading.Condition()

    def is_room(query: queries.Query) -> bool:
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
