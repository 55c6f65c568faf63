"""Models, configs and vocabularies with one error each, and other files."""

import json
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Mapping

from bert_tf.checkpoints import tf1_files
from tests import tiny_files

import numpy as np

# GitHub's page about a file, saved instead of the file.
HTML = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"
# Not valid UTF-8.
BINARY = bytes(range(128, 256)) * 8
GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + BINARY

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
# `write_files` creates a pipe for it.
PIPE = object()
# Contents that are not text, by name.
NO_TEXTS = {"empty": b"", "lfs": LFS, "page": HTML, "binary": BINARY}

_CONFIG = "bert_config.json"
_PREFIX = "bert_model.ckpt"
_DATA = f"{_PREFIX}.data-00000-of-00001"
_INDEX = f"{_PREFIX}.index"

Change = Callable[[pathlib.Path], object]


class Link(str):
    """The target of a symbolic link, for `write_files`."""


class Same(str):
    """The target of a hard link, for `write_files`."""


def write_files(folder: pathlib.Path, files: Mapping[str, object]) -> None:
    """Writes files, and the folders they are in.

    Args:
        folder: Folder of all files.
        files: Name -> bytes, text, a Link, Same, PIPE, or a value to write as
            JSON. A name that ends with a slash is a folder.
    """
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        elif isinstance(content, Link):
            path.symlink_to(content)
        elif isinstance(content, Same):
            path.hardlink_to(folder / content)
        elif content is PIPE:
            os.mkfifo(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            is_text = isinstance(content, str)
            text = str(content) if is_text else json.dumps(content)
            path.write_bytes(text.encode())


def lines(words: Iterable[object]) -> str:
    """Returns a text with one word per line."""
    return "".join(f"{word}\n" for word in words)


def flip(path: pathlib.Path, at: float = 0.5) -> None:
    """Flips one bit at a fraction of the file's length."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 4
    path.write_bytes(data)


def cut(path: pathlib.Path, at: float = 0.5) -> None:
    """Truncates a file to a fraction of its length."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * at)])


def write_changed(
    model: pathlib.Path, folder: pathlib.Path, changes: Mapping[str, Change]
) -> None:
    """Writes copies of a folder, each with one change: folder/NAME."""
    for name, change in changes.items():
        shutil.copytree(model, folder / name, symlinks=True)
        change(folder / name)


def bytes_in(name: str, data: bytes) -> Change:
    """Returns a function that writes a file in a folder."""
    return lambda folder: (folder / name).write_bytes(data)


def without(*names: str) -> Change:
    """Returns a function that removes files from a folder."""

    def change(folder):
        for name in names:
            (folder / name).unlink()

    return change


def values(file: str = _CONFIG, **values: object) -> Change:
    """Returns a function that changes a JSON file; None removes a key."""

    def change(folder):
        path = folder / file
        said = json.loads(path.read_text()) | values
        for name in [name for name, value in values.items() if value is None]:
            said.pop(name, None)
        path.write_text(json.dumps(said))

    return change


def _pieces(change: Callable[[list[str]], list[str]]) -> Change:
    """Returns a function that changes the tokens of a vocabulary."""

    def write(folder):
        pieces = change(list(tiny_files.VOCAB))
        (folder / "vocab.txt").write_text("".join(f"{x}\n" for x in pieces))

    return write


def _instead(piece: str, other: str) -> Change:
    return _pieces(lambda pieces: [other if x == piece else x for x in pieces])


def rename_tensors(folder: pathlib.Path, rename: Callable[[str], str]) -> None:
    """Renames tensors in the checkpoints of a run; "" removes a tensor."""
    for prefix in tf1_files.numbered(str(folder)).values():
        values = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
        renamed = {rename(name): value for name, value in values.items()}
        renamed.pop("", None)
        tf1_files.write(prefix, renamed)


CONFIGS: dict[str, Change] = {
    "no_config": without(_CONFIG),
    "config_empty": bytes_in(_CONFIG, b""),
    "config_cut": lambda folder: cut(folder / _CONFIG),
    "config_lfs": bytes_in(_CONFIG, LFS),
    "config_html": bytes_in(_CONFIG, HTML),
    "config_list": bytes_in(_CONFIG, b"[1, 2]"),
    "config_binary": bytes_in(_CONFIG, BINARY),
    "config_text": values(hidden_size="8"),
    "config_true": values(num_hidden_layers=True),
    "config_nan": values(hidden_dropout_prob=float("nan")),
    "config_heads": values(num_attention_heads=3),
    "config_act": values(hidden_act="gulu"),
    "config_key": values(hidden_sise=8),
    "config_no_size": values(vocab_size=None),
    "config_t5": values(model_type="t5"),
    "config_decoder": values(is_decoder=True),
    "config_wide": values(hidden_size=16),
    "config_deep": values(num_hidden_layers=3),
    "config_shallow": values(num_hidden_layers=1),
}
VOCABS: dict[str, Change] = {
    "no_vocab": without("vocab.txt"),
    "vocab_empty": bytes_in("vocab.txt", b""),
    "vocab_lfs": bytes_in("vocab.txt", LFS),
    "vocab_binary": bytes_in("vocab.txt", BINARY),
    "vocab_utf_16": bytes_in("vocab.txt", "[PAD]\n[UNK]\n".encode("utf-16")),
    "vocab_short": _pieces(lambda pieces: pieces[:-1]),
    "vocab_long": _pieces(lambda pieces: [*pieces, "more"]),
    "vocab_no_unk": _instead("[UNK]", "unk"),
    "vocab_no_cls": _instead("[CLS]", "cls"),
    "vocab_no_sep": _instead("[SEP]", "sep"),
    "vocab_twice": _instead("cat", "dog"),
    "vocab_hole": _instead("cat", ""),
    "vocab_cased": _pieces(lambda x: [*x[:5], *(w.title() for w in x[5:])]),
}


def _only_names(*names: str) -> Change:
    """Returns a function that replaces a checkpoint by one of these names."""

    def change(folder):
        tensors = {name: np.zeros([2, 2], np.float32) for name in names}
        tf1_files.write(str(folder / _PREFIX), tensors)

    return change


def _two(folder):
    for ending in (".index", ".data-00000-of-00001"):
        shutil.copy(folder / f"{_PREFIX}{ending}", folder / f"a.ckpt{ending}")
        (folder / f"{_PREFIX}{ending}").rename(folder / f"b.ckpt{ending}")


def _saved_model(folder):
    for path in folder.iterdir():
        path.unlink()
    (folder / "saved_model.pb").write_bytes(b"x")


MODELS: dict[str, Change] = {
    "index_only": lambda folder: (folder / _DATA).unlink(),
    "data_only": lambda folder: (folder / _INDEX).unlink(),
    "cut_index": lambda folder: cut(folder / _INDEX),
    "cut_data": lambda folder: cut(folder / _DATA),
    "flipped_index": lambda folder: flip(folder / _INDEX),
    "flipped_data": lambda folder: flip(folder / _DATA),
    "empty_index": bytes_in(_INDEX, b""),
    "lfs_index": bytes_in(_INDEX, LFS),
    "lfs_data": bytes_in(_DATA, LFS),
    "two_checkpoints": _two,
    "saved_model": _saved_model,
    "albert": _only_names(
        "bert/encoder/transformer/group_0/inner_group_0/ffn_1/kernel"
    ),
    "tf2": _only_names("_CHECKPOINTABLE_OBJECT_GRAPH", "layer/kernel"),
    "strangers": _only_names("a", "b"),
    "config_of_other": values(num_hidden_layers=3),
    "config_broken": bytes_in("bert_config.json", b'{"vocab_size": '),
    "vocab_latin_1": bytes_in("vocab.txt", "[UNK]\nné\n".encode("latin-1")),
}


def write_models(folder: pathlib.Path) -> None:
    """Writes a model as released ones are, unless it exists, and others.

    The others are models/NAME: CONFIGS, VOCABS, MODELS, and models that are
    almost in Hugging Face's format.
    """
    if not (folder / "model").exists():
        tiny_files.write_model(folder / "model")
    folder /= "models"
    for changes in (CONFIGS, VOCABS, MODELS):
        write_changed(folder.parent / "model", folder, changes)
    bert = {"model_type": "bert", "vocab_size": 40}
    files = {
        "hf_no_weights/config.json": bert,
        "hf_cut/config.json": bert,
        "hf_cut/model.safetensors": (1000).to_bytes(8, "little") + b'{"a": ',
        "hf_lfs/config.json": bert,
        "hf_lfs/model.safetensors": LFS,
        "hf_no_config/model.safetensors": b"x",
        "hf_t5/config.json": bert | {"model_type": "t5"},
        "hf_t5/model.safetensors": b"x",
        "empty_folder/": None,
    }
    write_files(folder, files)
