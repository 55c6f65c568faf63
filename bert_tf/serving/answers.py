"""What the outputs of each head mean, as values of Python and of JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Answer = dict[str, Any]
# The outputs of a model for one line, by name.
Row = Mapping[str, Any]


def number(value: np.floating) -> float:
    """As many digits as float32 has: 0.1, not 0.10000000149011612."""
    return float(f"{value:.7g}")


def numbers(values: np.ndarray) -> list[float]:
    """As `number`, of several."""
    return [number(value) for value in values]


def classification(row: Row, labels: Sequence[str]) -> Answer:
    """The label and the probability of each; or the score."""
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


def masked_lm(row: Row, _: Sequence[str]) -> Answer:
    """For each mask the likeliest pieces, and the text with each."""
    columns = [row[name][: row["count"]] for name in ("piece", "score", "text")]
    return {
        "masks": [
            [
                {
                    "piece": piece.decode(),
                    "score": number(score),
                    "text": text.decode(),
                }
                for piece, score, text in zip(*mask, strict=True)
            ]
            for mask in zip(*columns, strict=True)
        ]
    }


def next_piece(row: Row, _: Sequence[str]) -> Answer:
    """The likeliest next pieces, and the text with each behind it."""
    columns = (row[name] for name in ("piece", "score", "text"))
    return {
        "pieces": [
            {
                "piece": piece.decode(),
                "score": number(score),
                "text": text.decode(),
            }
            for piece, score, text in zip(*columns, strict=True)
        ]
    }


def tagging(row: Row, _: Sequence[str]) -> Answer:
    """The entities, with their places in characters."""
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


def span(row: Row, _: Sequence[str]) -> Answer:
    """The answer, with its place in characters and both scores."""
    return {
        "answer": row["answer"].decode(),
        "start": int(row["start"]),
        "end": int(row["end"]),
        "score": number(row["score"]),
        "null_score": number(row["null_score"]),
    }


def encoder(row: Row, _: Sequence[str]) -> Answer:
    """The vector."""
    return {"vector": numbers(row["vectors"].ravel())}


def next_sentence(row: Row, _: Sequence[str]) -> Answer:
    """How probable it is that the second text follows."""
    return {"is_next": number(row["is_next"])}


def multiple_choice(row: Row, _: Sequence[str]) -> Answer:
    """The number of the best choice, and the probability of each."""
    return {
        "choice": int(row["choice"]),
        "probabilities": numbers(row["probabilities"]),
    }
