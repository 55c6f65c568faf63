from bert_tf.tasks import classification, glue, predictions

import numpy as np
import pytest

_LOGITS = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 0.0]], np.float32)


def test_results_of_classes():
    task = classification.custom(
        classification.Columns("t", None, "y"), {}, ("a", "b", "c"), False
    )
    found = predictions.results(task, _LOGITS, np.array([0, 2]))
    exponentials = np.exp(np.float64(_LOGITS))
    chosen = exponentials[[0, 1], [0, 2]] / exponentials.sum(axis=1)
    assert found == pytest.approx(
        {
            "eval_accuracy": 0.5,
            # Class a: 1. Class b: never right. Class c: never predicted.
            "eval_macro_f1": 1 / 3,
            "eval_loss": -np.log(chosen).mean(),
        }
    )


def test_results_of_scores():
    found = predictions.results(
        glue.find("stsb"), np.array([[1.0], [2.0], [4.0]]), np.array([1, 3, 4])
    )
    assert found == pytest.approx(
        {
            "eval_spearman": 1.0,
            "eval_pearson": np.corrcoef([1, 2, 4], [1, 3, 4])[0, 1],
            "eval_loss": 1 / 3,
        }
    )


def test_probabilities_as_the_original(tmp_path):
    path = tmp_path / "test_results.tsv"
    predictions.write_probabilities(
        str(path), np.log(np.array([[1, 3], [1, 1]], np.float32))
    )
    assert path.read_text() == "0.25\t0.75\n0.5\t0.5\n"
    predictions.write_probabilities(str(path), np.array([[1.5], [-2]]))
    assert path.read_text() == "1.5\n-2.0\n"
    assert list(tmp_path.iterdir()) == [path]


def test_files_for_the_glue_server(tmp_path):
    path = tmp_path / "MNLI-m.tsv"
    predictions.write_server_file(str(path), glue.find("mnli"), _LOGITS)
    assert path.read_text() == (
        "index\tprediction\n0\tcontradiction\n1\tentailment\n"
    )
    scores = np.array([[-0.5], [2.34567], [7]])
    predictions.write_server_file(str(path), glue.find("stsb"), scores)
    assert path.read_text() == (
        "index\tprediction\n0\t0.000\n1\t2.346\n2\t5.000\n"
    )
