"""Inputs of SavedModels that do not go together are an error by name."""

from bert_tf import (
    export,
    export_features,
    export_multiple_choice,
    export_next_sentence,
    export_span,
    features,
    heads,
    modeling,
)
from tests.test_export import CONFIG, LABELS, MAX_SEQ_LENGTH, VOCAB
from tests.test_export_span import LAYOUT, SEARCH

import numpy as np
import pytest
import tensorflow as tf


def _classifier():
    model = heads.BertClassifier(CONFIG, len(LABELS))
    return export.classifier(
        *(model, CONFIG, VOCAB, True, LABELS, MAX_SEQ_LENGTH, True)
    )


def _next_sentence():
    model = heads.BertNextSentence(CONFIG)
    return export_next_sentence.next_sentence(
        *(model, CONFIG, VOCAB, True, MAX_SEQ_LENGTH)
    )


def _encoder():
    model = modeling.Bert(CONFIG)
    choice = features.Choice("last")
    return export_features.extractor(
        *(model, VOCAB, True, MAX_SEQ_LENGTH, choice, "mean")
    )


def _span():
    model = heads.BertSpanFinder(CONFIG)
    return export_span.span_finder(
        *(model, CONFIG, VOCAB, True, LAYOUT, SEARCH, None)
    )


def _multiple_choice():
    model = heads.BertMultipleChoice(CONFIG)
    return export_multiple_choice.chooser(
        *(model, CONFIG, VOCAB, True, MAX_SEQ_LENGTH)
    )


_MAKERS = {
    "classification": _classifier,
    "next_sentence": _next_sentence,
    "encoder": _encoder,
    "span": _span,
    "multiple_choice": _multiple_choice,
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Returns the model of a head, saved and loaded once."""
    folder = tmp_path_factory.mktemp("saved")
    kept = {}

    def load(head):
        if head not in kept:
            export.save(str(folder / head), _MAKERS[head]())
            kept[head] = tf.saved_model.load(str(folder / head))
        return kept[head]

    return load


def _error(serve, **inputs):
    """What the model says instead of an answer."""
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        serve(**{name: tf.constant(x) for name, x in inputs.items()})
    return str(error.value)


@pytest.mark.parametrize("head", ["classification", "next_sentence", "encoder"])
class TestPairs:
    @pytest.mark.parametrize(
        ("text_a", "text_b"),
        [
            (["a", "film"], ["bad"]),
            (["a"], ["bad", "good"]),
            (["a", "film", "good"], ["bad", ""]),
            (["a", "film"], ["", "", ""]),
            (["a", "film"], np.zeros(0, str)),
        ],
    )
    def test_as_many_texts(self, head, text_a, text_b, loaded):
        serve = loaded(head).signatures["serving_default"]
        assert (
            "[text_b must have as many texts as text_a ([B]), or be left out. "
            f"Received: text_a {len(text_a)}, text_b {len(text_b)}]"
        ) in _error(serve, text_a=text_a, text_b=text_b)

    def test_one_empty_text_is_none_for_all(self, head, loaded):
        serve = loaded(head).signatures["serving_default"]
        texts = tf.constant(["a", "film", "good bad"])
        expected = serve(text_a=texts, text_b=tf.constant(["", "", ""]))
        for found in (
            serve(text_a=texts, text_b=tf.constant([""])),
            loaded(head)(texts),
        ):
            assert found.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(found[name], value)

    def test_no_texts(self, head, loaded):
        serve = loaded(head).signatures["serving_default"]
        none = tf.constant([], tf.string)
        for found in (loaded(head)(none), serve(text_a=none, text_b=none)):
            assert {x.shape[0] for x in found.values()} == {0}


@pytest.mark.parametrize(
    ("question", "context"),
    [(["a", "b"], ["a film"]), (["a"], ["a film", "good"]), (["a", "b"], [""])],
)
def test_as_many_contexts_as_questions(question, context, loaded):
    serve = loaded("span").signatures["serving_default"]
    assert (
        "[context must have as many texts as question ([B]). Received: "
        f"question {len(question)}, context {len(context)}]"
    ) in _error(serve, question=question, context=context)


@pytest.mark.parametrize("prompt", [["a"], ["a", "b", "c"]])
def test_choices_of_each_prompt(prompt, loaded):
    serve = loaded("multiple_choice").signatures["serving_default"]
    choices = [["a", "b", "bad"], ["good", "film", ""]]
    assert (
        "[choices must have a row for each prompt, [B] and [B, K]. Received: "
        f"prompt {len(prompt)}, choices [2 3]]"
    ) in _error(serve, prompt=prompt, choices=choices)


@pytest.mark.parametrize(
    "head", ["classification", "next_sentence", "span", "multiple_choice"]
)
@pytest.mark.parametrize("other", ["input_mask", "segment_ids"])
def test_ids_of_one_shape(head, other, loaded):
    serve = loaded(head).signatures["serve_ids"]
    rank = 3 if head == "multiple_choice" else 2
    shape = [2, 3, 5][-rank:]
    inputs = {
        name: np.ones(shape, np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    assert serve(**{name: tf.constant(x) for name, x in inputs.items()})
    # Those of one row would be broadcast.
    inputs[other] = inputs[other][:1]
    sizes = {
        name: "[" + " ".join(map(str, x.shape)) + "]"
        for name, x in inputs.items()
    }
    received = ", ".join(f"{name} {size}" for name, size in sizes.items())
    assert (
        "[input_ids, input_mask and segment_ids must have the same shape. "
        f"Received: {received}]"
    ) in _error(serve, **inputs)
