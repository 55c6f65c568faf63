"""Reads tokenizer.json, the format of the `tokenizers` library.

The file describes a complete tokenizer. Files that split text in another way
than their kind of vocabulary are rejected with the field that differs.
WordPiece and BPE are here; `unigram_json` has SentencePiece.
"""

import functools
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import vocab_files
from bert_tf.errors import InputError
from bert_tf.storage import input_files

from etils import epath

FILE = "tokenizer.json"

_WORD_PIECE, _BPE, UNIGRAM = "WordPiece", "BPE", "Unigram"
_START = b'"model"'
# The key of the steps in a part that is a sequence.
_SEQUENCES = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}

Merges = tuple[tuple[str, str], ...]


@functools.lru_cache(maxsize=1)
def parse(data: bytes) -> Mapping[str, Any] | None:
    """Returns the content of a tokenizer.json; None of a vocab.json.

    The last file is cached: opening a folder reads it for several purposes.
    """
    if _START not in data:
        return None
    try:
        found = json.loads(data)
    # Deeply nested lists are a RecursionError.
    except (ValueError, RecursionError):
        return None
    is_whole = isinstance(found, dict) and isinstance(found.get("model"), dict)
    return found if is_whole else None


def find(path: epath.PathLike) -> Mapping[str, Any] | None:
    """Returns the content of a tokenizer.json, None of no or another file."""
    input_files.check_can_be_read_again(path)
    file = epath.Path(path)
    data = file.read_bytes() if file.exists() and not file.is_dir() else b""
    return parse(data)


def model_type(path: epath.PathLike) -> str | None:
    """Returns the type of the model in a JSON file, None for other files."""
    found = find(path)
    return None if found is None else kind(found)


def read(path: epath.PathLike) -> Mapping[str, Any] | None:
    """Parses a tokenizer.json of any name ending in .json.

    Returns None for other files.
    """
    if not os.fspath(path).endswith(".json"):
        return None
    return parse(input_files.read(path, "vocab_file"))


def kind(found: Mapping[str, Any]) -> str | None:
    """Returns the type of the tokenizer's model, None if unknown."""
    model = found.get("model") or {}
    # The oldest files lack `type`. In these, only WordPiece has a limit for
    # words, only BPE has merges, and only Unigram has a list.
    if "max_input_chars_per_word" in model:
        return model.get("type", _WORD_PIECE)
    if isinstance(model.get("vocab"), list):
        return model.get("type", UNIGRAM)
    return model.get("type", _BPE if "merges" in model else None)


def lower_cases(found: Mapping[str, Any]) -> bool | None:
    """Returns whether a tokenizer lower-cases, None if it has no casing."""
    if kind(found) == _BPE:
        return None
    steps = normalizers(found)
    if kind(found) == UNIGRAM:
        return any(step.get("type") == "Lowercase" for step in steps)
    for step in steps:
        if isinstance(step.get("lowercase"), bool):
            return step["lowercase"]
    return None


