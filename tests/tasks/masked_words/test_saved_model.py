"""Tests of exported masked language models, compared with the Python code."""

import dataclasses
import functools

from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.tasks.masked_words import masked_words_model
from bert_tf.tasks.tagging import tagging_words
from bert_tf.text import graph_windows
from bert_tf.vocabularies import word_pieces
from tests import saved_models, tiny_model
from tests.tasks.masked_words import mask_filling

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] a film what ##ever good bad cafe , . 博 o ##δος
[ ] mask ##s
"""
VOCAB = _PIECES.split()
VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)
LENGTH = 12
TOP_K = 4
CONFIG = saved_models.config(VOCAB)
TEXTS = [
    "What a [MASK].",
    "no mask",
    "[MASK]",
    "",
    "good [MASK][MASK] bad \n [MASK], [mask] Café",
    "a film, " * 30 + "[MASK] good " + "bad 博 " * 50 + "what [MASK]",
    "\u2028ΟΔΟΣ\u200b[MASK]\x00 [MASK]",
    "[MASK] " * 40,
]


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    return heads.BertMaskedLM(modeling.Bert(CONFIG))


def exported(model, top_k=TOP_K, length=LENGTH, vocab=VOCAB):
    return masked_words_model.masked_words_finder(
        model, CONFIG, word_pieces.WordPiece(tuple(vocab), True), length, top_k
    )


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "words"
    with pytest.MonkeyPatch.context() as patch:
        # Makes the longest text take several parts.
        patch.setattr(graph_windows, "MOST_WINDOWS", 3)
        saved_model.save(str(path), exported(model))
    return path


@pytest.fixture(scope="module")
def loaded(saved):
    return tf.saved_model.load(str(saved))


@functools.cache
def python_masks(model, text):
    """Reads each window separately in Python: [(token, score)] per mask."""
    tokenizer = VOCABULARY.tokenizer()
    tokens: list[str] = []
    for i, part in enumerate(text.split("[MASK]")):
        tokens += ["[MASK]"] * (i > 0) + tokenizer.tokenize(part)
    ids = tokenizer.convert_tokens_to_ids(tokens)
    room = LENGTH - 2
    windows = tagging_words.windows(len(ids), room)
    found = []

    @functools.cache
    def logits_from(start):  # [S, V]
        row = [2, *ids[start : start + room], 3]
        inputs = {
            "input_ids": tf.constant([row]),
            "input_mask": tf.ones([1, len(row)], tf.int32),
            "segment_ids": tf.zeros([1, len(row)], tf.int32),
            "masked_lm_positions": tf.range(len(row))[tf.newaxis],
        }
        return model(inputs).numpy()[0]

    for position, token in enumerate(tokens):
        if token != "[MASK]":
            continue
        window = np.searchsorted(windows.borders, position, "right") - 1
        start = windows.starts[window]
        logits = logits_from(start)[position - start + 1]
        scores = saved_models.softmax(logits)
        best = np.argsort(-logits, kind="stable")[:TOP_K]
        found.append([(VOCAB[i], scores[i]) for i in best])
    return found


def check(rows, model):
    """Compares served rows with Python's results for TEXTS."""
    spellings = dict(zip(VOCAB, VOCABULARY.spellings, strict=True))
    for i, text in enumerate(TEXTS):
        expected = python_masks(model, text)
        assert rows["count"][i] == len(expected) == text.count("[MASK]")
        for number, candidates in enumerate(expected):
            pieces, scores = zip(*candidates, strict=True)
            assert list(rows["piece"][i][number]) == list(pieces)
            np.testing.assert_allclose(
                rows["score"][i][number], scores, atol=1e-5
            )
            assert list(rows["text"][i][number]) == [
                mask_filling.fill(text, number, spellings[piece])
                for piece in pieces
            ]


def test_served_words_are_those_of_python(model, loaded):
    rows = saved_models.serve(loaded, text=TEXTS)
    check(rows, model)
    check(saved_models.serve(loaded, batch_size=1, text=TEXTS), model)
    found = {p for row in rows["piece"] for mask in row for p in mask}
    assert len(found) > TOP_K + 1, "the test would see no difference"
    assert found & {"##ever", "##δος", "##s"}


@tiny_model.untraced()
def test_too_many_filled_texts_are_an_error(model):
    serve = exported(model).module.serve
    # The limit is 2 ** 26 bytes; each text has 1000 * 12000 * 4.
    texts = ["[MASK] " * 1000 + "a" * 5000] * 2
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"2000 masks in 24000 bytes would give too many .*top_k=4",
    ):
        serve(tf.constant(texts))


def test_description(saved):
    saved_models.assert_described(saved, "masked_lm", LENGTH, top_k=TOP_K)


def test_arguments_must_fit(model):
    for changes, problem in (
        ({"top_k": 99}, "top_k=99"),
        ({"length": 17}, "max_seq_length=17.*embeddings=16"),
        ({"vocab": VOCAB[:-1]}, r"20 tokens.*vocab_size=21"),
    ):
        with pytest.raises(ValueError, match=problem):
            exported(model, **changes)


@pytest.mark.parametrize(("rows", "length"), [(1, 3), (4, 16), (0, 5)])
def test_ids_of_any_batch_and_length(rows, length, model, loaded):
    inputs = saved_models.some_ids(rows, length, len(VOCAB))
    places = np.random.default_rng(1).integers(0, length, [rows, 2])
    inputs["masked_lm_positions"] = places.astype(np.int32)
    inputs = {name: tf.constant(ids) for name, ids in inputs.items()}
    found = loaded.signatures["serve_ids"](**inputs)
    logits = model(inputs).numpy()  # [B, P, V]
    best = np.argsort(-logits, axis=-1, kind="stable")[..., :TOP_K]
    np.testing.assert_array_equal(found["piece_id"], best)
    assert found["piece"].numpy().tolist() == (
        np.char.encode(np.array(VOCAB)[best], "utf-8").tolist()
    )
    scores = np.take_along_axis(saved_models.softmax(logits), best, -1)
    np.testing.assert_allclose(found["score"], scores, atol=1e-5)


@tiny_model.untraced()
def test_padding_of_the_table_is_no_word():
    config = dataclasses.replace(CONFIG, vocab_size=24)
    model = heads.BertMaskedLM(modeling.Bert(config))
    bias = np.where(np.arange(24) < len(VOCAB), 0, 9).astype(np.float32)
    model.predictions.output_bias.assign(bias)
    made = masked_words_model.masked_words_finder(
        model, config, VOCABULARY, LENGTH, TOP_K
    )
    found = made.module.serve(tf.constant(["a [MASK]"]))
    pieces = [x.decode() for x in found["piece"][0, 0].numpy()]
    assert len(pieces) == TOP_K and set(pieces) <= set(VOCAB)
    # Padding tokens have some probability, as in transformers.
    assert tf.reduce_sum(found["score"]) < 0.01
