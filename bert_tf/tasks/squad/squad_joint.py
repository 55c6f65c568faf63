"""The joint head for answers: its objective, and its search for answers.

The loss is the mean of the cross entropies of starts and of ends, given the
right start, plus half the cross entropy of whether there is an answer. Windows
without the answer count as having no answer. The no-answer score of a question
is the minimum over its windows, whatever the score of the best answer.

Shapes: W windows of a question, K starts of each, J ends of each start.
"""

from collections.abc import Mapping
from typing import Any

from bert_tf import joint_answers, losses
from bert_tf.tasks.squad import squad_answers, squad_options, squad_windows
from bert_tf.training import loop

import numpy as np
import tensorflow as tf

_Batch = Mapping[str, tf.Tensor]
# Half as heavy as a start and an end together.
_WEIGHT = 0.5


# ---- Objective: sums, to be divided by weights summed over all replicas -----


def weights(batch: _Batch) -> dict[str, tf.Tensor]:
    """Returns the divisor of the loss: the number of windows."""
    return {"span": tf.reduce_sum(batch["row_weights"])}


def _sums(
    model: joint_answers.BertJointSpanFinder, batch: _Batch, seed: Any
) -> dict[str, dict[str, tf.Tensor]]:
    """Loss and accuracy sums of one replica's batch."""
    rows = batch["row_weights"]  # [B]
    found = model(batch, seed)
    metrics, loss = {}, tf.constant(0.0)
    for name, logits in (("start", found.starts), ("end", found.ends)):
        labels = joint_answers.scored_positions(
            model.bert.config, batch["input_mask"], batch[f"{name}_positions"]
        )  # [B]
        entropy, best = losses.cross_entropy(logits, labels)
        loss += tf.reduce_sum(rows * entropy) / 2
        is_right = tf.cast(best == labels, tf.float32)
        metrics[f"{name}_accuracy"] = tf.reduce_sum(rows * is_right)
    nowhere = batch["start_positions"] == 0
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(
        tf.cast(nowhere, tf.float32), found.no_answer
    )
    loss += _WEIGHT * tf.reduce_sum(rows * entropy)
    is_right = tf.cast((found.no_answer > 0) == nowhere, tf.float32)
    metrics["no_answer_accuracy"] = tf.reduce_sum(rows * is_right)
    return {"span": {"loss": loss, **metrics}}


OBJECTIVE = loop.Objective(weights, _sums)


# ---- Search -----------------------------------------------------------------


def padded(
    found: joint_answers.Beams, search: squad_options.JointSearch
) -> dict[str, Any]:
    """Returns beams by name, of equal sizes for all lengths of sequences.

    Beams that short sequences lack have the position -1.
    """
    K, J = search.start_n_top, search.end_n_top
    starts = [[0, 0], [0, K - tf.shape(found.starts)[1]]]
    ends = [*starts, [0, J - tf.shape(found.ends)[2]]]
    return {
        "start_scores": tf.pad(found.start_scores, starts),
        "starts": tf.pad(found.starts, starts, constant_values=-1),
        "end_scores": tf.pad(found.end_scores, ends),
        "ends": tf.pad(found.ends, ends, constant_values=-1),
        "no_answer": found.no_answer,
    }


def find(
    windows: squad_windows.Windows,
    found: Mapping[str, np.ndarray],
    search: squad_options.JointSearch,
) -> squad_answers.Answer:
    """Finds the best answers to a question by the beams of its windows."""
    null = float(found["no_answer"].min())
    head, spans, scores = windows.head, [], []
    most_context = windows.has_most_context()
    for row, (offset, length) in enumerate(windows.spans):
        may_start = np.zeros(windows.used[row], bool)
        may_start[head : head + length] = most_context[row]
        start, end = found["starts"][row][:, np.newaxis], found["ends"][row]
        is_here = (start >= 0) & (start < len(may_start))
        fits = is_here & may_start[np.where(is_here, start, 0)]
        fits = fits & (end < head + length) & search.allows(start, end)
        i, j = np.nonzero(fits)
        spans.append(np.stack([start[i, 0], end[i, j]], -1) + offset - head)
        pair = [found["start_scores"][row][i], found["end_scores"][row][i, j]]
        scores.append(np.stack(pair, -1).astype(np.float64))
    pairs, values = np.concatenate(spans), np.concatenate(scores)
    if not len(pairs):
        # As in the original, which has no answer to choose.
        nothing = squad_answers.listed({"": np.array([null, 0.0])})
        return squad_answers.Answer("", 0, 0, null, null, nothing, null)
    order = np.argsort(-values.sum(-1), kind="stable")
    first, last = pairs[order[0]]
    n_best = squad_answers.n_best(windows, pairs, values, order, search)
    return squad_answers.Answer(
        windows.text(first, last),
        int(windows.pieces.starts[first]),
        int(windows.pieces.ends[last]),
        float(values[order[0]].sum()),
        null,
        squad_answers.listed(n_best),
        null,
    )
