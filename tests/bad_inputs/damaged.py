"""Configs and vocabularies that are wrong in one way each, and other files."""

import json
import pathlib
import shutil
from collections.abc import Callable, Mapping

from bert_tf.checkpoints import tf1_files
from tests import tiny_files
from tests.bad_inputs import bad_models

# What GitHub shows of a file, saved in its place.
HTML = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"
# No UTF-8.
BINARY = bytes(range(128, 256)) * 8
GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + BINARY

_CONFIG = "bert_config.json"

Change = Callable[[pathlib.Path], object]


def write_files(folder: pathlib.Path, files: Mapping[str, str | bytes]) -> None:
    """Writes files by their names, text as UTF-8."""
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)


def write_changed(
    model: pathlib.Path, folder: pathlib.Path, changes: Mapping[str, Change]
) -> None:
    """Writes copies of a folder, each changed in its way: folder/NAME."""
    for name, change in changes.items():
        shutil.copytree(model, folder / name, symlinks=True)
        change(folder / name)


def bytes_in(name: str, data: bytes) -> Change:
    """Returns what writes a file in a folder."""
    return lambda folder: (folder / name).write_bytes(data)


def without(*names: str) -> Change:
    """Returns what removes files from a folder."""

    def change(folder):
        for name in names:
            (folder / name).unlink()

    return change


def values(**values: object) -> Change:
    """Returns what changes a folder's config; None leaves a key out."""

    def change(folder):
        path = folder / _CONFIG
        known = json.loads(path.read_text()) | values
        said = {key: x for key, x in known.items() if x is not None}
        path.write_text(json.dumps(said))

    return change


def _pieces(change: Callable[[list[str]], list[str]]) -> Change:
    """Returns what changes the pieces of a folder's vocabulary."""

    def write(folder):
        pieces = change(list(tiny_files.VOCAB))
        (folder / "vocab.txt").write_text("".join(f"{x}\n" for x in pieces))

    return write


def _instead(piece: str, other: str) -> Change:
    return _pieces(lambda pieces: [other if x == piece else x for x in pieces])


def rename_tensors(folder: pathlib.Path, rename: Callable[[str], str]) -> None:
    """Renames what is in the checkpoints of a run; to "": leaves it out."""
    for prefix in tf1_files.numbered(str(folder)).values():
        values = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
        renamed = {rename(name): value for name, value in values.items()}
        renamed.pop("", None)
        tf1_files.write(prefix, renamed)


CONFIGS: dict[str, Change] = {
    "no_config": without(_CONFIG),
    "config_empty": bytes_in(_CONFIG, b""),
    "config_cut": lambda folder: bad_models.cut(folder / _CONFIG),
    "config_lfs": bytes_in(_CONFIG, bad_models.LFS),
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
    "config_xlnet": values(model_type="xlnet"),
    "config_decoder": values(is_decoder=True),
    "config_wide": values(hidden_size=16),
    "config_deep": values(num_hidden_layers=3),
    "config_shallow": values(num_hidden_layers=1),
}
VOCABS: dict[str, Change] = {
    "no_vocab": without("vocab.txt"),
    "vocab_empty": bytes_in("vocab.txt", b""),
    "vocab_lfs": bytes_in("vocab.txt", bad_models.LFS),
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
