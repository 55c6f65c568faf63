"""How the labels of words spell entities: BIO and its relatives.

Labels of single words, such as parts of speech, follow none of them.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.errors import InputError

OUTSIDE = "O"


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How labels spell entities: `B-person` is a prefix and a type.

    An entity is a chain of words whose first has a prefix of `starts`, whose
    last has one of `ends`, and all but the first one of `inside` and the type
    of the word before, which may not have ended the chain. Any other chain is
    no entity, as in seqeval's strict mode.
    """

    starts: str
    inside: str
    ends: str

    @property
    def prefixes(self) -> str:
        """All of them, each once."""
        return "".join(sorted({*self.starts, *self.inside, *self.ends}))


# Prefixes after which a chain can go on.
OPEN = "BI"
SCHEMES = {
    "BIO": Scheme("B", "I", "BI"),
    "IO": Scheme("I", "I", "I"),
    # CoNLL-2003 as released: B only between neighbours of one type.
    "IOB1": Scheme("BI", "I", "BI"),
    "BIOES": Scheme("BS", "EI", "ES"),
    "BILOU": Scheme("BU", "IL", "LU"),
}
# Every word is labelled for itself.
NO_SCHEME = "none"


class Entity(NamedTuple):
    """Words `start` to `end` (which is not one of them) are a `type`."""

    type: str
    start: int
    end: int


def split_label(label: str) -> tuple[str, str]:
    """Returns prefix and type; OUTSIDE has the prefix "O" and no type."""
    prefix, _, kind = label.partition("-")
    return prefix, kind


def entities(
    labels: Sequence[str], scheme: str, strict: bool = True
) -> list[Entity]:
    """Finds the entities of a sentence, one word each with NO_SCHEME.

    Unless `strict` every chain is one, however it starts and ends, as in
    conlleval.
    """
    if scheme == NO_SCHEME:
        return [Entity(label, i, i + 1) for i, label in enumerate(labels)]
    return [
        entity
        for entity, first, last in chains(labels, SCHEMES[scheme])
        if not strict
        or (first in SCHEMES[scheme].starts and last in SCHEMES[scheme].ends)
    ]


def chains(
    labels: Sequence[str], scheme: Scheme
) -> Iterator[tuple[Entity, str, str]]:
    """Yields each chain with the prefixes of its first and last word."""
    words = [split_label(label) for label in labels]
    start = 0
    for i, (prefix, kind) in enumerate(words):
        following = words[i + 1] if i + 1 < len(words) else (OUTSIDE, "")
        goes_on = (
            prefix in OPEN
            and following[0] in scheme.inside
            and following[1] == kind
        )
        if goes_on:
            continue
        if prefix != OUTSIDE:
            yield Entity(kind, start, i + 1), words[start][0], prefix
        start = i + 1


def detect_scheme(labels: Sequence[str]) -> str:
    """Returns the scheme that a set of labels is spelt in."""
    prefixes = set()
    for label in labels:
        if label == OUTSIDE:
            continue
        prefix, kind = split_label(label)
        if prefix not in set("BIESLU") or not kind:
            return NO_SCHEME
        prefixes.add(prefix)
    if prefixes <= {"I"}:
        return "IO" if prefixes else NO_SCHEME
    for name in ("BIO", "BIOES", "BILOU"):
        if prefixes <= set(SCHEMES[name].prefixes):
            return name
    return NO_SCHEME


def with_starts(labels: Sequence[str]) -> set[str]:
    """Adds B-X to labels that have I-X."""
    inside = (label for label in labels if label.startswith("I-"))
    return {*labels, *(f"B-{label[2:]}" for label in inside)}


def is_spelt(label: str, scheme: str) -> bool:
    """Whether a scheme has such labels."""
    prefix, kind = split_label(label)
    is_known = prefix in set(SCHEMES[scheme].prefixes) and kind != ""
    return label == OUTSIDE or is_known


def check_scheme(labels: Sequence[str], scheme: str) -> None:
    """Raises InputError if a label is not spelt as the scheme says."""
    if scheme == NO_SCHEME:
        return
    for label in labels:
        if not is_spelt(label, scheme):
            raise InputError(
                f"The scheme {scheme} has the label {OUTSIDE} and those that "
                f"start with one of {', '.join(SCHEMES[scheme].prefixes)} and "
                "a hyphen. Give another --scheme: "
                f"{', '.join((*SCHEMES, NO_SCHEME))}. "
                f"Received: label={label!r}"
            )
