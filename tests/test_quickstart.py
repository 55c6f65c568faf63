"""The quickstart's data: enough of it, balanced, and nothing leaks."""

import json
import os
import pathlib
import re
import subprocess
import sys

from quickstart import make_data

import pytest

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_FILES = (
    "corpus.txt",
    "corpus_eval.txt",
    "dev.tsv",
    "statistics.json",
    "test.tsv",
    "train.tsv",
)


def _make(folder: pathlib.Path, hash_seed: str) -> pathlib.Path:
    subprocess.run(
        [sys.executable, "quickstart/make_data.py", str(folder)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return _make(tmp_path_factory.mktemp("first"), "1")


def _rows(path: pathlib.Path) -> list[tuple[str, str]]:
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    assert header == "area\ttext"
    return [(area, text) for area, text in (x.split("\t") for x in lines)]


def _letters(text: str) -> str:
    """Our own idea of "the same text", apart from the data maker's."""
    return re.sub(r"[^a-z]", "", text.lower())


def test_sentences_leaves_out_code_and_rules():
    text = """The "with" statement
    ********************

    Locks the file, then
    reads it.  Works (mostly) on Linux too! See below:

       with lock: pass

    >>> lock()
    3

    Done.
    """
    assert make_data.sentences(text) == (
        'The "with" statement',
        "Locks the file, then reads it.",
        "Works (mostly) on Linux too!",
    )


def test_area_is_that_of_the_longest_known_name():
    def area(name):
        return make_data.Document(name, ()).area

    assert area("asyncio.locks.Lock") == "concurrency"
    assert area("builtins.str") == "text"
    assert area("builtins.int") == "numbers"
    assert area("builtins.list") is None
    assert area("topic.with") is None


def test_examples_do_not_name_their_module():
    document = make_data.Document(
        "tarfile.TarInfo",
        (
            ("Return the archived file's name as a string of text.",),
            ("Open a tarfile for reading, as the caller may want.",),
            ("Return the name.",),  # too short
        ),
    )
    (example,) = make_data.examples(document)
    assert example.area == "files"
    assert example.text.startswith("Return the archived")


def test_there_is_enough_of_everything(folder):
    counts = json.loads((folder / "statistics.json").read_text())
    corpus = (folder / "corpus.txt").read_text(encoding="utf-8")
    documents = [d for d in corpus.split("\n\n") if d.strip()]
    assert counts["corpus_documents"] == len(documents) > 1000
    assert len(corpus) > 1_200_000
    held_out = (folder / "corpus_eval.txt").read_text(encoding="utf-8")
    assert len(held_out) > 20_000
    for name in ("train", "dev", "test"):
        assert counts[f"{name}_examples"] == len(_rows(folder / f"{name}.tsv"))


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_areas_are_balanced(folder, name):
    areas = [area for area, _ in _rows(folder / f"{name}.tsv")]
    assert set(areas) == set(make_data.AREAS)
    share = max(map(areas.count, set(areas))) / len(areas)
    assert share < 1.3 / len(make_data.AREAS)


def test_held_out_texts_are_nowhere_else(folder):
    texts = {
        name: [_letters(text) for _, text in _rows(folder / f"{name}.tsv")]
        for name in ("train", "dev", "test")
    }
    corpus = _letters((folder / "corpus.txt").read_text(encoding="utf-8"))
    corpus += _letters((folder / "corpus_eval.txt").read_text(encoding="utf-8"))
    for held_out, others in (
        ("test", [corpus, *texts["train"], *texts["dev"]]),
        ("dev", [corpus, *texts["train"]]),
    ):
        everything = "|".join(others)
        # Short ones can be part of a longer sentence by chance.
        found = [t for t in texts[held_out] if len(t) > 40 and t in everything]
        assert not found


def test_training_texts_are_in_the_corpus(folder):
    # Which shows that the test above can fail.
    corpus = _letters((folder / "corpus.txt").read_text(encoding="utf-8"))
    for _, text in _rows(folder / "train.tsv"):
        assert _letters(text) in corpus


def test_evaluation_text_is_not_trained_on(folder):
    def lines(name):
        text = (folder / name).read_text(encoding="utf-8")
        return {make_data.key(line) for line in text.splitlines() if line}

    assert not lines("corpus_eval.txt") & lines("corpus.txt")


def test_same_python_same_files(folder, tmp_path):
    again = _make(tmp_path, "2")
    assert sorted(p.name for p in again.iterdir()) == sorted(_FILES)
    for name in _FILES:
        assert (again / name).read_bytes() == (folder / name).read_bytes(), name
