"""Inputs of SavedModels that do not go together are an error by name."""

from tests import exports

import numpy as np
import pytest
import tensorflow as tf

_IDS = ("input_ids", "input_mask", "segment_ids")
_PAIRS = ["classification", "next_sentence", "encoder"]


def _serve(head, signature="serving_default"):
    return exports.loaded(head).signatures[signature]


def _error(serve, **inputs):
    """What the model says instead of an answer."""
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        serve(**{name: tf.constant(x) for name, x in inputs.items()})
    return str(error.value)


@pytest.mark.parametrize("head", _PAIRS)
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
    def test_as_many_texts(self, head, text_a, text_b):
        assert (
            "[text_b must have as many texts as text_a ([B]), or be left out. "
            f"Received: text_a {len(text_a)}, text_b {len(text_b)}]"
        ) in _error(_serve(head), text_a=text_a, text_b=text_b)

    def test_one_empty_text_is_none_for_all(self, head):
        texts = tf.constant(["a", "film", "good bad"])
        none = tf.constant([], tf.string)
        serve, model = _serve(head), exports.loaded(head)
        expected = serve(text_a=texts, text_b=tf.constant(["", "", ""]))
        for found in (
            serve(text_a=texts, text_b=tf.constant([""])),
            model(texts),
        ):
            assert found.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(found[name], value)
        for found in (model(none), serve(text_a=none, text_b=none)):
            assert {x.shape[0] for x in found.values()} == {0}


@pytest.mark.parametrize(
    ("question", "context"),
    [(["a", "b"], ["a film"]), (["a"], ["a film", "good"]), (["a", "b"], [""])],
)
def test_as_many_contexts_as_questions(question, context):
    assert (
        "[context must have as many texts as question ([B]). Received: "
        f"question {len(question)}, context {len(context)}]"
    ) in _error(_serve("span"), question=question, context=context)


@pytest.mark.parametrize(
    ("prompt", "choices"),
    [
        (["a"], [["a", "b", "bad"], ["good", "film", ""]]),
        (["a", "b", "c"], [["a", "b", "bad"], ["good", "film", ""]]),
        (["a", "b"], np.zeros([2, 0], str)),
    ],
)
def test_choices_of_each_prompt(prompt, choices):
    assert (
        "[choices must have a row for each prompt, [B] and [B, K], and a "
        "choice in each. Received: "
        f"prompt {len(prompt)}, choices [2 {len(choices[0])}]]"
    ) in _error(_serve("multiple_choice"), prompt=prompt, choices=choices)


def _ids(head, length=4):
    """Ids that every model knows."""
    shape = [2, 2, length] if head == "multiple_choice" else [2, length]
    inputs = {name: np.ones(shape, np.int32) for name in _IDS}
    if head == "masked_lm":
        inputs["masked_lm_positions"] = np.zeros([2, 1], np.int32)
    return inputs


@pytest.mark.parametrize("head", exports.NAMES)
def test_ids_of_one_shape_and_of_lengths_that_the_model_knows(head):
    serve = _serve(head, "serve_ids")
    for other in ("input_mask", "segment_ids"):
        inputs = _ids(head)
        # Those of one row would be broadcast.
        inputs[other] = inputs[other][:1]
        received = ", ".join(
            f"{x} [{' '.join(map(str, inputs[x].shape))}]" for x in _IDS
        )
        assert (
            "[input_ids, input_mask and segment_ids must have the same shape. "
            f"Received: {received}]"
        ) in _error(serve, **inputs)
    for length in (4, 16):
        known = _ids(head, length)
        assert serve(**{name: tf.constant(x) for name, x in known.items()})
    rows = "2 2" if head == "multiple_choice" else "2"
    for length in (0, 17):
        received = ", ".join(f"{x} [{rows} {length}]" for x in _IDS)
        assert (
            "[input_ids must have 1 to 16 pieces in a row, the last axis. "
            f"Received: {received}]"
        ) in _error(serve, **_ids(head, length))


@pytest.mark.parametrize("head", exports.NAMES)
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
def test_ids_that_the_model_knows(head, name, wrong, least, most):
    inputs = _ids(head)
    inputs[name].flat[5] = wrong
    ends = dict.fromkeys(_IDS, (1, 1)) | {name: (least, most)}
    received = ", ".join(f"{x} from {a} to {b}" for x, (a, b) in ends.items())
    assert (
        "[input_ids must be from 0 to 16, input_mask 0 or 1, and segment_ids "
        f"from 0 to 1. Received: {received}]"
    ) in _error(_serve(head, "serve_ids"), **inputs)


def test_some_choices_of_ids():
    none = {x: y[:, :0] for x, y in _ids("multiple_choice").items()}
    assert (
        "[input_ids must have a choice for each prompt, [B, K, S]. Received: "
        "input_ids [2 0 4]"
    ) in _error(_serve("multiple_choice", "serve_ids"), **none)


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        (
            [[0], [4]],
            "be from 0 to below the length of input_ids. "
            "Received: masked_lm_positions from 0 to 4]",
        ),
        (
            [[0], [-1]],
            "be from 0 to below the length of input_ids. "
            "Received: masked_lm_positions from -1 to 0]",
        ),
        (
            [[1, 1]],
            "have a row for each of input_ids. Received: "
            "masked_lm_positions [1 2], input_ids [2 4]]",
        ),
    ],
)
def test_places_in_each_row(places, problem):
    inputs = _ids("masked_lm") | {"masked_lm_positions": np.int32(places)}
    found = _error(_serve("masked_lm", "serve_ids"), **inputs)
    assert f"[masked_lm_positions must {problem}" in found
