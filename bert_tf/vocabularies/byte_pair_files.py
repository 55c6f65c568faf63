"""The files of byte-level BPE: vocab.json, merges.txt, tokenizer.json."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.storage import input_files
from bert_tf.vocabularies import tokenizer_json

from etils import epath

VOCAB, MERGES = "vocab.json", "merges.txt"

_VERSION = "#version: 0.2"
_GIVE = "Give the vocab.json and the merges.txt of one model"


def _byte_characters() -> tuple[str, ...]:
    """Returns the visible character that GPT-2 writes for each byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    by_byte = {byte: chr(byte) for byte in shown}
    by_byte |= {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    return tuple(by_byte[byte] for byte in range(256))


# The character for each byte in tokens.
BYTES = _byte_characters()


def read(path: epath.PathLike) -> dict[str, bytes]:
    """Returns the contents of the two files by name, unchecked.

    `path` is either file, with the other next to it, or a tokenizer.json, which
    contains both.
    """
    folder, name = os.path.split(os.fspath(path))
    data = input_files.read(path, "vocab_file")
    found = tokenizer_json.parse(data) if name.endswith(".json") else None
    if found is not None:
        tokenizer_json.check_byte_pairs(found, str(path))
        return of_tokenizer(found, str(path))
    other = os.path.join(folder, MERGES if name != MERGES else VOCAB)
    if not epath.Path(other).exists():
        raise InputError(
            f"{other} is missing: a vocabulary of byte pairs is {VOCAB} and "
            f"{MERGES} in one folder. Received: vocab_file={path}"
        )
    more = input_files.read(other, "vocab_file")
    if name == MERGES:
        return {VOCAB: more, MERGES: data}
    return {VOCAB: data, MERGES: more}


def of_tokenizer(found: Mapping[str, Any], name: str) -> dict[str, bytes]:
    """Returns the contents of both files from the tokenizer.json `name`."""
    ids, merges = tokenizer_json.read_byte_pairs(found, name)
    both = contents(pieces_by_id(ids, name), merges)
    return dict(zip((VOCAB, MERGES), both, strict=True))


def parse(
    contents: Mapping[str, bytes], name: str
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Returns the tokens by id, and the merged pairs by rank.

    Raises:
        InputError: The files are damaged or do not fit each other. The message
            begins with `name`, the name of either file.
    """
    for file in (VOCAB, MERGES):
        if file not in contents:
            raise InputError(
                f"{name}: {file} is missing. {_GIVE}. "
                f"Received: {', '.join(contents) or 'no files'}"
            )
    pieces = _parse_vocab(contents[VOCAB], f"{name}, {VOCAB}")
    merges = _parse_merges(contents[MERGES], f"{name}, {MERGES}")
    check_fit(pieces, merges, name)
    return pieces, merges


def check_fit(
    pieces: Sequence[str], merges: Sequence[tuple[str, str]], name: str
) -> None:
    """Raises InputError unless all results of merges are tokens."""
    known = frozenset(pieces)
    for rank, pair in enumerate(merges):
        wrong = [x for x in (*pair, "".join(pair)) if x not in known]
        if wrong:
            raise InputError(
                f"{name}: merge {rank + 1} of {MERGES} has or makes the token "
                f"{wrong[0]!r}, which {VOCAB} lacks. {_GIVE}. "
                f"Received: merge={' '.join(pair)!r}"
            )


def check_bytes(pieces: Sequence[str], name: str) -> None:
    """Raises InputError unless all bytes are tokens."""
    known = frozenset(pieces)
    absent = [byte for byte, x in enumerate(BYTES) if x not in known]
    if absent:
        raise InputError(
            f"{name}: byte pairs need a token for each of the 256 bytes, else "
            f"text would be lost. {_GIVE} that works on bytes. "
            f"Received: no token {BYTES[absent[0]]!r} for byte={absent[0]:#x}"
        )


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = input_files.explain_text(data[:64]) or "it is not UTF-8"
        raise InputError(f"{name} can't be read: {problem}. {_GIVE}.") from (
            error
        )


def _parse_vocab(data: bytes, name: str) -> tuple[str, ...]:
    text = _text(data, name)
    try:
        found = json.loads(text, object_pairs_hook=lambda x: _Pairs(x, name))
    except InputError:
        raise
    # RecursionError: endlessly nested lists. ValueError: also endless numbers.
    except (ValueError, RecursionError) as error:
        problem = input_files.explain_text(data[:64]) or str(error)
        raise InputError(
            f"{name} is not whole JSON: {problem}. {_GIVE}. "
            f"Received: {text[:20]!r}"
        ) from error
    return pieces_by_id(found, name)


class _Pairs(dict):
    """A dict whose JSON text must not have the same key twice."""

    def __init__(self, pairs: list[tuple[str, Any]], name: str):
        super().__init__()
        for key, value in pairs:
            if key in self:
                raise InputError(
                    f"{name}: a token stands there twice. {_GIVE}. "
                    f"Received: token={key!r}, ids={self[key]} and {value}"
                )
            self[key] = value


def pieces_by_id(found: Any, name: str) -> tuple[str, ...]:
    """Sorts the keys of `found`, token -> id; InputError if ids have gaps."""
    if (
        not isinstance(found, Mapping)
        or not found
        or not all(type(x) is int for x in found.values())
    ):
        raise InputError(
            f"{name} must map tokens to numbers. {_GIVE}. "
            f"Received: {repr(found)[:40]}"
        )
    by_id = sorted(found, key=lambda piece: found[piece])
    for index, piece in enumerate(by_id):
        if found[piece] != index:
            number, problem = found[piece], "there twice"
            if number > index:
                number, problem = index, "missing"
            elif number < 0:
                problem = "not allowed"
            raise InputError(
                f"{name}: the ids must be 0, 1, 2 and so on, each once; "
                f"{number} is {problem}. {_GIVE}. "
                f"Received: token={piece!r}, id={found[piece]}"
            )
    return tuple(by_id)


def _parse_merges(data: bytes, name: str) -> tuple[tuple[str, str], ...]:
    lines = _text(data, name).replace("\r\n", "\n").split("\n")
    seen: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines, 1):
        # GPT-2 writes its version first, and an empty line at the end.
        if number == 1 and line.startswith("#version"):
            continue
        if not line and not any(lines[number:]):
            break
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise InputError(
                f"{name}, line {number}: a merge is two tokens with a space "
                f"between them. {_GIVE}. Received: line={line[:40]!r}"
            )
        if (left, right) in seen:
            raise InputError(
                f"{name}, line {number}: this merge is already on line "
                f"{seen[left, right]}. Remove one. Received: line={line!r}"
            )
        seen[left, right] = number
    return tuple(seen)


def contents(
    pieces: Iterable[str], merges: Iterable[tuple[str, str]]
) -> tuple[bytes, bytes]:
    """Returns the contents of vocab.json and merges.txt."""
    ids = {piece: index for index, piece in enumerate(pieces)}
    lines = [_VERSION, *map(" ".join, merges)]
    vocab = json.dumps(ids, ensure_ascii=False)
    return vocab.encode(), "".join(f"{x}\n" for x in lines).encode()
