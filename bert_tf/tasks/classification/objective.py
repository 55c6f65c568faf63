"""The objective of a classifier, as sums and weights to divide them by.

Weights are summed over all replicas. Shapes: B rows per batch, C classes.
"""

import collections
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bert_tf import losses
from bert_tf.errors import InputError, listed
from bert_tf.tasks import tables
from bert_tf.tasks.classification import classification_task
from bert_tf.training import distillation, distillation_losses, loop

import tensorflow as tf


def rows(
    batch: loop.Batch,
    task: classification_task.Task,
    class_weights: Sequence[float] | None,
) -> tf.Tensor:
    """Returns row weights [B]: 0 for padding, a window its share of 1."""
    weights = batch["row_weights"] * batch.get("window_weights", 1.0)
    weights *= tf.cast(batch["is_real_example"], tf.float32)
    if class_weights and not task.is_multi_label:
        weights *= tf.gather(class_weights, batch["label_ids"])
    return weights


def make_objective(
    task: classification_task.Task, class_weights: Sequence[float] | None
) -> loop.Objective:
    """Returns the objective of a task.

    Args:
        task: A task with classes, several labels per text, or scores.
        class_weights: Weight of each class, [C]; None for equal weights.
    """

    def weights(batch: loop.Batch) -> dict[str, tf.Tensor]:
        """Returns the divisor of the loss."""
        return {"label": tf.reduce_sum(rows(batch, task, class_weights))}

    def sums(
        model: Callable[..., tf.Tensor],
        batch: loop.Batch,
        dropout_seed: tf.Tensor | None,
    ) -> dict[str, Any]:
        """Returns loss and accuracy sums of one replica's batch."""
        logits = model(batch, dropout_seed)  # [B, C]
        of_batch = batch["label_ids"], rows(batch, task, class_weights)
        if task.labels is None:
            return {"label": losses.regression(logits[:, 0], *of_batch)}
        if task.is_multi_label:
            scale = tf.constant(class_weights or 1.0)
            return {"label": losses.multi_label(logits, *of_batch, scale)}
        return {"label": losses.classification(logits, *of_batch)}

    return loop.Objective(weights, sums)


def comparison(
    task: classification_task.Task, class_weights: Sequence[float] | None
) -> distillation.Comparison:
    """Returns a function that compares logits with a teacher's."""
    divergence = distillation_losses.classes
    if task.labels is None:
        divergence = distillation_losses.scores
    elif task.is_multi_label:
        divergence = distillation_losses.labels
    counts = functools.partial(rows, task=task, class_weights=class_weights)
    return distillation.Comparison.from_loss("label", counts, divergence)


# ---- Class weights ----------------------------------------------------------

# A class's weight multiplies the loss of its examples, and the summed loss is
# divided by the sum of the weights. In multi-label tasks, the weight multiplies
# a label's loss for the examples that have the label.

BALANCED = "balanced"
# Beyond these, float32 has no digits left for the other classes.
_LEAST, _MOST = 1e-6, 1e6


def parse_class_weights(
    given: Sequence[str], labels: Sequence[str]
) -> tuple[float, ...]:
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


def balanced_class_weights(
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
