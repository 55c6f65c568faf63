"""Runs run_squad.py where a run has been, from weights, and with mistakes."""

import json
import pathlib

from bert_tf.checkpoints import tf1_files
from tests import squad_runs

import numpy as np
import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Flags of a tiny model and its files."""
    return squad_runs.write(tmp_path_factory.mktemp("model"))


def test_check_only_says_what_it_found_and_writes_nothing(
    model, tmp_path, caplog
):
    files, shared = model
    weights = tmp_path / "weights"
    weights.mkdir()
    squad_runs.write_weights(weights)
    caplog.set_level("INFO", logger="absl")
    code = squad_runs.run_here(
        *(*shared, "--do_train", "--do_eval", "--check_only"),
        f"--train_file={files}/train.json",
        f"--predict_file={files}/dev.json",
        f"--init_checkpoint={tf1_files.latest(str(weights))}",
        f"--output_dir={tmp_path}/output",
    )
    assert not code
    for text in (
        "Data: 30 questions to train on",
        "Data: 9 questions to answer",
        "Restored ",
        "Found nothing that would stop this run",
    ):
        assert text in caplog.text
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    ("is_tuned", "work"),
    [
        (True, ["--do_export"]),
        (True, ["--do_predict", "--predict_file={files}/test2.json"]),
        # Will be tuned on these questions.
        (
            False,
            ["--do_export", "--do_predict", "--predict_file={files}/dev2.json"],
        ),
        # Needs no threshold.
        (False, ["--do_train", "--train_file={files}/train2.json"]),
    ],
)
def test_a_tuned_threshold_is_there_where_it_must_be(
    is_tuned, work, model, tmp_path
):
    files, shared = model
    if "--do_train" not in work:
        squad_runs.write_weights(tmp_path)
    if is_tuned:
        (tmp_path / "null_score_diff_threshold.txt").write_text("1.5\n")
    code = squad_runs.run_here(
        *(*shared, "--version_2_with_negative", "--check_only"),
        *("--null_score_diff_threshold=auto", f"--output_dir={tmp_path}"),
        *(argument.format(files=files) for argument in work),
    )
    assert not code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [
                "--flagfile={root}/configs/squad.flags",
                *("--max_seq_length=9", "--train_file={files}/none.json"),
                *("--max_query_length=3", "--predict_file={files}/dev.json"),
            ],
            "There is no such file. Received: {files}/none.json",
        ),
        (
            [
                "--flagfile={root}/configs/squad2.flags",
                *("--max_seq_length=9", "--train_file={files}/none.json"),
                *("--max_query_length=3", "--predict_file={files}/dev.json"),
            ],
            "There is no such file. Received: {files}/none.json",
        ),
    ],
)
def test_mistakes_end_in_one_line(arguments, message, model, tmp_path, capsys):
    files, shared = model
    places = {"files": files, "output": tmp_path / "output", "root": _ROOT}
    given = [argument.format(**places) for argument in arguments]
    code = squad_runs.run_here(
        *shared, f"--output_dir={places['output']}", *given
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("error: ")
    assert message.format(**places) in error[-1]
    assert not any("Traceback" in line for line in error)


def test_a_checkpoint_without_the_head(model, tmp_path, capsys):
    files, shared = model
    prefix = str(tmp_path / "bert_model.ckpt")
    tf1_files.write(prefix, {"output_weights": np.zeros([2, 8], np.float32)})
    code = squad_runs.run_here(
        *(*shared, "--do_predict", f"--predict_file={files}/dev.json"),
        *(f"--init_checkpoint={prefix}", f"--output_dir={tmp_path}/output"),
    )
    assert code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "is not fine-tuned: it has no span head" in error
    assert "cls/squad/output_weights" in error


def test_windows_are_cut_as_in_training_or_it_is_logged(
    model, tmp_path, caplog
):
    files, shared = model
    squad_runs.write_weights(tmp_path)
    (tmp_path / "flags.txt").write_text(
        "--do_lower_case=true\n--max_seq_length=16\n--doc_stride=4\n"
        "--max_query_length=4\n--version_2_with_negative=false\n--seed=7\n"
    )
    code = squad_runs.run_here(
        *(*shared, "--do_predict", "--check_only", "--doc_stride=5"),
        *(f"--predict_file={files}/dev.json", f"--output_dir={tmp_path}"),
    )
    assert not code
    said = [x for x in caplog.messages if "read in another way" in x]
    assert [x.partition(": ")[2] for x in said] == ["doc_stride was 4 and is 5"]


def test_answers_are_as_in_training_where_nothing_else_is_said(
    model, tmp_path, caplog
):
    _, shared = model
    caplog.set_level("INFO", logger="absl")
    squad_runs.write_weights(tmp_path)
    (tmp_path / "flags.txt").write_text(
        "--max_answer_length=7\n--n_best_size=3\n--doc_stride=5\n"
        "--version_2_with_negative=true\n--null_score_diff_threshold=auto\n"
    )
    (tmp_path / "null_score_diff_threshold.txt").write_text("-3.25\n")
    code = squad_runs.run_here(
        *(*shared, "--do_export", "--doc_stride=4"),
        f"--output_dir={tmp_path}",
    )
    assert not code
    export = tmp_path / "export" / "assets" / "export.json"
    said = json.loads(export.read_text())
    assert said["null_score_diff_threshold"] == -3.25
    assert (said["max_answer_length"], said["n_best_size"]) == (7, 3)
    assert said["doc_stride"] == 4
    # A number of one's own, without saying again what it goes with.
    code = squad_runs.run_here(
        *(*shared, "--do_export", "--null_score_diff_threshold=1.5"),
        f"--output_dir={tmp_path}",
    )
    assert not code
    assert json.loads(export.read_text())["null_score_diff_threshold"] == 1.5
