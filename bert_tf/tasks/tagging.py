"""Tagging: a label for each word, from files in CoNLL's columns.

One word a line, its label in another column, an empty line after each
sentence, `-DOCSTART-` before each document. Labels of entities follow a
scheme (BIO and its relatives); labels of single words (parts of speech) do
not. Every error names the file and the line.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.tasks import common
from bert_tf.tasks import labels as label_column

from absl import logging

OUTSIDE = "O"
DOCUMENT_START = "-DOCSTART-"
CONTEXTS = ("sentence", "document")
# More lines than this without an empty one may be a sentence, or are none.
_MANY_LINES = 100
_MOST_LINES = 1000


# ---- Schemes ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How labels spell entities: `B-person` is a prefix and a type.

    An entity is a chain of words: each but the first has a prefix of `inside`
    and the type of the word before it, which may not have ended the chain. A
    chain that starts or ends otherwise than the scheme says is no entity, as
    in seqeval's strict mode.

    Attributes:
        starts: Prefixes of the first word.
        inside: Prefixes of the others.
        ends: Prefixes of the last word.
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
    """Finds the entities of a sentence.

    Args:
        labels: One for each word.
        scheme: Of SCHEMES; or NO_SCHEME, where each word is an entity.
        strict: False: every chain is an entity, whatever it starts and ends
            with, as in conlleval.
    """
    if scheme == NO_SCHEME:
        return [Entity(label, i, i + 1) for i, label in enumerate(labels)]
    return [
        entity
        for entity, first, last in _chains(labels, SCHEMES[scheme])
        if not strict
        or (first in SCHEMES[scheme].starts and last in SCHEMES[scheme].ends)
    ]


def _chains(
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


# ---- Files ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Columns:
    """How a file is laid out.

    Attributes:
        token: Column of the word, from 0; negative from the end.
        label: Column of the label; None if the file has none.
        separator: "tab", "space" (runs of spaces and tabs), or None: tab if
            the first word's line has one.
    """

    token: int = 0
    label: int | None = -1
    separator: str | None = None


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words, and the lines they stand on.

    Attributes:
        words: At least one.
        labels: One for each word; none where the file has none.
        lines: Of each word, from 1.
        document: Number of the document.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    document: int


_SEPARATORS = {"tab": re.compile("\t"), "space": re.compile("[ \t]+")}
SEPARATORS = tuple(_SEPARATORS)


def read(path: str, columns: Columns) -> list[Sentence]:
    """Reads the sentences of a file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds no words, is not UTF-8, has lines of different
            numbers of columns, an empty word or label, or no empty lines.
    """
    sentences: list[Sentence] = []
    rows: list[tuple[int, str, str]] = []
    document = 0

    def end_sentence() -> None:
        if rows:
            lines, words, labels = zip(*rows, strict=True)
            if columns.label is None:
                labels = ()
            sentences.append(Sentence(words, labels, lines, document))
            rows.clear()

    for line, word, label in _rows(path, columns):
        if word == DOCUMENT_START:
            end_sentence()
            document += 1
        elif word:
            rows.append((line, word, label))
        else:
            end_sentence()
    end_sentence()
    if not sentences:
        raise ValueError(
            f"{path}: the file has no words. Expected one on each line, and "
            "an empty line after each sentence."
        )
    _check_empty_lines(path, sentences)
    return sentences


def _check_empty_lines(path: str, sentences: Sequence[Sentence]) -> None:
    lines = sentences[0].lines
    if len(sentences) > 1 or len(lines) <= _MANY_LINES:
        return
    if len(lines) > _MOST_LINES:
        raise ValueError(
            f"{path}, line {lines[_MOST_LINES]}: no empty line so far, so the "
            "file would be one sentence. Put an empty line after each sentence."
        )
    logging.warning(
        "%s: there is no empty line, so its %d words are taken as one "
        "sentence. Put an empty line after each sentence if they are several.",
        *(path, len(lines)),
    )


def _rows(path: str, columns: Columns) -> Iterator[tuple[int, str, str]]:
    """Yields line, word and label; an empty word for an empty line."""
    pattern, width = None, 0
    for line, text in common.lines(path):
        text = text.strip("\r\n")
        if not text.strip(" \t"):
            yield line, "", ""
            continue
        # Whatever stands between its columns, if it has more than one.
        if _fields(text, _SEPARATORS["space"])[0] == DOCUMENT_START:
            yield line, DOCUMENT_START, ""
            continue
        if pattern is None:
            pattern = _SEPARATORS[find_separator(text, columns)]
        fields = _fields(text, pattern)
        if not width:
            width = len(fields)
            _check_columns(path, line, fields, columns)
        if len(fields) != width:
            raise ValueError(
                f"{path}, line {line}: another number of columns than before. "
                f"Expected {width}. Received: {len(fields)}, "
                f"{label_column.shortened(repr(fields))}. Give --separator if "
                "it is not what stands between the columns."
            )
        word = fields[columns.token]
        label = "" if columns.label is None else fields[columns.label]
        if not word or not (label or columns.label is None):
            raise ValueError(
                f"{path}, line {line}: a word or its label is empty. Write "
                "both, or remove the line. "
                f"Received: {label_column.shortened(repr(fields))}"
            )
        yield line, word, label


def find_separator(text: str, columns: Columns) -> str:
    """Returns which of SEPARATORS a file has, by its first word's line."""
    return columns.separator or ("tab" if "\t" in text.strip() else "space")


