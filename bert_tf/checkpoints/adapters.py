"""Reads and writes LoRA adapters in the files of PEFT."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import (
    huggingface_names,
    huggingface_weights,
    opened,
)
from bert_tf.encoders import families, foreign, lora_layers
from bert_tf.errors import InputError, counted
from bert_tf.storage import weight_files

import numpy as np
import tensorflow as tf
from absl import logging
from safetensors import numpy as safetensors_numpy

_WEIGHTS, _CONFIG = "adapter_model.safetensors", weight_files.ADAPTER

# A tensor of peft: the module that has LoRA, and the matrix.
_BASE = "base_model.model."
_NAME = re.compile(r"(.+)\.lora_([AB])(?:\.default)?\.weight")
_WAY_OUT = "Merge the adapter into its model with peft, by merge_and_unload."
# Heads have the same names of tensors in several classes of transformers.
_TASKS = {
    "classification": "SEQ_CLS",
    "tagging": "TOKEN_CLS",
    "span": "QUESTION_ANS",
}


def _modules(model: Any) -> list[tuple[str, str]]:
    """Returns pairs of a dense layer and the module that it is in transformers.

    The pooler is another module with each head; the encoder's own comes first.
    """
    family = families.find(model.config)
    theirs = family.huggingface
    if theirs is None:
        return [
            (x, x.replace("/", ".")) for x in lora_layers.dense_layers(model)
        ]
    rows = [*theirs.rows]
    for head in theirs.heads.values():
        rows += [row for row in head.rows if row.ours in family.pooler]
    numbers = family.numbers(model.config)
    return [
        (found.ours.removesuffix("/kernel"), found.theirs[: -len(".weight")])
        for row in rows
        if row.ours.endswith("/kernel")
        for found in foreign.expand([row], numbers)
    ]


def _prefix(model: Any) -> str:
    """Returns the prefix of the encoder's modules in a model with a head."""
    theirs = families.find(model.config).huggingface
    return theirs.prefix if theirs else ""


def save(
    model: Any,
    folder: str | os.PathLike[str],
    has_head: bool = True,
    with_head: Any = None,
) -> None:
    """Writes the matrices into a new folder; see `save_lora` of an encoder.

    Of the model `with_head`, whose encoder it is, also writes the head.
    """
    lora = lora_layers.enabled_lora(model)
    bare = "" if has_head else _prefix(model)
    chosen = lora_layers.targets_of(model, lora)
    tensors, targets, saved = {}, set(), set()
    kernels, modules = set(), set()
    if with_head:
        tensors = _head_tensors(with_head)
        rows = _head_rows(model, with_head.head)
        kernels = {row.ours.removesuffix("/kernel") for row in rows.values()}
        modules = {theirs.partition(".")[0] for theirs in rows}
    # A pooler has the names of all heads: peft ignores the others.
    for name, module in _modules(model):
        if name not in chosen or not module.startswith(bare):
            continue
        saved.add(name)
        if name in kernels:
            continue  # The product is merged.
        module = module.removeprefix(bare)
        targets.add(module.rpartition(".")[2])
        layer = chosen[name]
        # PyTorch's kernels are transposed, and peft multiplies with them.
        for matrix, value in (("A", layer.lora_a), ("B", layer.lora_b)):
            key = f"{_BASE}{module}.lora_{matrix}.weight"
            tensors[key] = np.ascontiguousarray(np.asarray(value).T)
    # Of an adapter without a head, the pooler's matrix B is 0.
    lost = [x for x in chosen if x not in saved and np.any(chosen[x].lora_b)]
    if lost:
        raise InputError(
            "In transformers, the pooler of this encoder is part of the head, "
            "so an adapter without a head can't contain it. Pass has_head=True,"
            " or call enable_lora with other targets than dense. "
            f"Received: has_head=False, {lost[0]}"
        )
    config = {
        "bias": "none",
        "fan_in_fan_out": False,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "modules_to_save": sorted(modules) or None,
        "peft_type": "LORA",
        "r": lora.rank,
        "target_modules": sorted(targets),
        "task_type": _TASKS[with_head.head] if with_head else None,
        "use_rslora": lora.is_stabilized,
    }
    path = os.fspath(folder)
    data = safetensors_numpy.save(tensors, metadata={"format": "pt"})
    with files.new_folder(path, False, len(data)) as new:
        files.write_bytes(os.path.join(new, _WEIGHTS), data)
        files.write_json(os.path.join(new, _CONFIG), config)


