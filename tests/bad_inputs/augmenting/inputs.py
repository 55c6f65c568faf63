"""What augment_data.py is given that is wrong: commands and files."""

import os
import pathlib

from bert_tf import heads, modeling
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

SCRIPT = matrix.Script(
    "augment_data",
    {
        "input_file": "{data}/train.tsv",
        "output_file": "{out}/more.tsv",
        "init_checkpoint": "{data}/model",
        "max_seq_length": "16",
        "candidates": "5",
    },
)
TASK = {"input_file": None, "task_name": "QQP", "data_dir": "{data}/glue"}


def table(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another table."""
    changes = {"input_file": f"{{data}}/{name}", **flags}
    if not name.endswith(".tsv"):
        changes |= {"output_file": f"{{out}}/more.{name.rpartition('.')[2]}"}
    return matrix.Case(changes, line)


def output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another output."""
    return matrix.Case({"output_file": path, **flags}, line)


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    tiny_files.write_model(folder / "model")
    tiny_files.write_model(
        folder / "classifier",
        heads.BertClassifier(modeling.Bert(tiny_files.CONFIG), 2),
    )
    text = "text\tlabel\nthe cat sat .\tyes\na dog ran\tno\n"
    for name, data in {
        "train.tsv": text.encode(),
        "train.csv": text.replace("\t", ",").encode(),
        "plain": text.encode(),
        "empty.tsv": b"",
        "header.tsv": b"text\tlabel\n",
        "other.tsv": b"sentence\tlabel\nthe cat\tyes\n",
        "short.tsv": b"label\ttext\nyes\tthe cat\nno\n",
        "long.tsv": b"text\tlabel\nthe\tcat\tyes\n",
        "blank.tsv": b"text\tlabel\n\nthe cat\tyes\n",
        "latin_1.tsv": "text\ncafé\n".encode("latin-1"),
        "utf_16.tsv": text.encode("utf-16"),
        "train.tsv.gz": damaged.GZIP,
        "lfs.tsv": bad_models.LFS,
        "late.tsv": text.encode() + b"the cat\tyes\n" * 500 + b"\xff\tno\n",
        "quote.csv": b'text,label\nthe "cat",yes\n"a dog\n',
        "cut.jsonl": b'{"text": "the cat"}\n{"text": "a d',
        "keys.jsonl": b'{"text": "the cat"}\n{"sentence": "a dog"}\n',
        "null.jsonl": b'{"text": null}\n',
        "list.jsonl": b'{"text": ["the cat"]}\n',
        "half.jsonl": b'{"text": "the cat", "id": "\\ud83d"}\n',
        "notes.tsv": b"mine",
        "odd.tsv": "\ufefftext\r\nthe cat\r\n \r\nthe\u2028dog\x00 ,".encode(),
    }.items():
        (folder / name).write_bytes(data)
    os.link(folder / "train.tsv", folder / "hard.tsv")
    (folder / "glue").mkdir()
    (folder / "glue" / "train.tsv").write_text("id\tquestion1\n1\tthe cat\n")
    (folder / "no_mask.txt").write_text("[UNK]\n[CLS]\n[SEP]\nthe\n")
