"""What run_glue.py is given that is wrong: commands and files."""

import pathlib
import shutil

from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

SCRIPT = matrix.Script(
    "run_glue",
    {
        "data_dir": "{data}/glue",
        "tasks": "RTE",
        "seeds": "1",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "train_batch_size": "4",
        "num_train_epochs": "1",
    },
    has_check_only=True,
)


def data_of(name: str, line: str) -> matrix.Case:
    """Returns a case of another folder of all tasks."""
    return matrix.Case({"data_dir": f"{{data}}/{name}"}, line)


def model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return matrix.Case(
        {"init_checkpoint": f"{{data}}/models/{name}", **flags}, line
    )


def _rows(count: int, labels: tuple[str, ...]) -> str:
    rows = "".join(
        f"{i}\tthe cat\ta dog\t{labels[i % len(labels)]}\n"
        for i in range(count)
    )
    return f"index\tsentence1\tsentence2\tlabel\n{rows}"


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    tiny_files.write_model(folder / "model")
    text = _rows(12, ("entailment", "not_entailment"))
    rte = folder / "glue" / "RTE"
    rte.mkdir(parents=True)
    for name in ("train", "dev"):
        (rte / f"{name}.tsv").write_text(text)
    (rte / "test.tsv").write_text("index\tsentence1\tsentence2\n0\ta\tthe\n")
    wnli = folder / "glue" / "WNLI"
    wnli.mkdir()
    for name in ("train", "dev"):
        (wnli / f"{name}.tsv").write_text(_rows(4, ("0", "1")))
    _write_wrong_data(folder, text)
    damaged.write_changed(
        folder / "model", folder / "models", damaged.CONFIGS | damaged.VOCABS
    )
    bad_models.write(folder / "models", folder / "model")
    _write_folders(folder)
    (folder / "dé ta").symlink_to("glue")


def _write_wrong_data(folder: pathlib.Path, text: str) -> None:
    rows = text.splitlines()
    for name, data in {
        "empty": b"",
        "header_only": rows[0].encode() + b"\n",
        "no_column": text.replace("sentence2", "sentence3").encode(),
        "label": text.replace("not_entailment", "maybe").encode(),
        "latin_1": text.replace("cat", "caté").encode("latin-1"),
        "utf_16": text.encode("utf-16"),
        "lfs": bad_models.LFS,
        "html": damaged.HTML,
        "gzip": damaged.GZIP,
        "cut": text[:-30].encode(),
        "csv": text.replace("\t", ",").encode(),
    }.items():
        shutil.copytree(folder / "glue" / "RTE", folder / name / "RTE")
        (folder / name / "RTE" / "train.tsv").write_bytes(data)
    for name in ("no_dev", "folder", "dangling"):
        shutil.copytree(folder / "glue" / "RTE", folder / name / "RTE")
    (folder / "no_dev" / "RTE" / "dev.tsv").unlink()
    for name in ("folder", "dangling"):
        (folder / name / "RTE" / "train.tsv").unlink()
    (folder / "folder" / "RTE" / "train.tsv").mkdir()
    (folder / "dangling" / "RTE" / "train.tsv").symlink_to("none")


def _write_folders(folder: pathlib.Path) -> None:
    for name, (file, data) in {
        "other_run": ("flags.txt", b"# python run_classifier.py --x\n"),
        "tf1_run": ("model.ckpt-5.index", b"x"),
        "table": ("table.md", b"mine"),
        "results": ("results.jsonl", b'{"key": "x"}\n'),
        "binary": ("results.jsonl", damaged.BINARY),
    }.items():
        (folder / name).mkdir()
        (folder / name / file).write_bytes(data)
    (folder / "nested" / "results.jsonl").mkdir(parents=True)
