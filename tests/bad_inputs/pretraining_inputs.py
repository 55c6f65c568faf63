"""Inputs and outputs of pre-training, most of them with one error."""

import gzip
import json
import pathlib
import shutil

from bert_tf.records import manifests, record_types
from tests import pretraining_records, tiny_files
from tests.bad_inputs import damaged

import numpy as np
import tensorflow as tf


def write_inputs(folder: pathlib.Path) -> None:
    """Writes valid inputs, and inputs with one error each."""
    damaged.write_models(folder)
    (folder / "records").mkdir()
    pretraining_records.write(folder / "records")
    _write_records(folder)
    _write_manifests(folder)
    _write_configs(folder / "configs")
    _write_vocabularies(folder / "vocabs")


def write_folders(folder: pathlib.Path) -> None:
    """Writes output folders, and flagfiles.

    Args:
        folder: Has the valid inputs, and a run in folder/trained.
    """
    files: dict[str, object] = {
        "link": damaged.Link("model"),
        "foreign/": None,
    }
    damaged.write_files(folder, files)
    shutil.copy(folder / "model" / "vocab.txt", folder / "foreign")
    (folder / "classifier").mkdir()
    flags = "# python run_classifier.py --flagfile=x\n--seed=1\n"
    files = {
        "classifier/flags.txt": flags,
        "unknown.flags": "--seed=12345\n--colour=red\n",
        "itself.flags": f"--flagfile={folder}/itself.flags\n",
    }
    damaged.write_files(folder, files)
    (folder / "utf16.flags").write_text("--seed=1\n", encoding="utf-16")
    (folder / "models" / "bare").mkdir()
    for path in (folder / "trained").glob("model.ckpt-2.*"):
        shutil.copy(path, folder / "models" / "bare")
    shutil.copytree(folder / "models" / "bare", folder / "kept" / "best")
    shutil.copy(folder / "trained" / "flags.txt", folder / "kept")
    for name, file, content in (
        ("cut", "model.ckpt-2.index", b"x"),
        ("config", "bert_config.json", b"{"),
        ("flags", "flags.txt", damaged.BINARY),
        ("vocab", "vocab.txt", b"[UNK]\n\xe9\n"),
    ):
        shutil.copytree(folder / "trained", folder / f"run_{name}")
        (folder / f"run_{name}" / file).write_bytes(content)


def _record(**changes: float) -> bytes:
    """Returns a record with some numbers changed."""
    values = pretraining_records.values(np.random.default_rng(0))
    values = {name: np.array(value) for name, value in values.items()}
    for name, value in changes.items():
        values[name].ravel()[-1] = value
    return record_types.PRETRAINING.encode(values)


def _write_tfrecord(path: pathlib.Path, *rows: bytes) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(row)


def _write_records(folder: pathlib.Path) -> None:
    good = (folder / "records" / "records-0.tfrecord").read_bytes()
    size = len(good) // 7
    files: dict[str, object] = {
        "empty": b"",
        "gzip": gzip.compress(good),
        "lfs": damaged.LFS,
        "cut_record": good[: 2 * size + 50],
        "corrupt": good,
    }
    damaged.write_files(folder, files)
    damaged.flip(folder / "corrupt", (2 * size + 50) / len(good))
    files = {
        "dangling": damaged.Link("none"),
        "loop": damaged.Link("loop"),
        "fifo": damaged.PIPE,
    }
    damaged.write_files(folder, files)
    _write_other_records(folder)
    changed: dict[str, dict[str, float]] = {
        "id_beyond": {"input_ids": 30_000},
        "id_negative": {"input_ids": -1},
        "id_huge": {"input_ids": 2**32 + 5},
        "segment": {"segment_ids": 2},
        "position": {"masked_lm_positions": 16},
        "label": {"next_sentence_labels": 2},
        "weight_nan": {"masked_lm_weights": np.nan},
        "weight_negative": {"masked_lm_weights": -1},
        "mask": {"input_mask": 7},
    }
    for name, changes in changed.items():
        _write_tfrecord(folder / name, *[_record(**changes)] * 9)


