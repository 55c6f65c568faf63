"""Scores of generated texts: BLEU, chrF and ROUGE."""

from collections.abc import Sequence

from bert_tf import extras
from bert_tf.errors import InputError

_ROUGE = ("rouge1", "rouge2", "rougeL")


def check_packages() -> None:
    """Raises InputError if the packages of the scores are missing."""
    extras.check("sacrebleu", "seq2seq", "Scores of generated texts")
    extras.check("rouge_score", "seq2seq", "Scores of generated texts")


def compute(
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
