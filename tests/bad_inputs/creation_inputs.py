"""Inputs and outputs of data creation, most of them with one error."""

import gzip
import json
import pathlib
import shutil
from typing import Any

from tests import tiny_files
from tests.bad_inputs import damaged
from tests.vocabularies import byte_pair_samples, sentence_models

import tensorflow as tf


def _example(**features: list[Any]) -> bytes:
    made = tf.train.Example()
    for name, values in features.items():
        kind = made.features.feature[name]
        if values and isinstance(values[0], float):
            kind.float_list.value.extend(values)
        elif values and isinstance(values[0], bytes):
            kind.bytes_list.value.extend(values)
        else:
            kind.int64_list.value.extend(values)
    return made.SerializeToString()


def write_records(folder: pathlib.Path) -> None:
    """Writes files of one record each, not valid for pre-training."""
    folder.mkdir()
    good: dict[str, list[Any]] = {
        "input_ids": [2, 5, 4, 3, 6, 3, 0, 0],
        "input_mask": [1] * 6 + [0, 0],
        "segment_ids": [0, 0, 0, 0, 1, 1, 0, 0],
        "masked_lm_positions": [2, 0],
        "masked_lm_ids": [7, 0],
        "masked_lm_weights": [1.0, 0.0],
        "next_sentence_labels": [0],
    }

    def write(name, *drop, **changes):
        values = {k: v for k, v in (good | changes).items() if k not in drop}
        with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as w:
            w.write(_example(**values))

    write(
        "classifier",
        "masked_lm_positions",
        "masked_lm_ids",
        "masked_lm_weights",
        "next_sentence_labels",
        label_ids=[1],
    )
    write("negative", input_ids=[2, -5, 4, 3, 6, 3, 0, 0])
    write("beyond", input_ids=[2, 5000000000, 4, 3, 6, 3, 0, 0])
    write("floats", input_ids=[2.0, 5, 4, 3, 6, 3, 0, 0])
    write("texts", input_ids=[b"2", b"3"])
    write("lengths", input_mask=[1, 1])
    write("places", masked_lm_positions=[200, 0])
    write("no_mask", "input_mask")
    write("no_masks_ids", "masked_lm_ids")
    write("no_label", next_sentence_labels=[])
    write("label", next_sentence_labels=[7])
    write("uneven", masked_lm_ids=[7])
    with tf.io.TFRecordWriter(str(folder / "empty.tfrecord")) as w:
        w.write(b"")
    with tf.io.TFRecordWriter(str(folder / "nothing.tfrecord")) as w:
        w.write(_example())
    with tf.io.TFRecordWriter(str(folder / "not_example.tfrecord")) as w:
        w.write(b"hello world, this is no example")


