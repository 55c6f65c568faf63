"""The file tokenizer_config.json: what a vocabulary's own files do not hold.

These are the tokens added to a tokenizer and its settings, in the fields that
transformers gives a file of this name. Next to a vocabulary kept here the file
has only what is not the default, and is absent where all is.

    {"strip_accents": false, "added_tokens_decoder": {"30522": {...}}}
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.errors import InputError
from bert_tf.storage import input_files
from bert_tf.vocabularies import added_tokens, tokenizer_json

from etils import epath

FILE = "tokenizer_config.json"

# The settings and their defaults. `strip_accents` is None for "as
# `do_lower_case`".
DEFAULTS: dict[str, bool | None] = {
    "strip_accents": None,
    "tokenize_chinese_chars": True,
    "add_prefix_space": False,
}

_DECODER = "added_tokens_decoder"

# Other files of transformers. Versions before 5 write the last two.
_TOKENIZER = "tokenizer.json"
_IDS = "added_tokens.json"
_SPECIAL = "special_tokens_map.json"
# All that are read next to a vocabulary.
FILES = (FILE, _TOKENIZER, _IDS, _SPECIAL)

# Setting -> the step of a tokenizer.json that has it, and its name there.
_IN_TOKENIZER = {
    "strip_accents": ("BertNormalizer", "strip_accents"),
    "tokenize_chinese_chars": ("BertNormalizer", "handle_chinese_chars"),
    "add_prefix_space": ("ByteLevel", "add_prefix_space"),
}


class Config(NamedTuple):
    """What was added to a tokenizer, and how it was set.

    Attributes:
        added: The tokens.
        settings: By name, those that are not the default.
        tokenizer: The content of the tokenizer.json next to the vocabulary, or
            of the one that is the vocabulary; None if there is none.
        name: Its path.
    """

    added: added_tokens.Tokens = ()
    settings: Mapping[str, Any] = {}
    tokenizer: Mapping[str, Any] | None = None
    name: str = ""


def to_json(added: added_tokens.Tokens, settings: Mapping[str, Any]) -> bytes:
    """Returns what `parse` reads; nothing where all is the default."""
    found: dict[str, Any] = {
        name: value
        for name, value in settings.items()
        if value != DEFAULTS[name]
    }
    if added:
        found[_DECODER] = added_tokens.to_decoder(added)
    if not found:
        return b""
    return json.dumps(found, ensure_ascii=False, indent=2).encode() + b"\n"


def parse(data: bytes, name: str) -> Config:
    """Reads what `to_json` wrote; InputError, by `name`, if it is damaged."""
    found = _json(data, name)
    said = _said(found, name)
    settings = {key: said[key] for key in said if said[key] != DEFAULTS[key]}
    return Config(_decoder(found, name), settings)


def split(
    contents: Mapping[str, bytes],
) -> tuple[dict[str, bytes], bytes | None]:
    """Returns the kind's own files, and what `parse` reads, if anything."""
    own = {name: data for name, data in contents.items() if name != FILE}
    return own, contents.get(FILE)


# ---- Reading folders ---------------------------------------------------------


def beside(
    path: epath.PathLike, is_named: bool, names: tuple[str, ...]
) -> Config:
    """Reads what the files next to the vocabulary at `path` say of it.

    Args:
        path: A file of the vocabulary, or a tokenizer.json of any name.
        is_named: Whether the file has the name of its kind. Next to a file of
            another name nothing is looked for: the folder may be of another
            model.
        names: The settings that its kind has.

    Raises:
        InputError: A file is damaged, or two contradict each other.
    """
    place = epath.Path(path)
    folder, name = place.parent, str(path)
    whole = tokenizer_json.read(path)
    is_whole = whole is not None
    if not is_named and not (is_whole and place.name == _TOKENIZER):
        config: dict[str, Any] = {}
    else:
        config = _read(folder, FILE) or {}
    if not is_whole and is_named:
        name = str(folder / _TOKENIZER)
        whole = _read(folder, _TOKENIZER)
        if not isinstance(whole, dict) or not isinstance(
            whole.get("model"), dict
        ):
            whole = None
    config_name = str(folder / FILE)
    settings = _merged(names, whole, config, (name, config_name))
    if whole is not None:
        tokens = added_tokens.of_tokenizer(whole, name)
        return Config(tokens, settings, whole, name)
    tokens = _decoder(config, config_name)
    if not tokens and is_named:
        ids = _read(folder, _IDS)
        if ids is not None:
            tokens = added_tokens.of_ids(
                ids, _read(folder, _SPECIAL), str(folder / _IDS)
            )
    return Config(tokens, settings)


def _read(folder: epath.Path, name: str) -> Any:
    path = folder / name
    if not path.exists() or path.is_dir():
        return None
    input_files.check_can_be_read_again(path)
    return _json(path.read_bytes(), str(path))


def _json(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is not whole JSON: {error}. Copy or download it again."
        ) from error


def _decoder(config: Any, name: str) -> added_tokens.Tokens:
    found = config.get(_DECODER) if isinstance(config, dict) else None
    return added_tokens.of_decoder(found, name) if found else ()


def _said(config: Any, name: str) -> dict[str, bool]:
    """Returns the settings of a tokenizer_config.json, but those left open."""
    fields = config if isinstance(config, dict) else {}
    # What keeps the accents of sentence pieces, which lose them here.
    if fields.get("keep_accents"):
        raise InputError(
            f"{name}: sentence pieces are found in texts without accents. Give "
            "a model that was trained so, or, if this one was, correct the "
            f"file. Received: keep_accents={fields['keep_accents']!r}"
        )
    found = {key: fields.get(key) for key in DEFAULTS}
    for key, value in found.items():
        if value is not None and type(value) is not bool:
            raise InputError(
                f"{name}: {key} must be true or false. Correct the file, or "
                f"save the tokenizer again. Received: {key}={value!r}"
            )
    return {key: value for key, value in found.items() if value is not None}


def _merged(
    names: tuple[str, ...],
    whole: Mapping[str, Any] | None,
    config: Any,
    files: tuple[str, str],
) -> dict[str, Any]:
    """Joins the settings of both files; `files` are their names."""
    said = _said(config, files[1])
    steps = []
    if whole is not None:
        steps = tokenizer_json.normalizers(whole)
        steps += tokenizer_json.pre_tokenizers(whole)
    found = {}
    for name in names:
        kind, key = _IN_TOKENIZER[name]
        values = [x.get(key) for x in steps if x.get("type") == kind]
        value = next((x for x in values if type(x) is bool), None)
        other = said.get(name)
        if None not in (value, other) and value != other:
            raise InputError(
                f"{files[0]} and {files[1]} must not contradict each other. "
                "Save the tokenizer again, or correct one of them. Received: "
                f"{key}={json.dumps(value)} and {name}={json.dumps(other)}"
            )
        value = other if value is None else value
        if value not in (None, DEFAULTS[name]):
            found[name] = value
    lower = config.get("do_lower_case") if isinstance(config, dict) else None
    if lower is None and whole is not None:
        lower = tokenizer_json.lower_cases(whole)
    # As by default.
    if "strip_accents" in found and found["strip_accents"] == lower:
        del found["strip_accents"]
    return found
