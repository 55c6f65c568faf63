"""Reads the weights.hdf5 of an ELMo, as bilm-tf and AllenNLP write it.

Here the filters of all widths are one variable, and so are both highway layers.
All else is as in the file: the gates of cells are input, candidate, forget and
output, and the model adds 1 to the forget gate.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf.contrib.elmo_config import ElmoConfig
from bert_tf.errors import InputError
from bert_tf.storage import input_files

import numpy as np

Shape = tuple[int, ...]
# The last part of our name -> the name in the file.
_NAMES = {
    "word_embeddings": "char_embed",
    "projection_kernel": "CNN_proj/W_proj",
    "projection_bias": "CNN_proj/b_proj",
    "carry_kernel": "CNN_high_{}/W_carry",
    "carry_bias": "CNN_high_{}/b_carry",
    "transform_kernel": "CNN_high_{}/W_transform",
    "transform_bias": "CNN_high_{}/b_transform",
    "filter_kernel": "CNN/W_cnn_{}",
    "filter_bias": "CNN/b_cnn_{}",
    "kernel": "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/W_0",
    "bias": "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/B",
    "projection": "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/W_P_0",
}
# The mean of all layers, before training.
_MIXTURE: dict[str, Callable[[Shape], np.ndarray]] = {
    "weights": np.zeros,
    "gamma": np.ones,
}


def _stored(name: str, shape: Shape, config: ElmoConfig) -> dict[str, Shape]:
    """Returns the tensors of a variable: name in the file -> shape."""
    *_, layer, way, leaf = name.split("/")
    theirs = _NAMES.get(leaf, "")
    if leaf.startswith("filter"):
        is_kernel = leaf == "filter_kernel"
        return {
            theirs.format(i): (1, width, shape[0], n) if is_kernel else (n,)
            for i, (width, n) in enumerate(config.filters)
        }
    if theirs.startswith("CNN_high"):
        return {theirs.format(i): shape[1:] for i in range(shape[0])}
    if theirs.startswith("RNN"):
        number = layer.removeprefix("layer_")
        return {theirs.format(int(way == "backward"), number): shape}
    return {theirs: shape} if theirs else {}


def _join(name: str, shape: Shape, found: list[np.ndarray]) -> np.ndarray:
    """Returns the variable that is made of some tensors."""
    leaf = name.rpartition("/")[2]
    if leaf in _MIXTURE:
        return _MIXTURE[leaf](shape).astype(np.float32)
    if leaf == "filter_kernel":  # [1, width, E, n] each
        found = [x[0].swapaxes(0, 1).reshape(shape[0], -1) for x in found]
    if leaf.startswith("filter"):
        return np.concatenate(found, axis=-1)
    return np.reshape(found, shape)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Raises InputError for whatever HDF5 finds wrong with a file."""
    try:
        yield
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} can't be read, it is truncated or no HDF5 file. Download "
            f"it again. Received: {error}"
        ) from error


def _problem(file: Any, name: str, shape: Shape) -> str:
    """Describes what is wrong with a tensor of a file, or ""."""
    found = file.get(name)
    if getattr(found, "shape", None) is None:  # Nothing, or a group.
        return f"{name} is not there"
    # A file can name other files, which a stranger's must not read.
    is_here = found.file.filename == file.filename and not found.is_virtual
    if not is_here or found.external:
        return f"{name} is in another file"
    if found.shape != shape:
        return f"{name} is {list(found.shape)} and must be {list(shape)}"
    return "" if found.dtype.kind == "f" else f"{name} holds {found.dtype}"


def open_weights(
    path: str, config: ElmoConfig, shapes: Mapping[str, Shape]
) -> Callable[[Sequence[str]], Mapping[str, np.ndarray]]:
    """Returns a function that reads variables by our names, as float32.

    `shapes` has our variables. It raises InputError unless the file has all
    tensors of the config, and no others of an encoder.
    """
    import h5py  # Slow to import.

    parts = {name: _stored(name, x, config) for name, x in shapes.items()}
    stored = {name: x for part in parts.values() for name, x in part.items()}
    there: list[str] = []
    with input_files.local_copy(path) as local, _explained(path):
        # Linux keeps the content of a removed copy while it is open.
        file = h5py.File(local, "r")
        found = [_problem(file, name, x) for name, x in stored.items()]
        file.visititems(
            lambda name, x: there.append(name) if hasattr(x, "shape") else None
        )
    problems = list(filter(None, found)) + [
        f"{name} is one too many"
        for name in there
        if name.startswith(("CNN", "RNN")) and name not in stored
    ]
    if problems:
        more = [f"and {len(problems) - 3} more"] * (len(problems) > 3)
        raise InputError(
            f"{path} does not belong to the options.json next to it: "
            f"{'; '.join(problems[:3] + more)}. Copy both of one model."
        )

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        with _explained(path):
            return {
                name: _join(
                    *(name, shapes[name]),
                    [np.asarray(file[x], np.float32) for x in parts[name]],
                )
                for name in wanted
            }

    return read
