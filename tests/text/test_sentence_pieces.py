"""Sentence pieces in the graph: equal to the Python tokenizer."""

import functools
import string

from bert_tf.text import graph as text_graph
from tests import sample_texts
from tests.vocabularies import sentence_models

import pytest
import tensorflow as tf

_CASINGS = pytest.mark.parametrize(
    "do_lower_case", [True, False], ids=["uncased", "cased"]
)


@functools.cache
def runners(do_lower_case):
    """Returns the tokenizer in Python and in the graph: texts -> lists."""
    vocabulary = sentence_models.vocabulary(do_lower_case)
    python = vocabulary.tokenizer()
    graph = tf.function(
        text_graph.of(vocabulary).tokenize,
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    return (
        lambda texts: list(map(python.ids, texts)),
        lambda texts: graph(tf.constant(texts, tf.string)).to_list(),
    )


def check(do_lower_case, texts):
    """Compares the ids of the texts with those of the Python tokenizer."""
    in_python, in_graph = runners(do_lower_case)
    vocabulary = sentence_models.vocabulary(do_lower_case)
    ties = 0
    for start in range(0, len(texts), 500):
        batch = texts[start : start + 500]
        results = zip(batch, in_python(batch), in_graph(batch), strict=True)
        for text, expected, actual in results:
            if actual == expected:
                continue
            good = sentence_models.are_equally_good(
                vocabulary, actual, expected
            )
            assert good, repr(text)
            ties += 1
    assert ties <= len(texts) / 10_000


@_CASINGS
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_every_character(do_lower_case, every):
    chars = sample_texts.characters(every)
    if not every:
        chars = chars[::8] + list(string.printable)
    check(do_lower_case, list(map(sample_texts.in_contexts, chars)))


@_CASINGS
@pytest.mark.parametrize(
    "count", [500, pytest.param(20_000, marks=pytest.mark.slow)]
)
def test_random_texts(do_lower_case, count):
    check(do_lower_case, sample_texts.random_texts(seed=4, count=count))


@_CASINGS
def test_sigmas_and_invalid_bytes(do_lower_case):
    texts = ["ΟΔΟΣ ΟΔΟΣΑ", "ΟΔΟΣ. ΟΔΟΣ\u0301ο", "Σ ΣΣ aΣ Σa 'Σ'", "𝚺A A𝚺", "Σ"]
    check(do_lower_case, texts)
    for text in texts:
        check(do_lower_case, [text])
    invalid = [b"a\xffb \xe5\x8d c\xc3", b"\xff", b"\xed\xa0\x80the"]
    check(do_lower_case, invalid)
    check(do_lower_case, ["the", "", " ", "é the", "1999, the (end)", "\u0301"])
    _, in_graph = runners(do_lower_case)
    assert in_graph([]) == []


@_CASINGS
def test_real_text(do_lower_case, shared_data):
    texts = []
    for name in ("text/blns.txt", "text/emoji-test.txt", "glue/CoLA/dev.tsv"):
        texts += (shared_data / name).read_text("utf-8").split("\n")
    check(do_lower_case, texts)


@pytest.mark.slow
@_CASINGS
def test_wikipedia(do_lower_case, shared_data):
    with (shared_data / "corpus/enwiki_AA.txt").open(encoding="utf-8") as file:
        check(do_lower_case, file.readlines(20_000_000))
