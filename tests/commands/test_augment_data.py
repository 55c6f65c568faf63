"""Runs augment_data.py on tables made here, with a tiny model."""

import csv
import itertools
import json
import re
import shutil

from bert_tf.checkpoints import tf1_files
from bert_tf.tasks import tables
from bert_tf.tasks.classification import glue, own_files
from bert_tf.tasks.classification import task as classification
from tests import scripts, tiny_files

import numpy as np
import pytest


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_files.write_model(folder)
    return [
        f"--init_checkpoint={folder}",
        *("--max_seq_length=32", "--candidates=6"),
    ]


def _run(*arguments):
    assert not scripts.run_here("augment_data", *arguments)


def _texts(number):
    rng = np.random.default_rng(0)
    words = [word.title() for word in tiny_files.WORDS[:22]]
    return [
        " ".join(rng.choice(words, rng.integers(1, 12))) + ' , "x"!'
        for _ in range(number)
    ]


def _write_csv(path):
    """Pairs, between columns that are to stay; a few of the texts are odd."""
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


@pytest.mark.slow
def test_pairs_of_ones_own(model, tmp_path):
    rows = _cells(_write_csv(tmp_path / "in.csv"))
    log = scripts.run(
        tmp_path / "log", "augment_data", *model, *_of_pairs(tmp_path)
    )
    assert log.wait() == 0, log.stderr
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
    assert [int(x) for x in said.groups()] == [
        len(rows) - 1,
        len(found) - 1,
        replaced,
    ]
    # Beyond the length, and where there are no words, nothing changes.
    ends = [row[4].split()[30:] for row in found[1:] if row[0] == "r27"]
    assert ends == [["dog"] * 20] * len(ends)
    _check_as_training_file(tmp_path, len(found) - 1)


def _changes(before, after):
    """How many words differ; what stands between them is the same."""
    words = r"[^\W\d_]+"
    assert re.split(words, before) == re.split(words, after)
    pairs = zip(
        re.findall(words, before), re.findall(words, after), strict=True
    )
    return sum(x != y for x, y in pairs)


def _check_as_training_file(folder, number):
    columns = own_files.Columns("first", "second", "label")
    task = own_files.custom(
        columns, {"train": f"{folder}/out.csv"}, None, False
    )
    assert task.labels == ("a", "b")
    assert len(list(classification.read(task, "", "train"))) == number


@pytest.mark.slow
def test_the_same_whatever_the_batch_and_what_was_there(model, tmp_path):
    _write_csv(tmp_path / "in.csv")
    _run(*model, *_of_pairs(tmp_path))
    whole = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "again.csv").write_text("mine")
    # Of a run that was killed.
    (tmp_path / "again.csv.tmp").write_text("half")
    again = (*model, *_of_pairs(tmp_path, "again.csv"))
    assert scripts.run_here("augment_data", *again) == 1
    assert (tmp_path / "again.csv").read_text() == "mine"
    _run(*again, "--overwrite", "--batch_size=1", "--sort_window=3")
    assert (tmp_path / "again.csv").read_bytes() == whole
    _run(*model, *_of_pairs(tmp_path, "other.csv"), "--seed=1")
    assert (tmp_path / "other.csv").read_bytes() != whole
    assert not list(tmp_path.glob("*.tmp"))


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
        *(*model, "--task_name=qqp", f"--data_dir={tmp_path}/QQP"),
        f"--output_file={tmp_path}/more/QQP/train.tsv",
        "--replace_probability=1",
    )
    task = glue.find("QQP")
    examples = list(
        classification.read(task, str(tmp_path / "more" / "QQP"), "train")
    )
    before = list(classification.read(task, str(tmp_path / "QQP"), "train"))
    assert len(before) == 28
    # Ten copies, as TinyBERT's; the original's rows stand among them.
    assert len(before) < len(examples) <= 11 * len(before)
    assert len(examples) > 9 * len(before)
    originals = iter(examples)
    for example in before:
        assert any(
            (x.text_a, x.text_b, x.label)
            == (example.text_a, example.text_b, example.label)
            for x in originals
        )


def test_a_head_that_its_run_did_not_train(model, tmp_path, capsys):
    folder = model[0].partition("=")[2]
    shutil.copytree(folder, tmp_path / "model")
    prefix = f"{tmp_path}/model/bert_model.ckpt"
    values = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
    word = "bert/embeddings/word_embeddings"
    # Moments of the encoder alone, as of a run that learned layers.
    tf1_files.write(prefix, values | {f"{word}/adam_m": values[word]})
    _write_csv(tmp_path / "in.csv")
    assert scripts.run_here(
        *("augment_data", f"--init_checkpoint={tmp_path}/model"),
        *_of_pairs(tmp_path),
    )
    error = capsys.readouterr().err.splitlines()[-1]
    assert "has a head for masked words that its run did not train" in error


def test_json_lines_and_stop_words_of_ones_own(model, tmp_path):
    rows = [{"n": i, "text": text} for i, text in enumerate(_texts(12))]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "stop.txt").write_text("Cat\ndog\nBIRD\n")
    _run(
        *(*model, f"--input_file={path}"),
        f"--output_file={tmp_path}/out.jsonl",
        f"--stop_words_file={tmp_path}/stop.txt",
        *("--replace_probability=1", "--augmentation_copies=2"),
    )
    found = [row for _, row in tables.json_objects(f"{tmp_path}/out.jsonl")]
    stay = {"Cat", "Dog", "Bird"}
    replaced_stop_words = 0
    for row in found:
        words = re.findall(r"[^\W\d_]+", rows[row["n"]]["text"])
        own = re.findall(r"[^\W\d_]+", row["text"])
        if words == own:
            continue
        for before, after in zip(words, own, strict=True):
            assert (before == after) == (before in stay)
            replaced_stop_words += before == "The"
    assert len(found) > 2 * len(rows)
    assert replaced_stop_words
