"""The file tokenizer.json, the one that new folders hold.

It says all that a tokenizer of the library `tokenizers` does. What would split
text otherwise than the kind of its pieces does is refused by name. Here are
word pieces and byte pairs; `unigram_json` has sentence pieces.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import vocab_files
from bert_tf.errors import InputError
from bert_tf.storage import input_files

from etils import epath

_WORD_PIECE, _BPE, UNIGRAM = "WordPiece", "BPE", "Unigram"
_START = b'"model"'

Merges = tuple[tuple[str, str], ...]


def is_tokenizer(data: bytes) -> bool:
    """Says whether JSON is that of a tokenizer, not of a vocab.json."""
    if _START not in data:
        return False
    try:
        found = json.loads(data)
    # Also of lists in lists without end.
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("model"), dict)


def model_type(path: epath.PathLike) -> str | None:
    """Returns the type of the model in a JSON file; None of another file."""
    input_files.check_can_be_read_again(path)
    file = epath.Path(path)
    data = file.read_bytes() if file.exists() and not file.is_dir() else b""
    return kind(json.loads(data)) if is_tokenizer(data) else None


def read(path: epath.PathLike) -> dict[str, Any] | None:
    """Returns what a tokenizer.json of any name holds; None of another file.

    Its name ends in .json.
    """
    if not os.fspath(path).endswith(".json"):
        return None
    input_files.check(path, "vocab_file")
    input_files.check_can_be_read_again(path)
    data = epath.Path(path).read_bytes()
    return json.loads(data) if is_tokenizer(data) else None


def kind(found: Mapping[str, Any]) -> str | None:
    """Returns the type of the model of a tokenizer; None if none is known."""
    model = found.get("model") or {}
    # The first files do not name it. Of the others only WordPiece has a limit
    # for words, only BPE has merges, and only Unigram a list.
    if "max_input_chars_per_word" in model:
        return model.get("type", _WORD_PIECE)
    if isinstance(model.get("vocab"), list):
        return model.get("type", UNIGRAM)
    return model.get("type", _BPE if "merges" in model else None)


def lower_cases(found: Mapping[str, Any]) -> bool | None:
    """Returns whether a tokenizer lower-cases; None if it has no casing."""
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
    """Returns the steps by which a tokenizer cuts texts into words."""
    return _steps(_object(found, "pre_tokenizer"), "pretokenizers")


def post_processors(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the steps by which a tokenizer lays out rows."""
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


def added(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the pieces beside the model, most often in it as well."""
    parts = found.get("added_tokens")
    return [
        token
        for token in (parts if isinstance(parts, list) else [])
        if isinstance(token, dict) and isinstance(token.get("content"), str)
    ]


def otherwise(path: str, owner: str, field: str, value: Any) -> InputError:
    """Returns the error of a file that does not split text as `owner`."""
    return InputError(
        f"{path} splits text otherwise than {owner}, by its {field}. Give the "
        f"tokenizer.json of {owner}, or the vocabulary in its own files, "
        "without this one next to them. "
        f"Received: {field}={json.dumps(value)[:60]}"
    )


# ---- Word pieces -------------------------------------------------------------


def read_word_pieces(found: Mapping[str, Any], name: str) -> dict[str, int]:
    """Takes the ids by piece out of a file.

    Raises:
        InputError: It is no WordPiece, or one that splits text otherwise, or
            has not the ids 0, 1, 2 and so on. `name` is that of the file.
    """
    check_word_pieces(found, name)
    return ids_of(found, name)


def check_word_pieces(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError unless a file splits texts as a BERT's tokenizer.

    `tokenizer_config` reads its settings. The limit of words is no error: they
    are unknown above 100 characters there and above 200 here, as in the
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
        inside = found.get(part)
        steps = normalizers(found)
        if part == "normalizer" and len(steps) == 1:
            inside = steps[0]
        # Files of the first versions leave out what is as in BERT.
        value = default
        if isinstance(inside, dict):
            value = inside.get(key, default)
        elif part == "pre_tokenizer" and part in found:
            value = inside
        if value not in allowed:
            raise otherwise(name, "a BERT", field, value)


def ids_of(found: Mapping[str, Any], name: str) -> dict[str, int]:
    """Takes the ids by piece out of a file, whose pieces are lines of ours.

    Raises:
        InputError: They are not 0, 1, 2 and so on. `name` is that of the file.
    """
    vocab = found["model"].get("vocab")
    ids = dict(vocab) if isinstance(vocab, dict) else {}
    for token in added(found):
        ids.setdefault(token["content"], token.get("id"))
    numbers = list(ids.values())
    is_whole = all(type(x) is int for x in numbers)
    # A line is a piece.
    is_whole &= not any("\n" in piece for piece in ids)
    if not ids or not is_whole or sorted(numbers) != [*range(len(ids))]:
        raise InputError(
            f"{name}: `vocab` must map the pieces to 0, 1, 2 and so on, each "
            "once. Copy or download it again, or bring the model's vocab.txt. "
            f"Received: vocab={repr(ids)[:40]}"
        )
    return ids


# Field -> what it means where it is left out, what it may be.
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


# ---- Byte pairs --------------------------------------------------------------


def read_byte_pairs(data: bytes, name: str) -> tuple[dict[str, int], Merges]:
    """Takes the ids by piece, unchecked, and the merges out of the file.

    Raises:
        InputError: It is no BPE, or one that splits text otherwise. `name` is
            that of the file.
    """
    found = json.loads(data)
    check_byte_pairs(found, name)
    model = found["model"]
    vocab = model.get("vocab")
    ids = dict(vocab) if isinstance(vocab, dict) else {}
    # Those beside the model are special pieces, most often in it as well.
    for token in added(found):
        ids.setdefault(token["content"], token.get("id"))
    return ids, _merges(model.get("merges"), name)


def check_byte_pairs(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError unless a file splits texts as a RoBERTa's tokenizer."""
    if kind(found) != _BPE:
        raise InputError(
            f"{name}: the tokenizer must be a BPE. Give the vocabulary of a "
            "RoBERTa, or of other models the vocab.txt or the .model. "
            f"Received: model.type={kind(found)}"
        )
    for field, value in _otherwise(found):
        raise otherwise(name, "a RoBERTa", field, value)


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
    "pre_tokenizer.use_regex": lambda value: value is not False,
    "model.dropout": _is_off,
    "model.byte_fallback": _is_off,
    "model.ignore_merges": _is_off,
    "model.continuing_subword_prefix": _is_off,
    "model.end_of_word_suffix": _is_off,
    # Every byte is a piece: nothing is unknown, and there is nothing to fuse.
    "model.fuse_unk": _is_off,
}