def _write_other_records(folder: pathlib.Path) -> None:
    """Writes TFRecord files that are not pre-training records."""
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1] * 16))
    names = ("input_ids", "input_mask", "segment_ids")
    features = tf.train.Features(feature=dict.fromkeys(names, feature))
    example = tf.train.Example(features=features).SerializeToString()
    _write_tfrecord(folder / "classification", example)
    _write_tfrecord(folder / "second_garbage", _record(), b"\xff no example")
    values = pretraining_records.values(np.random.default_rng(0), sequence=20)
    longer = record_types.PRETRAINING.encode(values)
    _write_tfrecord(folder / "ragged", _record(), longer)
    (folder / "longer").mkdir()
    _write_tfrecord(folder / "longer" / "a.tfrecord", longer)
    example = tf.train.Example.FromString(_record())
    weights = example.features.feature["masked_lm_weights"]
    weights.int64_list.value.extend([1] * 4)
    _write_tfrecord(folder / "int_weights", example.SerializeToString())


def _write_manifests(folder: pathlib.Path) -> None:
    def write(name, **changes):
        place = folder / f"m_{name}"
        place.mkdir()
        (file,) = pretraining_records.write(place, [9])
        shards = (manifests.Shard(pathlib.Path(file).name, 9),)
        changes = {"vocab_size": len(tiny_files.VOCAB)} | changes
        made = pretraining_records.manifest(shards=shards, **changes)
        made.write(place / "manifest.json")
        return place / "manifest.json"

    write("good")
    write("vocab", vocab_sha256="cd" * 32)
    write("objective", objective="none")
    write("classification", record_type="classification")
    write("size", vocab_size=30_522)
    write("long", max_seq_length=512)
    write("other_length", max_seq_length=20)
    write("masking", dynamic_masking=True, masking={"a": 1})
    write("rows", sequences_per_row=0)
    for name, content in {
        "text": b"manifest",
        "latin": '{"seed": "é"}'.encode("latin-1"),
        "lfs": damaged.LFS,
    }.items():
        write(name).write_bytes(content)
    path = write("count")
    values = json.loads(path.read_text())
    values["shards"][0]["records"] = 99
    path.write_text(json.dumps(values))
    path = write("folder")
    path.unlink()
    path.mkdir()


_ELECTRA = {"model_type": "electra", "embedding_size": 8}


def _write_configs(folder: pathlib.Path) -> None:
    folder.mkdir()
    text = tiny_files.CONFIG.to_json()
    (folder / "cut.json").write_text(text[:50])
    for name, changes in {
        "t5": {"model_type": "t5"},
        "relative": {"position_embedding_type": "relative_key"},
        "wide_huge": {"hidden_size": 2**30},
        "deep_huge": {"num_hidden_layers": 10**9},
        "positions": {"max_position_embeddings": 8},
        "small": {"vocab_size": 20},
        "deep": {"num_hidden_layers": 3},
        "wide": {"hidden_size": 12},
        "electra": _ELECTRA,
        "no_generator": _ELECTRA | {"generator_layers": 0.1},
        "generator_of_nan": _ELECTRA | {"generator_layers": float("nan")},
        "generator_of_64": _ELECTRA | {"generator_hidden_size": 64},
        "left_to_right": {"model_type": "left_to_right"},
    }.items():
        values = json.loads(text) | changes
        (folder / f"{name}.json").write_text(json.dumps(values))


def _write_vocabularies(folder: pathlib.Path) -> None:
    folder.mkdir()
    pieces = tiny_files.VOCAB
    text = "".join(f"{piece}\n" for piece in pieces)
    more = [*pieces[:5], *(f"w{i}" for i in range(95))]
    swapped = [*pieces[:-2], pieces[-1], pieces[-2]]
    files = {
        "100.txt": damaged.lines(more),
        "swapped.txt": damaged.lines(swapped),
        "vocab.json": json.dumps(dict.fromkeys(pieces, 1)),
        "windows.txt": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    }
    damaged.write_files(folder, files)
