"""Reads CoNLL files: one word per line, with its label in another column.

An empty line ends a sentence; `-DOCSTART-` begins a document. Errors name the
file and the line. For CoNLL-U (https://universaldependencies.org/format.html),
comments are skipped, and so are multiword tokens (ids such as 3-4) and words
that are not in the text (8.1).
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence

from bert_tf.errors import InputError, listed, shortened
from bert_tf.storage import input_files
from bert_tf.tasks import label_column, tables
from bert_tf.tasks.tagging import schemes

from absl import logging

DOCUMENT_START = "-DOCSTART-"
CONTEXTS = ("sentence", "document")
# Comments before a sentence: `# sent_id = 1`, or MultiCoNER's `# id ...`. Words
# such as the hashtag `#newdoc` have no space.
_COMMENT = re.compile(r"# (?:[\w.:]+ ?=|(?:id|newpar|newdoc)\b)")
_DOCUMENT_COMMENT = re.compile(r"# newdoc\b")
_UNIVERSAL_WIDTH = 10
_NO_WORD = re.compile(r"\d+[-.]\d+")
# More lines without an empty line suggest that sentences are not separated.
_MANY_LINES = 100
_MOST_LINES = 1000


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns to read, counted from 0, or from the end if negative.

    `label` is None if the file has no labels. `separator` is "tab", "space"
    (runs of spaces and tabs), or None: tab if the first word's line has one.
    """

    token: int = 0
    label: int | None = -1
    separator: str | None = None


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words (at least one) and their labels, if the file has them.

    `lines` are the words' line numbers in the file, from 1, and `document` is
    the index of the document.
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
        InputError: It has no words, is not UTF-8, has lines with different
            numbers of columns, an empty word or label, or no empty lines.
    """
    input_files.check_can_be_read_again(path)
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
        raise InputError(
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
        raise InputError(
            f"{path}, line {lines[_MOST_LINES]}: no empty line so far, so the "
            "file would be one sentence. Put an empty line after each sentence."
        )
    logging.warning(
        "%s: there is no empty line, so its %d words are taken as one "
        "sentence. Put an empty line after each sentence if they are several.",
        path,
        len(lines),
    )


def _rows(path: str, columns: Columns) -> Iterator[tuple[int, str, str]]:
    """Yields line, word and label; the word is empty for an empty line."""
    pattern, width, skipped, begins = None, 0, 0, True
    for line, text in tables.lines(path):
        text = text.strip("\r\n")
        if not text.strip(" \t"):
            yield line, "", ""
            begins = True
            continue
        if begins and _COMMENT.match(text):
            if _DOCUMENT_COMMENT.match(text):
                yield line, DOCUMENT_START, ""
            continue
        begins = False
        # Detected under any separator, if there are several columns.
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
            raise InputError(
                f"{path}, line {line}: another number of columns than before. "
                f"Expected {width}. Received: {len(fields)}, "
                f"{shortened(repr(fields))}. Give --separator if "
                "it is not what stands between the columns."
            )
        is_universal = width == _UNIVERSAL_WIDTH and columns.token % width > 0
        if is_universal and _NO_WORD.fullmatch(fields[0]):
            skipped += 1
            continue
        word = fields[columns.token]
        label = "" if columns.label is None else fields[columns.label]
        if not word or not (label or columns.label is None):
            raise InputError(
                f"{path}, line {line}: a word or its label is empty. Write "
                "both, or remove the line. "
                f"Received: {shortened(repr(fields))}"
            )
        yield line, word, label
    if skipped:
        logging.info(
            "%s: skipped %d rows of several words or of none (CoNLL-U).",
            *(path, skipped),
        )


def find_separator(text: str, columns: Columns) -> str:
    """Returns the separator of a file, from its first word's line."""
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
        raise InputError(
            f"{path}, line {line}: {problem}. Expected CoNLL's format: a word "
            "and its label, with a tab or blanks between. Give --token_column, "
            "--label_column or --separator, or --test_has_labels=false for a "
            f"test file without labels. Received: {width} columns, "
            f"{shortened(repr(list(fields)))}, "
            f"token_column={columns.token}, label_column={columns.label}"
        )


def known_labels(
    sentences: Sequence[Sentence], known: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Returns the labels of sentences in the order of `label_column`."""
    found = {label for sentence in sentences for label in sentence.labels}
    return label_column.ordered(found, known)


def check(
    path: str,
    sentences: Sequence[Sentence],
    labels: Sequence[str],
    scheme: str,
) -> None:
    """Raises InputError if labels are unknown, or not in the scheme.

    The scheme is wrong if most entities start in a way it does not allow.
    """
    known = set(labels)
    for sentence in sentences:
        for line, label in zip(sentence.lines, sentence.labels, strict=False):
            if label not in known:
                raise InputError(
                    f"{path}, line {line}: this label is not one of those "
                    f"trained on ({listed(labels)}). "
                    f"{_way_out(label, labels)}. Received: label={label!r}"
                )
    if scheme != schemes.NO_SCHEME:
        _check_chains(path, sentences, labels, scheme)


def _way_out(label: str, labels: Sequence[str]) -> str:
    """Explains how to train with a label that the training file lacks."""
    has_starts = any(known.startswith("B-") for known in labels)
    if not has_starts and label in schemes.with_starts(labels):
        return (
            "Train with --scheme=IOB1, in which B- only separates neighbours, "
            "or name all labels by --labels"
        )
    return "Name all of them by --labels before training"


def _count_chains(
    sentences: Sequence[Sentence], scheme: str
) -> tuple[int, list[int]]:
    """Returns the number of entities, and the lines of invalid chains."""
    spec = schemes.SCHEMES[scheme]
    good, bad = 0, []
    for sentence in sentences:
        for entity, first, last in schemes.chains(sentence.labels, spec):
            if first in spec.starts and last in spec.ends:
                good += 1
            else:
                bad.append(sentence.lines[entity.start])
    return good, bad


def _check_chains(
    path: str,
    sentences: Sequence[Sentence],
    labels: Sequence[str],
    scheme: str,
) -> None:
    """Warns of labels that form no entity; rejects a wrong scheme."""
    good, bad = _count_chains(sentences, scheme)
    if len(bad) > good:
        fitting = [
            x
            for x in schemes.SCHEMES
            if all(schemes.is_spelt(label, x) for label in labels)
            and not _count_chains(sentences, x)[1]
        ]
        raise InputError(
            f"{path}, line {bad[0]}: {len(bad)} of {good + len(bad)} entities "
            f"are not spelt as {scheme} says. Give another --scheme, such as "
            f"{(fitting or ['IOB1'])[0]}. Received: scheme={scheme}"
        )
    if bad:
        logging.warning(
            "%s: %d of %d entities are not spelt as %s says and do not count "
            "as entities, the first at line %d.",
            path,
            len(bad),
            good + len(bad),
            scheme,
            bad[0],
        )
