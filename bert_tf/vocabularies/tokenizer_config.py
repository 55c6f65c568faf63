"""The file tokenizer_config.json: what a vocabulary's own files do not hold.

These are the tokens added to a tokenizer and its settings, in the fields that
transformers gives a file of this name. Next to a vocabulary kept here the file
has only what is not the default, and is absent where all is.

    {"strip_accents": false, "added_tokens_decoder": {"30522": {...}}}
"""

import copy
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf import terminals
from bert_tf.errors import InputError
from bert_tf.storage import input_files, json_files
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

DECODER = "added_tokens_decoder"

# Other files of transformers. Versions before 5 write the last two.
_IDS = "added_tokens.json"
SPECIAL = "special_tokens_map.json"
# All that are read next to a vocabulary.
FILES = (FILE, tokenizer_json.FILE, _IDS, SPECIAL)

# The config of a model of transformers, which may say the class.
MODEL = "config.json"

# The classes of transformers that follow tokenizer.json. Others, such as
# BertTokenizer, take their settings from tokenizer_config.json, and what it
# does not set from the class.
GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
_OF_CLASSES = {**DEFAULTS, "do_lower_case": True}

# Setting -> the step of a tokenizer.json that has it, and its name there.
_IN_TOKENIZER = {
    "strip_accents": ("BertNormalizer", "strip_accents"),
    "tokenize_chinese_chars": ("BertNormalizer", "handle_chinese_chars"),
    "add_prefix_space": ("ByteLevel", "add_prefix_space"),
    "do_lower_case": ("BertNormalizer", "lowercase"),
}


class Config(NamedTuple):
    """The added tokens and the settings of a tokenizer.

    Attributes:
        added: The added tokens. `read` leaves the ids of special tokens that
            are only listed to `added_tokens.with_ids`.
        settings: The settings that are not the default, by name.
        tokenizer: The content of the tokenizer.json next to the vocabulary, or
            of the vocabulary itself; None if neither exists.
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
        found[DECODER] = added_tokens.to_decoder(added)
    if not found:
        return b""
    return json.dumps(found, ensure_ascii=False, indent=2).encode() + b"\n"


def meant(settings: Mapping[str, Any], lower: bool | None) -> dict[str, Any]:
    """Returns settings without accents that are stripped, or not, by default.

    `lower` is whether text is lower-cased; None if that is unknown.
    """
    found = dict(settings)
    if found.get("strip_accents") == lower:
        found.pop("strip_accents", None)
    return found


def parse(data: bytes, name: str) -> Config:
    """Reads what `to_json` wrote; InputError, by `name`, if it is damaged."""
    found = json_files.parse_object(data, name)
    own = _settings(found, name)
    settings = {x: own[x] for x in DEFAULTS if x in own}
    settings = {x: y for x, y in settings.items() if y != DEFAULTS[x]}
    return Config(_decoder(found, name), settings)


def split(
    contents: Mapping[str, bytes],
) -> tuple[dict[str, bytes], bytes | None]:
    """Returns the kind's own files, and what `parse` reads, if anything."""
    own = {name: data for name, data in contents.items() if name != FILE}
    return own, contents.get(FILE)


# ---- Reading folders ---------------------------------------------------------


