"""Writes texts for records, and computes their loss and their scores.

Shapes as in decoder.py.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from bert_tf import extras, losses
from bert_tf.errors import InputError
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


# ---- Scores -----------------------------------------------------------------

_ROUGE = ("rouge1", "rouge2", "rougeL")


def check_score_packages() -> None:
    """Raises InputError if the packages of the scores are missing."""
    extras.check("sacrebleu", "seq2seq", "Scores of generated texts")
    extras.check("rouge_score", "seq2seq", "Scores of generated texts")


def scores(
    texts: Sequence[str],
    references: Sequence[str],
    lowercase: bool,
    tokenizer: str = "13a",
) -> dict[str, float]:
    """Returns the scores of texts against a reference each, from 0 to 100.

    BLEU and chrF are sacrebleu's, over the whole set. ROUGE is the mean of the
    F1 of texts, without stemming; it only counts the letters a to z and digits.

    Args:
        texts: Generated texts.
        references: The right texts.
        lowercase: Whether case does not matter to BLEU and chrF. It never does
            to ROUGE.
        tokenizer: One of options.BLEU_TOKENIZERS.
    """
    # Not needed by training alone.
    import sacrebleu
    from rouge_score import rouge_scorer, tokenizers

    if len(texts) != len(references):
        raise InputError(
            "Each text needs a reference. "
            f"Received: {len(texts)} texts, {len(references)} references"
        )
    bleu = sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenizer)
    chrf = sacrebleu.CHRF(lowercase=lowercase)
    found = {
        "bleu": bleu.corpus_score(texts, [references]).score,
        "chrf": chrf.corpus_score(texts, [references]).score,
    }
    words = tokenizers.DefaultTokenizer(use_stemmer=False)
    scorer = rouge_scorer.RougeScorer(list(_ROUGE), tokenizer=words)
    rows = [
        scorer.score(reference, text)
        for text, reference in zip(texts, references, strict=True)
    ]
    return found | {
        name: 100 * sum(row[name].fmeasure for row in rows) / len(rows)
        for name in _ROUGE
    }