def _head_rows(model: Any, head: str | None) -> dict[str, foreign.Row]:
    """Returns the rows of a head by the names of its tensors."""
    theirs = families.find(model.config).huggingface
    if theirs is None or head is None or head not in theirs.heads:
        return {}
    return {row.theirs: row for row in theirs.heads[head].rows}


def _head_tensors(model: Any) -> dict[str, np.ndarray]:
    """Returns the weights of a model's head by the names of peft's tensors."""
    rows = _head_rows(model.bert, model.head)
    if not rows or model.head not in _TASKS:
        raise InputError(
            "Only the heads of classifiers, taggers and span finders can be "
            "stored with an adapter. Write the matrices alone by "
            f"model.bert.save_lora. Received: {type(model).__name__} of "
            f"{model.bert.config.model_type}"
        )
    values = lora_layers.merged_variables(model)
    found = {}
    for name, row in rows.items():
        value = np.asarray(values[row.ours])
        value = value.T if row.transposed else value
        found[f"{_BASE}{name}"] = np.ascontiguousarray(value)
    return found


def _check_head(
    rows: Mapping[str, foreign.Row],
    saved: Mapping[str, np.ndarray],
    left: Sequence[str],
    task: Any,
    head: str,
    path: str,
) -> None:
    """Raises InputError if an adapter's head is incomplete or another one."""
    way = (
        "Use the class of its head, or load the matrices alone by "
        "model.bert.load_lora."
    )
    if task in _TASKS.values() and task != _TASKS.get(head):
        raise InputError(
            f"{path}: the adapter is for another head than {head}. {way} "
            f"Received: task_type={task}"
        )
    if left:
        raise InputError(
            f"{path}: the adapter has weights that are not of this model's "
            f"head. {way} Received: {left[0]}"
        )
    modules = {
        theirs.rpartition(".")[0]
        for theirs, row in rows.items()
        if row.ours in saved
    }
    for theirs, row in rows.items():
        if theirs.rpartition(".")[0] in modules and row.ours not in saved:
            raise InputError(
                f"{path}: a layer of the head is not all there: {theirs} is "
                "missing. Download or save the adapter again."
            )
    if not saved:
        logging.warning(
            "%s: the adapter has no weights of the head, which stays as it is.",
            path,
        )


