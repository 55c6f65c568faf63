"""Inputs of SavedModels that do not go together are an error by name."""

import functools

from bert_tf.exporting import saved_model
from tests import every_head

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Returns the model of a head, saved and loaded once."""
    folder = tmp_path_factory.mktemp("saved")
    kept = {}

    def load(head):
        if head not in kept:
            saved_model.save(str(folder / head), every_head.MAKERS[head]())
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
    @pytest.mark.slow
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


@pytest.mark.slow
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
        "[choices must have a row for each prompt, [B] and [B, K], and a "
        "choice in each. Received: "
        f"prompt {len(prompt)}, choices [2 3]]"
    ) in _error(serve, prompt=prompt, choices=choices)


@pytest.mark.slow
@pytest.mark.parametrize("head", every_head.MAKERS)
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


def _ids(head, length=4):
    """Ids that every model knows."""
    shape = [2, 2, length] if head == "multiple_choice" else [2, length]
    inputs = {
        name: np.ones(shape, np.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    if head == "masked_lm":
        inputs["masked_lm_positions"] = np.zeros([2, 1], np.int32)
    return inputs


@pytest.mark.parametrize("head", every_head.MAKERS)
@pytest.mark.parametrize(
    ("name", "wrong", "least", "most"),
    [
        ("input_ids", 17, 1, 17),
        ("input_ids", -1, -1, 1),
        ("input_mask", 2, 1, 2),
        ("segment_ids", 2, 1, 2),
        ("segment_ids", -1, -1, 1),
    ],
)
def test_ids_that_the_model_knows(head, name, wrong, least, most, loaded):
    inputs = _ids(head)
    inputs[name].flat[5] = wrong
    ends = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), (1, 1))
    ends[name] = (least, most)
    received = ", ".join(f"{x} from {a} to {b}" for x, (a, b) in ends.items())
    assert (
        "[input_ids must be from 0 to 16, input_mask 0 or 1, and segment_ids "
        f"from 0 to 1. Received: {received}]"
    ) in _error(loaded(head).signatures["serve_ids"], **inputs)


@pytest.mark.parametrize("head", every_head.MAKERS)
@pytest.mark.parametrize("length", [0, 17])
def test_lengths_that_the_model_knows(head, length, loaded):
    serve = loaded(head).signatures["serve_ids"]
    assert serve(**{x: tf.constant(y) for x, y in _ids(head, 16).items()})
    size = f"[2 2 {length}]" if head == "multiple_choice" else f"[2 {length}]"
    assert (
        "[input_ids must have 1 to 16 pieces in a row, the last axis. "
        f"Received: input_ids {size}, input_mask {size}, segment_ids {size}]"
    ) in _error(serve, **_ids(head, length))


@pytest.mark.parametrize(("wrong", "least", "most"), [(4, 0, 4), (-1, -1, 0)])
def test_places_in_a_row(wrong, least, most, loaded):
    inputs = _ids("masked_lm")
    inputs["masked_lm_positions"][1, 0] = wrong
    assert (
        "[masked_lm_positions must be from 0 to below the length of input_ids. "
        f"Received: masked_lm_positions from {least} to {most}]"
    ) in _error(loaded("masked_lm").signatures["serve_ids"], **inputs)


def test_some_choices(loaded):
    signatures = loaded("multiple_choice").signatures
    assert (
        "and a choice in each. Received: prompt 2, choices [2 0]]"
    ) in _error(
        signatures["serving_default"],
        prompt=["a", "b"],
        choices=np.zeros([2, 0], str),
    )
    none = {x: y[:, :0] for x, y in _ids("multiple_choice").items()}
    assert (
        "[input_ids must have a choice for each prompt, [B, K, S]. Received: "
        "input_ids [2 0 4]"
    ) in _error(signatures["serve_ids"], **none)


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
