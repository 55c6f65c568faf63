"""Runs augment_data.py on tables made here, with a tiny model."""

import csv
import itertools
import json
import re
import shutil

from bert_tf.checkpoints import tf1_files
from bert_tf.tasks import tables
from bert_tf.tasks.classification import classification_task, glue, own_files
from tests import scripts, tiny_files, trained_weights

import numpy as np
import pytest

pytestmark = pytest.mark.slow

_WORDS = r"[^\W\d_]+"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_files.write_model(folder)
    return [
        f"--init_checkpoint={folder}",
        *("--max_seq_length=32", "--candidates=6"),
    ]


def _run(folder, *arguments, code=0):
    return scripts.run_checked(
        folder / "log", "augment_data", *arguments, code=code
    )


def _texts(number):
    rng = np.random.default_rng(0)
    words = [word.title() for word in tiny_files.WORDS[:22]]
    return [
        " ".join(rng.choice(words, rng.integers(1, 12))) + ' , "x"!'
        for _ in range(number)
    ]


def _write_csv(path):
    """Pairs, between columns that are kept; a few of the texts are odd."""
    texts = [*_texts(24), "", "cat", "3 . 1", "the\nSet, of", "dog " * 50, "of"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "first", "label", "note, b", "second"])
        for number, (first, second) in enumerate(itertools.pairwise(texts)):
            label = "ab"[number % 2]
            writer.writerow([f"r{number}", first, label, f'"{first}', second])
    return path


def _cells(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def _of_pairs(folder, name="out.csv"):
    return [
        f"--input_file={folder}/in.csv",
        f"--output_file={folder}/{name}",
        *("--text_a_column=first", "--text_b_column=second"),
        "--augmentation_copies=7",
    ]


def test_pairs_of_ones_own(model, tmp_path):
    rows = _cells(_write_csv(tmp_path / "in.csv"))
    log = _run(tmp_path, *model, *_of_pairs(tmp_path))
    found = _cells(tmp_path / "out.csv")
    assert found[0] == rows[0]
    groups = {
        key: list(group)
        for key, group in itertools.groupby(found[1:], lambda row: row[0])
    }
    assert list(groups) == [row[0] for row in rows[1:]]
    replaced = 0
    both = False
    for row in rows[1:]:
        first, *copies = groups[row[0]]
        assert first == row
        assert len(copies) <= 7
        assert len({tuple(x) for x in copies} | {tuple(row)}) == len(copies) + 1
        for copy in copies:
            assert (copy[2], copy[3]) == (row[2], row[3])
            both |= copy[1] != row[1] and copy[4] != row[4]
            replaced += _changes(row[1], copy[1]) + _changes(row[4], copy[4])
    assert both
    said = re.search(
        r"(\d+) rows in, (\d+) rows out, (\d+) words replaced; [\d.]+ rows",
        "\n".join(log.lines),
    )
    assert said is not None
    numbers = [len(rows) - 1, len(found) - 1, replaced]
    assert [int(x) for x in said.groups()] == numbers
    # Beyond the length, and where there are no words, nothing changes.
    ends = [row[4].split()[30:] for row in found[1:] if row[0] == "r27"]
    assert ends == [["dog"] * 20] * len(ends)
    # It is a training file.
    columns = own_files.Columns("first", "second", "label")
    files = {"train": f"{tmp_path}/out.csv"}
    task = own_files.custom(columns, files, None, False)
    assert task.labels == ("a", "b")
    examples = list(classification_task.read(task, "", "train"))
    assert len(examples) == len(found) - 1
    # The same whatever the batch and what was there.
    whole = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "again.csv").write_text("mine")
    # Of a run that was killed.
    (tmp_path / "again.csv.tmp").write_text("half")
    again = (*model, *_of_pairs(tmp_path, "again.csv"))
    _run(tmp_path, *again, code=1)
    assert (tmp_path / "again.csv").read_text() == "mine"
    _run(tmp_path, *again, "--overwrite", "--batch_size=1", "--sort_window=3")
    assert (tmp_path / "again.csv").read_bytes() == whole
    _run(tmp_path, *model, *_of_pairs(tmp_path, "other.csv"), "--seed=1")
    assert (tmp_path / "other.csv").read_bytes() != whole
    assert not list(tmp_path.glob("*.tmp"))


