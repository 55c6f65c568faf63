"""Converts the outputs of each head to Python and JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Answer = dict[str, Any]
# The outputs of a model for one line, by name.
Row = Mapping[str, Any]


def number(value: np.floating) -> float:
    """Rounds to the digits of float32: 0.1, not 0.10000000149011612."""
    return float(f"{value:.7g}")


def numbers(values: np.ndarray) -> list[float]:
    """Rounds several values as `number` does."""
    return [number(value) for value in values]


def classification(row: Row, labels: Sequence[str]) -> Answer:
    """Returns the label and the probability of each class, or the score."""
    if "score" in row:
        return {"score": number(row["score"])}
    found: Answer
    if "labels" in row:
        found = {"labels": [x.decode() for x in row["labels"] if x]}
    else:
        found = {"label": row["label"].decode()}
    probabilities = numbers(row["probabilities"])
    return found | {
        "probabilities": dict(zip(labels, probabilities, strict=True)),
    }


def _listed(row: Row, *names: str) -> list[Answer]:
    """Returns a dictionary for each position of some outputs.

    An output named `count` limits the positions.
    """
    columns = [map(_value, row[name][: row.get("count")]) for name in names]
    return [
        dict(zip(names, values, strict=True))
        for values in zip(*columns, strict=True)
    ]


def _value(value: Any) -> str | int | float:
    if isinstance(value, bytes):
        return value.decode()
    return int(value) if isinstance(value, np.integer) else number(value)


def masked_lm(row: Row, _: Sequence[str]) -> Answer:
    """Returns the most likely tokens for each mask, and the filled texts."""
    names = ("piece", "score", "text")
    masks = range(row["count"])
    return {
        "masks": [_listed({x: row[x][i] for x in names}, *names) for i in masks]
    }


def next_piece(row: Row, _: Sequence[str]) -> Answer:
    """Returns the most likely next tokens, and the text followed by each."""
    return {"pieces": _listed(row, "piece", "score", "text")}


def seq2seq(row: Row, _: Sequence[str]) -> Answer:
    """Returns the text that was written, and its score."""
    return {"target": row["target"].decode(), "score": number(row["score"])}


def replaced_tokens(row: Row, _: Sequence[str]) -> Answer:
    """The tokens, with the probability that each was replaced."""
    names = ("token", "start", "end", "probability")
    return {"tokens": _listed(row, *names)}


def tagging(row: Row, _: Sequence[str]) -> Answer:
    """Returns the entities, with their positions in characters."""
    return {"entities": _listed(row, "type", "start", "end", "text")}


def span(row: Row, _: Sequence[str]) -> Answer:
    """Returns the answer, its position in characters and both scores."""
    return {
        "answer": row["answer"].decode(),
        "start": int(row["start"]),
        "end": int(row["end"]),
        "score": number(row["score"]),
        "null_score": number(row["null_score"]),
    }


def encoder(row: Row, _: Sequence[str]) -> Answer:
    """Returns the vector."""
    return {"vector": numbers(row["vectors"].ravel())}


def next_sentence(row: Row, _: Sequence[str]) -> Answer:
    """Returns the probability that the second text follows the first."""
    return {"is_next": number(row["is_next"])}


def multiple_choice(row: Row, _: Sequence[str]) -> Answer:
    """Returns the index of the best choice, and all probabilities."""
    return {
        "choice": int(row["choice"]),
        "probabilities": numbers(row["probabilities"]),
    }