def normalizers(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the steps of a tokenizer's normalizer, in order."""
    return _steps(_object(found, "normalizer"), "normalizers")


def pre_tokenizers(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the steps that split texts into words."""
    return _steps(_object(found, "pre_tokenizer"), "pretokenizers")


def post_processors(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the steps that add special tokens to sequences."""
    return _steps(_object(found, "post_processor"), "processors")


def _object(found: Mapping[str, Any], key: str) -> Any:
    part = found.get(key)
    if part is not None and not isinstance(part, dict):
        raise InputError(
            f"tokenizer.json: `{key}` must be an object. Copy or download it "
            f"again. Received: {key}={repr(part)[:40]}"
        )
    return part


def _steps(part: Any, key: str) -> list[dict[str, Any]]:
    if not isinstance(part, dict):
        return []
    if part.get("type") != "Sequence":
        return [part]
    parts = part.get(key)
    parts = parts if isinstance(parts, list) else []
    return [step for inner in parts for step in _steps(inner, key)]


def _single(found: Mapping[str, Any], part: str) -> Any:
    """Returns a part of a tokenizer: of a sequence of one step, the step."""
    value = found.get(part)
    steps = _steps(value, _SEQUENCES.get(part, ""))
    return steps[0] if part in _SEQUENCES and len(steps) == 1 else value


def added(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the added tokens, which usually are in the model as well."""
    parts = found.get("added_tokens")
    return [
        token
        for token in (parts if isinstance(parts, list) else [])
        if isinstance(token, dict) and isinstance(token.get("content"), str)
    ]


def otherwise(path: str, owner: str, field: str, value: Any) -> InputError:
    """Creates the error for a file that splits text unlike `owner`."""
    return InputError(
        f"{path} splits text otherwise than {owner}, by its {field}. Give the "
        f"tokenizer.json of {owner}, or the vocabulary in its own files, "
        "without this one next to them. "
        f"Received: {field}={json.dumps(value)[:60]}"
    )


# ---- WordPiece ---------------------------------------------------------------


def check_word_pieces(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError unless a file splits texts like a BERT tokenizer.

    `tokenizer_config` reads its settings. The limit of words may differ: words
    of over 100 characters are unknown there, and of over 200 here, as in the
    original.
    """
    if kind(found) != _WORD_PIECE:
        raise InputError(
            f"{name}: the tokenizer must be a WordPiece. Give the vocab.txt or "
            "the tokenizer.json of a BERT. "
            f"Received: model.type={kind(found)}"
        )
    for field, default, allowed in _WORD_PIECE_RULES:
        part, key = field.split(".")
        inside = _single(found, part)
        # The oldest files omit settings that are as in BERT.
        value = default
        if isinstance(inside, dict):
            value = inside.get(key, default)
        elif part == "pre_tokenizer" and part in found:
            value = inside
        if value not in allowed:
            raise otherwise(name, "a BERT", field, value)


def ids_of(found: Mapping[str, Any], name: str) -> dict[str, int]:
    """Returns the ids by token in a file, for vocabularies of lines.

    Raises:
        InputError: The ids are not 0, 1, 2 and so on. `name` is the file name.
    """
    vocab = found["model"].get("vocab")
    ids = dict(vocab) if isinstance(vocab, dict) else {}
    for token in added(found):
        ids.setdefault(token["content"], token.get("id"))
    numbers = list(ids.values())
    is_whole = all(type(x) is int for x in numbers)
    # Each token becomes a line.
    is_whole &= not any("\n" in piece for piece in ids)
    if not ids or not is_whole or sorted(numbers) != [*range(len(ids))]:
        raise InputError(
            f"{name}: `vocab` must map the tokens to 0, 1, 2 and so on, each "
            "once. Copy or download it again, or bring the model's vocab.txt. "
            f"Received: vocab={repr(ids)[:40]}"
        )
    return ids


# Field -> its default, and its allowed values.
_WORD_PIECE_RULES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("normalizer.type", "BertNormalizer", ("BertNormalizer",)),
    ("normalizer.clean_text", True, (True,)),
    ("pre_tokenizer.type", "BertPreTokenizer", ("BertPreTokenizer",)),
    ("model.unk_token", vocab_files.UNKNOWN, (vocab_files.UNKNOWN,)),
    (
        "model.continuing_subword_prefix",
        vocab_files.SUFFIX_INDICATOR,
        (vocab_files.SUFFIX_INDICATOR,),
    ),
    ("model.max_input_chars_per_word", 100, (100, 200)),
)


# ---- Byte-level BPE ----------------------------------------------------------


def read_byte_pairs(
    found: Mapping[str, Any], name: str
) -> tuple[dict[str, int], Merges]:
    """Returns the ids by token, unchecked, and the merges in a file.

    Raises:
        InputError: The merges are damaged. `name` is the file name.
    """
    model = found["model"]
    vocab = model.get("vocab")
    ids = dict(vocab) if isinstance(vocab, dict) else {}
    # Added tokens are special tokens, usually in the model as well.
    for token in added(found):
        ids.setdefault(token["content"], token.get("id"))
    return ids, _merges(model.get("merges"), name)


def check_byte_pairs(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError unless a file splits texts like a RoBERTa tokenizer."""
    if kind(found) != _BPE:
        raise InputError(
            f"{name}: the tokenizer must be a BPE. Give the vocabulary of a "
            "RoBERTa, or of other models the vocab.txt or the .model. "
            f"Received: model.type={kind(found)}"
        )
    for field, value in _otherwise(found):
        raise otherwise(name, "a RoBERTa", field, value)


def merges(data: str) -> Merges:
    """Returns the merged pairs of a BPE of `tokenizers`, by rank."""
    return _merges(json.loads(data)["model"].get("merges"), "tokenizers")


def _merges(found: Any, name: str) -> Merges:
    if not isinstance(found, list):
        raise InputError(
            f"{name}: `merges` must be a list. Copy or download the file "
            f"again. Received: merges={repr(found)[:40]}"
        )
    # Older files have "a b", newer files ["a", "b"].
    pairs = [x.split(" ") if isinstance(x, str) else x for x in found]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(pair):
            raise InputError(
                f"{name}: a merge is two tokens. Copy or download the file "
                f"again. Received: {repr(pair)[:40]}"
            )
    return tuple((left, right) for left, right in pairs)


def _otherwise(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns name and value of all fields that differ from RoBERTa's rules."""

    def value(path: str) -> Any:
        part: Any = found
        for key in path.split("."):
            part = part.get(key) if isinstance(part, dict) else None
        return part

    found = {**found, **{x: _single(found, x) for x in _SEQUENCES}}
    checks = [(path, value(path), allowed) for path, allowed in _RULES.items()]
    return [(path, x) for path, x, is_allowed in checks if not is_allowed(x)]


def _is_off(value: Any) -> bool:
    return not value


# Field -> whether its value is compatible with RoBERTa's tokenizer.
_RULES: dict[str, Callable[[Any], bool]] = {
    "normalizer": _is_off,
    "pre_tokenizer.type": lambda value: value == "ByteLevel",
    "pre_tokenizer.use_regex": lambda value: value is not False,
    "model.dropout": _is_off,
    "model.byte_fallback": _is_off,
    "model.ignore_merges": _is_off,
    "model.continuing_subword_prefix": _is_off,
    "model.end_of_word_suffix": _is_off,
    # Every byte is a token, so no unknown tokens can be fused.
    "model.fuse_unk": _is_off,
}
