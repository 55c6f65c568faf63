"""Reports on a classifier: metrics of each class, and confusions.

Shapes: B examples, C classes.
"""

import importlib.util
import io
import os
import typing
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.tasks.classification import classification_task

import numpy as np
from absl import logging
from sklearn import metrics

if typing.TYPE_CHECKING:
    from matplotlib import figure

# Max number of classes for which a plot's cells have room for numbers.
_MOST_NUMBERS = 30
# With more classes, the most frequent mistakes replace the full table.
MOST_CLASSES = 100
_MOST_MISTAKES = 200


def write(
    path: str,
    task: classification_task.Task,
    labels: np.ndarray,
    predicted: np.ndarray,
) -> None:
    """Writes the `report`."""
    files.write_lines(path, report(task, labels, predicted).splitlines())
    logging.info("Wrote %s.", path)


def report(
    task: classification_task.Task, labels: np.ndarray, predicted: np.ndarray
) -> str:
    """Returns a table of metrics by class, and a table of confusions.

    Values are class indices [B], or 0 or 1 for each label [B, C]; scores are
    not supported.
    """
    names = task.labels or ()
    table = _scores(task, labels, predicted)
    if task.is_multi_label:
        counts = metrics.multilabel_confusion_matrix(labels, predicted)
        columns: Sequence[str] = ("right", "wrong", "missed")
        rows = [[c[1, 1], c[0, 1], c[1, 0]] for c in counts]
        title = "How often each label was given rightly, wrongly, and not."
    elif len(names) > MOST_CLASSES:
        title = "The most frequent mistakes: label, prediction, how often."
        return f"{table}\n{title}\n{_mistakes(names, labels, predicted)}"
    else:
        columns, rows = names, list(confusions(task, labels, predicted))
        title = "Rows are the labels of the data, columns those predicted."
    return f"{table}\n{title}\n{_table(names, columns, rows)}"


def _scores(
    task: classification_task.Task, labels: np.ndarray, predicted: np.ndarray
) -> str:
    """Returns precision, recall and F1 of each class, and their means."""
    names = task.labels or ()
    shown: Sequence[int] = range(len(names))
    if not task.is_multi_label:
        # As in the metric macro_f1: a class that does not occur has no F1, and
        # would count as 0 in the mean.
        shown = np.union1d(labels, predicted).tolist()
    table = metrics.classification_report(
        labels,
        predicted,
        labels=shown,
        target_names=[names[i] for i in shown],
        digits=4,
        zero_division=0.0,
    )
    absent = [name for i, name in enumerate(names) if i not in shown]
    if absent:
        table += f"\nNeither labelled nor predicted: {', '.join(absent)}\n"
    return table


def confusions(
    task: classification_task.Task, labels: np.ndarray, predicted: np.ndarray
) -> np.ndarray:
    """Counts confusions [C, C]: true classes in rows, predicted in columns."""
    classes = range(len(task.labels or ()))
    return metrics.confusion_matrix(labels, predicted, labels=classes)


def _mistakes(
    names: Sequence[str], labels: np.ndarray, predicted: np.ndarray
) -> str:
    wrong = np.stack([labels, predicted], axis=1)[labels != predicted]
    pairs, counts = np.unique(wrong, axis=0, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_MOST_MISTAKES]
    rows = [[names[pairs[i, 1]], counts[i]] for i in most]
    return _table(
        [names[pairs[i, 0]] for i in most], ("predicted", "count"), rows
    )


def _table(
    names: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> str:
    cells = [["", *columns]]
    cells += [[n, *map(str, row)] for n, row in zip(names, rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
        for row in cells
    )
    return "\n".join(lines) + "\n"


def picture(names: Sequence[str], counts: np.ndarray) -> "figure.Figure":
    """Plots a confusion matrix [C, C], as computed by `confusions`."""
    # Opens no window. matplotlib rejects a backend that is not installed.
    os.environ["MPLBACKEND"] = "agg"
    # Slow to import, used only here, and optional.
    from matplotlib import figure

    size = min(3 + 0.5 * len(names), 20)  # inches
    drawn = figure.Figure((size + 1, size), layout="constrained")
    axes = drawn.add_subplot()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    drawn.colorbar(image, label="share of the row's class")
    places = range(len(names))
    # Dollar signs in labels do not mark formulas.
    axes.set_xticks(places, names, rotation=90, parse_math=False)
    axes.set_yticks(places, names, parse_math=False)
    axes.set_xlabel("predicted")
    axes.set_ylabel("label")
    if len(names) <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            text = axes.text(column, row, str(count), color=color)
            text.set(ha="center", va="center")
    return drawn


def write_png(path: str, drawn: "figure.Figure") -> None:
    """Writes a plot to a file that appears once it is complete."""
    png = io.BytesIO()  # Files in buckets do not support seeking.
    drawn.savefig(png, format="png", dpi=150)
    files.write_bytes(path, png.getvalue())


def write_picture(
    path: str,
    task: classification_task.Task,
    labels: np.ndarray,
    predicted: np.ndarray,
) -> None:
    """Writes the confusion matrix of a few classes as a PNG."""
    names = task.labels or ()
    can_draw = importlib.util.find_spec("matplotlib") is not None
    if can_draw and len(names) <= MOST_CLASSES and not task.is_multi_label:
        counts = confusions(task, labels, predicted)
        write_png(path, picture(names, counts))
        logging.info("Wrote %s.", path)
