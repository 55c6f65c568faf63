"""The weights of folders of Hugging Face: safetensors, PyTorch, TensorFlow.

Names and shapes are PyTorch's. The weights that transformers wrote for
TensorFlow, as tf_model.h5 or in safetensors, are renamed by the rules of its
versions 2 to 4; no later version reads it.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bert_tf.checkpoints import opened, tf1_files
from bert_tf.errors import InputError, listed
from bert_tf.storage import input_files, weight_files

import numpy as np
import safetensors
import tensorflow as tf

# The first that is there is read.
FILES = tuple(weights.file for weights in weight_files.HUGGING_FACE)
FILE, _INDEX, _TORCH, _TORCH_INDEX, _TENSORFLOW = FILES
_INDEXES = (_INDEX, _TORCH_INDEX)

Shapes = dict[str, tuple[int, ...]]
Reader = Callable[[str], np.ndarray]


def open_files(folder: str) -> tuple[Shapes, Reader]:
    """Returns the shapes of a folder's tensors by name, and what reads one.

    Raises:
        InputError: There are none; UnreadableError if they are damaged.
    """
    found = [
        name for name in FILES if tf.io.gfile.exists(os.path.join(folder, name))
    ]
    if not found:
        here = sorted(tf.io.gfile.listdir(folder))
        others = weight_files.find_others(here)
        way_out = "Download one of them, or write it with save_pretrained"
        if index := weight_files.find_index(here):
            way_out = f"Download {index}, which names the files of weights"
        raise InputError(
            f"There are no weights beside it, none of {', '.join(FILES)}. "
            + (f"{listed(others)} can't be read. " if others else "")
            + f"{way_out}. Received: {listed(here)}"
        )
    # An index alone may have been downloaded with the tokenizer.
    whole = (x for x in found if x not in _INDEXES or _has_part(folder, x))
    name = next(whole, found[0])
    is_torch = name in (_TORCH, _TORCH_INDEX)
    open_file = _open_torch if is_torch else open_safetensors
    if name in _INDEXES:
        return _open_parts(folder, name, open_file)
    path = os.path.join(folder, name)
    return _open_h5(path) if name == _TENSORFLOW else open_file(path)


def _parts(folder: str, index: str) -> dict[str, set[str]]:
    """Returns the files that an index of weights names -> names of tensors."""
    weight_map = opened.read_json(folder, index, weight_map=dict).get(
        "weight_map"
    )
    parts: dict[str, set[str]] = {}
    for name, file in (weight_map or {}).items():
        parts.setdefault(str(file), set()).add(name)
    if not parts:
        raise tf1_files.UnreadableError(
            f"{os.path.join(folder, index)} names no files of weights: "
            "`weight_map` is not there. Download it again."
        )
    return dict(sorted(parts.items()))


def _has_part(folder: str, index: str) -> bool:
    parts = (os.path.join(folder, x) for x in _parts(folder, index))
    return any(map(tf.io.gfile.exists, parts))


def _open_parts(
    folder: str, index: str, open_part: Callable[[str], tuple[Shapes, Reader]]
) -> tuple[Shapes, Reader]:
    """Opens the files that an index names, which must agree with it."""
    shapes: Shapes = {}
    readers: dict[str, Reader] = {}
    files: dict[str, str] = {}
    for file, wanted in _parts(folder, index).items():
        path = os.path.join(folder, file)
        if not tf.io.gfile.exists(path):
            raise tf1_files.UnreadableError(
                f"{folder} is not all there: {index} names {file}, and there "
                "is no such file. Download it again."
            )
        own, read = open_part(path)
        # TensorFlow's names, with slashes, are longer in an index.
        lost = {x for x in wanted if "/" not in x} - own.keys()
        if lost and open_part is open_safetensors:
            lost -= _tied_names(path)
        twice = own.keys() & files.keys()
        if lost or twice:
            name = min(lost or twice)
            problem = (
                f"{index} says that {name} is in {file}, and it is not there"
                if lost
                else f"{name} is in {files[name]} and in {file}"
            )
            raise tf1_files.UnreadableError(
                f"{folder} has files of different models: {problem}. Download "
                "all of them again."
            )
        shapes |= own
        readers |= dict.fromkeys(own, read)
        files |= dict.fromkeys(own, file)
    return shapes, lambda name: readers[name](name)


def _tied_names(path: str) -> set[str]:
    """Returns names of tensors that the file has by another name, and more."""
    with input_files.local_copy(path) as local:
        return set(safetensors.safe_open(local, "np").metadata() or {})


def open_safetensors(path: str) -> tuple[Shapes, Reader]:
    """Does as `open_files` with one file of safetensors."""
    try:
        # It is mapped into memory: a copy may go once it is open.
        with input_files.local_copy(path) as local:
            handle = safetensors.safe_open(local, "np")
    except safetensors.SafetensorError as error:
        size = tf.io.gfile.stat(path).length
        raise tf1_files.UnreadableError(
            tf1_files.not_weights(path)
            or f"{path} can't be read, it is truncated or corrupt, such as "
            f"a download that was cut off: {error}. Download it again. "
            f"Received: {size} bytes"
        ) from error
    shapes = {
        name: tuple(handle.get_slice(name).get_shape())
        for name in sorted(handle.keys())
    }
    if (handle.metadata() or {}).get("format") == "tf":
        return _of_tensorflow(
            shapes, handle.get_tensor, {name: name for name in shapes}
        )
    return shapes, handle.get_tensor


def _open_torch(path: str) -> tuple[Shapes, Reader]:
    tensors = _load_torch(path)

    def read(name: str) -> np.ndarray:
        # `named_parameters()` gives tensors that track gradients.
        tensor = tensors[name].detach()
        return (
            tensor.float() if tensor.is_floating_point() else tensor
        ).numpy()

    return {n: tuple(x.shape) for n, x in tensors.items()}, read


def _load_torch(path: str) -> Mapping[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise InputError(
            f"{path} can only be read where PyTorch is installed: pip install "
            "torch. Files that end in .safetensors need nothing."
        ) from error
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            # Nothing but tensors is unpickled: the file can run no code.
            tensors = torch.load(file, map_location="cpu", weights_only=True)
    # PyTorch says of a bad file whatever its unpickler stumbles over.
    except Exception as error:
        # It says more than a screenful, and to run what is in the file.
        found = re.search(r"Unsupported .*?(?=\. |\n|$)", str(error))
        raise tf1_files.UnreadableError(
            tf1_files.not_weights(path)
            or f"{path} can't be read, it is truncated, corrupt or holds more "
            "than tensors. Download it again, or write it with "
            "save_pretrained. Received: "
            f"{found[0] if found else str(error).partition(chr(10))[0]}"
        ) from error
    _check_are_tensors(tensors, path)
    return tensors


def _check_are_tensors(tensors: Any, path: str) -> None:
    import torch

    if not isinstance(tensors, Mapping):
        found = type(tensors).__name__
    else:
        others = {
            name: _kind(value)
            for name, value in tensors.items()
            if not isinstance(value, torch.Tensor)
            or value.is_quantized
            or value.layout != torch.strided
        }
        found = ", ".join(f"{n}: {kind}" for n, kind in others.items())
    if found:
        raise tf1_files.UnreadableError(
            f"{path} must map names to dense tensors, and nothing else. Save "
            f"the model's state_dict alone. Received: {found}"
        )


def _kind(value: Any) -> str:
    """Returns a type and, for a tensor, its layout and dtype."""
    layout, dtype = (getattr(value, x, "") for x in ("layout", "dtype"))
    return f"{type(value).__name__} {layout} {dtype}".strip()


# ---- TensorFlow --------------------------------------------------------------


def _open_h5(path: str) -> tuple[Shapes, Reader]:
    """Opens what `save_pretrained` of a TensorFlow model wrote.

    The path of a variable begins with its layer and the model. A variable that
    layers share is stored once for each of them.
    """
    # Rare, and slow to import.
    import h5py

    with contextlib.ExitStack() as stack:
        # Linux keeps the content of a removed copy while it is open.
        local = stack.enter_context(input_files.local_copy(path))
        with _explained_h5(path):
            file = h5py.File(local, "r")
    stored: dict[str, str] = {}
    shapes: Shapes = {}

    def visit(name: str, value: Any) -> None:
        own = name.split("/", 2)[-1]
        if isinstance(value, h5py.Dataset) and own not in stored:
            stored[own], shapes[own] = name, value.shape

    with _explained_h5(path):
        file.visititems(visit)

    def read(name: str) -> np.ndarray:
        with _explained_h5(path):
            return np.asarray(file[name])

    return _of_tensorflow(shapes, read, stored)


@contextlib.contextmanager
def _explained_h5(path: str) -> Iterator[None]:
    """Makes an UnreadableError of whatever HDF5 finds wrong with a file."""
    try:
        yield
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        raise tf1_files.UnreadableError(
            tf1_files.not_weights(path)
            or f"{path} can't be read, it is truncated or corrupt. "
            f"Download it again. Received: {error}"
        ) from error


def _of_tensorflow(
    shapes: Shapes, read_stored: Reader, stored: Mapping[str, str]
) -> tuple[Shapes, Reader]:
    """As `open_files`, for a file that has names of TensorFlow.

    `stored` has the name in the file of each.
    """
    by_name = {_torch_name(name): name for name in shapes}
    torch_shapes: Shapes = {}
    for name, own in by_name.items():
        shape = shapes[own]
        if own.endswith("/kernel:0"):
            shape = shape[::-1]
        elif own.endswith("/bias:0") and shape[:-1] == (1,):
            shape = shape[1:]  # A GPT-1's.
        torch_shapes[name] = shape

    def read(name: str) -> np.ndarray:
        value = read_stored(stored[by_name[name]])
        is_kernel = by_name[name].endswith("/kernel:0")
        return value.T if is_kernel else value.reshape(torch_shapes[name])

    return torch_shapes, read


def _torch_name(name: str) -> str:
    """Returns PyTorch's name of a variable such as `layer_._0/kernel:0`."""
    name = name.removesuffix(":0").replace("_._", "/")
    # Two layers may stand for one of PyTorch's: mlm___cls, nsp___cls.
    *scopes, last = re.sub(r"(^|/)[^/]*___", r"\1", name).split("/")
    return ".".join([*scopes, _LAST.get(last, last)])


# TensorFlow's last part of a name -> PyTorch's.
_LAST = {
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "beta": "bias",
}
