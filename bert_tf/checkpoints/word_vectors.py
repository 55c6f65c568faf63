"""Initializes a model's word embeddings from word vectors.

They come from a text file as of GloVe, word2vec and fastText, a word and its
numbers on each line; or from any checkpoint with the same vocabulary.
Shapes: V tokens of the vocabulary, E numbers of a vector.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from bert_tf import phases, vocabularies
from bert_tf.checkpoints import formats, opened
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files, weight_files

import numpy as np

# Larger vectors are considered an error.
_MAX_SIZE = 1 << 16


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors found for a vocabulary.

    Attributes:
        table: [V, E] float32, zero where no vector was found.
        found: [V] bool.
    """

    table: np.ndarray
    found: np.ndarray


def read(
    path: str,
    files: vocabularies.Files,
    vocabulary: vocabularies.Vocabulary,
    size: int | None = None,
) -> Vectors:
    """Returns vectors for a vocabulary's tokens, E = `size` numbers each.

    Without a size, E is the size of the vectors at the path. Raises InputError
    if the path has no vectors, or none that fit.
    """
    if is_text(path):
        return _of_file(path, vocabulary, size)
    source, tokens = formats.open_checkpoint(path), len(vocabulary.pieces)
    return _of_checkpoint(source, files, tokens, size)


def is_text(path: str) -> bool:
    """Whether a path is a text file, not a checkpoint."""
    system = file_systems.find_backend(path)
    is_file = system.exists(path) and not system.isdir(path)
    return is_file and not weight_files.is_weights(path)


# ---- Files of text ----------------------------------------------------------


class _Line(NamedTuple):
    number: int
    text: bytes  # without line end and surrounding spaces


class _Words:
    """Maps the words of a file to tokens by their spelling.

    Tokens that continue a word match no word, unless they are punctuation,
    which is the same everywhere. If the vocabulary is lower-cased, a word in
    another case provides the vector of a token that has no exact match.
    """

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        self._lowers = bool(vocabulary.settings.get("do_lower_case"))
        self._ids: dict[bytes, list[int]] = {}
        for number, (text, space) in enumerate(vocabulary.spellings):
            if space is not False or not any(x.isalnum() for x in text):
                self._ids.setdefault(text.encode(), []).append(number)

    def ids(self, word: bytes) -> tuple[list[int], bool]:
        """Returns the ids, and whether their spelling is exactly the word."""
        if word in self._ids:
            return self._ids[word], True
        if not self._lowers:
            return [], False
        lower = word.decode("utf-8", "ignore").lower().encode()
        return self._ids.get(lower, []), False


def _of_file(
    path: str, vocabulary: vocabularies.Vocabulary, size: int | None
) -> Vectors:
    """Reads a text file; the first line of a repeated word counts."""
    there, header, lines = _open(path)
    if size is None:
        if not 0 < there <= _MAX_SIZE:
            raise _unreadable(path, f"its first line says {there} numbers")
        size = there
    if there != size:
        raise InputError(
            f"{path} has vectors of {there} numbers, and the model's words "
            f"have {size}: give other vectors, or say so in the model's config "
            "(`embedding_size`, or else `hidden_size`). "
            f"Received: word_vectors={path}"
        )
    words = _Words(vocabulary)
    table = np.zeros([len(vocabulary.pieces), size], np.float32)
    # 2: vector of the word itself; 1: of the word in another case.
    found = np.zeros(len(table), np.int8)
    for line in _vectors(path, lines, size, header):
        word = line.text.rsplit(b" ", size)[0]
        ids, is_own = words.ids(word)
        rank = 1 + is_own
        new = [number for number in ids if found[number] < rank]
        if new:
            table[new] = _numbers(path, line, size)
            found[new] = rank
    if not found.any():
        raise InputError(
            f"None of the words of {path} is a piece of the vocabulary: is it "
            "a file of word vectors, in the language of the vocabulary?"
        )
    return Vectors(table, found > 0)


