"""The file formats of weights and the names of their files.

The path of such a file identifies the model, except in KerasHub's presets and
for ELMo. Families that users register may have others: `Family.weights_file`.
"""

import fnmatch
import importlib
import os
import types
from collections.abc import Collection, Iterable
from typing import NamedTuple

from bert_tf.errors import InputError

KERAS_HUB = "model.weights.h5"
KERAS_HUB_TASK = "task.weights.h5"  # of a head
BILM = "weights.hdf5"  # of bilm-tf and AllenNLP
ADAPTER = "adapter_config.json"  # of PEFT


class Weights(NamedTuple):
    """Patterns of the main file, and of the files with the tensors."""

    file: str
    parts: tuple[str, ...] = ()


class Format(NamedTuple):
    """A file format of weights.

    Attributes:
        module: Name of a module with the functions `open_checkpoint(folder)`
            and `write(folder, source, config)`: see docs/extending.md.
        weights: The files to read; a name without a `*` identifies the format.
        written: Patterns of the files with weights that `write` writes.
        is_own: Whether the files next to the weights are this package's, which
            do not contain the casing and the max length of texts.
    """

    module: str
    weights: tuple[Weights, ...]
    written: tuple[str, ...]
    is_own: bool = False

    def load(self) -> types.ModuleType:
        """Imports the module, which needs TensorFlow."""
        return importlib.import_module(self.module)


# In order of preference, where a folder or a model of the Hub has several.
HUGGING_FACE = (
    Weights("model.safetensors"),
    Weights("model.safetensors.index.json", ("model-*-of-*.safetensors",)),
    Weights("pytorch_model.bin"),
    Weights("pytorch_model.bin.index.json", ("pytorch_model-*-of-*.bin",)),
    Weights("tf_model.h5"),
)
# By their values of `--output_format`.
FORMATS = {
    # Checkpoints of TensorFlow: the original's and ours.
    "tf1": Format(
        "bert_tf.checkpoints.original",
        (Weights("*.index", ("*.data-?????-of-?????",)),),
        ("bert_model.ckpt.*",),
        is_own=True,
    ),
    "hf": Format(
        "bert_tf.checkpoints.huggingface",
        HUGGING_FACE,
        ("model.safetensors*", "pytorch_model*.bin"),
    ),
    # Presets, whose tasks have another file.
    "keras_hub": Format(
        "bert_tf.checkpoints.keras_hub",
        (Weights("*.weights.h5"),),
        (KERAS_HUB, KERAS_HUB_TASK),
    ),
}
# The graph next to a checkpoint of TensorFlow 1, which nothing reads. Users may
# pass its path to name the checkpoint.
_GRAPH = "*.meta"
# Weights of other libraries and runtimes, which can't be read.
_OTHERS = (
    *("*.ckpt", "*.gguf", "*.h5", "*.keras", "*.msgpack", "*.onnx", "*.ot"),
    *("*.pt", "*.pth", "*.tflite", "openvino_model.*"),
)


def register(name: str, row: Format) -> None:
    """Adds a format; InputError if its name or one of its files is taken."""
    files = [x.file for x in row.weights]
    for other, known in FORMATS.items():
        is_taken = other == name or any(
            _is_any(x.file, files) or _is_any(file, [x.file])
            for x in known.weights
            for file in files
        )
        if is_taken and known != row:
            raise InputError(
                f"The format {other} has this name or file already: choose "
                f"another. Received: name={name!r}, files={', '.join(files)}"
            )
    FORMATS[name] = row


def find_format(names: Collection[str]) -> Format | None:
    """Returns the format that one of the files identifies, if any."""
    for row in FORMATS.values():
        exact = {x.file for x in row.weights if "*" not in x.file}
        if not exact.isdisjoint(names):
            return row
    return None


def find_all() -> list[Weights]:
    """Returns the files of all formats, other libraries' first."""
    rows = sorted(FORMATS.values(), key=lambda row: row.is_own)
    return [x for row in rows for x in row.weights]


def is_weights(path: str) -> bool:
    """Whether a file belongs to the weights of a model, by its name."""
    rows = (*find_all(), Weights(BILM))
    patterns = (x for row in rows for x in (row.file, *row.parts))
    return _is_any(os.path.basename(path), (*patterns, _GRAPH))


def has_weights(names: Iterable[str]) -> bool:
    """Whether a folder holds a model, by the names of its files.

    An index alone is no model: it may have been downloaded with the tokenizer.
    """
    rows = (*find_all(), Weights(BILM))
    patterns = [x for row in rows for x in (row.parts or (row.file,))]
    return any(_is_any(name, (*patterns, "*.index")) for name in names)


def find_others(names: Iterable[str]) -> list[str]:
    """Returns files of formats that can't be read, by their names."""
    return sorted(
        name
        for name in names
        if _is_any(name, _OTHERS) and not is_weights(name)
    )


def find_index(names: Collection[str]) -> str | None:
    """Returns the index that parts of Hugging Face's weights need, if any."""
    for weights in HUGGING_FACE:
        if any(_is_any(name, weights.parts) for name in names):
            return weights.file
    return None


def _is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
