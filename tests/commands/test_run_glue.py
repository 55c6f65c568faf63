"""Runs run_glue.py on tiny data made here."""

import json
import pathlib

from bert_tf.tasks import trials
from tests import classifier_runs, scripts, tiny_files

import pytest


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Flags of a tiny model and of tiny data."""
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_files(folder, classifier_runs.MODEL)
    rows = [f"{i}\ta cat\tcat{' a' * (i % 2)}\t{i % 2}" for i in range(8)]
    table = "\n".join(["index\tsentence1\tsentence2\tlabel", *rows]) + "\n"
    (folder / "WNLI").mkdir()
    for split in ("train", "dev"):
        (folder / "WNLI" / f"{split}.tsv").write_text(table)
    return [
        f"--data_dir={folder}",
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        "--max_seq_length=8",
        "--batch_sizes=4",
        "--predict_batch_size=32",
        "--epochs=1",
    ]


def _call(script, values, log, lock):
    """Runs a script as `trials.call` does, in this process, which is faster."""
    del lock
    flags = [f"--{name}={value}" for name, value in values.items()]
    name, folder = pathlib.Path(script).stem, pathlib.Path(log).parent
    scripts.run_checked(folder / "log", name, *flags)


def _run(folder, *flags):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "call", _call)
        return scripts.run_checked(folder / "log", "run_glue", *flags)


@pytest.fixture(scope="module", name="made")
def _made(flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    output = folder / "out"
    given = [
        *(*flags, "--tasks=WNLI", "--seeds=3", "--learning_rates=0.1"),
        *(f"--output_dir={output}", "--double_unordered"),
    ]
    return given, output, _run(folder, *given)


@pytest.mark.slow
def test_runs_and_table(made, tmp_path):
    given, output, done = made
    text = (output / "results.jsonl").read_text()
    (row,) = classifier_runs.rows(output / "results.jsonl")
    assert row["setting"]["learning_rate"] == 0.1
    assert row["others"]["double_unordered"] == "true"
    lines = (output / row["folder"] / "eval_results.txt").read_text()
    assert f"eval_accuracy = {row['results']['accuracy']}\n" in lines
    assert "global_step = 2" in lines
    table = json.loads((output / "table.json").read_text())
    assert table["average_of_means"] == row["results"]["accuracy"]
    assert (output / "table.md").read_text() in done.stdout
    # Everything is done: the same command looks only.
    again = _run(tmp_path, *given)
    assert "1 runs, 1 are done." in again.stderr
    assert again.stdout == done.stdout
    assert (output / "results.jsonl").read_text() == text


@pytest.mark.exhaustive
def test_the_best_run_teaches_others(flags, made, tmp_path):
    _, output, _ = made
    students = tmp_path / "students"
    _run(
        *(tmp_path, *flags, "--tasks=WNLI", "--seeds=4"),
        *(f"--teacher={output}", f"--output_dir={students}"),
    )
    (best,) = classifier_runs.rows(output / "results.jsonl")
    (row,) = classifier_runs.rows(students / "results.jsonl")
    kept = (students / row["folder"] / "flags.txt").read_text()
    assert f"--teacher={output}/{best['folder']}\n" in kept
    assert row["others"]["teacher"] != best["others"]["start"]
