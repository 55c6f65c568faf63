"""Tests of exported next-sentence models, against Python's tokenizer."""

import json

from bert_tf.tasks import next_sentence
from tests import exports, saved_models
from tests.exports import CONFIG, LENGTH, TEXTS_A, TEXTS_B, VOCABULARY

import numpy as np
import pytest
import tensorflow as tf


def test_texts_give_what_python_gives():
    serve = exports.loaded("next_sentence").signatures["serving_default"]
    found = serve(text_a=tf.constant(TEXTS_A), text_b=tf.constant(TEXTS_B))
    model = exports.model("next_sentence")
    logits = exports.python_logits(model, *exports.PAIRS)
    probabilities = saved_models.softmax(logits)
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    # Class 0 of the released models: the second text follows the first.
    np.testing.assert_allclose(found["is_next"], probabilities[:, 0], atol=1e-5)
    assert len({round(float(x), 3) for x in found["is_next"]}) > 4


def test_description():
    path = exports.exported("next_sentence") / "assets" / "export.json"
    assert json.loads(path.read_text()) == {
        "head": "next_sentence",
        "do_lower_case": True,
        "max_seq_length": LENGTH,
    }


def test_arguments_must_fit():
    with pytest.raises(ValueError, match=r"max_seq_length=17.*embeddings=16"):
        next_sentence.next_sentence(
            exports.model("next_sentence"), CONFIG, VOCABULARY, 17
        )