def read(
    path: epath.PathLike, is_named: bool, names: tuple[str, ...], model: str
) -> Config:
    """Reads the settings in the files next to the vocabulary at `path`.

    Args:
        path: A file of the vocabulary, or a tokenizer.json of any name.
        is_named: Whether the file has the name of its kind. Files next to one
            of another name are ignored: they may belong to another model.
        names: The settings that its kind has.
        model: The type of its kind's model in a tokenizer.json, "" of kinds
            without. A tokenizer.json of another type is ignored.

    Raises:
        InputError: A file is damaged.
    """
    place = epath.Path(path)
    folder, name = place.parent, str(path)
    whole = tokenizer_json.read(path)
    is_whole = whole is not None
    has_more = is_named or (is_whole and place.name == tokenizer_json.FILE)
    if not is_whole and is_named:
        name = str(folder / tokenizer_json.FILE)
        whole = _read_tokenizer(folder, model, place.name)
    config: dict[str, Any] = {}
    if has_more:
        config = _read_object(folder, FILE)
    if whole is not None:
        about = _read_object(folder, MODEL) if has_more else {}
        config = with_class(config, about)
    config_name = str(folder / FILE)
    settings = _merge(names, whole, config, (name, config_name))
    named = added_tokens.named(config, config_name)
    own: added_tokens.Tokens = ()
    if whole is not None:
        own = added_tokens.of_tokenizer(whole, name)
    # As in transformers: a decoder overrides tokenizer.json, which overrides
    # the older files. They are read only if there is no decoder.
    before, after = own, _decoder(config, config_name)
    if has_more and DECODER not in config:
        special = _read_object(folder, SPECIAL)
        named |= added_tokens.named(special, str(folder / SPECIAL))
        data = _read_data(folder, _IDS)
        if data is not None:
            file = str(folder / _IDS)
            ids = json_files.parse(data, file)
            before, after = added_tokens.of_ids(ids, named, file), own
    found = named | {x.content: x for x in (*before, *after)}
    tokens = tuple(found.values())
    return Config(tokens, settings, whole, "" if whole is None else name)


