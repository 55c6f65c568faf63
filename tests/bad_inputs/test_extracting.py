import json
import pathlib
import shutil

from bert_tf.checkpoints import formats
from tests.bad_inputs import cases, damaged, matrix, surroundings

SCRIPT, CASES, RIGHT = cases.read("extracting")


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    model = folder / "model"
    damaged.write_models(folder)
    _write_sentence_transformers(folder / "models", model)
    text = "the cat sat .\na dog ran ||| it sees rome !\n"
    files: dict[str, object] = {
        "lines.txt": text,
        "lines.CSV": b"text\nthe cat\n",
        "lines.jsonl": b'{"text": "the cat"}\n',
        "many.txt": 9 * text.encode(),
        **{f"{x}.txt": data for x, data in damaged.NO_TEXTS.items()},
        "latin_1.txt": "the cat\ncafé\n".encode("latin-1"),
        "utf_16.txt": text.encode("utf-16"),
        "lines.txt.gz": damaged.GZIP,
        "late.txt": text.encode() * 300 + b"\xff\n",
        "notes.txt": b"mine",
        "mine.npy.offsets.npy": b"mine",
        "odd.txt": "\ufeffthe cat\r\n\n \t\n\u2028 a\x00 dog\nrome",
        "hard.txt": damaged.Same("lines.txt"),
        "link.txt": damaged.Link("lines.txt"),
        "other/": None,
    }
    damaged.write_files(folder, files)
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
    pooling = "st_max/1_Pooling/config.json"
    damaged.write_files(folder, {pooling: '{"pooling_mode": "max"}'})


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)


def test_too_small_a_disk(data, tmp_path):
    flags = {"input_file": "{data}/many.txt"}
    surroundings.check_full_disk(SCRIPT, flags, "x.jsonl", data, tmp_path)