def _changes(before, after):
    """How many words differ; the text between them is the same."""
    assert re.split(_WORDS, before) == re.split(_WORDS, after)
    ours, theirs = (re.findall(_WORDS, text) for text in (before, after))
    return sum(x != y for x, y in zip(ours, theirs, strict=True))


@pytest.mark.usefixtures("untraced")
def test_a_task_of_glue(model, tmp_path):
    """QQP, whose released file has rows that are broken."""
    texts = _texts(20)
    rows = [
        ["1", "2", "3", first, second, str(number % 2)]
        for number, (first, second) in enumerate(itertools.pairwise(texts))
    ]
    header = ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    lines = ["\t".join(row) for row in [header, *rows[:9], rows[9][:4], *rows]]
    (tmp_path / "QQP").mkdir()
    (tmp_path / "QQP" / "train.tsv").write_text("\n".join(lines) + "\n")
    _run(
        *(tmp_path, *model, "--task_name=qqp"),
        f"--data_dir={tmp_path}/QQP",
        f"--output_file={tmp_path}/more/QQP/train.tsv",
        "--replace_probability=1",
    )
    task = glue.find("QQP")
    examples = list(
        classification_task.read(task, str(tmp_path / "more" / "QQP"), "train")
    )
    before = list(
        classification_task.read(task, str(tmp_path / "QQP"), "train")
    )
    assert len(before) == 28
    # Ten copies, as TinyBERT's; the original's rows are among them.
    assert len(before) < len(examples) <= 11 * len(before)
    assert len(examples) > 9 * len(before)
    found = iter((x.text_a, x.text_b, x.label) for x in examples)
    for example in before:
        assert (example.text_a, example.text_b, example.label) in found


@pytest.mark.usefixtures("untraced")
def test_a_head_that_its_run_did_not_train(model, tmp_path):
    folder = model[0].partition("=")[2]
    shutil.copytree(folder, tmp_path / "model")
    prefix = f"{tmp_path}/model/bert_model.ckpt"
    values = trained_weights.read(tmp_path / "model")
    word = "bert/embeddings/word_embeddings"
    # Moments of the encoder alone, as of a run that learned layers.
    tf1_files.write(prefix, values | {f"{word}/adam_m": values[word]})
    _write_csv(tmp_path / "in.csv")
    done = _run(
        *(tmp_path, f"--init_checkpoint={tmp_path}/model"),
        *_of_pairs(tmp_path),
        code=1,
    )
    said = "has a head for masked words that its run did not train"
    assert said in done.lines[-1]


@pytest.mark.usefixtures("untraced")
def test_json_lines_and_stop_words_of_ones_own(model, tmp_path):
    rows = [{"n": i, "text": text} for i, text in enumerate(_texts(12))]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "stop.txt").write_text("Cat\ndog\nBIRD\n")
    _run(
        *(tmp_path, *model, f"--input_file={path}"),
        f"--output_file={tmp_path}/out.jsonl",
        f"--stop_words_file={tmp_path}/stop.txt",
        *("--replace_probability=1", "--augmentation_copies=2"),
    )
    found = [row for _, row in tables.json_objects(f"{tmp_path}/out.jsonl")]
    stay = {"Cat", "Dog", "Bird"}
    replaced_stop_words = 0
    for row in found:
        words = re.findall(_WORDS, rows[row["n"]]["text"])
        own = re.findall(_WORDS, row["text"])
        if words == own:
            continue
        for before, after in zip(words, own, strict=True):
            assert (before == after) == (before in stay)
            replaced_stop_words += before == "The"
    assert len(found) > 2 * len(rows)
    assert replaced_stop_words
