"""Runs run_classifier.py where a run has been, or from its weights."""

import dataclasses
import json
import shutil

import bert_tf
from bert_tf.checkpoints import formats
from tests import classifier_runs, store

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


@pytest.fixture(scope="module")
def stored():
    """A run that read in windows and held out a tenth of its 40 rows."""

    def make(folder):
        table = classifier_runs.write_table(folder / "train.tsv", 40)
        classifier_runs.run(
            *(folder, *classifier_runs.write_model(folder), "--do_train"),
            *(f"--train_file={table}", "--dev_fraction=0.1", "--seed=7"),
            *("--long_documents=windows", "--window_stride=4"),
            *("--num_train_epochs=0.2", f"--output_dir={folder}/run"),
        )

    return store.made("classifier_of_windows", make)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_runs.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def table(stored):
    return stored / "train.tsv"


@pytest.fixture(scope="module")
def trained(stored):
    return stored / "run"


@pytest.fixture
def check(model, tmp_path):
    """Runs all checks, and no more; returns the log, or the error."""

    def run(folder, *arguments, code=0):
        done = classifier_runs.run(
            *(tmp_path, "--check_only", *model, f"--output_dir={folder}"),
            *arguments,
            code=code,
        )
        return done.lines[-1] if code else done.stderr

    return run


_OTHERWISE = "Texts are read in a different way than in the training of "


def test_what_reads_texts_otherwise_is_logged(trained, check, table):
    arguments = ("--do_predict", f"--test_file={table}")
    said = check(
        *(trained, *arguments, "--max_seq_length=10", "--long_documents=head")
    )
    start = f"{_OTHERWISE}{trained}/model.ckpt-1: "
    lines = [x.partition(start)[2] for x in said.splitlines() if start in x]
    assert lines == [
        "long_documents was windows and is head",
        "window_stride was 4 and is None",
        "max_seq_length was 12 and is 10",
    ]
    # A stride belongs to windows: alone it is of those of the training.
    said = check(trained, *arguments, "--window_stride=3")
    assert "--long_documents=windows, as in training." in said
    assert "window_stride was 4 and is 3" in said
    assert "--window_stride goes with --long_documents=windows" in check(
        *(trained, *arguments, "--window_stride=3", "--long_documents=tail"),
        code=1,
    )


@pytest.mark.parametrize("weights", [None, "", "/model.ckpt-1"])
def test_what_is_left_out_is_as_in_training(
    weights, trained, check, table, tmp_path
):
    folder, arguments = trained, ["--do_predict", f"--test_file={table}"]
    if weights is not None:
        folder = tmp_path / "output"
        arguments.append(f"--init_checkpoint={trained}{weights}")
    said = check(folder, *arguments)
    assert "--long_documents=windows, as in training." in said
    assert _OTHERWISE not in said
    assert "Read 40 examples for predict.tf_record" in said
    assert "Found nothing that would stop this run" in said


@pytest.mark.exhaustive
def test_casing_that_a_model_says(trained, table, tmp_path, caplog):
    """One that contradicts its vocabulary is read, and not learned from."""
    source = formats.open_checkpoint(str(trained))
    source = dataclasses.replace(source, do_lower_case=False, state=())
    hf, run = tmp_path / "hf", tmp_path / "run"
    formats.write(str(hf), "hf", formats.with_head(source, "encoder"))
    done = classifier_runs.run(
        *(tmp_path, "--do_train", f"--train_file={table}"),
        *(f"--init_checkpoint={hf}", f"--output_dir={run}"),
        *(*classifier_runs.QUICK, "--num_train_epochs=0.2"),
    )
    said = "says do_lower_case=False, which is "
    assert f"{said}not what is trained with" in done.stderr
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
    classifier_runs.run(tmp_path, again, "--check_only")


def test_how_files_look_is_no_reading(trained, check, table, tmp_path):
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    path = tmp_path / "other.csv"
    path.write_text("".join(f'"{text}",{y}\n' for text, y in rows))
    said = check(
        *(trained, "--do_predict", f"--test_file={path}", "--file_format=csv"),
        *("--text_a_column=text", "--label_column=label"),
    )
    assert _OTHERWISE not in said


def test_nothing_is_known_of_weights_of_no_run(trained, check, table, tmp_path):
    for path in (*trained.glob("model.ckpt-1.*"), trained / "labels.txt"):
        shutil.copy(path, tmp_path)
    said = check(
        *(tmp_path / "output", "--do_predict", f"--test_file={table}"),
        f"--init_checkpoint={tmp_path}/model.ckpt-1",
    )
    assert "as in training" not in said
    assert _OTHERWISE not in said