def with_class(
    config: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a tokenizer_config.json with the class that config.json says.

    Args:
        config: The content of the tokenizer_config.json.
        model: The content of the config.json next to it, {} without one.
    """
    kind = config.get("tokenizer_class") or model.get("tokenizer_class")
    # Types of models have classes.
    if not kind and not model.get("model_type"):
        kind = GENERIC[-1]
    return {**config, "tokenizer_class": kind}


def lower_cases(
    config: Mapping[str, Any], whole: Mapping[str, Any] | None
) -> bool | None:
    """Returns whether text is lower-cased; None if neither file says so.

    Args:
        config: The content of a tokenizer_config.json: see `with_class`.
        whole: The content of the tokenizer.json next to it.
    """
    first = _counting(config, whole).get("do_lower_case")
    second = None if whole is None else tokenizer_json.lower_cases(whole)
    if config.get("tokenizer_class") in GENERIC:
        first, second = second, first
    return second if first is None else first


def overwrite(
    whole: Mapping[str, Any], config: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Returns a tokenizer.json with the settings that replace its settings.

    For the arguments see `lower_cases`.
    """
    parts = ("normalizer", "pre_tokenizer")
    found = {**whole, **{x: copy.deepcopy(whole.get(x)) for x in parts}}
    counting = _counting(config, whole)
    for name in _in_tokenizer(whole):
        kind, key = _IN_TOKENIZER[name]
        for step in _steps(found):
            if step.get("type") == kind:
                step[key] = counting[name]
    return found


def _read_data(folder: epath.Path, name: str) -> bytes | None:
    path = folder / name
    if not path.exists() or path.is_dir():
        return None
    input_files.check_can_be_read_again(path)
    return path.read_bytes()


def _read_object(folder: epath.Path, name: str) -> dict[str, Any]:
    """Returns the content of a JSON file; {} without the file."""
    data = _read_data(folder, name)
    path = str(folder / name)
    return {} if data is None else json_files.parse_object(data, path)


def _read_tokenizer(
    folder: epath.Path, model: str, vocab: str
) -> Mapping[str, Any] | None:
    """Returns the tokenizer.json in a folder; None unless it is of `model`."""
    data = _read_data(folder, tokenizer_json.FILE)
    path = folder / tokenizer_json.FILE
    whole = None if data is None else tokenizer_json.parse(data)
    if data is not None and whole is None:
        json_files.parse(data, str(path))  # Another library's.
    if whole is None or not model:
        return whole
    kind = tokenizer_json.kind(whole)
    if kind not in (model, None):
        terminals.warn_once(
            f"{path} is ignored: its model is {kind}, and {vocab} is for "
            f"{model}."
        )
        return None
    return whole


def _decoder(config: Mapping[str, Any], name: str) -> added_tokens.Tokens:
    found = config.get(DECODER)
    return added_tokens.of_decoder(found, name) if found else ()


def _settings(config: Mapping[str, Any], name: str) -> dict[str, bool]:
    """Returns the settings that a tokenizer_config.json has."""
    # Our SentencePiece tokenizer always strips accents.
    if config.get("keep_accents"):
        raise InputError(
            f"{name}: sentence pieces are found in texts without accents. Give "
            "a model that was trained so, or, if this one was, correct the "
            f"file. Received: keep_accents={config['keep_accents']!r}"
        )
    found = {key: config.get(key) for key in (*DEFAULTS, "do_lower_case")}
    for key, value in found.items():
        if value is not None and type(value) is not bool:
            raise InputError(
                f"{name}: {key} must be true or false. Correct the file, or "
                f"save the tokenizer again. Received: {key}={value!r}"
            )
    return {key: value for key, value in found.items() if value is not None}


def _merge(
    names: tuple[str, ...],
    whole: Mapping[str, Any] | None,
    config: Mapping[str, Any],
    files: tuple[str, str],
) -> dict[str, Any]:
    """Joins the settings of both files, whose names are `files`.

    Where they contradict each other, the value counts that transformers uses.
    """
    ours = _settings(config, files[1])
    both, lower = _counting(config, whole), lower_cases(config, whole)
    is_generic = config.get("tokenizer_class") in GENERIC
    for name, their in ({} if whole is None else _in_tokenizer(whole)).items():
        other = ours.get(name, their) if is_generic else their
        # The default is to strip accents where text is lower-cased.
        values = [lower if x is None else x for x in (both[name], other)]
        if values[0] != values[1]:
            winner, loser = files if is_generic else files[::-1]
            first, second = map(json.dumps, values)
            terminals.warn_once(
                f"{winner} counts for {name}={first}, as in transformers: "
                f"{loser} has {second}."
                if name in ours
                else f"{winner} does not set {name}, so {first} counts, the "
                f"default of transformers: {loser} has {second}. If the model "
                "was trained with that, set it."
            )
    if whole is not None and "Albert" in str(config.get("tokenizer_class")):
        values = [ours.get("do_lower_case", True)]
        values += [bool(tokenizer_json.lower_cases(whole)), lower]
        if values[0] != values[1]:
            last, first, counts = map(json.dumps, values)
            terminals.warn_once(
                f"do_lower_case={counts} counts for {files[0]}: {files[1]} and "
                f"so transformers 5 have {last}, and transformers 4 {first}."
            )
    found = {x: both[x] for x in names if x in both and both[x] != DEFAULTS[x]}
    return meant(found, lower)


def _counting(
    config: Mapping[str, Any], whole: Mapping[str, Any] | None
) -> dict[str, bool | None]:
    """Returns the settings that count of those that either file has."""
    ours = {x: config[x] for x in _OF_CLASSES if type(config.get(x)) is bool}
    theirs = {} if whole is None else _in_tokenizer(whole)
    if config.get("tokenizer_class") in GENERIC:
        return {**ours, **theirs}
    return {**{x: _OF_CLASSES[x] for x in theirs}, **ours}


def _in_tokenizer(whole: Mapping[str, Any]) -> dict[str, bool | None]:
    """Returns the settings that a tokenizer.json has."""
    found: dict[str, bool | None] = {}
    for name, (kind, key) in _IN_TOKENIZER.items():
        steps = [x for x in _steps(whole) if x.get("type") == kind]
        values = [x[key] for x in steps if type(x.get(key)) is bool]
        if steps:
            found[name] = values[0] if values else _OF_CLASSES[name]
    return found


def _steps(whole: Mapping[str, Any]) -> list[dict[str, Any]]:
    steps = tokenizer_json.normalizers(whole)
    return steps + tokenizer_json.pre_tokenizers(whole)
