"""Byte pairs in tokenizer.json, the one file that new folders hold.

It says all that a tokenizer of the library `tokenizers` does. What would split
text otherwise than `byte_pairs` is refused by name.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.storage import input_files

from etils import epath

_BPE = "BPE"
_START = b'"model"'

Merges = tuple[tuple[str, str], ...]


def is_tokenizer(data: bytes) -> bool:
    """Says whether JSON is that of a tokenizer, not of a vocab.json."""
    if _START not in data:
        return False
    try:
        found = json.loads(data)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("model"), dict)


def model_type(path: epath.PathLike) -> str | None:
    """Returns the type of the model in a JSON file; None of another file."""
    input_files.check_can_be_read_again(path)
    file = epath.Path(path)
    data = file.read_bytes() if file.exists() and not file.is_dir() else b""
    return kind(json.loads(data)) if is_tokenizer(data) else None


def kind(found: Mapping[str, Any]) -> str | None:
    """Returns the type of the model of a tokenizer; None if none is known."""
    model = found.get("model") or {}
    # The first files do not name it. Of the others only WordPiece has a limit
    # for words, and only BPE has merges.
    if "max_input_chars_per_word" in model:
        return model.get("type", "WordPiece")
    return model.get("type", _BPE if "merges" in model else None)


def read_byte_pairs(data: bytes, name: str) -> tuple[dict[str, int], Merges]:
    """Takes the ids by piece, unchecked, and the merges out of the file.

    Raises:
        InputError: It is no BPE, or one that splits text otherwise. `name` is
            that of the file.
    """
    found = json.loads(data)
    if kind(found) != _BPE:
        raise InputError(
            f"{name}: the tokenizer must be a BPE. Give the vocabulary of a "
            "RoBERTa, or of other models the vocab.txt or the .model. "
            f"Received: model.type={kind(found)}"
        )
    for field, value in _otherwise(found):
        raise InputError(
            f"{name} splits text otherwise than RoBERTa's byte pairs, by its "
            f"{field}. Give the tokenizer.json of a RoBERTa. "
            f"Received: {field}={json.dumps(value)[:60]}"
        )
    model = found["model"]
    vocab = model.get("vocab")
    ids = dict(vocab) if isinstance(vocab, dict) else {}
    # Those beside the model are special pieces, most often in it as well.
    for token in found.get("added_tokens") or []:
        if isinstance(token, dict) and isinstance(token.get("content"), str):
            ids.setdefault(token["content"], token.get("id"))
    return ids, _merges(model.get("merges"), name)


def merges(data: str | bytes, name: str) -> Merges:
    """Returns the pairs of a BPE in the file `name`, by rank."""
    return _merges(json.loads(data)["model"].get("merges"), name)


def _merges(found: Any, name: str) -> Merges:
    if not isinstance(found, list):
        raise InputError(
            f"{name}: `merges` must be a list. Copy or download the file "
            f"again. Received: merges={repr(found)[:40]}"
        )
    # Older files have "a b", newer ones ["a", "b"].
    pairs = [x.split(" ") if isinstance(x, str) else x for x in found]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(pair):
            raise InputError(
                f"{name}: a merge is two pieces. Copy or download the file "
                f"again. Received: {repr(pair)[:40]}"
            )
    return tuple((left, right) for left, right in pairs)


def _otherwise(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns name and value of what computes otherwise than RoBERTa's."""

    def value(path: str) -> Any:
        part: Any = found
        for key in path.split("."):
            part = part.get(key) if isinstance(part, dict) else None
        return part

    checks = [(path, value(path), allowed) for path, allowed in _RULES.items()]
    return [(path, x) for path, x, is_allowed in checks if not is_allowed(x)]


def _is_off(value: Any) -> bool:
    return not value


# What RoBERTa's tokenizer says of itself -> whether a value is like it.
_RULES: dict[str, Callable[[Any], bool]] = {
    "normalizer": _is_off,
    "pre_tokenizer.type": lambda value: value == "ByteLevel",
    "pre_tokenizer.add_prefix_space": _is_off,
    "pre_tokenizer.use_regex": lambda value: value is not False,
    "model.dropout": _is_off,
    "model.byte_fallback": _is_off,
    "model.ignore_merges": _is_off,
    "model.continuing_subword_prefix": _is_off,
    "model.end_of_word_suffix": _is_off,
    # Every byte is a piece: nothing is unknown, and there is nothing to fuse.
    "model.fuse_unk": _is_off,
}


def lower_cases(found: Mapping[str, Any]) -> bool | None:
    """Returns whether the tokenizer lower-cases; None if it does not say."""
    return (found.get("normalizer") or {}).get("lowercase")
