"""Runs run_multiple_choice.py on tiny problems."""

import csv

from tests import classifier_runs, fine_tuned

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


@pytest.fixture(scope="module")
def trained():
    return fine_tuned.trained("multiple_choice")


@pytest.fixture(scope="module")
def problems(trained):
    with (trained.files / "test.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_learns_which_ending_is_right(trained, problems):
    results = classifier_runs.results(trained.output / "eval_results.txt")
    assert results["eval_accuracy"] > 0.8  # Chance is 0.25.
    rows = classifier_runs.table(trained.output / "test_results.tsv")
    labels = [int(problem["label"]) for problem in problems]
    assert (rows.argmax(-1) == labels).mean() > 0.8
    predicted = classifier_runs.rows(trained.output / "test_predictions.jsonl")
    assert list(predicted[0]) == ["id", "choice", "probabilities"]
    assert [row["choice"] for row in predicted] == rows.argmax(-1).tolist()
    assert [row["id"] for row in predicted] == [str(i) for i in range(2, 20)]
    np.testing.assert_allclose(
        [row["probabilities"] for row in predicted], rows, atol=1e-6
    )


def test_texts_beside_predictions(trained, problems, tmp_path):
    trained.run(
        *(tmp_path, *trained.flags, *trained.data, "--do_predict"),
        *("--predictions_with_texts", f"--init_checkpoint={trained.output}"),
        f"--output_dir={tmp_path}/out",
    )
    rows = classifier_runs.rows(tmp_path / "out" / "test_predictions.jsonl")
    for row, problem in zip(rows, problems, strict=True):
        assert row["prompt"] == problem["sent1"]
        assert row["choices"] == [
            f"{problem['sent2']} {problem[f'ending{i}']}" for i in range(4)
        ]
        assert row["gold"] == int(problem["label"])
