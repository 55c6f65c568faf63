"""The quickstart: its data, where nothing may leak, its report, its run."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from bert_tf.records import record_types, tfrecord
from examples.quickstart import family, make_data, report, run

import pytest

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TABLES = ("train", "dev", "test")
_FILES = {
    *("corpus.txt", "corpus_eval.txt", "statistics.json"),
    *(f"{name}.tsv" for name in _TABLES),
}


def _make(folder: pathlib.Path, hash_seed: str) -> pathlib.Path:
    subprocess.run(
        [sys.executable, "examples/quickstart/make_data.py", str(folder)],
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
    for name in _TABLES:
        areas = [area for area, _ in _rows(folder / f"{name}.tsv")]
        assert counts[f"{name}_examples"] == len(areas)
        assert set(areas) == set(make_data.AREAS)
        share = max(map(areas.count, set(areas))) / len(areas)
        assert share < 1.3 / len(make_data.AREAS)


def test_held_out_texts_are_nowhere_else(folder):
    texts = {
        name: [_letters(text) for _, text in _rows(folder / f"{name}.tsv")]
        for name in _TABLES
    }
    corpus = _letters((folder / "corpus.txt").read_text(encoding="utf-8"))
    # Which shows that the rest can fail.
    assert all(text in corpus for text in texts["train"])
    corpus += _letters((folder / "corpus_eval.txt").read_text(encoding="utf-8"))
    for held_out, others in (
        ("test", [corpus, *texts["train"], *texts["dev"]]),
        ("dev", [corpus, *texts["train"]]),
    ):
        everything = "|".join(others)
        # Short ones can be part of a longer sentence by chance.
        found = [t for t in texts[held_out] if len(t) > 40 and t in everything]
        assert not found


def test_evaluation_text_is_not_trained_on(folder):
    def lines(name):
        text = (folder / name).read_text(encoding="utf-8")
        return {make_data.key(line) for line in text.splitlines() if line}

    assert not lines("corpus_eval.txt") & lines("corpus.txt")


@pytest.mark.exhaustive
def test_same_python_same_files(folder, tmp_path):
    again = _make(tmp_path, "2")
    assert {p.name for p in again.iterdir()} == _FILES
    for name in _FILES:
        assert (again / name).read_bytes() == (folder / name).read_bytes(), name


def test_most_frequent_share_counts_only_real_predictions(tmp_path):
    def record(ids, weights):
        return record_types.PRETRAINING.encode(
            {
                "input_ids": [1, 2, 3, 4],
                "input_mask": [1, 1, 1, 1],
                "segment_ids": [0, 0, 0, 0],
                "masked_lm_positions": [1, 2, 0],
                "masked_lm_ids": ids,
                "masked_lm_weights": weights,
                "next_sentence_labels": [0],
            }
        )

    path = str(tmp_path / "a.tfrecord")
    with tfrecord.Writer(path) as writer:
        writer.write(record([7, 9, 0], [1.0, 1.0, 0.0]))
        writer.write(record([7, 0, 0], [1.0, 0.0, 0.0]))
    assert report.most_frequent_share([path]) == 2 / 3


def test_accuracy_is_of_the_most_probable_label(tmp_path):
    (tmp_path / "train.tsv").write_text("area\ttext\ntext\ta\nfiles\tb\n")
    (tmp_path / "test.tsv").write_text(
        'area\ttext\nfiles\t"x\ntext\ty\ntext\tz\nfiles\tw\n'
    )
    # Columns: files, text.
    (tmp_path / "test_results.tsv").write_text(
        "0.9\t0.1\n0.2\t0.8\n0.6\t0.4\n0.7\t0.3\n"
    )
    assert report.test_accuracy(tmp_path, tmp_path) == 0.75


def test_flagfiles_open_with_the_command_that_uses_them():
    commands = {command for _, _, command in run.STEPS}
    for name in family.FAMILIES:
        commands |= {command for _, command in family.steps(name)}
    for path in sorted((_ROOT / "configs" / "quickstart").glob("*.flags")):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        if path.stem != "fine_tune":  # what two others have in common
            assert first.removeprefix("# python ") in commands


@pytest.mark.parametrize(
    "pretraining, vocabulary",
    [
        ("run_pretraining", "learn_vocabulary"),
        *((f"{x}_pretraining", f"{x}_vocabulary") for x in family.FAMILIES),
    ],
)
def test_pre_training_keeps_the_vocabulary_beside_the_weights(
    pretraining, vocabulary
):
    folder = _ROOT / "configs" / "quickstart"
    lines = (folder / f"{pretraining}.flags").read_text().splitlines()
    learnt = (folder / f"{vocabulary}.flags").read_text().splitlines()
    (vocab,) = (line for line in learnt if line.startswith("--vocab_file="))
    assert vocab in lines


@pytest.mark.exhaustive  # Over a minute; make quickstart is the same.
def test_whole_run_with_few_steps(tmp_path):
    for name in ("bert_tf", "examples", "configs"):
        shutil.copytree(_ROOT / name, tmp_path / name)
    for path in _ROOT.glob("*.py"):
        shutil.copy(path, tmp_path)
    fewer = {
        "create_pretraining_data": "--dupe_factor=1",
        "run_pretraining": "--num_train_steps=20\n--num_warmup_steps=2\n"
        "--save_checkpoints_steps=20\n--log_steps=10",
        "fine_tune": "--num_train_epochs=1",
    }
    for name, flags in fewer.items():
        path = tmp_path / "configs" / "quickstart" / f"{name}.flags"
        path.write_text(path.read_text() + flags + "\n")  # the last one counts
    path = tmp_path / "configs" / "quickstart" / "fine_tune_pretrained.flags"
    path.write_text(re.sub(r"ckpt-\d+", "ckpt-20", path.read_text()))

    done = subprocess.run(
        [sys.executable, "examples/quickstart/run.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    folder = tmp_path / "runs" / "quickstart"
    rows = dict(
        re.split(r"  +", line.strip())
        for line in (folder / "report.txt").read_text().splitlines()
    )
    assert rows["test accuracy: majority class"] == "14.3%"
    assert re.fullmatch(r"[+-]\d+\.\d points", rows["gain from pre-training"])
    assert (folder / "curves.png").read_bytes()[1:4] == b"PNG"
    # Three sentences, each with one of the areas.
    predicted = done.stdout.partition("== 9/9")[2]
    areas = "|".join(make_data.AREAS)
    assert len(re.findall(rf"^  ({areas}) +\d+%  ", predicted, re.M)) == 3
