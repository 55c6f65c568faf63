import dataclasses
import os
import pathlib
import shutil

from tests import small_disks
from tests.bad_inputs import cases, damaged, matrix, surroundings

import pytest

SCRIPT, CASES, RIGHT = cases.read("glue")


def _rows(count: int, labels: tuple[str, ...]) -> str:
    rows = "".join(
        f"{i}\tthe cat\ta dog\t{labels[i % len(labels)]}\n"
        for i in range(count)
    )
    return f"index\tsentence1\tsentence2\tlabel\n{rows}"


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    damaged.write_models(folder)
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
    _write_folders(folder)
    (folder / "dé ta").symlink_to("glue")


def _write_wrong_data(folder: pathlib.Path, text: str) -> None:
    for name, data in {
        "empty": b"",
        "no_column": text.replace("sentence2", "sentence3").encode(),
        "label": text.replace("not_entailment", "maybe").encode(),
        "latin_1": text.replace("cat", "caté").encode("latin-1"),
        "utf_16": text.encode("utf-16"),
        "cut": text[:-30].encode(),
    }.items():
        shutil.copytree(folder / "glue" / "RTE", folder / name / "RTE")
        (folder / name / "RTE" / "train.tsv").write_bytes(data)
    for name in ("no_dev", "folder"):
        shutil.copytree(folder / "glue" / "RTE", folder / name / "RTE")
    (folder / "no_dev" / "RTE" / "dev.tsv").unlink()
    (folder / "folder" / "RTE" / "train.tsv").unlink()
    (folder / "folder" / "RTE" / "train.tsv").mkdir()


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


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
# Each case starts a process for each of its runs.
test_what_rightly_works = pytest.mark.exhaustive(matrix.right(SCRIPT, RIGHT))


def test_another_process_works_there(data, tmp_path):
    # Scripts may end before the run begins.
    case = matrix.Case({}, "{out} is in use: process ", checked=False)
    with surroundings.held(tmp_path / "out"):
        matrix.check(SCRIPT, case, data, tmp_path)


@pytest.mark.exhaustive
def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 32):
        case = matrix.Case(
            {"output_dir": f"{tmp_path}/disk/out"},
            "bytes free, and the checkpoints of this run need",
            checked=False,  # A lock takes some of them.
        )
        for more in ((), ("--check_only",)):
            each = dataclasses.replace(case, arguments=more)
            matrix.check(SCRIPT, each, data, tmp_path)
            assert not os.listdir(tmp_path / "disk")
