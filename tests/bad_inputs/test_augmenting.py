import os
import pathlib

from bert_tf import heads, modeling
from tests import tiny_files
from tests.bad_inputs import cases, damaged, matrix

SCRIPT, CASES, RIGHT = cases.read("augmenting")


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    tiny_files.write_model(folder / "model")
    tiny_files.write_model(
        folder / "classifier",
        heads.BertClassifier(modeling.Bert(tiny_files.CONFIG), 2),
    )
    text = "text\tlabel\nthe cat sat .\tyes\na dog ran\tno\n"
    files = {
        "train.tsv": text,
        "train.csv": text.replace("\t", ","),
        "plain": text,
        "empty.tsv": b"",
        "header.tsv": b"text\tlabel\n",
        "other.tsv": b"sentence\tlabel\nthe cat\tyes\n",
        "short.tsv": b"label\ttext\nyes\tthe cat\nno\n",
        "long.tsv": b"text\tlabel\nthe\tcat\tyes\n",
        "blank.tsv": b"text\tlabel\n\nthe cat\tyes\n",
        "latin_1.tsv": "text\ncafé\n".encode("latin-1"),
        "utf_16.tsv": text.encode("utf-16"),
        "late.tsv": text.encode() + b"the cat\tyes\n" * 500 + b"\xff\tno\n",
        "keys.jsonl": b'{"text": "the cat"}\n{"sentence": "a dog"}\n',
        "null.jsonl": b'{"text": null}\n',
        "list.jsonl": b'{"text": ["the cat"]}\n',
        "half.jsonl": b'{"text": "the cat", "id": "\\ud83d"}\n',
        "notes.tsv": b"mine",
        "odd.tsv": "\ufefftext\r\nthe cat\r\n \r\nthe\u2028dog\x00 ,",
        "hard.tsv": damaged.Same("train.tsv"),
        "glue/train.tsv": "id\tquestion1\n1\tthe cat\n",
        "no_mask.txt": "[UNK]\n[CLS]\n[SEP]\nthe\n",
    }
    damaged.write_files(folder, files)


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)


def test_a_pipe(data, tmp_path):
    os.mkfifo(tmp_path / "pipe.tsv")
    case = matrix.Case(
        {"input_file": f"{tmp_path}/pipe.tsv"},
        "This file is read twice, which a pipe or a device can't be: write",
    )
    matrix.check(SCRIPT, case, data, tmp_path / "run")
