"""Models of Hugging Face and KerasHub with one error each."""

import dataclasses
import os
import pathlib
import pickle
from collections.abc import Callable

from bert_tf.checkpoints import formats
from tests.bad_inputs import damaged

import numpy as np
from safetensors import numpy as safetensors_numpy

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_INDEX = f"{_WEIGHTS}.index.json"
_TORCH = "pytorch_model.bin"
_TOKENIZER = "tokenizer.json"
_PRESET = "model.weights.h5"

_json = damaged.values
_Tensors = dict[str, np.ndarray]


class _Code:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch /tmp/unpickled",)


def _tensors(change: Callable[[_Tensors], _Tensors]) -> damaged.Change:
    """Returns a function that changes the weights in a Hugging Face folder."""

    def write(folder):
        path = folder / _WEIGHTS
        safetensors_numpy.save_file(
            change(safetensors_numpy.load_file(path)), path
        )

    return write


def _with_tensor(name: str, *shape: int) -> damaged.Change:
    return _tensors(lambda known: {**known, name: np.zeros(shape, np.float32)})


def _instead(name: str, other: str, data: bytes) -> damaged.Change:
    """Returns a function that removes one file and writes another."""

    def change(folder):
        (folder / name).unlink()
        (folder / other).write_bytes(data)

    return change


def _cut(name: str, at: float = 0.5) -> damaged.Change:
    return lambda folder: damaged.cut(folder / name, at)


def _small(tensors: _Tensors) -> _Tensors:
    """Returns weights of integers, like those stored in 8 bits."""
    return {
        name: (x * 100).astype(np.int8) if x.ndim == 2 else x
        for name, x in tensors.items()
    }


_HUGGING_FACE: dict[str, damaged.Change] = {
    "cut": _cut(_WEIGHTS),
    "empty": damaged.bytes_in(_WEIGHTS, b""),
    "keras_weights": lambda folder: (folder / _WEIGHTS).rename(
        folder / "tf_model.h5"
    ),
    "torch_code": _instead(_WEIGHTS, _TORCH, pickle.dumps(_Code())),
    "index_names_none": _instead(
        _WEIGHTS, _INDEX, b'{"weight_map": {"a": "model-1.safetensors"}}'
    ),
    "index_empty": _instead(_WEIGHTS, _INDEX, b"{}"),
    "index_list": _instead(_WEIGHTS, _INDEX, b'{"weight_map": ["a"]}'),
    "index_number": _instead(_WEIGHTS, _INDEX, b'{"weight_map": {"a": 1}}'),
    "config_cut": _cut(_CONFIG),
    "config_lfs": damaged.bytes_in(_CONFIG, damaged.LFS),
    "activation": _json(_CONFIG, hidden_act="swiglu"),
    "activation_list": _json(_CONFIG, hidden_act=["gelu"]),
    "shallow": _json(_CONFIG, num_hidden_layers=1),
    "decoder": _json(_CONFIG, is_decoder=True),
    "classes_letters": _json(_CONFIG, id2label={"a": "x", "b": "y", "c": "z"}),
    "adapter": _with_tensor("bert.encoder.layer.0.lora_A.weight", 2, 2),
    "untied": _with_tensor("cls.predictions.decoder.weight", 44, 8),
    "missing": _tensors(
        lambda known: {
            name: x for name, x in known.items() if "layer.1.output" not in name
        }
    ),
    "int8": _tensors(_small),
    "tokenizer_text": _instead("vocab.txt", _TOKENIZER, b'{"model": "x"}'),
    "tokenizer_ids": _instead(
        "vocab.txt",
        _TOKENIZER,
        b'{"model": {"type": "WordPiece", "vocab": {"a": "1", "b": 2}}}',
    ),
    "normalizer": _json(_TOKENIZER, normalizer=["lowercase"]),
    "casing_text": _json("tokenizer_config.json", do_lower_case="false"),
    "class_number": _json("tokenizer_config.json", tokenizer_class=7),
    "says_cased": _json("tokenizer_config.json", do_lower_case=False),
}
_KERAS_HUB: dict[str, damaged.Change] = {
    "no_weights": damaged.without(_PRESET),
    "weights_cut": _cut(_PRESET),
    "no_task_weights": damaged.without("task.weights.h5"),
    "task_cut": _cut("task.json"),
    "gemma": _json(_CONFIG, class_name="GemmaBackbone"),
}


def write(
    folder: pathlib.Path, model: pathlib.Path, classifier: pathlib.Path
) -> None:
    """Writes folders for both: hf and keras_hub are valid, hf/NAME are not.

    Args:
        folder: New folder for all of them.
        model: A model in the original's format, uncased.
        classifier: The same, with classes.
    """
    _convert(model, folder / "right" / "hf", "hf")
    _convert(classifier, folder / "right" / "hf_classes", "hf")
    _convert(classifier, folder / "right" / "keras_hub", "keras_hub")
    of_classes = {
        name: change
        for name, change in _HUGGING_FACE.items()
        if name.startswith("classes_")
    }
    others = {
        name: change
        for name, change in _HUGGING_FACE.items()
        if name not in of_classes
    }
    for source, target, changes in (
        ("hf", "hf", others),
        ("hf_classes", "hf", of_classes),
        ("keras_hub", "keras_hub", _KERAS_HUB),
    ):
        damaged.write_changed(
            folder / "right" / source, folder / target, changes
        )


def _convert(source: pathlib.Path, path: pathlib.Path, to: str) -> None:
    opened = formats.open_checkpoint(str(source))
    uncased = dataclasses.replace(opened, do_lower_case=True)
    formats.write(str(path), to, uncased)