def read(
    model: Any, folder: str | os.PathLike[str], head: str | None = None
) -> tuple[lora_layers.Lora, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Reads an adapter of peft.

    Returns:
        The sizes; the matrices by the names of `lora_layers.dense_layers` and A
        or B; the weights of the head by their names in checkpoints. Without
        `head`, there are none, and a warning says so.

    Raises:
        InputError: The folder has no adapter, or one of another method or head.
    """
    path = os.fspath(folder)
    config = opened.read_json(path, _CONFIG)
    if not config or not tf.io.gfile.exists(os.path.join(path, _WEIGHTS)):
        raise InputError(
            f"{path} holds no adapter: it needs {_CONFIG} and {_WEIGHTS}."
        )
    _check(config, path)
    shapes, read_stored = huggingface_weights.open_safetensors(
        os.path.join(path, _WEIGHTS)
    )
    family, prefix = families.find(model.config), _prefix(model)
    layer_of = {module: name for name, module in _modules(model)}
    layer_of = {
        x: y for x, y in layer_of.items() if y.endswith(lora_layers.TARGETS)
    }
    # Adapters of a model without a head.
    layer_of |= {x.removeprefix(prefix): y for x, y in layer_of.items()}
    rows = _head_rows(model, head)
    values, saved, left = {}, {}, []
    for name in sorted(shapes):
        module = name.removeprefix(_BASE)
        match = _NAME.fullmatch(module)
        layer = layer_of.get(match[1]) if match else None
        if match and layer is not None:
            value = np.asarray(read_stored(name), np.float32)
            values[f"{layer}.{match[2]}"] = value.T
        elif row := rows.get(module):
            value = np.asarray(read_stored(name), np.float32)
            saved[row.ours] = value.T if row.transposed else value
        else:
            left.append(name)
    if others := [x for x in left if "lora_" in x]:
        raise InputError(
            f"{path}: the adapter has a matrix for a layer that is not one of "
            f"the dense layers of this encoder, {model.config.model_type} with "
            f"{counted(family.num_layers(model.config), 'layer')}. Load it "
            "into the model that it was trained for, or merge it into that "
            f"model with peft, by merge_and_unload. Received: {others[0]}"
        )
    today: Iterable[str] = [x.removeprefix(_BASE) for x in left]
    if family.huggingface is not None:
        today = huggingface_names.canonical(family.huggingface, today)
    if others := [x for x in today if x.startswith(prefix)]:
        raise InputError(
            f"{path}: an adapter whose modules_to_save are part of the encoder "
            f"can't be read. {_WAY_OUT} Received: {others[0]}"
        )
    if head is not None:
        _check_head(rows, saved, left, config.get("task_type"), head, path)
    elif left:
        logging.warning(
            "%s: the weights of its head are not used: %s. To use them, call "
            "load_lora of a model with this head, such as BertClassifier.",
            *(path, ", ".join(left)),
        )
    targets = {x.rpartition(".")[0].rpartition("/")[2] for x in values}
    # Their values are checked there, whatever their types.
    rank: Any = config.get("r")
    alpha: Any = config.get("lora_alpha")
    is_stabilized = bool(config.get("use_rslora"))
    lora = lora_layers.Lora(rank, alpha, tuple(sorted(targets)), is_stabilized)
    return lora, values, saved


# Fields of peft -> what they must be. Other switches, lists and settings must
# be empty, also in later versions.
_USUAL: Mapping[str, Sequence[Any]] = {
    "peft_type": ("LORA",),
    "bias": ("none", None),
    "layers_to_transform": (None,),
    # Others change the weights of the model as well: PiSSA, OLoRA, LoftQ.
    "init_lora_weights": (True, False, None, "gaussian", "orthogonal", "eva"),
}
# Those that the names of the tensors repeat, or that change no output.
_NO_EFFECT = (
    *("target_modules", "exclude_modules", "layers_pattern", "modules_to_save"),
    *("use_rslora", "inference_mode", "auto_mapping", "ensure_weight_tying"),
    *("loftq_config", "eva_config", "corda_config", "lora_ga_config"),
)


def _is_usual(name: str, value: Any) -> bool:
    if name in _USUAL:
        return value in _USUAL[name]
    is_set = bool(value) and (value is True or isinstance(value, list | dict))
    return name in _NO_EFFECT or not is_set


def _check(config: Mapping[str, Any], path: str) -> None:
    for name in (*_USUAL, *config):
        if not _is_usual(name, config.get(name)):
            raise InputError(
                f"{path}: adapters with {name} of this kind can't be read. "
                f"{_WAY_OUT} Received: {name}={json.dumps(config.get(name))}"
            )


def _kind(name: str) -> str:
    """Returns the name of a layer without its number."""
    return re.sub(r"\d+", "", name)


def check(
    model: Any, lora: lora_layers.Lora, values: Mapping[str, np.ndarray]
) -> None:
    """Raises InputError if the matrices do not match the layers.

    An adapter may lack a kind of layers, such as the pooler.
    """
    kinds = {_kind(name.rpartition(".")[0]) for name in values}
    shapes = {}
    for name, layer in lora_layers.targets_of(model, lora).items():
        if _kind(name) in kinds:
            size_in, size_out = layer.shape
            shapes[f"{name}.A"] = (size_in, lora.rank)
            shapes[f"{name}.B"] = (lora.rank, size_out)
    wrong = sorted(shapes.keys() ^ values.keys()) or [
        name for name in shapes if shapes[name] != values[name].shape
    ]
    if wrong:
        raise InputError(
            "The adapter does not belong to this model: it must have two "
            f"matrices for each of {len(shapes) // 2} layers. "
            f"Adapters for only some of the layers can't be read. {_WAY_OUT} "
            f"Received: {wrong[0]} is missing, unexpected or of another shape"
        )


def load(
    encoder: Any, folder: str | os.PathLike[str], model: Any = None
) -> None:
    """Adds an adapter to an encoder, and sets the weights of a model's head."""
    lora, values, saved = read(encoder, folder, model and model.head)
    if encoder.lora not in (None, lora):
        raise InputError(
            "The encoder has another LoRA already: use merge_lora() first. "
            f"Received: {encoder.lora}, and {lora} in {folder}"
        )
    check(encoder, lora, values)
    variables = {x.path: x for x in model.variables} if model else {}
    for name, value in saved.items():
        if value.shape != tuple(variables[name].shape):
            raise InputError(
                f"The head of the adapter must have the shape of {name}, "
                f"{tuple(variables[name].shape)}: pass as many labels as it "
                f"has. Received: {value.shape} in {folder}"
            )
    if encoder.lora is None:
        lora_layers.enable(encoder, lora)
        encoder.lora = lora
    lora_layers.assign(encoder, lora, values)
    for name, value in saved.items():
        variables[name].assign(value)
