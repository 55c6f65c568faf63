"""The names of the files that hold a model's weights.

The path of such a file identifies the model, except in KerasHub's presets and
for ELMo. Families that users register may have others: `Family.weights_file`.
"""

import fnmatch
import os
from collections.abc import Iterable
from typing import NamedTuple

KERAS_HUB = "model.weights.h5"
KERAS_HUB_TASK = "task.weights.h5"  # of a head
BILM = "weights.hdf5"  # of bilm-tf and AllenNLP
ADAPTER = "adapter_config.json"  # of PEFT


class Weights(NamedTuple):
    """Patterns of the main file, and of the files with the tensors."""

    file: str
    parts: tuple[str, ...] = ()


# In order of preference, where a folder or a model of the Hub has several.
HUGGING_FACE = (
    Weights("model.safetensors"),
    Weights("model.safetensors.index.json", ("model-*-of-*.safetensors",)),
    Weights("pytorch_model.bin"),
    Weights("pytorch_model.bin.index.json", ("pytorch_model-*-of-*.bin",)),
    Weights("tf_model.h5"),
)
HUB = (
    *HUGGING_FACE,
    # Presets of KerasHub, whose tasks have another file.
    Weights("*.weights.h5"),
    # Checkpoints of TensorFlow: the original's and ours.
    Weights("*.index", ("*.data-?????-of-?????",)),
)
ALL = (*HUB, Weights(BILM))
# The graph next to a checkpoint of TensorFlow 1, which nothing reads. Users may
# pass its path to name the checkpoint.
_GRAPH = "*.meta"


def is_weights(path: str) -> bool:
    """Whether a file belongs to the weights of a model, by its name."""
    patterns = (x for row in ALL for x in (row.file, *row.parts))
    return _is_any(os.path.basename(path), (*patterns, _GRAPH))


def has_weights(names: Iterable[str]) -> bool:
    """Whether a folder holds a model, by the names of its files.

    An index alone is no model: it may have been downloaded with the tokenizer.
    """
    patterns = [x for row in ALL for x in (row.parts or (row.file,))]
    return any(_is_any(name, (*patterns, "*.index")) for name in names)


def _is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