def test_evaluating_alone_leaves_the_records_of_the_training(
    trained, model, table, tmp_path
):
    """In the run's folder, and the labels come with the weights."""
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "eval.tf_record").write_bytes(b"of the training")
    before = {path: path.read_bytes() for path in run.glob("*.tf_record")}
    classifier_runs.run(
        *(tmp_path, "--do_eval", f"--dev_file={table}", "--do_predict"),
        *(*model, f"--test_file={table}", f"--output_dir={run}"),
    )
    results = classifier_runs.results(run / "eval_results.txt")
    assert {"eval_accuracy", "eval_macro_f1"} <= results.keys()
    assert results["global_step"] == 1
    assert before == {x: x.read_bytes() for x in run.glob("*tf_record*")}
    assert not list(run.glob("records.tmp*"))
    assert (trained / "labels.txt").read_text() == "neg\npos\n"
    rows = classifier_runs.rows(run / "predictions.jsonl")
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
        (
            ["--dev_fraction=0.2", "--seed=7", "--train_file={tmp}/same.tsv"],
            "dev_fraction was 0.1 and is 0.2",
        ),
        (
            ["--dev_fraction=0.1", "--seed=7", "--train_file={tmp}/same.tsv"],
            None,
        ),
        (["--dev_fraction=0.1", "--seed=7"], None),
    ],
)
def test_dev_rows_are_those_held_out_of_training(
    given, received, trained, check, table, tmp_path
):
    (tmp_path / "same.tsv").write_text(table.read_text())
    (tmp_path / "train.tsv").write_text(table.read_text() + "more\tpos\n")
    places = {"tmp": tmp_path, "table": table}
    error = check(
        *(trained, "--do_eval", f"--train_file={table}"),
        *(argument.format(**places) for argument in given),
        code=int(received is not None),
    )
    if received:
        assert "would not be those that were held out of the training" in error
        assert error.endswith(f"Received: {received.format(**places)}")


def test_rows_that_other_weights_were_trained_on(
    trained, check, table, tmp_path
):
    """Rows held out here are rows that the weights know, unless drawn alike."""
    arguments = (
        *(tmp_path / "output", f"--init_checkpoint={trained}", "--do_eval"),
        *("--dev_fraction=0.1", f"--train_file={table}"),
    )
    seeds = "Received: seed was 7 and is 12345"
    assert check(*arguments, code=1).endswith(seeds)
    check(*arguments, "--seed=7")
    other = tmp_path / "train.tsv"
    other.write_text(table.read_text())
    assert check(*arguments, f"--train_file={other}", code=1).endswith(seeds)
    # Other data than it had.
    other.write_text(table.read_text() + "more\tpos\n")
    check(*arguments, f"--train_file={other}")
    # What trains on may know better: it is warned.
    warning = "Scores may be too high"
    said = check(*arguments, "--do_train").splitlines()
    (line,) = [x for x in said if warning in x]
    assert line.endswith("seed was 7 and is 12345")
    assert warning not in check(*arguments, "--do_train", "--seed=7")
    # Rows without a label are left out before.
    said = check(*arguments, "--do_train", "--seed=7", "--label_column=1")
    assert "label_column was label and is 1" in said


def test_a_table_that_grew_since_the_training(trained, check, table, tmp_path):
    own, run = tmp_path / "own.tsv", tmp_path / "run"
    shutil.copytree(trained, run)
    flags = (run / "flags.txt").read_text()
    (run / "flags.txt").write_text(flags.replace(str(table), str(own)))
    own.write_text(table.read_text() + "more\tpos\n")
    given = "--do_eval", f"--train_file={own}", "--dev_fraction=0.1", "--seed=7"
    problem = f"the content of train_file={own} has changed since the training"
    assert check(run, *given, code=1).endswith(problem)
    start = f"--init_checkpoint={run}"
    assert check(tmp_path / "output", start, *given, code=1).endswith(problem)
    # Runs of earlier versions do not know the content.
    path = run / "train_examples.json"
    examples = json.loads(path.read_text())
    del examples["train_file_sha256"]
    path.write_text(json.dumps(examples))
    check(run, *given)


def _going_on(path):
    return (
        *("--do_train", f"--train_file={path}", "--dev_fraction=0.1"),
        *("--seed=7", "--long_documents=windows", "--window_stride=4"),
    )


def test_a_run_goes_on_with_its_labels_and_examples(
    model, check, trained, table, tmp_path
):
    """Renamed in the same file, the classes would change places."""
    own, run = tmp_path / "own.tsv", tmp_path / "run"
    shutil.copytree(trained, run)
    flags = (run / "flags.txt").read_text()
    (run / "flags.txt").write_text(flags.replace(str(table), str(own)))
    text = table.read_text()
    before = {x: x.read_bytes() for x in run.iterdir() if x.is_file()}
    labels = "another output_dir. Received: labels=pos, unhappy"
    examples = f"{run} was trained on other examples"
    for other, problem in (
        (text.replace("\tneg\n", "\tunhappy\n"), labels),
        (text.replace("cat", "dog"), examples),
        (text + "old dog .\tneg\n", examples),
    ):
        own.write_text(other)
        done = classifier_runs.run(
            *(tmp_path, *_going_on(own), *model, f"--output_dir={run}"),
            "--num_train_epochs=0.4",
            code=1,
        )
        assert problem in done.lines[-1]
        assert {x: x.read_bytes() for x in before} == before
    own.write_text(text)
    check(run, *_going_on(own), "--num_train_epochs=0.4")


@pytest.mark.parametrize("is_training", [True, False])
def test_files_of_another_model_are_refused(
    is_training, trained, check, table, tmp_path
):
    arguments = ["--do_predict", f"--test_file={table}"]
    if is_training:
        arguments = [*_going_on(table)]
    # A vocabulary of the same size in which two words changed places.
    vocab, config = tmp_path / "vocab.txt", tmp_path / "config.json"
    *rest, last, end = (trained / "vocab.txt").read_text().splitlines()
    vocab.write_text("\n".join([*rest, end, last]) + "\n")
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
        assert problem in check(trained, *arguments, flag, code=1)
