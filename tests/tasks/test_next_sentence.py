"""Tests of exported next-sentence models, against Python's tokenizer."""

import json

from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.tasks import next_sentence
from tests import saved_models
from tests.exporting import test_saved_model as test_export

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    return heads.BertNextSentence(modeling.Bert(test_export.CONFIG))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "next"
    made = next_sentence.next_sentence(
        model,
        test_export.CONFIG,
        test_export.VOCABULARY,
        test_export.MAX_SEQ_LENGTH,
    )
    saved_model.save(str(path), made)
    return path


@pytest.mark.slow
def test_a_stranger_gives_what_python_gives(model, saved, tmp_path):
    texts_a, texts_b = test_export.TEXTS_A, test_export.TEXTS_B
    found = saved_models.serve_elsewhere(
        tmp_path, saved, batch_size=3, text_a=texts_a, text_b=texts_b
    )
    logits = np.array(
        [test_export.python_logits(model, *pair) for pair in test_export.PAIRS]
    )
    probabilities = saved_models.softmax(logits)
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    # Class 0 of the released models: the second text follows the first.
    np.testing.assert_allclose(found["is_next"], probabilities[:, 0], atol=1e-5)
    assert len({round(x, 3) for x in found["is_next"]}) > 4


def test_description(saved):
    text = (saved / "assets" / "export.json").read_text()
    assert json.loads(text) == {
        "head": "next_sentence",
        "do_lower_case": True,
        "max_seq_length": test_export.MAX_SEQ_LENGTH,
    }


def test_arguments_must_fit(model):
    with pytest.raises(ValueError, match=r"max_seq_length=17.*embeddings=16"):
        next_sentence.next_sentence(
            model, test_export.CONFIG, test_export.VOCABULARY, 17
        )
