"""Runs run_classifier.py where a run has been, or from its weights."""

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
    assert "Data: 40 test examples" in caplog.text
    assert "Found nothing that would stop this run" in caplog.text
