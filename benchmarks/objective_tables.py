"""The table and the picture of benchmarks.objectives."""

import importlib
from collections.abc import Mapping

from benchmarks.objective_rows import ALL
from benchmarks.small_tasks import TASKS

import numpy as np

# Model -> task -> the score of each seed; empty if the model can't do the task.
Scores = Mapping[str, Mapping[str, list[float]]]
_COSTS = ("parameters", "pre-training, minutes", "fine-tuning, minutes")


def show(found: Scores, costs: Mapping[str, list[str]]) -> None:
    """Prints the scores and costs of models, and the notes about them."""
    (tasks, *_) = found.values()
    print(" | ".join(["", *tasks, *_COSTS]))
    print("|".join(["---"] * (1 + len(tasks) + len(_COSTS))))
    for name, of_tasks in found.items():
        cells = [
            "{:.1f} ± {:.1f}".format(*_summary(x)) if x else "–"
            for x in of_tasks.values()
        ]
        own = costs.get(name) or ["–"] * len(_COSTS)
        print(" | ".join([name, *cells, *own]))
    for name in found:
        if name in ALL and ALL[name].note:
            print(f"{name}: {ALL[name].note}.")


def draw(
    found: Scores, learned: Mapping[str, Mapping[float, float]], path: str
) -> None:
    """Plots the curves of pre-training, and the scores of each task.

    `learned` has the loss by the share of the work, for each model.
    """
    plots = importlib.import_module("matplotlib.pyplot")
    (names, *_) = found.values()
    figure, (curves, *tasks) = plots.subplots(
        1,
        1 + len(names),
        figsize=(3.2 * (1 + len(names)), 4),
        layout="constrained",
    )
    curves.set_xlabel("share of the work")
    curves.set_ylabel("nats per predicted token")
    for axis, task in zip(tasks, names, strict=True):
        axis.set_xlabel(f"score on {task}'s {TASKS[task].scored} set")
        # All plots have the same rows: labels are on the first one only.
        axis.set_yticks(range(len(found)), [*found] if axis is tasks[0] else [])
        axis.set_ylim(len(found) - 0.5, -0.5)
    for row, (name, of_tasks) in enumerate(found.items()):
        color = f"C{row}"
        if name in learned:
            curve = learned[name]
            curves.plot([*curve], [*curve.values()], color=color)
        for axis, scored in zip(tasks, of_tasks.values(), strict=True):
            if scored:
                mean, spread = _summary(scored)
                axis.errorbar(mean, row, xerr=spread, fmt="o", color=color)
    for axis in (curves, *tasks):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def _summary(values: list[float]) -> tuple[float, float]:
    """Returns mean and standard deviation."""
    return float(np.mean(values)), float(np.std(values, ddof=len(values) > 1))
