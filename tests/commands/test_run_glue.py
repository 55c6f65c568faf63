"""Runs the script's own main, on tiny data made here."""

import json
import logging
import pathlib

from tests import scripts

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_CONFIG = {
    "vocab_size": 7,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
}
_TEST_ROWS = 146  # As many as WNLI has.


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Flags of a tiny model and of tiny data; WNLI has a test set."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "vocab.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n"
    )
    (folder / "bert_config.json").write_text(json.dumps(_CONFIG))
    rows = [f"{i}\ta b\tb{' a' * (i % 2)}" for i in range(_TEST_ROWS)]
    header = "index\tsentence1\tsentence2"
    (folder / "WNLI").mkdir()
    for split in ("train", "dev"):
        lines = [f"{row}\t{i % 2}\n" for i, row in enumerate(rows[:8])]
        (folder / "WNLI" / f"{split}.tsv").write_text(
            f"{header}\tlabel\n" + "".join(lines)
        )
    (folder / "WNLI" / "test.tsv").write_text(
        f"{header}\n" + "".join(f"{row}\n" for row in rows)
    )
    return [
        f"--data_dir={folder}",
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        "--max_seq_length=8",
        "--batch_sizes=4",
        "--predict_batch_size=32",
        "--epochs=1",
    ]


@pytest.mark.slow
def test_runs_table_and_predictions(flags, tmp_path):
    output = tmp_path / "out"
    given = [
        *(*flags, "--tasks=WNLI", "--seeds=3", "--learning_rates=0.1,0.01"),
        *("--do_predict=true", f"--output_dir={output}"),
    ]
    done = scripts.run(tmp_path / "log", "run_glue", *given)
    assert done.wait() == 0, done.stderr
    text = (output / "results.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["setting"]["learning_rate"] for row in rows] == [0.1, 0.01]
    for row in rows:
        lines = (output / row["folder"] / "eval_results.txt").read_text()
        assert f"eval_accuracy = {row['results']['accuracy']}\n" in lines
        assert "global_step = 2" in lines
    best = max(rows, key=lambda row: row["score"])
    table = json.loads((output / "table.json").read_text())
    assert table["average_of_means"] == best["results"]["accuracy"]
    assert (output / "table.md").read_text() in done.stdout
    server = (output / best["folder"] / "WNLI.tsv").read_text().splitlines()
    assert server[0] == "index\tprediction"
    assert [line.split("\t")[0] for line in server[1:]] == [
        str(i) for i in range(_TEST_ROWS)
    ]
    assert "No submission.zip" in done.stderr
    # Everything is done: the same command looks only.
    again = scripts.run(tmp_path / "again", "run_glue", *given)
    assert again.wait() == 0, again.stderr
    assert "2 runs, 2 are done." in again.stderr
    assert again.stdout == done.stdout
    assert (output / "results.jsonl").read_text() == text
    # Its best run teaches other runs.
    given = [*flags, "--tasks=WNLI", "--seeds=4", f"--teacher={output}"]
    given.append(f"--output_dir={tmp_path}/students")
    taught = scripts.run(tmp_path / "taught", "run_glue", *given)
    assert taught.wait() == 0, taught.stderr
    (line,) = (tmp_path / "students/results.jsonl").read_text().splitlines()
    row = json.loads(line)
    folder = tmp_path / "students" / row["folder"]
    kept = (folder / "flags.txt").read_text()
    assert f"--teacher={output}/{best['folder']}\n" in kept
    assert row["others"]["teacher"] != rows[0]["others"]["start"]


def test_teachers_of_all_tasks_are_needed(flags, tmp_path, capsys):
    given = [*flags, f"--output_dir={tmp_path}/out", "--check_only"]
    given += ["--tasks=WNLI", f"--teacher={tmp_path}"]
    assert _run_here(*given) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "--teacher holds no trained model of WNLI: give the out" in error
    assert _run_here(*given, "--distillation=minilm") == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "trains no head, and here every run is evaluated" in error


def _run_here(*arguments):
    """Runs the script in this process: quicker, for runs that end at once."""
    return scripts.run_here("run_glue", *arguments)


@pytest.mark.slow
def test_check_only_writes_nothing(flags, tmp_path, caplog):
    given = [
        f"--flagfile={_ROOT}/configs/glue_grid.flags",
        *(*flags, "--check_only", f"--output_dir={tmp_path}/out"),
    ]
    with caplog.at_level(logging.INFO):
        assert not _run_here(*given, "--tasks=WNLI")
    assert "WNLI: 8 train, 8 dev (a part: GLUE's has 635 train)." in caplog.text
    assert "Found nothing that would stop these runs." in caplog.text
    assert not (tmp_path / "out").exists()
