"""Writes texts for records, and measures the loss on them.

Shapes as in decoder.py.
"""

import functools
from collections.abc import Callable, Iterable, Mapping

from bert_tf import losses
from bert_tf.seq2seq import decoder, seq2seq_objective
from bert_tf.text import detokenizer
from bert_tf.training import loop

import numpy as np
import tensorflow as tf


@functools.lru_cache(maxsize=2)
def outputs(
    model: decoder.Seq2Seq, has_targets: bool, writes: bool
) -> Callable[[loop.Batch], dict[str, tf.Tensor]]:
    """Returns one function per model, so that it is traced only once.

    It maps a batch to `nll` and `tokens` [B] of the targets, if there are any,
    and to the `target_ids` [B, T] of the best targets if it `writes` texts.
    """

    def function(batch):
        found = _losses(model, batch) if has_targets else {}
        if writes:
            own = {x: batch[x] for x in ("input_ids", "input_mask")}
            found["target_ids"] = model(own)["target_ids"]
        return found

    return function


def _losses(model: decoder.Seq2Seq, batch: loop.Batch) -> dict[str, tf.Tensor]:
    batch = seq2seq_objective.trimmed(batch)
    ids = batch["target_ids"]
    logits = model({**batch, "target_ids": ids[:, :-1]})  # [B, T, V]
    labels = ids[:, 1:]
    entropy, _ = losses.cross_entropy(
        tf.reshape(logits, [-1, logits.shape[-1]]), tf.reshape(labels, [-1])
    )
    weights = seq2seq_objective.token_weights(batch)  # [B, T]
    entropy = tf.reshape(entropy, tf.shape(weights))
    return {
        "nll": tf.reduce_sum(weights * entropy, axis=1),
        "tokens": tf.reduce_sum(weights, axis=1),
    }


def collect(
    parts: Iterable[Mapping[str, np.ndarray]], join: detokenizer.Detokenizer
) -> tuple[float, list[str]]:
    """Returns the mean loss of target tokens, and the texts of all batches."""
    nll = tokens = 0.0
    texts: list[str] = []
    for part in parts:
        nll += part.get("nll", np.zeros(1)).sum(dtype=np.float64)
        tokens += part.get("tokens", np.zeros(1)).sum(dtype=np.float64)
        if "target_ids" in part:
            texts += [x.decode() for x in join(part["target_ids"]).numpy()]
    return float(nll / max(tokens, 1)), texts
