"""Continuations of a text and the likelihood of texts, compared with NumPy."""

import json

import bert_tf
from bert_tf import errors, heads
from bert_tf.encoders import families
from bert_tf.tasks import next_piece_model
from tests import exports
from tests.exports import LENGTH, VOCAB, VOCABULARY

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

TOP_K = 5
# The last two are longer than the model reads.
TEXTS = (
    *("a film", "", "a zebra ", "what , bad " * 3 + "caf"),
    "good film what , " * 4,
)


@pytest.fixture(scope="module", name="model")
def _model():
    return exports.model("next_piece")


@pytest.fixture(scope="module", name="loaded")
def _loaded():
    return exports.loaded("next_piece")


def _log_probabilities(model, text):
    """Returns log-probabilities of the next token at all positions."""
    tokenizer = VOCABULARY.tokenizer()
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
    ids = ids[-(LENGTH - 2) :]
    inputs = {"input_ids": tf.constant([[2, *ids]])}
    logits = model(inputs)[0].numpy().astype(np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), ids


def test_next_pieces(model, loaded):
    found = loaded(tf.constant(TEXTS))
    for row, text in enumerate(TEXTS):
        expected, _ = _log_probabilities(model, text)
        best = expected[-1].argsort()[::-1][:TOP_K]
        pieces = [VOCAB[x] for x in best]
        assert [x.decode() for x in found["piece"][row].numpy()] == pieces
        np.testing.assert_allclose(
            found["score"][row], np.exp(expected[-1][best]), rtol=1e-4
        )
        for piece, whole in zip(
            pieces, found["text"][row].numpy(), strict=True
        ):
            space = " " if text.strip() == text != "" else ""
            wanted = f"{text}{space}{piece}"
            if piece.startswith("##"):
                wanted = text + piece.removeprefix("##")
            assert whole.decode() == wanted
    same = loaded.signatures["serve_text"](text=tf.constant(TEXTS))
    for name, value in found.items():
        np.testing.assert_array_equal(same[name], value)
    alone = [loaded(tf.constant([text]))["score"][0] for text in TEXTS]
    np.testing.assert_allclose(found["score"], alone, atol=1e-6)


def test_scores(model, loaded):
    found = loaded.signatures["serve_scores"](text=tf.constant(TEXTS))
    for row, text in enumerate(TEXTS):
        expected, ids = _log_probabilities(model, text)
        total = sum(expected[i, x] for i, x in enumerate(ids))
        assert found["count"][row] == len(ids)
        assert float(found["log_probability"][row]) == pytest.approx(
            total, abs=1e-4
        )


def test_ids(model, loaded):
    ids = np.array([[2, 5, 6, 0], [2, 7, 8, 9]], np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
    found = loaded.signatures["serve_ids"](
        input_ids=tf.constant(ids),
        input_mask=tf.constant(mask),
        segment_ids=tf.zeros([2, 4], tf.int32),
    )
    logits = model({"input_ids": ids, "input_mask": mask}).numpy()
    for row, place in enumerate((2, 3)):
        best = logits[row, place].argsort()[::-1][:TOP_K]
        assert found["piece_id"][row].numpy().tolist() == best.tolist()
        names = [x.decode() for x in found["piece"][row].numpy()]
        assert names == [VOCAB[x] for x in best]


def test_what_is_behind_changes_nothing(loaded):
    """Bit for bit, in batches of the same shape."""
    serve = loaded.signatures["serve_ids"]
    first = np.array([[2, 5, 6, 7, 8, 9, 10, 3]] * 2, np.int32)
    other = first.copy()
    other[0, 3:], other[1, 3:] = 12, [9, 8, 7, 3, 3]
    mask = (np.arange(8) < 3).astype(np.int32)[np.newaxis].repeat(2, 0)
    scores = [
        serve(
            input_ids=tf.constant(ids),
            input_mask=tf.constant(mask),
            segment_ids=tf.zeros([2, 8], tf.int32),
        )["score"].numpy()
        for ids in (first, other)
    ]
    np.testing.assert_array_equal(*scores)


def test_asked_in_python():
    predictor = bert_tf.load(exports.run("next_piece"), top_k=TOP_K)
    assert predictor.head == "next_piece"
    asked = [text for text in TEXTS if text]
    answers = predictor(asked)
    assert answers == bert_tf.load(exports.exported("next_piece"))(asked)
    assert [len(x["pieces"]) for x in answers] == [TOP_K] * len(asked)
    best = answers[0]["pieces"][0]
    assert best.keys() == {"piece", "score", "text"}
    assert json.loads(json.dumps(best)) == best


def test_what_is_refused(model):
    for top_k in (0, len(VOCAB) + 1):
        with pytest.raises(errors.InputError, match=f"Received: top_k={top_k}"):
            next_piece_model.next_piece(
                *(model, model.bert.config, VOCABULARY, LENGTH, top_k)
            )
    plain = families.make(exports.CONFIG)
    with pytest.raises(errors.InputError, match="left_to_right"):
        heads.BertNextPiece(plain)
