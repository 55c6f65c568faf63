"""Draws what was measured over a number of layers or of heads."""

import importlib
from collections.abc import Mapping
from typing import Any

# Number of layers or heads -> pieces of a text, or a group -> a value.
Curve = Mapping[int, Mapping[Any, float]]


def draw(curves: Mapping[str, Curve], label: str, unit: str, path: str) -> None:
    """Writes a picture of curves side by side, by what their axes are.

    `label` says what a column is, as in `{} pieces`.
    """
    plots = importlib.import_module("matplotlib.pyplot")
    figure, axes = plots.subplots(
        1, len(curves), figsize=(9, 4), layout="constrained", sharey=True
    )
    for axis, (of_x, curve) in zip(axes, curves.items(), strict=True):
        for column in next(iter(curve.values())):
            values = [row[column] for row in curve.values()]
            axis.plot(list(curve), values, "o-", label=label.format(column))
        axis.set_xlabel(of_x)
        axis.set_xticks(list(curve))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(unit)
    axes[0].legend()
    figure.savefig(path, dpi=100)
