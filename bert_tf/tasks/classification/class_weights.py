"""Class weights: how much each class counts in training.

A class's weight multiplies the loss of its examples, and the summed loss is
divided by the sum of the weights. In multi-label tasks, the weight multiplies a
label's loss for the examples that have the label.
"""

import collections
import math
from collections.abc import Iterable, Sequence

from bert_tf.errors import InputError, listed
from bert_tf.tasks import tables

BALANCED = "balanced"
# Beyond these, float32 has no digits left for the other classes.
_LEAST, _MOST = 1e-6, 1e6


def parse(given: Sequence[str], labels: Sequence[str]) -> tuple[float, ...]:
    """Parses `label=weight` pairs; classes that are not named weigh 1.

    Raises InputError for an unknown or repeated class, or a weight that is not
    a positive number.
    """
    weights = dict.fromkeys(labels, 1.0)
    named: set[str] = set()
    for pair in given:
        label, _, text = pair.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        is_right = _LEAST <= weight <= _MOST and label not in named
        if label not in weights or not is_right:
            raise InputError(
                f"--class_weights must be {BALANCED}, or LABEL=WEIGHT pairs "
                f"with weights from {_LEAST:g} to {_MOST:g}, each label once, "
                f"comma separated. Expected labels: {listed(labels)}. "
                f"Received: class_weights={pair!r}"
            )
        named.add(label)
        weights[label] = weight
    return tuple(weights.values())


def balanced(
    examples: Iterable[tables.Example], labels: Sequence[str]
) -> tuple[float, ...]:
    """Returns weights that balance the classes.

    As in scikit-learn: n / (classes * n_class). For multi-label tasks, a
    label's weight is the number of examples without it, divided by the number
    with it. Raises InputError for a class without examples.
    """
    counts: collections.Counter[str] = collections.Counter()
    number, are_sets = 0, False
    for example in examples:
        number += 1
        if isinstance(example.label, tuple):
            are_sets = True
            counts.update(example.label)
        else:
            counts[str(example.label)] += 1
    missing = [label for label in labels if not counts[label]]
    if missing:
        raise InputError(
            "--class_weights=balanced needs an example of each class. Remove "
            "these from --labels, or give weights as LABEL=WEIGHT. "
            f"Received: no examples of {listed(missing)}"
        )
    if are_sets:
        # A label that all examples have would weigh 0.
        return tuple(
            max(number - counts[label], 1) / counts[label] for label in labels
        )
    return tuple(number / (len(labels) * counts[label]) for label in labels)
