"""Plots measurements over the number of layers or heads."""

import importlib
from collections.abc import Mapping
from typing import Any

# Number of layers or heads -> text length in tokens, or a group -> value.
Curve = Mapping[int, Mapping[Any, float]]


def draw(curves: Mapping[str, Curve], label: str, unit: str, path: str) -> None:
    """Plots curves side by side; each curve's name labels its x axis.

    `label` is the template of each line's label, for example `{} tokens`.
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
