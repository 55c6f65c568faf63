"""Tiny trained models in run folders, valid and invalid."""

import pathlib
import shutil
from collections.abc import Mapping, Sequence

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files
from tests import exports, tiny_files
from tests.bad_inputs import damaged

import keras
import numpy as np
import tensorflow as tf

_PREFIX = "model.ckpt-7"
_DATA = f"{_PREFIX}.data-00000-of-00001"
_INDEX = f"{_PREFIX}.index"


def _write(
    folder: pathlib.Path,
    model: keras.Model,
    flags: Sequence[str],
    labels: Sequence[str] = (),
) -> None:
    """Writes the files that a run leaves."""
    tiny_files.write_model(folder, model, _PREFIX)
    tf1_files.write_state(str(folder), [str(folder / _PREFIX)])
    known = ("--max_seq_length=16", "--do_lower_case=true", *flags)
    (folder / "flags.txt").write_text("".join(f"{x}\n" for x in known))
    if labels:
        (folder / "labels.txt").write_text("".join(f"{x}\n" for x in labels))


def _flags(*more: str) -> damaged.Change:
    """Returns a function that adds flags to those of a run."""

    def change(folder):
        with (folder / "flags.txt").open("a") as file:
            file.writelines(f"--{x}\n" for x in more)

    return change


def _untrained(folder: pathlib.Path) -> None:
    """Removes the weights of a run."""
    for path in folder.glob("model.ckpt*"):
        path.unlink()
    (folder / "checkpoint").unlink()


def _nan(folder: pathlib.Path) -> None:
    prefix = str(folder / _PREFIX)
    values = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
    values["output_bias"] = np.full([2], np.nan, np.float32)
    tf1_files.write(prefix, values)


def _best(text: bytes) -> damaged.Change:
    """Returns a function that adds best weights, recorded by `text`."""

    def change(folder):
        damaged.write_files(folder, {"best/results.json": text})

    return change


DAMAGES: dict[str, damaged.Change] = {
    "untrained": _untrained,
    "index_only": damaged.without(_DATA),
    "cut_index": lambda folder: damaged.cut(folder / _INDEX),
    "cut_data": lambda folder: damaged.cut(folder / _DATA),
    "flipped_data": lambda folder: damaged.flip(folder / _DATA),
    "lfs_index": damaged.bytes_in(_INDEX, damaged.LFS),
    "lfs_data": damaged.bytes_in(_DATA, damaged.LFS),
    "nan": _nan,
    "state_gone": lambda folder: (folder / "checkpoint").unlink(),
    "best_binary": _best(damaged.BINARY),
    "best_gone": _best(b'{"global_step": 5}'),
    "no_labels": damaged.without("labels.txt"),
    "labels_empty": damaged.bytes_in("labels.txt", b""),
    "labels_three": damaged.bytes_in("labels.txt", b"no\nyes\nor\n"),
    "labels_twice": damaged.bytes_in("labels.txt", b"no\nno\n"),
    "labels_blank": damaged.bytes_in("labels.txt", b"no\n\n"),
    "labels_binary": damaged.bytes_in("labels.txt", damaged.BINARY),
    "labels_lfs": damaged.bytes_in("labels.txt", damaged.LFS),
    "flags_binary": damaged.bytes_in("flags.txt", damaged.BINARY),
    "flags_length": _flags("max_seq_length=long"),
    "flags_nothing": _flags("max_seq_length="),
    "flags_long": _flags("max_seq_length=64"),
    "flags_case": _flags("do_lower_case=false"),
    "flags_task": _flags("task_name=NOPE"),
    "flags_window": _flags("long_documents=windows", "window_stride=x"),
    "flags_documents": _flags("long_documents=middle"),
}


def write(folder: pathlib.Path) -> None:
    """Writes folders: one per head, and classifiers with errors."""
    config = tiny_files.CONFIG
    pairs = folder / "run"
    _write(
        pairs,
        heads.BertClassifier(modeling.Bert(config), 2),
        ["--text_a_column=a", "--text_b_column=b"],
        ["no", "yes"],
    )
    _write(
        folder / "single",
        heads.BertClassifier(modeling.Bert(config), 2),
        ["--text_a_column=a"],
        ["no", "yes"],
    )
    _write(
        folder / "span",
        heads.BertSpanFinder(modeling.Bert(config)),
        ["--doc_stride=4", "--max_query_length=4"],
    )
    _write(
        folder / "tagger",
        heads.BertTagger(modeling.Bert(config), 2),
        [],
        ["O", "B-X"],
    )
    _write(folder / "score", heads.BertClassifier(modeling.Bert(config), 1), [])
    damaged.write_changed(
        pairs, folder / "runs", damaged.CONFIGS | damaged.VOCABS | DAMAGES
    )
    files = {
        "empty/": None,
        "alone/": None,
    }
    damaged.write_files(folder, files)
    for path in pairs.iterdir():
        if path.name not in ("flags.txt", "labels.txt", "checkpoint"):
            shutil.copy(path, folder / "alone")
    shutil.copytree(folder / "span", folder / "span_auto")
    _flags("version_2_with_negative=true", "null_score_diff_threshold=auto")(
        folder / "span_auto"
    )


def _in_assets(name: str, data: bytes) -> damaged.Change:
    return lambda folder: (folder / "assets" / name).write_bytes(data)


_VARIABLES = "variables/variables.data-00000-of-00001"
SAVED: Mapping[str, damaged.Change] = {
    "no_pb": damaged.without("saved_model.pb"),
    "pb_cut": lambda folder: damaged.cut(folder / "saved_model.pb"),
    "pb_lfs": damaged.bytes_in("saved_model.pb", damaged.LFS),
    "pb_empty": damaged.bytes_in("saved_model.pb", b""),
    "no_variables": lambda folder: shutil.rmtree(folder / "variables"),
    "variables_cut": lambda folder: damaged.cut(folder / _VARIABLES),
    "variables_lfs": damaged.bytes_in(_VARIABLES, damaged.LFS),
    "index_cut": lambda f: damaged.cut(f / "variables/variables.index"),
    "no_export": damaged.without("assets/export.json"),
    "export_cut": _in_assets("export.json", b'{"head": "cla'),
    "export_list": _in_assets("export.json", b"[1]"),
    "export_binary": _in_assets("export.json", damaged.BINARY),
    "export_head": damaged.values("assets/export.json", head="parser"),
    "export_no_head": damaged.values("assets/export.json", head=None),
    "no_labels": damaged.without("assets/labels.txt"),
    "no_vocab": damaged.without("assets/vocab.txt"),
    "labels_two": _in_assets("labels.txt", b"no\nyes\n"),
    "labels_binary": _in_assets("labels.txt", damaged.BINARY),
}


def write_saved(folder: pathlib.Path) -> None:
    """Writes a SavedModel with three classes, and SavedModels with errors."""
    saved = folder / "saved"
    shutil.copytree(exports.exported("classification"), saved / "right")
    damaged.write_changed(saved / "right", saved, SAVED)
    module = tf.Module()
    tf.saved_model.save(module, str(saved / "foreign"))
