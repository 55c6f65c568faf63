"""Runs run_classifier.py where a run has been, or from its weights."""

import dataclasses
import json
import shutil

import bert_tf
from bert_tf.checkpoints import formats
from bert_tf.tasks.classification import predictions
from tests import classifier_runs

import numpy as np
import pytest


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of 40 rows."""
    path = tmp_path_factory.mktemp("data") / "train.tsv"
    rng = np.random.default_rng(0)
    rows = [
        f"{classifier_runs.sentence(rng)}\t{('neg', 'pos')[i % 2]}\n"
        for i in range(40)
    ]
    path.write_text("text\tlabel\n" + "".join(rows))
    return path


@pytest.fixture(scope="module")
def trained(model, table, tmp_path_factory):
    """A run that read in windows, and held out a tenth of its rows."""
    folder = tmp_path_factory.mktemp("output")
    code = classifier_runs.run_here(
        *("--do_train", f"--train_file={table}", *model),
        *("--dev_fraction=0.1", "--seed=7", "--long_documents=windows"),
        *("--num_train_epochs=0.2", f"--output_dir={folder}"),
    )
    assert not code
    assert (folder / "labels.txt").read_text() == "neg\npos\n"
    return folder


def _check(folder, model, *arguments):
    """Runs all checks, and no more."""
    return classifier_runs.run_here(
        *("--check_only", *model, f"--output_dir={folder}", *arguments)
    )


def test_check_only_without_training(trained, model, table, caplog):
    caplog.set_level("INFO", logger="absl")
    # Other flags than in training: that run does not go on.
    assert not _check(trained, model, "--do_predict", f"--test_file={table}")
    assert "Wrote 40 examples to predict.tf_record" in caplog.text
    assert "Found nothing that would stop this run" in caplog.text


# ---- Other flags than in training -------------------------------------------


def _of_reading(caplog):
    """What was said of texts that are read in another way."""
    start = "Texts are read in another way than in the training of "
    said = [x for x in caplog.messages if x.startswith(start)]
    return [x.removeprefix(start).partition(": ") for x in said]


def test_what_reads_texts_otherwise_is_logged(trained, model, table, caplog):
    arguments = ("--do_predict", f"--test_file={table}", "--max_seq_length=10")
    assert not _check(trained, model, *arguments, "--long_documents=head")
    path = f"{trained}/model.ckpt-1"
    assert _of_reading(caplog) == [
        (path, ": ", "long_documents was windows and is head"),
        (path, ": ", "max_seq_length was 12 and is 10"),
    ]


@pytest.mark.parametrize("weights", ["", "/model.ckpt-1"])
def test_what_is_left_out_is_as_in_training(
    weights, trained, model, table, tmp_path, caplog
):
    caplog.set_level("INFO", logger="absl")
    arguments = ("--do_predict", f"--test_file={table}")
    # Of the run itself, or of its weights in another folder.
    assert not _check(trained, model, *arguments)
    assert "--long_documents=windows, as in training." in caplog.messages
    caplog.clear()
    given = f"--init_checkpoint={trained}{weights}"
    assert not _check(tmp_path / "output", model, given, *arguments)
    assert "--long_documents=windows, as in training." in caplog.messages
    assert not _of_reading(caplog)


def test_casing_that_a_model_says(trained, table, tmp_path, caplog):
    """One that contradicts its vocabulary is read, and not learned from."""
    source = formats.open_checkpoint(str(trained))
    source = dataclasses.replace(source, do_lower_case=False, state=())
    hf, run = tmp_path / "hf", tmp_path / "run"
    formats.write(str(hf), "hf", formats.with_head(source, "encoder"))
    arguments = (f"--train_file={table}", f"--init_checkpoint={hf}")
    code = classifier_runs.run_here(
        *("--do_train", *arguments, f"--output_dir={run}"),
        *("--max_seq_length=12", "--train_batch_size=4"),
        "--num_train_epochs=0.2",
    )
    assert not code
    said = "says do_lower_case=False, which is "
    assert f"{said}not what is trained with" in caplog.text
    assert "--do_lower_case=true\n" in (run / "flags.txt").read_text()
    assert formats.open_checkpoint(str(run)).do_lower_case is True
    assert bert_tf.Tokenizer(str(run)).do_lower_case is True
    assert bert_tf.load(str(run)).do_lower_case is True
    assert f"{said}kept" not in caplog.text
    assert bert_tf.Tokenizer(str(hf)).do_lower_case is False
    assert bert_tf.load(str(hf)).do_lower_case is False
    assert f"{said}kept" in caplog.text
    # The same command again, from its own flags.
    again = f"--flagfile={run}/flags.txt"
    assert not classifier_runs.run_here(again, "--check_only")


def test_a_stride_belongs_to_windows(model, table, tmp_path, capsys):
    run = tmp_path / "run"
    assert not classifier_runs.run_here(
        *("--do_train", f"--train_file={table}", *model),
        *("--long_documents=windows", "--window_stride=4"),
        *("--num_train_epochs=0.2", f"--output_dir={run}"),
    )
    ask = ("--do_predict", f"--test_file={table}")
    assert not _check(run, model, *ask, "--long_documents=head")
    # The stride alone, as the training had windows; of another it is refused.
    assert not _check(run, model, *ask, "--window_stride=3")
    stride = ("--window_stride=3", "--long_documents=tail")
    assert _check(run, model, *ask, *stride) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "--window_stride goes with --long_documents=windows" in error


def test_another_dev_file_is_no_measure_of_the_best(
    model, table, tmp_path, capsys
):
    run, dev = tmp_path / "run", tmp_path / "dev.tsv"
    dev.write_text(table.read_text())
    arguments = (
        *("--do_train", "--do_eval", f"--train_file={table}", *model),
        *("--num_train_epochs=0.2", f"--output_dir={run}"),
    )
    same = classifier_runs.run_here
    assert not same(*arguments, f"--dev_file={table}")
    assert same(*arguments, f"--dev_file={dev}") == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"dev_file was {table} and is {dev}. Give what it had, or" in error
    assert not same(*arguments[1:], f"--dev_file={dev}")


def test_how_files_look_is_no_reading(trained, model, table, tmp_path, caplog):
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    path = tmp_path / "other.csv"
    path.write_text("".join(f'"{text}",{y}\n' for text, y in rows))
    arguments = (
        "--do_predict",
        f"--test_file={path}",
        *("--file_format=csv", "--text_a_column=text", "--label_column=label"),
    )
    assert not _check(trained, model, *arguments)
    assert not _of_reading(caplog)


def test_nothing_is_known_of_weights_of_no_run(
    trained, model, table, tmp_path, caplog
):
    for path in (*trained.glob("model.ckpt-1.*"), trained / "labels.txt"):
        shutil.copy(path, tmp_path)
    caplog.set_level("INFO", logger="absl")
    arguments = ("--do_predict", f"--test_file={table}")
    weights = f"--init_checkpoint={tmp_path}/model.ckpt-1"
    assert not _check(tmp_path / "output", model, weights, *arguments)
    assert "as in training" not in caplog.text
    assert not _of_reading(caplog)


def test_labels_come_with_the_weights(trained, model, table, tmp_path):
    code = classifier_runs.run_here(
        *("--do_predict", f"--test_file={table}", *model),
        *(f"--init_checkpoint={trained}", f"--output_dir={tmp_path}"),
    )
    assert not code
    rows = classifier_runs.rows(tmp_path / "predictions.jsonl")
    assert [list(row["probabilities"]) for row in rows] == [["neg", "pos"]] * 40


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (["--dev_fraction=0.1"], "seed was 7 and is 12345"),
        (
            ["--dev_fraction=0.2", "--seed=7"],
            "dev_fraction was 0.1 and is 0.2",
        ),
        (
            ["--dev_fraction=0.1", "--seed=7", "--train_file={tmp}/train.tsv"],
            "train_file was {table} and is {tmp}/train.tsv",
        ),
        (["--dev_fraction=0.1", "--seed=7"], None),
    ],
)
def test_dev_rows_are_those_held_out_of_training(
    given, received, trained, model, table, tmp_path, capsys
):
    (tmp_path / "train.tsv").write_text(table.read_text())
    places = {"tmp": tmp_path, "table": table}
    code = _check(
        *(trained, model, "--do_eval", f"--train_file={table}"),
        *(argument.format(**places) for argument in given),
    )
    error = capsys.readouterr().err.splitlines()[-1:]
    if not received:
        assert not code, error
        return
    assert code == 1
    assert "would not be those that were held out of the training" in error[0]
    assert error[0].endswith(f"Received: {received.format(**places)}")


def test_rows_that_other_weights_were_trained_on(
    trained, model, table, tmp_path, capsys, caplog
):
    """Rows held out here are rows that the weights know, unless drawn alike."""
    arguments = (
        *(f"--init_checkpoint={trained}", "--do_eval", "--dev_fraction=0.1"),
        f"--train_file={table}",
    )
    output = tmp_path / "output"
    assert _check(output, model, *arguments) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith("Received: seed was 7 and is 12345")
    assert not _check(output, model, *arguments, "--seed=7")
    # Other data than it had.
    other = tmp_path / "train.tsv"
    other.write_text(table.read_text())
    assert not _check(output, model, *arguments, f"--train_file={other}")
    # What trains on may know better; it is told.
    assert not _check(output, model, *arguments, "--do_train")
    (said,) = [x for x in caplog.messages if "Scores will flatter" in x]
    assert said.endswith("seed was 7 and is 12345")
    caplog.clear()
    assert not _check(output, model, *arguments, "--do_train", "--seed=7")
    assert "flatter" not in caplog.text


def test_a_run_goes_on_with_its_labels(trained, model, table, tmp_path, capsys):
    """Renamed in the same file, the classes would change places."""
    before = (trained / "labels.txt").read_text()
    text = table.read_text()
    arguments = (
        *("--do_train", f"--train_file={table}", "--dev_fraction=0.1"),
        *("--seed=7", "--long_documents=windows"),
    )
    try:
        table.write_text(text.replace("\tneg\n", "\tunhappy\n"))
        code = _check(trained, model, *arguments)
    finally:
        table.write_text(text)
    assert code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"{trained} was trained with other labels: neg, pos." in error
    assert error.endswith("another output_dir. Received: labels=pos, unhappy")
    assert (trained / "labels.txt").read_text() == before
    assert not _check(trained, model, *arguments)


# ---- Another model or other data than in training ---------------------------


def _swapped(path):
    """A vocabulary of the same size in which two words changed places."""
    *rest, last, end = path.read_text().splitlines()
    return "\n".join([*rest, end, last]) + "\n"


@pytest.mark.parametrize("is_training", [True, False])
def test_files_of_another_model_are_refused(
    is_training, trained, model, table, tmp_path, capsys
):
    arguments = ["--do_predict", f"--test_file={table}"]
    if is_training:
        arguments = [
            *("--do_train", f"--train_file={table}", "--dev_fraction=0.1"),
            *("--seed=7", "--long_documents=windows"),
        ]
    vocab, config = tmp_path / "vocab.txt", tmp_path / "config.json"
    vocab.write_text(_swapped(trained / "vocab.txt"))
    config.write_text(
        json.dumps(classifier_runs.CONFIG | {"hidden_act": "relu"})
    )
    for flag, problem in (
        (f"--vocab_file={vocab}", f"is not the vocabulary of {trained}: line "),
        (
            f"--bert_config_file={config}",
            f"is not the config of {trained}: hidden_act is relu there and ",
        ),
    ):
        assert _check(trained, model, *arguments, flag) == 1
        assert problem in capsys.readouterr().err
    assert not _check(trained, model, *arguments)


def test_a_run_goes_on_with_its_examples(model, table, tmp_path, capsys):
    own, output = tmp_path / "train.tsv", tmp_path / "output"
    text = table.read_text()
    own.write_text(text)

    def train(*more):
        return classifier_runs.run_here(
            *("--do_train", f"--train_file={own}", *model, *more),
            f"--output_dir={output}",
        )

    assert not train("--num_train_epochs=0.2")
    before = (output / "checkpoint").read_text()
    records = (output / "train.tf_record").read_bytes()
    for other in (text.replace("cat", "dog"), text + "old dog .\tneg\n"):
        own.write_text(other)
        assert train("--num_train_epochs=0.4") == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert f"{output} was trained on other examples" in error
        assert (output / "checkpoint").read_text() == before
        assert (output / "train.tf_record").read_bytes() == records
    own.write_text(text)
    assert not train("--num_train_epochs=0.4")
    assert (output / "checkpoint").read_text() != before


def test_a_look_at_a_training_leaves_its_records(
    trained, model, table, tmp_path
):
    records = {
        path: path.read_bytes() for path in trained.glob("*.tf_record")
    } | {trained / "eval.tf_record": b"of the training"}
    (trained / "eval.tf_record").write_bytes(b"of the training")
    classifier_runs.run(
        tmp_path,
        *("--do_eval", f"--dev_file={table}", "--do_predict", *model),
        *(f"--test_file={table}", f"--output_dir={trained}"),
    )
    assert (trained / "eval_results.txt").exists()
    assert {
        path: path.read_bytes() for path in trained.glob("*tf_record*")
    } == records
    assert not list(trained.glob("records.tmp*"))


def test_an_evaluation_that_failed_is_made_up_for(
    model, table, tmp_path, monkeypatch
):
    """And its weights are kept if they are the best, as here the first's."""

    def train(folder):
        return classifier_runs.run_here(
            *("--do_train", f"--train_file={table}", "--dev_fraction=0.5"),
            *("--do_eval", "--num_train_epochs=2", *model),
            f"--output_dir={tmp_path}/{folder}",
        )

    def evaluated(folder):
        path = tmp_path / folder / "metrics.jsonl"
        rows = classifier_runs.rows(path)
        return [row for row in rows if "eval_loss" in row]

    assert not train("whole")
    results, calls = predictions.results, []

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) in fails:
            raise OSError("the bucket is away")
        return results(*arguments)

    monkeypatch.setattr(predictions, "results", failing)
    # That of the first epoch twice, that of the second once.
    fails = {1, 2, 4}
    assert [train("failing") or 0 for _ in range(4)] == [1, 1, 1, 0]
    assert [row["step"] for row in evaluated("whole")] == [5, 10]
    assert evaluated("failing") == evaluated("whole")
    best = "best/results.json"
    assert (tmp_path / "failing" / best).read_text() == (
        tmp_path / "whole" / best
    ).read_text()