def write_texts(folder: pathlib.Path) -> None:
    """Writes valid texts, and others."""
    sentence = "the cat sat on the old red bird ."
    document = "\n".join(
        [sentence, "anna sees bob .", "is it so ? yes !", "she ran in rome ."]
    )
    text = "\n\n".join([document] * 6) + "\n"
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(text)
    files = {
        "bom.txt": b"\xef\xbb\xbf" + text.encode(),
        "crlf.txt": text.replace("\n", "\r\n"),
        "hard.txt": damaged.Same("a.txt"),
        "soft.txt": damaged.Link("a.txt"),
        "dangling": damaged.Link("nowhere"),
        "fifo": damaged.PIPE,
        "ä ö ☃/": None,
    }
    damaged.write_files(folder, files)
    shutil.copy(folder / "a.txt", folder / "ä ö ☃" / "日本.txt")
    (folder / "texts").mkdir()
    shutil.copy(folder / "a.txt", folder / "texts" / "a.txt")
    files = {
        "empty": b"",
        "blank": b"\n\n  \n",
        "short": b"bird\n\nbird\n",
        "latin1": "ok\n\ncaf\xe9\n".encode("latin-1"),
        "utf16": text.encode("utf-16"),
        "nul": b"a\nb\0c\n",
        "lfs": damaged.LFS,
        "one": document,
        "foreign": b"my thesis",
        "words": b"red bird\n",
        "not.gz": text,
        "not.bz2": text,
        "not.xz": text,
        "not.zst": text,
        "gzipped": gzip.compress(text.encode()),
        "x.zip": b"PK\x03\x04" + bytes(range(256)),
        "cut.gz": gzip.compress(text.encode())[:-30],
        "x.jsonl": b"".join(
            json.dumps({"text": document}).encode() + b"\n" for _ in range(6)
        ),
        "number.jsonl": b'{"text": 5}\n',
        "array.jsonl": b'["the cat"]\n',
        "cut.jsonl": b'{"text": "the cat"}\n{"text": "the c',
        "pretty.json": json.dumps([{"text": "the cat"}], indent=1),
        "surrogate.jsonl": b'{"text": "the \\ud800 cat"}\n',
        "cut.wiki": b'<doc id="1" title="x">\nx\n\nthe cat sat .\n',
        "tokenizer/tokenizer.json": {
            "version": "1.0",
            "model": {"type": "WordPiece", "vocab": {"[UNK]": 0}},
        },
    }
    damaged.write_files(folder, files)
    flipped = bytearray(gzip.compress(text.encode()))
    flipped[len(flipped) // 2] ^= 4
    (folder / "flipped.gz").write_bytes(bytes(flipped))


def write_vocabularies(folder: pathlib.Path) -> None:
    """Writes vocabularies, most of them with one error."""
    folder.mkdir()
    pieces = tiny_files.VOCAB

    def write(name, lines):
        (folder / name).write_text(damaged.lines(lines))

    for name in ("unk", "mask", "cls", "sep", "pad"):
        write(f"no_{name}", [x for x in pieces if x != f"[{name.upper()}]"])
    write("pad_last", [*pieces[1:], pieces[0]])
    write("specials", pieces[:5])
    write("cased", [x.title() if x.isalpha() else x for x in pieces])
    write("columns", [f"{x}\t{i}" for i, x in enumerate(pieces)])
    write("turned", [*pieces[:5], *pieces[:4:-1]])
    write("space.symbols", [*pieces[:5], "a b"])
    write("twice.symbols", [*pieces[:5], "a", "a"])
    write("words.symbols", ["[UNK]", "a"])
    write("right.symbols", pieces)
    (folder / "pairs").mkdir()
    byte_pair_samples.write(folder / "pairs", 300)
    shutil.copy(folder / "pairs" / "merges.txt", folder)
    bpe = sentence_models.train(model_type="bpe")
    files = {
        "bpe.model": bpe,
        "text.model": b"my thesis",
        "windows": b"\xef\xbb\xbf"
        + "".join(f"{x}\r\n" for x in pieces).encode(),
    }
    damaged.write_files(folder, files)


def write_outputs(folder: pathlib.Path) -> None:
    """Writes folders of records, of other programs, and of unfinished work.

    Args:
        folder: Has the records of a run in folder/records, and of a run without
            masks in folder/unmasked.
    """
    (folder / "unmasked" / "manifest.json").unlink()

    def copy(name: str) -> pathlib.Path:
        shutil.copytree(folder / "records", folder / name)
        return folder / name

    record = "part-00000-of-00001.tfrecord"
    shutil.copy(folder / "records" / record, folder / "records.gz")
    (copy("lost") / record).unlink()
    (copy("no_manifest") / "manifest.json").unlink()
    damaged.cut(copy("cut") / record)
    damaged.cut(copy("cut_soon") / record, 0.001)
    damaged.flip(copy("flipped") / record, 0.001)
    (copy("empty_manifest") / "manifest.json").write_bytes(b"")
    (copy("binary_manifest") / "manifest.json").write_bytes(b"\xff\x00")
    (copy("foreign_manifest") / "manifest.json").write_text(
        '{"name": "my app"}'
    )
    values = json.loads((folder / "records" / "manifest.json").read_text())
    (copy("newer") / "manifest.json").write_text(
        json.dumps(values | {"version": 99})
    )
    (copy("manifest_folder") / "manifest.json").unlink()
    files = {
        "manifest_folder/manifest.json/x": "x",
        "others/part-00000-of-00009.tfrecord": b"x",
        "beside/x.manifest.json": '{"name": "my app"}',
        "work_file/.work": "x",
    }
    damaged.write_files(folder, files)
    for name, text in (
        ("broken_run", '{"a"'),
        ("list_run", "[]"),
        ("unfinished", json.dumps(values["made_of"])),
    ):
        (folder / name / ".work").mkdir(parents=True)
        (folder / name / ".work" / "run.json").write_text(text)
    counts = json.dumps(
        [
            values["statistics"]
            | {"sequences_once": 100, "sequence_tokens_once": 1000}
        ]
    ).encode()
    for name, contents in {
        "broken_counts": {"counts/tokens-0.json": b"["},
        "broken_tokens": {
            "counts/tokens-0.json": counts,
            "tokens/000000-0000.npy": b"\x93NUMPY",
        },
        "broken_sequences": {
            "counts/tokens-0.json": counts,
            "sequences/000000-0000-000.bin": b"xx",
            "sequences/000000-0000-001.bin": b"xx",
        },
    }.items():
        work = folder / name / ".work"
        work.mkdir(parents=True)
        (work / "run.json").write_text(json.dumps(values["made_of"]))
        for file, data in contents.items():
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_bytes(data)
