"""Exported multiple-choice models, compared with Python's tokenizer."""

from bert_tf.exporting import inference
from bert_tf.tasks.multiple_choice import choice_model
from bert_tf.text import graph_windows
from tests import exports, saved_models, tiny_model
from tests.exports import CONFIG, LENGTH, VOCABULARY

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

PROMPTS = ["What a film.", "", "good " * 30, "Café", "bad, 博 whatever"]
CHOICES = [
    ["good", "bad", "whatever."],
    ["a film", "", "博"],
    ["bad " * 4, "a film good", "what " * 30 + "cafe"],
    ["a", "a", "o"],
    ["good good good good good good", "bad bad bad bad bad bad bad", ""],
]


@pytest.fixture(scope="module")
def model():
    return exports.model("multiple_choice")


def python_row(prompt, choice, length=LENGTH):
    """Returns ids and segments; the prompt is cut, not the choice."""
    if not choice:
        return [], []
    tokenizer = VOCABULARY.tokenizer()
    first, second = tokenizer.tokenize(prompt), tokenizer.tokenize(choice)
    while len(first) + len(second) > length - 3 and second:
        if first:
            first.pop()
        else:
            second.pop(0)
    del first[length - 2 :]
    pieces = ["[CLS]", *first, "[SEP]"]
    segments = [0] * len(pieces) + [1] * (len(second) + bool(second))
    pieces += [*second, "[SEP]"] if second else []
    return tokenizer.convert_tokens_to_ids(pieces), segments


@pytest.fixture(scope="module")
def loaded():
    return exports.loaded("multiple_choice")


def python_logits(model, prompt, choices):
    """Returns the logits of each choice read separately, [K]."""
    logits = []
    for choice in choices:
        if not choice:
            logits.append(-np.inf)
            continue
        ids, segments = python_row(prompt, choice)
        inputs = {
            "input_ids": tf.constant([[ids]]),
            "input_mask": tf.ones([1, 1, len(ids)], tf.int32),
            "segment_ids": tf.constant([[segments]]),
        }
        logits.append(model(inputs).numpy()[0, 0])
    return logits


def test_a_saved_model_gives_what_python_gives(model, loaded):
    found = saved_models.serve(
        loaded, batch_size=2, prompt=PROMPTS, choices=CHOICES
    )
    logits = np.array(
        [python_logits(model, *x) for x in zip(PROMPTS, CHOICES, strict=True)]
    )
    real = np.isfinite(logits)
    assert not real.all()
    np.testing.assert_allclose(
        np.array(found["logits"])[real], logits[real], atol=1e-5
    )
    np.testing.assert_allclose(
        found["probabilities"], saved_models.softmax(logits), atol=1e-5
    )
    assert found["choice"] == logits.argmax(-1).tolist()
    assert len(set(found["choice"])) > 1, "the test would see no difference"


def test_any_number_of_choices_and_ids(model, loaded):
    for choices in (["good"], ["good", "bad", "film", "a", "what"]):
        found = loaded(tf.constant(["What a film."]), tf.constant([choices]))
        expected = python_logits(model, "What a film.", choices)
        np.testing.assert_allclose(found["logits"][0], expected, atol=1e-5)
    rng = np.random.default_rng(1)
    inputs = {
        "input_ids": tf.constant(rng.integers(0, 17, [2, 3, 9]), tf.int32),
        "input_mask": tf.ones([2, 3, 9], tf.int32),
        "segment_ids": tf.zeros([2, 3, 9], tf.int32),
    }
    found = loaded.signatures["serve_ids"](**inputs)["logits"]
    np.testing.assert_allclose(found, model(inputs), atol=1e-5)


@tiny_model.untraced()
def test_many_choices_are_read_some_at_a_time(model, monkeypatch):
    monkeypatch.setattr(graph_windows, "MOST_WINDOWS", 2)
    read: list[int] = []
    make = inference.make_inference_model

    def make_watched(model):
        served = make(model)

        class Watched:
            variables = served.variables

            def __call__(self, inputs):
                tf.py_function(
                    lambda x: read.append(len(x)), [inputs["input_ids"]], []
                )
                return served(inputs)

        return Watched()

    monkeypatch.setattr(inference, "make_inference_model", make_watched)
    made = choice_model.chooser(model, CONFIG, VOCABULARY, LENGTH)
    prompts, choices = PROMPTS[1:3], CHOICES[1:3]
    found = made.module.serve(tf.constant(prompts), tf.constant(choices))
    assert sum(read) == 6 and max(read) == 2
    for row, *texts in zip(found["logits"], prompts, choices, strict=True):
        logits = np.array(python_logits(model, *texts))
        real = np.isfinite(logits)
        np.testing.assert_allclose(row[real], logits[real], atol=1e-5)
    none = made.module.serve(
        tf.constant([], tf.string), tf.zeros([0, 3], tf.string)
    )
    assert none["logits"].shape == (0, 3)


def test_description_and_refusal(model):
    saved = exports.exported("multiple_choice")
    saved_models.assert_described(saved, "multiple_choice", LENGTH)
    with pytest.raises(ValueError, match=r"max_seq_length=17.*embeddings=16"):
        choice_model.chooser(model, CONFIG, VOCABULARY, 17)
