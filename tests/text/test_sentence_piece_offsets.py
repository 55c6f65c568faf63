"""Offsets of sentence pieces in the graph, against the Python tokenizer's."""

import functools
import string

from bert_tf.errors import InputError
from bert_tf.text import graph_offsets
from bert_tf.vocabularies import sentence_pieces
from tests import sample_texts, saved_models
from tests.vocabularies import sentence_models

import numpy as np
import pytest
import tensorflow as tf

_CASINGS = pytest.mark.parametrize(
    "do_lower_case", [True, False], ids=["uncased", "cased"]
)


@functools.cache
def runners(do_lower_case):
    """Returns the tokenizer in Python and in the graph."""
    vocabulary = sentence_models.vocabulary(do_lower_case)
    graph = tf.function(
        graph_offsets.of(vocabulary).tokenize_with_offsets,
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    return vocabulary.tokenizer(), graph


def check(do_lower_case, texts):
    """Compares ids and offsets of all texts."""
    python, graph = runners(do_lower_case)
    vocabulary = sentence_models.vocabulary(do_lower_case)
    ties = 0
    for start in range(0, len(texts), 1000):
        batch = texts[start : start + 1000]
        pieces = graph(tf.constant(batch, tf.string))
        rows = [python.tokenize_with_offsets(text) for text in batch]
        spans = np.stack([pieces.starts, pieces.ends], -1)
        places = pieces.ids.with_values(spans).to_list()
        found = zip(batch, rows, pieces.ids.to_list(), places, strict=True)
        for text, row, ids, of_pieces in found:
            expected = [python.vocab[token.piece] for token in row]
            if ids == expected:
                assert of_pieces == [[x.start, x.end] for x in row], repr(text)
                continue
            good = sentence_models.are_equally_good(vocabulary, ids, expected)
            assert good, repr(text)
            ties += 1
    assert ties <= len(texts) / 10_000


@pytest.mark.slow
@_CASINGS
def test_literal_texts(do_lower_case):
    texts = [
        "the end",
        "",
        " \t\n",
        # Spaces that are made of other characters, and characters left out.
        " (¨x) a\u200bb \u200bb b\u200b a\u200b b \u200b ¨ \x83q q\x83 \x83",
        "The\u0301 漢字\u0301漢 x\u1100\u1161\u11a8y \u1100\u1161\u1161",
        "in 1999, 30,000, 7,000, and",
        "\u0301 \u0301a",
        "ΟΔΟΣ ΟΔΟΣΑ 각가 ﬁ ﷺ",
    ]
    for batch in (texts, [], [b"a\xffb \xe5\x8d c\xc3"]):
        check(do_lower_case, batch)
    for text in texts:
        check(do_lower_case, [text])


@_CASINGS
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_every_character(do_lower_case, every):
    chars = sample_texts.characters(every)
    if not every:
        chars = chars[::25] + list(string.printable)
    check(do_lower_case, list(map(sample_texts.in_contexts, chars)))


@_CASINGS
@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=pytest.mark.slow)]
)
def test_random_texts(do_lower_case, count):
    check(do_lower_case, sample_texts.random_texts(seed=11, count=count))


def test_real_text(shared_data):
    for name in ("text/blns.txt", "glue/CoLA/dev.tsv"):
        check(True, (shared_data / name).read_text("utf-8").split("\n"))


@pytest.mark.slow
def test_saved_models(tmp_path):
    """A process that knows nothing of this package has the same pieces."""
    texts = ["The end", "", "in 1999, (thé) 漢字 ¨", "ΟΔΟΣ \u1100\u1161\u1161"]
    module = tf.Module()
    module.tokenizer = graph_offsets.of(sentence_models.vocabulary())

    def serve(text):
        pieces = module.tokenizer.tokenize_with_offsets(text)
        return {
            "ids": pieces.ids.to_tensor(-1),
            "starts": pieces.ids.with_values(pieces.starts).to_tensor(-1),
            "ends": pieces.ids.with_values(pieces.ends).to_tensor(-1),
        }

    signature = tf.function(
        serve, input_signature=[tf.TensorSpec([None], tf.string, name="text")]
    )
    path = tmp_path / "1"
    tf.saved_model.save(module, str(path), {"serving_default": signature})
    how = {"tokenizer": saved_models.SENTENCE_PIECES, "text": texts}
    rows = saved_models.serve_elsewhere(tmp_path, path, **how)
    python = sentence_models.vocabulary().tokenizer()
    for row, text in enumerate(texts):
        tokens = python.tokenize_with_offsets(text)
        found = [
            [x for x in rows[name][row] if x >= 0]
            for name in ("ids", "starts", "ends")
        ]
        assert found == [
            python.convert_tokens_to_ids([x.piece for x in tokens]),
            [x.start for x in tokens],
            [x.end for x in tokens],
        ]


def test_models_with_characters_that_are_no_pieces():
    model = sentence_models.train(user_defined_symbols=("<ɮ>",))
    vocabulary = sentence_pieces.SentencePieces.parse(
        {"spiece.model": model}, True, "spiece.model"
    )
    with pytest.raises(InputError, match=r"Received: pieces with .*'ɮ'"):
        graph_offsets.of(vocabulary)
