"""How word labels encode entities: BIO and its relatives.

Labels of single words, such as parts of speech, use no scheme.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.errors import InputError, listed

from absl import logging

OUTSIDE = "O"


@dataclasses.dataclass(frozen=True)
class Scheme:
    """An encoding of entities: `B-person` is a prefix and a type.

    An entity is a chain of words. Its first word has a prefix in `starts`, its
    last one in `ends`, and each word but the first a prefix in `inside` and the
    type of the word before, which must not have ended the chain. Any other
    chain is not an entity, as in seqeval's strict mode.
    """

    starts: str
    inside: str
    ends: str

    @property
    def prefixes(self) -> str:
        """All distinct prefixes."""
        return "".join(sorted({*self.starts, *self.inside, *self.ends}))


# Prefixes after which a chain can continue.
OPEN = "BIM"
SCHEMES = {
    "BIO": Scheme("B", "I", "BI"),
    "IO": Scheme("I", "I", "I"),
    # CoNLL-2003 as released: B only between adjacent entities of one type.
    "IOB1": Scheme("BI", "I", "BI"),
    "BIOES": Scheme("BS", "EI", "ES"),
    "BILOU": Scheme("BU", "IL", "LU"),
    # Of Chinese data sets.
    "BMES": Scheme("BS", "ME", "ES"),
}
_PREFIXES = {
    prefix for scheme in SCHEMES.values() for prefix in scheme.prefixes
}
# Every word is labelled independently.
NO_SCHEME = "none"


class Entity(NamedTuple):
    """An entity `type`: words `start` up to, but not including, `end`."""

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
    """Finds the entities of a sentence; with NO_SCHEME, each word is one.

    If not `strict`, every chain is an entity, however it starts and ends, as in
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


def _has_type(label: str) -> bool:
    """Returns whether a label is one letter, a hyphen and a type."""
    prefix, kind = split_label(label)
    return len(prefix) == 1 and kind != ""


def detect_scheme(labels: Sequence[str]) -> str:
    """Detects the scheme of a set of labels.

    Warns if it does not know the scheme of labels that look like entities.
    """
    others = [label for label in labels if label != OUTSIDE]
    plain = [label for label in others if not _has_type(label)]
    prefixes = {label[:1] for label in others}
    if not plain:
        if prefixes <= {"I"}:
            return "IO" if prefixes else NO_SCHEME
        for name in ("BIO", "BIOES", "BILOU", "BMES"):
            if prefixes <= set(SCHEMES[name].prefixes):
                return name
    # A header among the labels, or labels without types (B, I, O).
    are_bare = all(label in _PREFIXES for label in plain)
    if OUTSIDE in labels and (are_bare or len(plain) < len(others)):
        logging.warning(
            "No known scheme has all labels, so each word counts by itself and "
            "entities are not scored. Spell them in one of %s, such as B-PER, "
            "or give --scheme=none. Received: labels=%s",
            *(", ".join(SCHEMES), listed(sorted(labels, key=_has_type))),
        )
    return NO_SCHEME


def with_starts(labels: Sequence[str]) -> set[str]:
    """Adds B-X for each label I-X."""
    inside = (label for label in labels if label.startswith("I-"))
    return {*labels, *(f"B-{label[2:]}" for label in inside)}


def is_spelt(label: str, scheme: str) -> bool:
    """Whether a label is valid in a scheme."""
    prefix, kind = split_label(label)
    is_known = prefix in set(SCHEMES[scheme].prefixes) and kind != ""
    return label == OUTSIDE or is_known


def check_scheme(labels: Sequence[str], scheme: str) -> None:
    """Raises InputError if a label is not valid in the scheme."""
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
