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


def masked_lm(row: Row, _: Sequence[str]) -> Answer:
    """Returns the most likely tokens for each mask, and the filled texts."""
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
    """Returns the most likely next tokens, and the text followed by each."""
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


def seq2seq(row: Row, _: Sequence[str]) -> Answer:
    """Returns the text that was written, and its score."""
    return {"target": row["target"].decode(), "score": number(row["score"])}


def replaced_tokens(row: Row, _: Sequence[str]) -> Answer:
    """The tokens, with the probability that each was replaced."""
    names = ("token", "start", "end", "probability")
    columns = [row[name][: row["count"]] for name in names]
    return {
        "tokens": [
            {
                "token": token.decode(),
                "start": int(start),
                "end": int(end),
                "probability": number(probability),
            }
            for token, start, end, probability in zip(*columns, strict=True)
        ]
    }


def tagging(row: Row, _: Sequence[str]) -> Answer:
    """Returns the entities, with their positions in characters."""
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
