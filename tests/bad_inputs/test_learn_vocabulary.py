"""Bad inputs of learn_vocabulary.py."""

import gzip
import os

from tests import tiny_files
from tests.bad_inputs import bad_models, matrix

import pytest

SCRIPT = matrix.Script(
    "learn_vocabulary",
    {
        "input_file": "{data}/a.txt",
        "vocab_file": "{out}/vocab.txt",
        "vocab_size": "200",
    },
)

_EXTEND = {"extend_vocab": "{data}/base.txt"}
CASES = {
    "no file": matrix.Case({"input_file": "{data}/none.txt"}, ""),
    "flag missing": matrix.Case({"input_file": None}, ""),
    "both missing": matrix.Case({"input_file": None, "vocab_file": None}, ""),
    "glob of nothing": matrix.Case({"input_file": "{data}/none/*.txt"}, ""),
    "dangling": matrix.Case({"input_file": "{data}/dangling"}, ""),
    "empty": matrix.Case({"input_file": "{data}/empty"}, ""),
    "folder": matrix.Case({"input_file": "{data}"}, ""),
    "pipe": matrix.Case({"input_file": "{data}/fifo"}, ""),
    "empty string": matrix.Case({"input_file": ""}, ""),
    "blank": matrix.Case({"input_file": "{data}/blank"}, ""),
    "blank extend": matrix.Case({"input_file": "{data}/blank", **_EXTEND}, ""),
    "latin1": matrix.Case({"input_file": "{data}/latin1"}, ""),
    "utf16": matrix.Case({"input_file": "{data}/utf16"}, ""),
    "nul": matrix.Case({"input_file": "{data}/nul"}, ""),
    "lfs": matrix.Case({"input_file": "{data}/lfs"}, ""),
    "html": matrix.Case({"input_file": "{data}/html"}, ""),
    "gz cut": matrix.Case({"input_file": "{data}/cut.gz"}, ""),
    "gz without ending": matrix.Case({"input_file": "{data}/gzipped"}, ""),
    "gz not": matrix.Case({"input_file": "{data}/not.gz"}, ""),
    "jsonl is text": matrix.Case({"input_format": "jsonl"}, ""),
    "jsonl field": matrix.Case(
        {
            "input_file": "{data}/x.jsonl",
            "input_format": "jsonl",
            "text_field": "body",
        },
        "",
    ),
    "wiki not": matrix.Case({"input_format": "wikiextractor"}, ""),
    "tfds": matrix.Case({"input_format": "tfds"}, ""),
    "format": matrix.Case({"input_format": "csv"}, ""),
    "language": matrix.Case(
        {"input_format": "documents", "language": "English"}, ""
    ),
    "text_field unused": matrix.Case({"text_field": "body"}, ""),
    "language unused": matrix.Case({"language": "de"}, ""),
    "language documents unused": matrix.Case(
        {"input_format": "documents", "language": "de"}, ""
    ),
    "long words": matrix.Case({"input_file": "{data}/long"}, ""),
    "long words extend": matrix.Case(
        {"input_file": "{data}/long", **_EXTEND}, ""
    ),
    "scheme": matrix.Case({"input_file": "foo://x/y"}, ""),
    # output
    "out input": matrix.Case(
        {"vocab_file": "{data}/a.txt", "overwrite": "true"}, ""
    ),
    "out input hard": matrix.Case(
        {"vocab_file": "{data}/hard.txt", "overwrite": "true"}, ""
    ),
    "out input soft": matrix.Case(
        {"vocab_file": "{data}/soft.txt", "overwrite": "true"}, ""
    ),
    "out input dots": matrix.Case(
        {"vocab_file": "{data}/model/../a.txt", "overwrite": "true"}, ""
    ),
    "out input glob": matrix.Case(
        {
            "input_file": "{data}/?.txt",
            "vocab_file": "{data}/a.txt",
            "overwrite": "true",
        },
        "",
    ),
    "out would be input": matrix.Case(
        {"input_file": "{data}/?.txt", "vocab_file": "{data}/x.txt"}, ""
    ),
    "out base": matrix.Case(
        {**_EXTEND, "vocab_file": "{data}/base.txt", "overwrite": "true"}, ""
    ),
    "out exists": matrix.Case({"vocab_file": "{data}/foreign"}, ""),
    "out a model's": matrix.Case({"vocab_file": "{data}/model/vocab.txt"}, ""),
    "out folder": matrix.Case({"vocab_file": "{data}/model"}, ""),
    "out folder slash": matrix.Case({"vocab_file": "{out}/new/"}, ""),
    "out below file": matrix.Case({"vocab_file": "{data}/a.txt/vocab.txt"}, ""),
    "out empty": matrix.Case({"vocab_file": ""}, ""),
    "out dangling": matrix.Case({"vocab_file": "{data}/dangling"}, ""),
    "out newline": matrix.Case({"vocab_file": "{out}/a\nb"}, ""),
    "out too long": matrix.Case({"vocab_file": "{out}/" + 300 * "x"}, ""),
    "out too long with tmp": matrix.Case(
        {"vocab_file": "{out}/" + 253 * "x"}, ""
    ),
    "out fifo": matrix.Case({"vocab_file": "{data}/fifo"}, ""),
    # base
    **{
        f"base {n}": matrix.Case({"extend_vocab": f"{{data}}/{n}"}, "")
        for n in (
            "none",
            "model",
            "empty",
            "fifo",
            "dangling",
            "lfs",
            "a.txt",
            "utf16",
            "bases/twice",
            "bases/hole",
            "bases/no_unk",
            "bases/full",
            "bases/cased",
            "bases/latin1",
        )
    },
    "base uncased": matrix.Case({**_EXTEND, "do_lower_case": "false"}, ""),
    "base empty string": matrix.Case({"extend_vocab": ""}, ""),
    "appended alone": matrix.Case({"num_appended": "5"}, ""),
    "unused with extend": matrix.Case({**_EXTEND, "num_unused": "5"}, ""),
    "appended -1": matrix.Case({**_EXTEND, "num_appended": "-1"}, ""),
    "appended huge": matrix.Case({**_EXTEND, "num_appended": "2000000000"}, ""),
    # numbers
    **{
        f"{flag}={value}": matrix.Case({flag: value}, "")
        for flag, value in [
            ("vocab_size", "0"),
            ("vocab_size", "-5"),
            ("vocab_size", "105"),
            ("vocab_size", "nan"),
            ("vocab_size", "1e4"),
            ("vocab_size", ""),
            ("vocab_size", "30,000"),
            ("vocab_size", "9223372036854775808"),
            ("min_frequency", "0"),
            ("min_frequency", "-1"),
            ("min_frequency", "inf"),
            ("min_frequency", "99999999999999999999"),
            ("max_characters", "0"),
            ("max_characters", "all"),
            ("num_unused", "-1"),
            ("num_unused", "500"),
            ("num_unused", "2000000000"),
            ("num_unused", "9223372036854775808"),
            ("do_lower_case", "no way"),
            ("overwrite", "perhaps"),
            ("on_bad_text", "skip"),
        ]
    },
    "misspelt": matrix.Case({}, "", arguments=("--vocabsize=3",)),
    "argument": matrix.Case({}, "", arguments=("{data}/b.txt",)),
    "two": matrix.Case(
        {"input_file": "{data}/none", "vocab_file": "{data}/foreign"}, ""
    ),
}
GOOD = {
    "names": matrix.Case({"vocab_file": "{out}/ä ö/☃.txt"}, ""),
    "crlf": matrix.Case({"input_file": "{data}/crlf.txt"}, ""),
    "env": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "x",
        },
    ),
    "vocab_size=2147483647": matrix.Case({"vocab_size": "2147483647"}, ""),
    "min_frequency": matrix.Case({"min_frequency": "2147483647"}, ""),
    "out overwrite": matrix.Case({"overwrite": "true"}, ""),
    "replace": matrix.Case(
        {"input_file": "{data}/latin1", "on_bad_text": "replace"}, ""
    ),
    "one character": matrix.Case({"max_characters": "1"}, ""),
    "extend": matrix.Case(_EXTEND, ""),
    "extend bigger": matrix.Case({**_EXTEND, "vocab_size": "2147483647"}, ""),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
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
        [x.title() if len(x) > 1 else x for x in tiny_files.VOCAB],
    )
    write("bases/latin1", [*pieces, "né"], "latin-1")
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)
