"""Runs the examples, and those of the documents, as a newcomer does."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tests import exports

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Those of docs/extending.md are files, which tests/test_extending.py runs.
_PAGES = [
    _ROOT / "README.md",
    *sorted((_ROOT / "docs").rglob("*.md")),
]
_BLOCKS = {
    f"{page.stem}-{number}": code
    for page in _PAGES
    # What needs TensorFlow Serving is run, against a server of the tests' own,
    # by tests/exporting/test_tensorflow_serving_page.py.
    if page.stem != "tensorflow_serving"
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    )
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Has what the pages' paths stand for."""
    folder = tmp_path_factory.mktemp("examples")
    for name, path in (
        ("sst2_output", exports.run("one text")),
        ("mrpc_output", exports.run("classification")),
        ("pretrained", exports.run("pretraining")),
        # A checkpoint is one of any format.
        ("bert-base-uncased", exports.run("pretraining")),
        ("mrpc/1", exports.exported("classification")),
        ("mrpc_litert", exports.exported("classification", "litert")),
        ("mrpc_onnx", exports.exported("classification", "onnx")),
        ("next/1", exports.exported("next_piece")),
    ):
        shutil.copytree(path, folder / name)
    for name in ("pretrained", "bert-base-uncased"):
        for file in (folder / name).glob("model.ckpt-7.*"):
            file.rename(folder / name / f"bert_model.ckpt{file.suffix}")
        for file in ("flags.txt", "checkpoint"):
            (folder / name / file).unlink()
    (folder / "pairs.tsv").write_text("a film\twhat film\ngood\tbad\n")
    return folder


def run(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# One process for all, which imports TensorFlow once; names of its own for each.
_RUN_ALL = """
import contextlib, io, json, sys, traceback

found = {}
for name, code in json.load(open(sys.argv[1])).items():
    said, problem = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(code, name, "exec"), {"__name__": "__main__"})
    except BaseException:
        problem = traceback.format_exc()
    found[name] = said.getvalue(), problem
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def printed_of(folder):
    """Name of a block -> what it prints, and its traceback if it fails."""
    codes = {
        name: re.sub(r'"/(models|tmp)/', f'"{folder}/', code)
        # Ids of released vocabularies, which the tiny one here has not.
        .replace("[101, 2023, 2003, 2204, 102]", "[2, 5, 6, 7, 3]")
        for name, code in _BLOCKS.items()
    }
    file = folder / "blocks.json"
    file.write_text(json.dumps(codes))
    return json.loads(run("-c", _RUN_ALL, file).splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", _BLOCKS)
def test_page(printed_of, name):
    printed, problem = printed_of[name]
    assert not problem, problem
    # Other pages say in a comment what a last line returns.
    if name.startswith("python_api"):
        assert printed.strip(), "each example shows what it does"


def test_pages_have_their_examples():
    found = [name.rpartition("-")[0] for name in _BLOCKS]
    assert found.count("python_api") >= 9
    assert found.count("README") >= 2
    assert {"features", "serving"} <= set(found)


@pytest.mark.slow
def test_fill_masks(folder):
    printed = run(
        "examples/fill_masks.py",
        folder / "pretrained" / "bert_model.ckpt",
        "a [MASK].",
    ).splitlines()
    assert printed[0] == "a [MASK]."
    assert len(printed) == 6
    scores = [float(line.split()[0]) for line in printed[1:]]
    assert scores == sorted(scores, reverse=True)
    assert {line.split()[1] for line in printed[1:]} <= set(exports.VOCAB)


@pytest.mark.slow
def test_nearest_sentences(folder):
    (folder / "sentences.txt").write_text("a film\n\nbad, bad\nwhat film\n")
    printed = run(
        "examples/nearest_sentences.py",
        folder / "pretrained",
        folder / "sentences.txt",
        "bad, bad",
    ).splitlines()
    assert printed[0] == "1.000  bad, bad"
    assert len(printed) == 3


@pytest.mark.slow
def test_classify_csv(folder):
    rows = ["text,label", *("good film,good", "bad film,bad") * 10]
    (folder / "reviews.csv").write_text("\n".join(rows) + "\n")
    # The tiny model reads 16 pieces.
    source = (_ROOT / "examples" / "classify_csv.py").read_text()
    example = folder / "classify_csv.py"
    example.write_text(source.replace("length=128", "length=16"))
    files = [folder / x for x in ("reviews.csv", "pretrained", "model.keras")]
    printed = run(example, *files)
    assert re.search(r"'good film' is (good|bad)\n$", printed)
    assert all(file.exists() for file in files)