def _open(path: str) -> tuple[int, int, Iterator[_Line]]:
    """Returns E, the number of words that a header promises, and the lines."""
    input_files.check(path, "word_vectors")
    input_files.check_can_be_read_again(path)
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise _unreadable(path, "it is empty")
    header = re.fullmatch(rb"(\d+) (\d+)", first.text)
    if header:
        return int(header[2]), int(header[1]), lines
    return first.text.count(b" "), 0, itertools.chain([first], lines)


def _vectors(
    path: str, lines: Iterator[_Line], size: int, header: int
) -> Iterator[_Line]:
    """Yields the lines of words; InputError unless they have `size` numbers."""
    count = 0
    for line in lines:
        if (numbers := line.text.count(b" ")) < size:
            raise _unreadable(
                path,
                f"line {line.number} has {numbers} numbers, and {size} were "
                "expected",
            )
        count += 1
        yield line
    if count < header:
        raise _unreadable(path, f"it ends after {count} of {header} words")


def _lines(path: str) -> Iterator[_Line]:
    """Yields the non-empty lines."""
    with file_systems.find_backend(path).open(path, "rb") as file:
        lines = phases.tracked(file, "Reading word vectors", "lines")
        for number, text in enumerate(lines, 1):
            if number == 1:
                if problem := input_files.explain_text(text[:64]):
                    raise _unreadable(path, problem)
                text = text.removeprefix(b"\xef\xbb\xbf")
            if b"\0" in text:
                raise _unreadable(
                    path,
                    "it is no text. Vectors in word2vec's binary format have "
                    "to be saved as text first",
                )
            if text := text.replace(b"\t", b" ").strip(b" \r\n"):
                yield _Line(number, text)


def _numbers(path: str, line: _Line, size: int) -> np.ndarray:
    fields = line.text.rsplit(b" ", size)[1:]
    try:
        values = np.array(fields).astype(np.float32)
    except ValueError as error:
        raise _unreadable(
            path, f"line {line.number} holds what is no number"
        ) from error
    if not np.isfinite(values).all():
        raise _unreadable(
            path, f"line {line.number} holds what is no finite number"
        )
    return values


def _unreadable(path: str, problem: str) -> InputError:
    return InputError(
        f"{path} can't be read as word vectors, a word and its numbers on each "
        f"line: {problem}. Download or make it again."
    )


# ---- Checkpoints ------------------------------------------------------------


def _of_checkpoint(
    source: opened.Checkpoint,
    files: vocabularies.Files,
    tokens: int,
    size: int | None,
) -> Vectors:
    """Returns the word embeddings of a checkpoint with the same vocabulary."""
    name = families.find(source.config).words
    if name not in source.shapes:
        raise InputError(
            f"{source.path} has no table of words: {name} is not there."
        )
    if source.vocab is None:
        raise InputError(
            f"There is no vocabulary beside {source.path}, so it is not known "
            "whose vectors these are: put it there, or give its folder."
        )
    lower = source.do_lower_case
    if found := vocabularies.difference(files, source.vocab, lower):
        raise InputError(
            f"The vocabulary is not that of {source.path}, whose vectors are "
            f"to be the words': {found}. Give --vocab_file of that model. "
            f"Received: word_vectors={source.path}"
        )
    # The table may be padded.
    table = source.read([name])[name][:tokens]
    size = table.shape[1] if size is None else size
    if table.shape[1] < size:
        raise InputError(
            f"{source.path} has vectors of {table.shape[1]} numbers, too few "
            f"for the model's words, which have {size}: say so in the model's "
            "config (`embedding_size`). "
            f"Received: word_vectors={source.path}"
        )
    if table.shape[1] > size:
        table = project(table, size)
    return Vectors(table, np.ones(len(table), bool))


def project(table: np.ndarray, size: int) -> np.ndarray:
    """Returns the first `size` principal components of vectors [V, E].

    They preserve most of the differences between the vectors.
    """
    centred = table.astype(np.float64)
    centred -= centred.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # By ascending variance.
    axes = axes[:, ::-1][:, :size]
    # The sign of an axis is arbitrary: make its largest entry positive.
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(size)])
    return (centred @ axes).astype(np.float32)
