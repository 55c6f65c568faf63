from bert_tf.tasks.classification import glue
from bert_tf.tasks.glue import glue_scores

import numpy as np
import pytest

# BERT-Large's row of the leaderboard, gluebenchmark.com/leaderboard: 80.5.
_LARGE: dict[str, dict[str, float]] = {
    "CoLA": {"matthews_correlation": 60.5},
    "SST-2": {"accuracy": 94.9},
    "MRPC": {"f1": 89.3, "accuracy": 85.4},
    "STS-B": {"pearson": 87.6, "spearman": 86.5},
    "QQP": {"f1": 72.1, "accuracy": 89.3},
    "MNLI": {"accuracy": 86.7, "mismatched_accuracy": 85.9},
    "QNLI": {"accuracy": 92.7},
    "RTE": {"accuracy": 70.1},
    "WNLI": {"accuracy": 65.1},
}
# BERT-Base in table 1 of its paper: 79.6 on average.
_BASE: dict[str, dict[str, float]] = {
    "MNLI": {"accuracy": 84.6, "mismatched_accuracy": 83.4},
    "QQP": {"f1": 71.2, "accuracy": 0},
    "QNLI": {"accuracy": 90.5},
    "SST-2": {"accuracy": 93.5},
    "CoLA": {"matthews_correlation": 52.1, "accuracy": 0},
    "STS-B": {"spearman": 85.8, "pearson": 0},
    "MRPC": {"f1": 88.9, "accuracy": 0},
    "RTE": {"accuracy": 66.4},
    "WNLI": {"accuracy": 0},
}


def test_average_is_the_leaderboards():
    scores = {x: glue_scores.task_score(x, _LARGE[x]) for x in _LARGE}
    assert round(glue_scores.average(scores), 1) == 80.5
    # Table 1 of the paper, for the same submission.
    assert glue_scores.papers_average(_LARGE) == pytest.approx(82.1, abs=0.05)
    assert glue_scores.papers_average(_BASE) == pytest.approx(79.6, abs=0.05)
    # The average excludes WNLI.
    assert glue_scores.papers_average({"WNLI": {"accuracy": 0.6}}) is None


def test_every_task_has_its_metrics():
    for name in glue_scores.TASKS:
        own = {m.removeprefix("mismatched_") for m in glue_scores.METRICS[name]}
        assert own <= set(glue.find(name).metrics), name
    assert set(glue.NAMES) - set(glue_scores.TASKS) == {"AX", "XNLI"}


def test_a_task_without_its_metrics_is_refused():
    with pytest.raises(ValueError, match=r"RTE have none.*Received: f1"):
        glue_scores.task_score("RTE", {"f1": 0.5})
    # Without a score of the mismatched set.
    assert glue_scores.task_score("MNLI", {"accuracy": 0.8}) == 0.8


def test_summary_is_of_the_task_scores():
    results = [
        {"f1": 0.9, "accuracy": 0.8, "loss": 3.0},
        {"f1": 0.7, "accuracy": 0.6, "loss": 3.0},
        {"f1": 0.9, "accuracy": 0.9, "loss": 3.0},
    ]
    found = glue_scores.Summary.from_results("MRPC", results, "x", 3668)
    scores = np.array([0.85, 0.65, 0.9])
    assert found.mean == pytest.approx(scores.mean())
    assert found.median == pytest.approx(np.median(scores))
    assert found.deviation == pytest.approx(scores.std(ddof=1))
    assert found.results == pytest.approx({"f1": 2.5 / 3, "accuracy": 2.3 / 3})
    one = glue_scores.Summary.from_results("MRPC", results[:1], "x", 3668)
    assert one.deviation is None


def test_table():
    summaries = [
        glue_scores.Summary.from_results(
            "RTE", [{"accuracy": 0.7}, {"accuracy": 0.6}], "3e-05", 2490
        ),
        glue_scores.Summary.from_results(
            "QNLI", [{"accuracy": 0.9}], "2e-05", 8999
        ),
    ]
    lines = glue_scores.table(summaries)
    assert len({len(line) for line in lines}) == 1
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in lines]
    assert cells[2] == [
        *("RTE", "accuracy 65.0", "65.0", "65.0", "7.1", "2", "3e-05")
    ]
    assert cells[3][4:] == ["–", "1", "2e-05; on 8,999 of 104,743 rows"]
    assert cells[4][:4] == ["average", "2 of 9 tasks", "77.5", "77.5"]
    wnli = glue_scores.Summary.from_results(
        "WNLI", [{"accuracy": 0.5}], "2e-05", 635
    )
    assert "| average | 1 of 9 tasks" in glue_scores.table([wnli])[-1]
    found = glue_scores.to_json(summaries)
    assert found["average_of_means"] == pytest.approx(0.775)
    assert found["missing"] == [
        t for t in glue_scores.TASKS if t not in ("RTE", "QNLI")
    ]
