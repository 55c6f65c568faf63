"""Models whose files are wrong in one way each, of a model that is right."""

import json
import pathlib
import shutil
from collections.abc import Callable

from bert_tf.checkpoints import tf1_files

import numpy as np

_PREFIX = "bert_model.ckpt"
_DATA = f"{_PREFIX}.data-00000-of-00001"
_INDEX = f"{_PREFIX}.index"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def flip(path: pathlib.Path, at: float = 0.5) -> None:
    """Flips one bit, so far behind the beginning of the file."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 4
    path.write_bytes(data)


def cut(path: pathlib.Path, at: float = 0.5) -> None:
    """Cuts a file off, so far behind its beginning."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * at)])


def _change_config(**changes: object) -> Callable[[pathlib.Path], None]:
    """Returns what changes the bert_config.json in a folder."""

    def change(folder):
        path = folder / "bert_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _only_names(*names: str) -> Callable[[pathlib.Path], None]:
    """Returns what replaces a checkpoint by one of these names."""

    def change(folder):
        tensors = {name: np.zeros([2, 2], np.float32) for name in names}
        tf1_files.write(str(folder / _PREFIX), tensors)

    return change


def _write(name: str, data: bytes) -> Callable[[pathlib.Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def _two(folder):
    for ending in (".index", ".data-00000-of-00001"):
        shutil.copy(folder / f"{_PREFIX}{ending}", folder / f"a.ckpt{ending}")
        (folder / f"{_PREFIX}{ending}").rename(folder / f"b.ckpt{ending}")


def _saved_model(folder):
    for path in folder.iterdir():
        path.unlink()
    (folder / "saved_model.pb").write_bytes(b"x")


_WRONG: dict[str, Callable[[pathlib.Path], object]] = {
    "index_only": lambda folder: (folder / _DATA).unlink(),
    "data_only": lambda folder: (folder / _INDEX).unlink(),
    "cut_index": lambda folder: cut(folder / _INDEX),
    "cut_data": lambda folder: cut(folder / _DATA),
    "flipped_index": lambda folder: flip(folder / _INDEX),
    "flipped_data": lambda folder: flip(folder / _DATA),
    "empty_index": _write(_INDEX, b""),
    "lfs_index": _write(_INDEX, LFS),
    "lfs_data": _write(_DATA, LFS),
    "two": _two,
    "saved_model": _saved_model,
    "albert": _only_names(
        "bert/encoder/transformer/group_0/inner_group_0/ffn_1/kernel"
    ),
    "tf2": _only_names("_CHECKPOINTABLE_OBJECT_GRAPH", "layer/kernel"),
    "strangers": _only_names("a", "b"),
    "config_of_other": _change_config(num_hidden_layers=3),
    "config_broken": _write("bert_config.json", b'{"vocab_size": '),
    "vocab_latin_1": _write("vocab.txt", "[UNK]\nné\n".encode("latin-1")),
}


def write(folder: pathlib.Path, good: pathlib.Path) -> None:
    """Writes a folder of each.

    Args:
        folder: Of the folders.
        good: A model as released ones are.
    """
    for name, change in _WRONG.items():
        shutil.copytree(good, folder / name)
        change(folder / name)
    _write_hugging_face(folder)


def _write_hugging_face(folder: pathlib.Path) -> None:
    """Writes folders of Hugging Face's, or nearly."""
    config = json.dumps({"model_type": "bert", "vocab_size": 40})
    for name, files in {
        "hf_no_weights": {"config.json": config.encode()},
        "hf_cut": {
            "config.json": config.encode(),
            "model.safetensors": (1000).to_bytes(8, "little") + b'{"a": ',
        },
        "hf_lfs": {"config.json": config.encode(), "model.safetensors": LFS},
        "hf_no_config": {"model.safetensors": b"x"},
        "hf_xlnet": {
            "config.json": b'{"model_type": "xlnet", "vocab_size": 40}',
            "model.safetensors": b"x",
        },
        "empty_folder": {},
    }.items():
        (folder / name).mkdir()
        for file, data in files.items():
            (folder / name / file).write_bytes(data)
