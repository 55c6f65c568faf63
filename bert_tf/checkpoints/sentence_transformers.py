"""Reads how a sentence-transformers model turns texts into vectors.

`modules.json` next to a Hugging Face model lists the steps: the model, pooling
(`1_Pooling/config.json`), and optionally normalization to unit length. The
maximum sequence length is in `sentence_bert_config.json`, or since version 6 in
`tokenizer_config.json`.
"""

import contextlib
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints import (
    huggingface,
    huggingface_names,
    huggingface_tokenizer,
    huggingface_weights,
    opened,
)
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, json_files
from bert_tf.vocabularies import tokenizer_config

import tensorflow as tf
from absl import logging

MODULES = "modules.json"
_POOLING = "config.json"
_NORMALIZE = "config.json"
# Early versions named it after the kind of model.
_OF_MODEL = "sentence_*_config.json"
_OF_ALL = huggingface_names.SBERT_FILE
# Patterns of the files that are read in addition to any model's.
FILES = (MODULES, _OF_MODEL, _OF_ALL, f"[0-9]_*/{_POOLING}")
# Prefix of pooling modes before version 6; the value is true if one is used.
_MODE = "pooling_mode_"
_MODES = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
_WAY_OUT = "Give --unit, and maybe --normalize, to make other vectors."


@dataclasses.dataclass(frozen=True)
class Vectors:
    """How a text becomes a vector, of length 1 if `normalize` is set.

    The unit (of options.UNITS) is "mean" or "cls" here. `max_seq_length`
    counts tokens; `features` is a key of feature_layers.CHOICES.
    """

    unit: str
    normalize: bool
    max_seq_length: int
    features: str


def choose(
    path: str,
    given: Mapping[str, Any],
    default: Vectors,
    known: Mapping[str, Any] | None = None,
) -> Vectors:
    """Returns the given values, then the model folder's, then the defaults.

    `given` maps attribute names to values or None; `known` are the folder's
    settings if `settings` has read them before. With a unit other than the
    folder's, only the length is taken from the folder. Raises InputError if no
    unit is passed and the folder's is not supported.
    """
    said = {name: x for name, x in given.items() if x is not None}
    own = dict(settings(path) if known is None else known)
    problem, unit = own.pop("problem", None), said.get("unit")
    if problem and (unit is None or "max_seq_length" not in own):
        raise InputError(problem)
    if unit not in (None, own.get("unit")):
        own = {name: own[name] for name in own if name == "max_seq_length"}
    taken = {name: x for name, x in own.items() if name not in said}
    if taken:
        logging.info(
            "As %s says: %s.",
            os.path.join(find(path) or "", MODULES),
            ", ".join(f"{name}={value}" for name, value in taken.items()),
        )
    return dataclasses.replace(default, **taken, **said)


def settings(path: str) -> dict[str, Any]:
    """Returns the attributes of Vectors that a model's folder sets, if any.

    If they are not supported, the result has its length and the `problem`.
    """
    try:
        root = find(path)
        return {} if root is None else dataclasses.asdict(read(root))
    except InputError as error:
        found: dict[str, Any] = {"problem": str(error)}
    with contextlib.suppress(InputError):
        found["max_seq_length"] = _longest(find(path) or path)
    return found


def find(path: str) -> str | None:
    """Returns the sentence-transformers folder of a model; None if no such.

    The path is that folder, its `0_Transformer`, or a file of weights.
    """
    if os.path.basename(path) in huggingface_weights.FILES:
        path = os.path.dirname(path) or "."
    path = path.rstrip("/")
    if not path or not tf.io.gfile.isdir(path):
        return None
    above, name = os.path.split(path)
    for root, place in ((path, ""), (above or ".", name)):
        modules = _modules(root)
        if modules and str(modules[0].get("path", "")).strip("/") == place:
            return root
    return None


def read(root: str) -> Vectors:
    """Returns how a model makes vectors; InputError if not supported."""
    modules = _modules(root)
    kinds = [str(x.get("type")).rpartition(".")[2] for x in modules]
    rest = {*kinds[2:]} - {"Normalize"}
    if kinds[:2] != ["Transformer", "Pooling"] or rest:
        raise InputError(
            f"{os.path.join(root, MODULES)} makes vectors by "
            f"{', '.join(kinds)}. Supported are Transformer, Pooling, and "
            f"then Normalize or nothing. {_WAY_OUT}"
        )
    folders = [os.path.join(root, str(x.get("path", ""))) for x in modules]
    _check_model(root, folders[0])
    huggingface_tokenizer.warn_of_side(folders[0], "encoder")
    for folder in folders[2:]:
        _check_normalize(folder)
    return Vectors(_unit(folders[1]), len(kinds) > 2, _longest(root), "last")


