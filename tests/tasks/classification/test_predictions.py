import json
import weakref

from bert_tf.tasks import tables
from bert_tf.tasks.classification import glue, own_files, predictions

import numpy as np
import pytest
from sklearn import metrics

_LOGITS = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 0.0]], np.float32)
_CLASSES, _SETS = (
    own_files.custom(
        own_files.Columns("t", None, "y"), {}, ("a", "b", "c"), False, by
    )
    for by in (None, ",")
)
_SHARES = np.exp(np.float64(_LOGITS))
_SHARES /= _SHARES.sum(axis=1, keepdims=True)


def _named(path, task, *how):
    predictions.write_named(str(path / "x.jsonl"), task, *how)
    return list(map(json.loads, (path / "x.jsonl").read_text().splitlines()))


def test_results_of_classes_and_scores():
    found = predictions.results(_CLASSES, _LOGITS, np.array([0, 2]))
    assert found == pytest.approx(
        {
            "eval_accuracy": 0.5,
            # Class a: F1 of 1. Class b: never right. Class c: never predicted.
            "eval_macro_f1": 1 / 3,
            "eval_loss": -np.log(_SHARES[[0, 1], [0, 2]]).mean(),
        }
    )
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


def test_results_of_several_labels():
    labels = np.array([[1, 0, 0], [1, 1, 0]])
    found = predictions.results(_SETS, _LOGITS, labels)
    probabilities = 1 / (1 + np.exp(-np.float64(_LOGITS)))
    is_given = probabilities > 0.5  # a; then a and b
    assert found == pytest.approx(
        {
            "eval_micro_f1": 1.0,
            # Class c: absent and never predicted.
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
    ids = ["x1", "é"]
    first, second = _named(tmp_path, glue.find("mnli"), ids, _LOGITS)
    assert first["label"] == "contradiction"
    assert (second["id"], second["label"]) == ("é", "entailment")
    assert first["probability"] == pytest.approx(_SHARES[0, 0])
    assert list(second["probabilities"].values()) == pytest.approx(_SHARES[1])
    logits = np.array([[-1.0, 2.0, 3.0], [-1.0, -2, 0]])
    first, second = _named(tmp_path, _SETS, ids, logits)
    assert (first["labels"], second["labels"]) == (["c", "b"], [])
    assert first["probabilities"] == pytest.approx(
        {"a": 1 / (1 + np.e), "b": 1 / (1 + np.e**-2), "c": 1 / (1 + np.e**-3)}
    )
    logits = np.array([[1.5], [-2.0]])
    assert _named(tmp_path, glue.find("stsb"), ids, logits) == [
        {"id": "x1", "score": 1.5},
        {"id": "é", "score": -2.0},
    ]


def test_texts_and_gold_beside_predictions(tmp_path):
    ids = ["x1", "é"]
    examples = [
        tables.Example("x1", "a “b”", "c", "neutral"),
        tables.Example("é", "d\tе", "", None),
    ]
    how = (glue.find("mnli"), ids, _LOGITS, iter(examples))
    found = _named(tmp_path, *how)
    assert [list(row)[:4] for row in found] == [
        ["id", "text_a", "text_b", "gold"],
        ["id", "text_a", "text_b", "label"],
    ]
    assert found[0]["text_a"] == "a “b”"
    assert (found[0]["gold"], found[0]["label"]) == ("neutral", "contradiction")
    assert found[1]["text_b"] == ""
    examples = [
        tables.Example("x1", "a", "", ("b", "new")),
        tables.Example("é", "b", "", ()),
    ]
    found = _named(tmp_path, _SETS, ids, _LOGITS, iter(examples))
    assert [row["gold"] for row in found] == [["b", "new"], []]
    assert "text_b" not in found[0]
    task = own_files.custom(own_files.Columns("t", None, "y"), {}, None, True)
    scored = iter([tables.Example("x1", "a", "", 2.5)])
    assert _named(tmp_path, task, ["x1"], np.ones([1, 1]), scored) == [
        {"id": "x1", "text_a": "a", "gold": 2.5, "score": 1.0}
    ]


def test_texts_are_written_as_they_are_read(tmp_path):
    # One batch at a time, so that memory does not grow with the file.
    alive = []

    def read():
        for i in range(50):
            example = tables.Example(str(i), "a" * 100_000, "", "a")
            alive.append(weakref.ref(example))
            assert sum(x() is not None for x in alive) < 5
            yield example

    _named(tmp_path, _SETS, map(str, range(50)), np.zeros([50, 3]), read())
    assert len(alive) == 50
    assert (tmp_path / "x.jsonl").stat().st_size > 5_000_000
