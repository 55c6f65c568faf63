"""What extract_features.py is given that is wrong: commands and files."""

import json
import os
import pathlib
import shutil

from bert_tf.checkpoints import formats
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

SCRIPT = matrix.Script(
    "extract_features",
    {
        "input_file": "{data}/lines.txt",
        "output_file": "{out}/vectors.jsonl",
        "init_checkpoint": "{data}/model",
        "max_seq_length": "16",
        "layers": "-1",
    },
)


def input_of(name: str, line: str) -> matrix.Case:
    """Returns a case of another input."""
    return matrix.Case({"input_file": f"{{data}}/{name}"}, line)


def output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another output."""
    return matrix.Case({"output_file": path, **flags}, line)


def export(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a SavedModel besides."""
    return matrix.Case({"export_dir": path, "unit": "mean", **flags}, line)


def model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another model."""
    return matrix.Case(
        {"init_checkpoint": f"{{data}}/models/{name}", **flags}, line
    )


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    model = folder / "model"
    tiny_files.write_model(model)
    damaged.write_changed(
        model, folder / "models", damaged.CONFIGS | damaged.VOCABS
    )
    bad_models.write(folder / "models", model)
    _write_sentence_transformers(folder / "models", model)
    text = "the cat sat .\na dog ran ||| it sees rome !\n"
    for name, data in {
        "lines.txt": text.encode(),
        "lines.CSV": b"text\nthe cat\n",
        "lines.jsonl": b'{"text": "the cat"}\n',
        "many.txt": 9 * text.encode(),
        "empty.txt": b"",
        "latin_1.txt": "the cat\ncafé\n".encode("latin-1"),
        "utf_16.txt": text.encode("utf-16"),
        "binary.txt": damaged.BINARY,
        "lines.txt.gz": damaged.GZIP,
        "lfs.txt": bad_models.LFS,
        "late.txt": text.encode() * 300 + b"\xff\n",
        "notes.txt": b"mine",
        "mine.npy.offsets.npy": b"mine",
        "odd.txt": "\ufeffthe cat\r\n\n \t\n\u2028 a\x00 dog\nrome".encode(),
    }.items():
        (folder / name).write_bytes(data)
    (folder / "dangling").symlink_to("none")
    os.link(folder / "lines.txt", folder / "hard.txt")
    (folder / "link.txt").symlink_to("lines.txt")
    (folder / "other").mkdir()
    shutil.copy(model / "bert_config.json", folder / "other")


def _write_sentence_transformers(
    folder: pathlib.Path, model: pathlib.Path
) -> None:
    source = formats.open_checkpoint(str(model))
    formats.write(str(folder / "hf"), "hf", source)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in kinds.items()
    ]
    whole = json.dumps(modules)
    for name, text in {
        "st_cut": whole[:30],
        "st_max": whole,
        "st_no_pooling": json.dumps(modules[:1]),
    }.items():
        shutil.copytree(folder / "hf", folder / name)
        (folder / name / "modules.json").write_text(text)
    (folder / "st_max" / "1_Pooling").mkdir()
    (folder / "st_max" / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode": "max"}'
    )
