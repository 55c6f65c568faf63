"""Labels of a column: one class, several classes, or a score."""

import json
import math
import re
from collections.abc import Collection, Iterable, Sequence

from bert_tf import terminals
from bert_tf.errors import InputError, listed, shortened
from bert_tf.tasks import table_json

from absl import logging

# The loss is its square, in float32, summed over a batch.
_MOST_OF_A_SCORE = 1e15
# As pandas, R, spreadsheets and databases write a missing value.
_MISSING = {"nan", "NaN", "NaT", "None", "null", "NULL"}
_MISSING |= {"NA", "N/A", "#N/A", "<NA>"}

# A class, a score, several classes, or None if hidden (test set).
Label = str | float | tuple[str, ...] | None


def split(text: str, separator: str, where: str) -> tuple[str, ...]:
    """Returns a cell's distinct labels; it may be a list in JSON.

    Raises InputError at `where` for a list of Python, as pandas writes it.
    """
    parts: Iterable[str] = text.split(separator)
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            if re.match(r"\[\s*['\"]", text):
                raise InputError(
                    f"{where}: the labels are not a list in JSON. Expected "
                    f'["a", "b"], or a{separator}b. '
                    f"Received: label={shortened(repr(text))}"
                ) from error
        else:
            plain = table_json.plain(where, {"label": values}, "label", True)
            parts = json.loads(plain)
    stripped = (part.strip() for part in parts)
    return tuple(dict.fromkeys(part for part in stripped if part))


def ordered(
    labels: Collection[str], known: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Returns labels that were collected from a file, in a fixed order.

    Integers are sorted numerically, so class 2 comes before class 10; other
    labels are sorted as text.

    Args:
        labels: All distinct labels.
        known: Labels of the resumed run, whose order is kept.
    """
    if known is not None and set(known) == set(labels):
        return tuple(known)
    if all(re.fullmatch(r"[+-]?\d+", label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def known(label: str, labels: Collection[str], where: str, way_out: str) -> str:
    """Returns the label; raises InputError at `where` if it is unknown."""
    if label not in labels:
        raise InputError(
            f"{where}: unknown label. Expected one of {listed(list(labels))}. "
            f"Received: label={shortened(repr(label))}. {way_out}."
        )
    return label


def score(
    text: str, where: str, bounds: tuple[float, float] | None = None
) -> float:
    """Parses a score.

    Raises InputError if it is not a number, too large or outside `bounds`.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{where}: the score is not a number. "
            f"Received: label={shortened(repr(text))}. Correct it, or remove "
            "the row."
        )
    if abs(value) > _MOST_OF_A_SCORE:
        raise InputError(
            f"{where}: the score is too large to be learned. Expected at most "
            f"{_MOST_OF_A_SCORE:g}; scale the scores. "
            f"Received: label={shortened(repr(text))}"
        )
    if bounds and not bounds[0] <= value <= bounds[1]:
        raise InputError(
            f"{where}: expected a score from {bounds[0]:g} to {bounds[1]:g}. "
            f"Received: label={shortened(repr(text))}. Correct it."
        )
    return value


def check(labels: Sequence[str]) -> None:
    """Raises InputError unless the classes are distinct and writable."""
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise InputError(
            "Expected at least two labels, each once. "
            f"Received: labels={listed(labels, ',')}"
        )
    for label in labels:
        check_one(label, "--labels")
    stripped: dict[str, str] = {}
    for label in labels:
        other = stripped.setdefault(label.strip(), label)
        if other != label:
            raise InputError(
                "Two labels differ only in white space around them, and would "
                "be two classes. Remove it where they stand. "
                f"Received: {shortened(repr(other))}, {shortened(repr(label))}"
            )


def warn_of_unseen(
    path: str, labels: Sequence[str], seen: Collection[Label]
) -> None:
    """Warns of specified labels that the training file does not have."""
    unseen = [label for label in labels if label not in seen]
    if unseen:
        terminals.warn_once(
            f"{path} has no example of {listed(unseen)}, so they will not be "
            "learned."
        )


def warn_of_similar(path: str, labels: Iterable[str]) -> None:
    """Warns of labels that differ only in case, or are the same integer.

    Tables that are joined from several may have 1 and 1.0, or True and TRUE.
    """
    spelt: dict[str, list[str]] = {}
    for label in sorted(labels):
        text = label.strip().casefold()
        if re.fullmatch(r"[+-]?\d{1,99}(\.0*)?", text):
            text = str(int(text.partition(".")[0]))
        spelt.setdefault(text, []).append(label)
    similar = [" and ".join(same) for same in spelt.values() if len(same) > 1]
    if similar:
        logging.warning(
            "%s has labels that differ only in how they are written, and each "
            "becomes a class: %s. Write them in the same way if they are one.",
            *(path, listed(similar)),
        )


def warn_of_missing(path: str, labels: Iterable[str]) -> None:
    """Warns of labels that programs write for missing values."""
    missing = [x for x in sorted(labels) if x.strip() in _MISSING]
    if missing:
        logging.warning(
            "%s has labels that programs write for missing values, and each "
            "becomes a class: %s. Remove these rows if their label is missing.",
            *(path, listed(missing)),
        )


def check_one(label: str, where: str) -> None:
    """Raises InputError if a label is empty or contains a line break."""
    if not label.strip() or "\n" in label or label.endswith("\r"):
        raise InputError(
            f"{where}: a label must not be empty or hold a line end. "
            f"Received: label={shortened(repr(label))}. Give it a name, in "
            "one line."
        )