def _modules(root: str) -> list[dict[str, Any]]:
    path = os.path.join(root, MODULES)
    data = opened.read_bytes(path)
    if data is None:
        return []
    modules = json_files.parse(data, path)
    if not isinstance(modules, list) or not all(
        isinstance(module, dict) for module in modules
    ):
        raise InputError(f"{path} must hold a list of JSON objects.")
    return modules


def _unit(folder: str) -> str:
    """Returns the pooling mode in a pooling module's folder."""
    said = opened.read_json(folder, _POOLING)
    modes = said.get("pooling_mode")
    if modes is None:
        modes = [
            _MODES.get(key.removeprefix(_MODE), key.removeprefix(_MODE))
            for key, is_used in said.items()
            if key.startswith(_MODE) and is_used
        ]
    modes = [modes] if isinstance(modes, str) else list(modes)
    # Without any true key, the default is the mean.
    modes = modes or ["mean"]
    if modes not in (["mean"], ["cls"]):
        raise InputError(
            f"{os.path.join(folder, _POOLING)} makes a vector from a text's "
            f"tokens by {' and '.join(map(str, modes))}. Supported are their "
            f"mean and the vector of [CLS]. {_WAY_OUT}"
        )
    return modes[0]


def _check_normalize(folder: str) -> None:
    """Raises InputError if anything but the text's vector is normalized."""
    said = opened.read_json(folder, _NORMALIZE)
    names = ("module_input_name", "module_output_name")
    for name in names:
        what = said.get(name) or "sentence_embedding"
        if what != "sentence_embedding":
            raise InputError(
                f"{os.path.join(folder, _NORMALIZE)} normalizes {what}, "
                f"which is not computed here. {_WAY_OUT}"
            )


def _model_file(folder: str) -> str:
    """Returns the name of the file of the model's settings."""
    system = file_systems.find_backend(folder)
    usual = huggingface_names.SBERT_MODEL_FILE
    if not system.isdir(folder) or system.exists(os.path.join(folder, usual)):
        return usual
    pattern = os.path.join(file_systems.glob_escape(folder), _OF_MODEL)
    return os.path.basename(min(system.glob(pattern), default=usual))


def _check_model(root: str, folder: str) -> None:
    """Raises InputError if the model preprocesses texts in unsupported ways."""
    problem = None
    name = _model_file(folder)
    path = os.path.join(folder, name)
    said = opened.read_json(
        folder, name, modality_config=dict, processing_kwargs=dict
    )
    is_cased = huggingface_tokenizer.lower_cases(folder) is False
    if said.get("do_lower_case") and is_cased:
        problem = (
            f"{path} lower-cases texts for a cased vocabulary, and keeps "
            "accents"
        )
    output = (said.get("modality_config") or {}).get("text")
    output = output if isinstance(output, dict) else {}
    taken = output.get("method_output_name", "last_hidden_state")
    if taken != "last_hidden_state":
        problem = f"{path} takes the {taken}"
    if options := huggingface_names.tokenizer_options(said):
        problem = f"{path} passes {options} to the tokenizer"
    of_all = opened.read_json(
        root, _OF_ALL, prompts=dict, default_prompt_name=str
    )
    if prompt := huggingface_names.default_prompt(of_all):
        problem = (
            f"{os.path.join(root, _OF_ALL)} puts {prompt!r} before each text"
        )
    if of_all.get("truncate_dim"):
        problem = (
            f"{os.path.join(root, _OF_ALL)} cuts vectors to "
            f"{of_all['truncate_dim']} values"
        )
    if problem:
        raise InputError(f"{problem}, which is not done here. {_WAY_OUT}")


def _longest(root: str) -> int:
    (first, *_) = _modules(root)
    folder = os.path.join(root, str(first.get("path", "")))
    of_model, of_tokenizer = (
        huggingface_tokenizer.read_length(folder, name, key)
        for name, key in (
            (_model_file(folder), "max_seq_length"),
            (tokenizer_config.FILE, "model_max_length"),
        )
    )
    length = of_tokenizer if of_model is None else of_model
    positions = _positions(folder)
    return int(positions if length is None else min(length, positions))


def _positions(folder: str) -> int:
    """Returns how many positions a model reads; of RoBERTa, some are unused."""
    values = opened.read_json(folder, huggingface.CONFIG)
    try:
        values = huggingface_names.with_own_kind(values)
        return huggingface_names.to_config(values).max_position_embeddings
    except InputError as error:
        path = os.path.join(folder, huggingface.CONFIG)
        raise InputError(f"{path}: {error}") from error
