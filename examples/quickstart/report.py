"""Draws the training curves and prints the quickstart's results.

    python examples/quickstart/report.py runs/quickstart

Writes curves.png and report.txt into that folder.
"""

import collections
import csv
import json
import os
import pathlib
import sys
from typing import Any

from bert_tf.storage import paths

import numpy as np
import tensorflow as tf

os.environ["MPLBACKEND"] = "agg"  # draws to a file, without a window
from matplotlib import pyplot as plt


def read_metric(
    folder: pathlib.Path, name: str
) -> tuple[list[int], list[float]]:
    """Returns the steps and values of a metric that a run logged."""
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    lines = [line for line in lines if name in line]
    return [line["step"] for line in lines], [line[name] for line in lines]


def read_results(folder: pathlib.Path) -> dict[str, float]:
    """Reads `name = value` lines."""
    text = (folder / "eval_results.txt").read_text(encoding="utf-8")
    pairs = (line.partition(" = ") for line in text.splitlines())
    return {name: float(value) for name, _, value in pairs}


def most_frequent_share(files: list[str]) -> float:
    """Returns the accuracy of always predicting the most frequent token."""
    counts: collections.Counter[int] = collections.Counter()
    for record in tf.data.TFRecordDataset(files):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        ids = np.array(features["masked_lm_ids"].int64_list.value)
        real = np.array(features["masked_lm_weights"].float_list.value) > 0
        counts.update(ids[real].tolist())
    return max(counts.values()) / sum(counts.values())


def test_accuracy(data: pathlib.Path, run: pathlib.Path) -> float:
    """Returns the share of test rows whose most probable label is right."""
    with (data / "train.tsv").open(encoding="utf-8") as file:
        labels = sorted({row[0] for row in list(_rows(file))[1:]})
    with (data / "test.tsv").open(encoding="utf-8") as file:
        right = [row[0] for row in list(_rows(file))[1:]]
    probabilities = np.loadtxt(run / "test_results.tsv")  # [rows, labels]
    guessed = [labels[best] for best in probabilities.argmax(axis=1)]
    return float(np.mean([a == b for a, b in zip(guessed, right, strict=True)]))


def _rows(file):
    return csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def draw(folder: pathlib.Path, baseline: float, majority: float) -> None:
    """Draws the masked-word accuracy and the classifiers' dev accuracy."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    left.plot(*read_metric(folder / "pretrained", "masked_lm_accuracy"))
    left.axhline(
        baseline, color="gray", linestyle="--", label="most frequent token"
    )
    left.set(
        title="Pre-training",
        xlabel="step",
        ylabel="masked-word accuracy",
        ylim=(0, None),
    )
    left.legend()
    for name, label in (
        ("fine_tuned", "from pre-trained weights"),
        ("fine_tuned_random", "from random weights"),
    ):
        points = read_metric(folder / name, "eval_accuracy")
        right.plot(*points, marker=".", label=label)
    right.axhline(
        majority, color="gray", linestyle="--", label="majority class"
    )
    right.set(
        title="Fine-tuning",
        xlabel="step",
        ylabel="dev accuracy",
        ylim=(0, 1),
    )
    right.legend()
    figure.tight_layout()
    figure.savefig(folder / "curves.png", dpi=100)


def table(folder: pathlib.Path) -> list[tuple[str, str]]:
    """Returns the rows of the report."""
    data = folder / "data"
    counts: dict[str, Any] = json.loads((data / "statistics.json").read_text())
    baseline = most_frequent_share(
        paths.expand([str(folder / "evaluation_records" / "*.tfrecord")])
    )
    results = read_results(folder / "pretrained")
    _, speeds = read_metric(folder / "pretrained", "sequences_per_second")
    tuned = test_accuracy(data, folder / "fine_tuned")
    random = test_accuracy(data, folder / "fine_tuned_random")
    draw(folder, baseline, counts["majority_baseline"])
    seconds = json.loads((folder / "seconds.json").read_text())
    rows = [
        (
            "text",
            f"{counts['corpus_documents']:,} documents, "
            f"{counts['corpus_characters'] / 1e6:.2f} MB",
        ),
        ("pre-training speed", f"{speeds[-1]:.0f} sequences/s"),
        ("held-out text, masked words: most frequent token", f"{baseline:.1%}"),
        (
            "held-out text, masked words: BERT",
            f"{results['masked_lm_accuracy']:.1%}",
        ),
        (
            "held-out text, next sentence: BERT",
            f"{results['next_sentence_accuracy']:.1%}",
        ),
        (
            "test accuracy: majority class",
            f"{counts['majority_baseline']:.1%}",
        ),
        ("test accuracy: from random weights", f"{random:.1%}"),
        ("test accuracy: from pre-trained weights", f"{tuned:.1%}"),
        ("gain from pre-training", f"{100 * (tuned - random):+.1f} points"),
    ]
    rows += [(f"seconds, {name}", f"{s:.0f}") for name, s in seconds.items()]
    rows.append(("seconds, all", f"{sum(seconds.values()):.0f}"))
    return rows


def main(folder: str) -> None:
    """Prints the table and writes it and the curves into the folder."""
    rows = table(pathlib.Path(folder))
    width = max(len(name) for name, _ in rows)
    text = "".join(f"  {name:<{width}}  {value}\n" for name, value in rows)
    print(text, end="")
    (pathlib.Path(folder) / "report.txt").write_text(text, encoding="utf-8")
    print(f"\nTraining curves: {folder}/curves.png")


if __name__ == "__main__":
    main(sys.argv[1])
