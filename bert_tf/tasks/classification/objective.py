"""The objective of a classifier, as sums and weights to divide them by.

Weights are summed over all replicas. Shapes: B rows per batch, C classes.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import losses
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
