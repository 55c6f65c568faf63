"""Scores of generated texts by their formulas."""

import math

from bert_tf.seq2seq import generated_texts

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra `seq2seq`")


def test_bleu_and_rouge_by_hand():
    texts = ["the cat sat on the mat today", "a dog ran"]
    references = ["the cat sat on a mat today", "a dog ran"]
    found = generated_texts.scores(texts, references, lowercase=False)
    # n-grams of both texts that are in their reference, of all.
    precisions = [9 / 10, 6 / 8, 3 / 6, 1 / 4]
    bleu = math.exp(sum(map(math.log, precisions)) / 4)
    assert found["bleu"] == pytest.approx(100 * bleu)
    assert found["rouge1"] == pytest.approx(100 * (6 / 7 + 1) / 2)
    assert found["rouge2"] == pytest.approx(100 * (4 / 6 + 1) / 2)
    assert found["rougeL"] == pytest.approx(100 * (6 / 7 + 1) / 2)
    assert 0 < found["chrf"] < 100


def test_case_counts_unless_the_vocabulary_has_none():
    texts, references = ["a b c d e"], ["A B C D E"]
    cased = generated_texts.scores(texts, references, lowercase=False)
    lower = generated_texts.scores(texts, references, lowercase=True)
    assert cased["bleu"] == cased["chrf"] == 0
    assert lower["bleu"] == pytest.approx(100)
    assert lower["chrf"] == pytest.approx(100)


def test_characters_of_chinese():
    texts = ["我们今天去公园"]
    found = generated_texts.scores(texts, ["我们今天去学校"], False, "zh")
    assert found["bleu"] > 30
    plain = generated_texts.scores(texts, ["我们今天去学校"], False)
    assert plain["bleu"] == 0


def test_different_numbers_of_texts():
    with pytest.raises(ValueError, match="1 texts, 2 references"):
        generated_texts.scores(["a"], ["a", "b"], False)
