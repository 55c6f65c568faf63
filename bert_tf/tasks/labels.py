"""What stands in a label column: a class, several classes, or a score."""

import json
import math
from collections.abc import Collection, Sequence

from absl import logging

# A class, a score, several classes, or None where the task hides it (test).
Label = str | float | tuple[str, ...] | None


def split(text: str, separator: str) -> tuple[str, ...]:
    """Returns the labels of a cell, each once; an empty cell has none.

    JSON lines may have a list of labels instead.
    """
    if text.startswith("["):
        try:
            parts = [str(part) for part in json.loads(text)]
        except json.JSONDecodeError:
            parts = text.split(separator)
    else:
        parts = text.split(separator)
    stripped = (part.strip() for part in parts)
    return tuple(dict.fromkeys(part for part in stripped if part))


def known(label: str, labels: Sequence[str], where: str) -> str:
    """Returns the label; ValueError if it is none of those known.

    Args:
        label: As the file has it.
        labels: Those there are.
        where: File and line, for the error.
    """
    if label not in labels:
        raise ValueError(
            f"{where}: unknown label. Expected one of {', '.join(labels)}. "
            f"Received: label={label!r}"
        )
    return label


def score(text: str, where: str) -> float:
    """Returns a score; ValueError if it is not a number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{where}: the score is not a number. Received: label={text!r}"
        )
    return value


def check(labels: Sequence[str]) -> None:
    """Raises ValueError unless the classes can be told apart and written."""
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(
            "Expected at least two labels, each once. "
            f"Received: labels={','.join(labels)}"
        )
    for label in labels:
        check_one(label, "--labels")


def warn_of_unseen(
    path: str, labels: Sequence[str], seen: Collection[Label]
) -> None:
    """Warns of labels that are given, but not in the file to train on."""
    unseen = [label for label in labels if label not in seen]
    if unseen:
        logging.warning(
            "%s has no example of %s, so they will not be learned.",
            *(path, ", ".join(unseen)),
        )


def check_one(label: str, where: str) -> None:
    """Raises ValueError if a label is empty or holds a line end.

    Args:
        label: One of those there are: a line of labels.txt.
        where: File and line, or the flag, for the error.
    """
    if not label.strip() or "\n" in label:
        raise ValueError(
            f"{where}: a label must not be empty or hold a line end. "
            f"Received: label={label!r}. Give it a name, in one line."
        )
