from bert_tf.tasks.classification import (
    classification_metrics,
    own_files,
    reports,
)
from tests import processes

import numpy as np
import pytest

_COLUMNS = own_files.Columns("t", None, "y")
_NAMES = ("ham", "spam", "$x^2$ & ü")
_CLASSES = own_files.custom(_COLUMNS, {}, _NAMES, False)
_SETS = own_files.custom(_COLUMNS, {}, _NAMES, False, ",")


def _rows(report, title):
    """Returns name -> numbers for the lines of the table under a title."""
    lines = report.split(title)[-1].splitlines()
    rows = [line.rsplit(maxsplit=3) for line in lines]
    return {row[0].strip(): row[1:] for row in rows if len(row) == 4}


def test_classes():
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    predicted = np.array([0, 0, 1, 1, 1, 1, 0])
    report = reports.report(_CLASSES, labels, predicted)
    lines = {line.split()[0]: line.split() for line in report.splitlines()[2:4]}
    # Precision, recall, F1, support.
    assert lines["ham"] == ["ham", "0.6667", "0.6667", "0.6667", "3"]
    assert lines["spam"] == ["spam", "0.7500", "0.7500", "0.7500", "4"]
    assert "$x^2$" not in lines
    assert "\nNeither labelled nor predicted: $x^2$ & ü\n" in report
    table = _rows(report, "those predicted.")
    assert table["ham"] == ["2", "1", "0"]
    assert table["spam"] == ["1", "3", "0"]
    counts = reports.confusions(_CLASSES, labels, predicted)
    assert counts.tolist() == [[2, 1, 0], [1, 3, 0], [0, 0, 0]]


def test_many_classes_have_a_list_of_mistakes():
    names = tuple(f"class {i}" for i in range(1000))
    task = own_files.custom(_COLUMNS, {}, names, False)
    labels = np.arange(1000)
    predicted = labels.copy()
    predicted[[3, 4, 5, 9]] = [7, 8, 8, 1]
    labels = np.concatenate([labels, [4, 9, 4]])
    predicted = np.concatenate([predicted, [8, 1, 8]])
    report = reports.report(task, labels, predicted)
    assert len(report) < 200 * len(names)
    _, _, mistakes = report.partition("how often.\n")
    assert [line.split() for line in mistakes.splitlines()] == [
        ["predicted", "count"],
        ["class", "4", "class", "8", "3"],
        ["class", "9", "class", "1", "2"],
        ["class", "3", "class", "7", "1"],
        ["class", "5", "class", "8", "1"],
    ]


@pytest.mark.parametrize(
    ("labels", "predicted", "macro_f1", "absent"),
    [
        # F1 is 1 for the two classes that occur, undefined for the third.
        ([0, 1], [0, 1], 1.0, "$x^2$ & ü"),
        ([2, 2], [2, 2], 1.0, "ham, spam"),
        # A class that is only predicted: (2/3 + 0 + 1) / 3.
        ([0, 0, 1], [0, 2, 1], 5 / 9, ""),
    ],
)
def test_the_mean_is_that_of_the_results(labels, predicted, macro_f1, absent):
    report = reports.report(_CLASSES, np.array(labels), np.array(predicted))
    (line,) = [x for x in report.splitlines() if "macro avg" in x]
    assert line.split()[4] == f"{macro_f1:.4f}"
    found = classification_metrics.compute(["macro_f1"], labels, predicted)
    assert found["macro_f1"] == pytest.approx(macro_f1)
    assert "accuracy" in report
    line = f"Neither labelled nor predicted: {absent}\n"
    assert line in report if absent else "Neither" not in report


def test_several_labels():
    labels = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]])
    predicted = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 0]])
    report = reports.report(_SETS, labels, predicted)
    assert "micro avg" in report
    table = _rows(report, "and not.")
    assert table["ham"] == ["1", "0", "1"]
    assert table["spam"] == ["2", "0", "0"]
    assert table["$x^2$ & ü"] == ["0", "1", "0"]


def test_the_picture_shows_the_counts(tmp_path):
    pytest.importorskip("matplotlib")
    counts = np.array([[9, 1, 0], [0, 0, 10], [0, 0, 0]])
    drawn = reports.picture(_NAMES, counts)
    axes = drawn.axes[0]
    found = {text.get_position(): text.get_text() for text in axes.texts}
    assert found == {
        (column, row): str(count)
        for (row, column), count in np.ndenumerate(counts)
    }
    shares = np.array([[0.9, 0.1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(np.array(axes.images[0].get_array()), shares)
    assert [x.get_text() for x in axes.get_yticklabels()] == list(_NAMES)
    path = tmp_path / "x.png"
    reports.write_png(str(path), drawn)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes().startswith(b"\x89PNG")
    names = [f"class {i}" for i in range(60)]
    assert not reports.picture(names, np.eye(60, dtype=int)).axes[0].texts


@pytest.mark.slow
def test_the_picture_needs_no_window(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    # matplotlib reads it when it is imported.
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    text = """
        import sys
        import numpy as np
        from bert_tf.tasks.classification import reports
        drawn = reports.picture(["a", "b"], np.eye(2, dtype=int))
        reports.write_png(sys.argv[1], drawn)
    """
    code, _, errors = processes.run(text, tmp_path / "x.png")
    assert code == 0, errors
    assert (tmp_path / "x.png").exists()
