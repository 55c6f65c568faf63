"""The names of the files that hold a model's weights, in each format.

The path of such a file stands for the model, and a folder with one holds a
model.
"""

import fnmatch
import os
from collections.abc import Collection
from typing import NamedTuple

KERAS_HUB = "model.weights.h5"


class Weights(NamedTuple):
    """Patterns of the file that is looked for, and of its parts."""

    file: str
    parts: tuple[str, ...] = ()


# In order of preference, where a folder or a model of the Hub has several.
OF_HUGGINGFACE = (
    Weights("model.safetensors"),
    Weights("model.safetensors.index.json", ("model-*-of-*.safetensors",)),
    Weights("pytorch_model.bin"),
    Weights("pytorch_model.bin.index.json", ("pytorch_model-*-of-*.bin",)),
    Weights("tf_model.h5"),
)
OF_OTHERS = (
    *OF_HUGGINGFACE,
    # Presets of KerasHub, whose tasks have another file.
    Weights("*.weights.h5"),
)
ALL = (
    *OF_OTHERS,
    # Checkpoints of TensorFlow: the original's and ours.
    Weights("*.index", ("*.data-*-of-*",)),
)
# The graph next to a checkpoint of TensorFlow 1, which nothing reads. Users may
# pass its path to name the checkpoint.
_GRAPH = "*.meta"
_PATTERNS = (*(x for row in ALL for x in (row.file, *row.parts)), _GRAPH)


def is_weights(path: str) -> bool:
    """Whether a file holds weights, by its name."""
    name = os.path.basename(path)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _PATTERNS)


def are_in(names: Collection[str]) -> bool:
    """Whether a folder holds a model, by the names of its files."""
    return any(map(is_weights, names))
