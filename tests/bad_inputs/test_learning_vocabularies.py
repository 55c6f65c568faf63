"""Bad inputs of learn_vocabulary.py."""

import gzip
import os
import pathlib

from tests import tiny_files
from tests.bad_inputs import bad_models, cases, matrix

import pytest

SCRIPT, CASES, RIGHT = cases.read("learning_vocabularies")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_files(folder / "model")
    text = "the cat sat on the old red bird . anna sings\n" * 30
    for name, d in {
        "a.txt": text.encode(),
        "b.txt": text.encode(),
        "empty": b"",
        "blank": "\n\u200b\n".encode(),
        "latin1": "ok\ncaf\xe9\n".encode("latin-1"),
        "utf16": text.encode("utf-16"),
        "nul": b"a\nb\0c\n",
        "lfs": bad_models.LFS,
        "html": b"<!DOCTYPE html>\n<html>",
        "foreign": b"my thesis",
        "cut.gz": gzip.compress(text.encode())[:-9],
        "gzipped": gzip.compress(text.encode()),
        "not.gz": text.encode(),
        "x.jsonl": b'{"text": "the cat"}\n',
        "long": b"x" * 300 + b"\n",
        "crlf.txt": text.replace("\n", "\r\n").encode(),
    }.items():
        (folder / name).write_bytes(d)
    os.link(folder / "a.txt", folder / "hard.txt")
    (folder / "soft.txt").symlink_to(folder / "a.txt")
    (folder / "dangling").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "fifo")
    (folder / "bases").mkdir()
    pieces = [
        *tiny_files.VOCAB[:1],
        "[unused0]",
        "[unused1]",
        *tiny_files.VOCAB[1:],
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"##{x}" for x in "bcdefghijklmnopqrtuvwxyza"),
    ]
    pieces = list(dict.fromkeys(pieces))

    def write(name, lines, encoding="utf-8"):
        (folder / name).write_bytes(
            "".join(f"{x}\n" for x in lines).encode(encoding)
        )

    write("base.txt", pieces)
    write("bases/twice", [*pieces, "cat"])
    write("bases/hole", [*pieces[:9], "", *pieces[9:]])
    write("bases/no_unk", [x for x in pieces if x != "[UNK]"])
    write("bases/full", [x for x in pieces if "unused" not in x])
    write(
        "bases/cased",
        [x.title() if x.isalpha() else x for x in tiny_files.VOCAB],
    )
    write("bases/latin1", [*pieces, "né"], "latin-1")
    return folder


test_bad_input = matrix.refused(SCRIPT, CASES)
test_the_good_command_is_good = matrix.good(SCRIPT)
test_what_rightly_works = matrix.rightly_works(SCRIPT, RIGHT)
