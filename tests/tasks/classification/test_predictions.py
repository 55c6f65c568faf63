import json
import weakref

from bert_tf.tasks import tables
from bert_tf.tasks.classification import glue, own_files, predictions

import numpy as np
import pytest
from sklearn import metrics

_LOGITS = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 0.0]], np.float32)


def test_results_of_classes():
    task = own_files.custom(
        own_files.Columns("t", None, "y"), {}, ("a", "b", "c"), False
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
    scores = np.array([[1.5], [-2]])
    predictions.write_probabilities(str(path), scores)
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


_SETS = own_files.custom(
    own_files.Columns("t", None, "y"), {}, ("a", "b", "c"), False, ","
)


def test_results_of_several_labels():
    labels = np.array([[1, 0, 0], [1, 1, 0]])
    found = predictions.results(_SETS, _LOGITS, labels)
    probabilities = 1 / (1 + np.exp(-np.float64(_LOGITS)))
    is_given = probabilities > 0.5  # a; a and b
    assert found == pytest.approx(
        {
            "eval_micro_f1": 1.0,
            # Class c: never there and never predicted.
            "eval_macro_f1": 2 / 3,
            "eval_subset_accuracy": 1.0,
            "eval_loss": metrics.log_loss(
                labels.ravel(), probabilities.ravel()
            ),
        }
    )
    labels = np.array([[1, 0, 1], [0, 1, 0]])
    found = predictions.results(_SETS, _LOGITS, labels)
    tp = (is_given & (labels > 0)).sum()
    assert found["eval_micro_f1"] == pytest.approx(
        2 * tp / (is_given.sum() + labels.sum())
    )
    assert found["eval_subset_accuracy"] == 0


def test_predictions_by_name(tmp_path):
    path = tmp_path / "predictions.jsonl"

    def rows(task, logits):
        predictions.write_named(str(path), task, ["x1", "é"], logits)
        return [json.loads(line) for line in path.read_text().splitlines()]

    first, second = rows(glue.find("mnli"), _LOGITS)
    exponentials = np.exp(np.float64(_LOGITS))
    shares = exponentials / exponentials.sum(axis=1, keepdims=True)
    assert first["label"] == "contradiction"
    assert (second["id"], second["label"]) == ("é", "entailment")
    assert first["probability"] == pytest.approx(shares[0, 0])
    assert list(second["probabilities"].values()) == pytest.approx(shares[1])
    first, second = rows(_SETS, np.array([[-1.0, 2.0, 3.0], [-1.0, -2, 0]]))
    assert (first["labels"], second["labels"]) == (["c", "b"], [])
    assert first["probabilities"] == pytest.approx(
        {"a": 1 / (1 + np.e), "b": 1 / (1 + np.e**-2), "c": 1 / (1 + np.e**-3)}
    )
    assert rows(glue.find("stsb"), np.array([[1.5], [-2.0]])) == [
        {"id": "x1", "score": 1.5},
        {"id": "é", "score": -2.0},
    ]


def _read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_texts_and_gold_beside_predictions(tmp_path):
    path = tmp_path / "predictions.jsonl"
    examples = iter(
        [
            tables.Example("x1", "a “b”", "c", "neutral"),
            tables.Example("é", "d\tе", "", None),
        ]
    )
    predictions.write_named(
        str(path), glue.find("mnli"), ["x1", "é"], _LOGITS, examples
    )
    found = _read(path)
    assert [list(row)[:4] for row in found] == [
        ["id", "text_a", "text_b", "gold"],
        ["id", "text_a", "text_b", "label"],
    ]
    assert found[0]["text_a"] == "a “b”"
    assert (found[0]["gold"], found[0]["label"]) == ("neutral", "contradiction")
    assert found[1]["text_b"] == ""
    examples = iter(
        [
            tables.Example("x1", "a", "", ("b", "new")),
            tables.Example("é", "b", "", ()),
        ]
    )
    predictions.write_named(str(path), _SETS, ["x1", "é"], _LOGITS, examples)
    found = _read(path)
    assert [row["gold"] for row in found] == [["b", "new"], []]
    assert "text_b" not in found[0]
    task = own_files.custom(own_files.Columns("t", None, "y"), {}, None, True)
    examples = iter([tables.Example("x1", "a", "", 2.5)])
    predictions.write_named(str(path), task, ["x1"], np.ones([1, 1]), examples)
    assert _read(path) == [
        {"id": "x1", "text_a": "a", "gold": 2.5, "score": 1.0}
    ]


def test_texts_are_written_as_they_are_read(tmp_path):
    # One at a time, so that memory does not grow with the file.
    path = tmp_path / "predictions.jsonl"
    alive = []

    def read():
        for i in range(50):
            example = tables.Example(str(i), "a" * 100_000, "", "a")
            alive.append(weakref.ref(example))
            assert sum(x() is not None for x in alive) < 5
            yield example

    logits = np.zeros([50, 3])
    predictions.write_named(
        str(path), _SETS, map(str, range(50)), logits, read()
    )
    assert len(alive) == 50
    assert path.stat().st_size > 5_000_000
