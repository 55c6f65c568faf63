"""Inputs of SavedModels that do not go together are an error by name."""

import functools

from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.tasks import next_sentence
from bert_tf.tasks.features import layers as feature_layers
from bert_tf.tasks.features import saved_model as features_model
from bert_tf.tasks.masked_words import saved_model as masked_words_model
from bert_tf.tasks.multiple_choice import saved_model as choice_model
from bert_tf.tasks.squad import saved_model as squad_model
from bert_tf.tasks.tagging import saved_model as tagging_model
from bert_tf.vocabularies import word_pieces
from tests.exporting.test_saved_model import (
    CONFIG,
    LABELS,
    MAX_SEQ_LENGTH,
    VOCAB,
)
from tests.tasks.squad.test_saved_model import LAYOUT, SEARCH

import numpy as np
import pytest
import tensorflow as tf

_VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)


def _classifier():
    model = heads.BertClassifier(modeling.Bert(CONFIG), len(LABELS))
    return saved_model.classifier(
        model,
        CONFIG,
        _VOCABULARY,
        LABELS,
        MAX_SEQ_LENGTH,
        True,
    )


def _next_sentence():
    model = heads.BertNextSentence(modeling.Bert(CONFIG))
    return next_sentence.next_sentence(
        model, CONFIG, _VOCABULARY, MAX_SEQ_LENGTH
    )


def _encoder():
    model = modeling.Bert(CONFIG)
    choice = feature_layers.Choice("last")
    return features_model.extractor(
        model,
        _VOCABULARY,
        MAX_SEQ_LENGTH,
        choice,
        "mean",
    )


def _span():
    model = heads.BertSpanFinder(modeling.Bert(CONFIG))
    return squad_model.span_finder(
        model,
        CONFIG,
        _VOCABULARY,
        LAYOUT,
        SEARCH,
        None,
    )


def _multiple_choice():
    model = heads.BertMultipleChoice(modeling.Bert(CONFIG))
    return choice_model.chooser(model, CONFIG, _VOCABULARY, MAX_SEQ_LENGTH)


def _masked_lm():
    model = heads.BertMaskedLM(modeling.Bert(CONFIG))
    return masked_words_model.masked_words_finder(
        model,
        CONFIG,
        _VOCABULARY,
        MAX_SEQ_LENGTH,
        2,
    )


def _tagging():
    model = heads.BertTagger(modeling.Bert(CONFIG), len(LABELS))
    return tagging_model.tagger(
        model,
        CONFIG,
        _VOCABULARY,
        LABELS,
        "none",
        MAX_SEQ_LENGTH,
    )


_MAKERS = {
    "masked_lm": _masked_lm,
    "tagging": _tagging,
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
            saved_model.save(str(folder / head), _MAKERS[head]())
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


@pytest.mark.parametrize("head", _MAKERS)
@pytest.mark.parametrize("other", ["input_mask", "segment_ids"])
def test_ids_of_one_shape(head, other, loaded):
    serve = loaded(head).signatures["serve_ids"]
    if head == "masked_lm":
        serve = functools.partial(
            serve, masked_lm_positions=tf.zeros([3, 1], tf.int32)
        )
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


def test_places_of_each_row(loaded):
    ids = np.ones([2, 4], np.int32)
    assert (
        "[masked_lm_positions must have a row for each of input_ids. Received: "
        "masked_lm_positions [1 2], input_ids [2 4]]"
    ) in _error(
        loaded("masked_lm").signatures["serve_ids"],
        **dict.fromkeys(("input_ids", "input_mask", "segment_ids"), ids),
        masked_lm_positions=np.ones([1, 2], np.int32),
    )