def _fields(text: str, pattern: re.Pattern[str]) -> list[str]:
    if pattern is _SEPARATORS["space"]:
        text = text.strip(" \t")
    return pattern.split(text)


def _check_columns(
    path: str, line: int, fields: Sequence[str], columns: Columns
) -> None:
    width = len(fields)
    wanted = [columns.token]
    if columns.label is not None:
        wanted.append(columns.label)
    places = [at + width if at < 0 else at for at in wanted]
    problem = ""
    if width == 1 and len(places) > 1:
        problem = "there is only one column, and it can't be word and label"
    elif not all(0 <= at < width for at in places):
        problem = "a column is missing"
    elif len(set(places)) < len(places):
        problem = "word and label are in the same column"
    if problem:
        raise ValueError(
            f"{path}, line {line}: {problem}. Expected CoNLL's format: a word "
            "and its label, with a tab or blanks between. Give --token_column, "
            "--label_column or --separator, or --test_has_labels=false for a "
            f"test file without labels. Received: {width} columns, "
            f"{label_column.shortened(repr(list(fields)))}, "
            f"token_column={columns.token}, label_column={columns.label}"
        )


def known_labels(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """Returns the labels there are, sorted."""
    return tuple(sorted({x for sentence in sentences for x in sentence.labels}))


def check(
    path: str,
    sentences: Sequence[Sentence],
    labels: Sequence[str],
    scheme: str,
) -> None:
    """Checks the labels of a file.

    Raises:
        ValueError: A label is not one of `labels`, or most entities start in
            a way that the scheme does not know.
    """
    known = set(labels)
    for sentence in sentences:
        for line, label in zip(sentence.lines, sentence.labels, strict=False):
            if label not in known:
                raise ValueError(
                    f"{path}, line {line}: this label is not one of those "
                    f"trained on ({', '.join(labels)}). Name all of them by "
                    f"--labels before training. Received: label={label!r}"
                )
    if scheme != NO_SCHEME:
        _check_chains(path, sentences, scheme)


def check_scheme(labels: Sequence[str], scheme: str) -> None:
    """Raises ValueError if a label is not spelt as the scheme says."""
    if scheme == NO_SCHEME:
        return
    for label in labels:
        prefix, kind = split_label(label)
        if label != OUTSIDE and (
            prefix not in set(SCHEMES[scheme].prefixes) or not kind
        ):
            raise ValueError(
                f"The scheme {scheme} has the label {OUTSIDE} and those that "
                f"start with one of {', '.join(SCHEMES[scheme].prefixes)} and "
                "a hyphen. Give another --scheme: "
                f"{', '.join((*SCHEMES, NO_SCHEME))}. "
                f"Received: label={label!r}"
            )


def _count_chains(
    sentences: Sequence[Sentence], scheme: str
) -> tuple[int, list[int]]:
    """Returns how many are entities, and the lines of those that are not."""
    spec = SCHEMES[scheme]
    good, bad = 0, []
    for sentence in sentences:
        for entity, first, last in _chains(sentence.labels, spec):
            if first in spec.starts and last in spec.ends:
                good += 1
            else:
                bad.append(sentence.lines[entity.start])
    return good, bad


def _check_chains(
    path: str, sentences: Sequence[Sentence], scheme: str
) -> None:
    """Warns of gold labels that are no entities; refuses a wrong scheme."""
    good, bad = _count_chains(sentences, scheme)
    if len(bad) > good:
        fitting = [x for x in SCHEMES if not _count_chains(sentences, x)[1]]
        raise ValueError(
            f"{path}, line {bad[0]}: {len(bad)} of {good + len(bad)} entities "
            f"are not spelt as {scheme} says. Give another --scheme, such as "
            f"{(fitting or ['IOB1'])[0]}. Received: scheme={scheme}"
        )
    if bad:
        logging.warning(
            "%s: %d of %d entities are not spelt as %s says and do not count "
            "as entities, the first at line %d.",
            *(path, len(bad), good + len(bad), scheme, bad[0]),
        )
