"""Serialized tf.Examples, sent as by TensorFlow Serving's classify."""

from tests import exports, saved_models
from tests.exports import LABELS, PAIRS, TEXTS_A
from tests.serving_session import example

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_SINGLE = [(text,) for text in TEXTS_A]


@pytest.fixture(scope="module")
def model():
    return exports.model("classification")


@pytest.fixture(scope="module")
def pairs():
    return exports.server("classification")


@pytest.fixture(scope="module")
def single():
    return exports.server("one text")


def _check(answers, probabilities):
    """Compares answers with probabilities [B, C] in the labels' order."""
    assert [[label for label, _ in row] for row in answers] == (
        [LABELS] * len(probabilities)
    )
    scores = [[score for _, score in row] for row in answers]
    np.testing.assert_allclose(scores, probabilities, atol=1e-5)


def _check_rows(answers, model, *rows):
    logits = exports.python_logits(model, *rows)
    _check(answers, saved_models.softmax(logits))


@pytest.mark.parametrize("first", ["text", "text_a"])
def test_pairs(first, model, pairs):
    examples = [example(**{first: a, "text_b": b}) for a, b in PAIRS]
    _check_rows(pairs.classify(examples), model, *PAIRS)


def test_texts_of_both_names_and_without_a_second(model, pairs):
    examples = [
        example(text="good film"),
        example(text_a="bad", text_b="a film"),
        example(text=""),
        # Other features are ignored.
        example(text="bad film", label_ids=[1], guid="dev-1"),
    ]
    rows = [("good film", ""), ("bad", "a film"), ("", ""), ("bad film", "")]
    _check_rows(pairs.classify(examples), model, *rows)


def test_single_texts(model, single):
    examples = [example(text=text) for text in TEXTS_A]
    _check_rows(single.classify(examples), model, *_SINGLE)


def test_ids_of_several_lengths(model, pairs, single):
    rng = np.random.default_rng(0)
    rows = [
        {
            "input_ids": rng.integers(0, 17, length).tolist(),
            "input_mask": [1] * length,
            "segment_ids": rng.integers(0, 2, length).tolist(),
        }
        for length in (3, 16, 9)
    ]
    logits = [
        model({name: tf.constant([x]) for name, x in row.items()}).numpy()[0]
        for row in rows
    ]
    for server in (pairs, single):
        found = server.classify([example(**row) for row in rows])
        _check(found, saved_models.softmax(np.array(logits)))


@pytest.mark.exhaustive
def test_a_regression():
    examples = [example(text=a, text_b=b) for a, b in PAIRS]
    found = exports.server("regression").regress(examples)
    expected = exports.python_logits(exports.model("regression"), *PAIRS)[:, 0]
    assert len(set(expected.round(4))) > 4
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.exhaustive
def test_several_labels(model):
    logits = exports.python_logits(model, *_SINGLE)
    server = exports.server("several labels")
    found = server.classify([example(text=text) for text in TEXTS_A])
    _check(found, 1 / (1 + np.exp(-logits)))


_IDS = {"input_ids": [1, 2], "input_mask": [1, 1], "segment_ids": [0, 0]}
_GOOD = {"text": "good"}


@pytest.mark.parametrize(
    ("rows", "number", "received"),
    [
        ([_GOOD, {}, {}], 1, "text 0, text_a 0, text_b 0"),
        ([_GOOD, {"text_b": "a"}], 1, "text 0, text_a 0, text_b 1"),
        ([{"text": "a", "text_a": "a"}], 0, "text 1, text_a 1, text_b 0"),
        ([_GOOD, {"text": ["a", "b"]}], 1, "text 2, text_a 0, text_b 0"),
        (
            [_GOOD, {"text": "a", "text_b": ["b", "c"]}],
            *(1, "text 1, text_a 0, text_b 2"),
        ),
        ([_GOOD, _IDS], 1, "input_ids 2, input_mask 2, segment_ids 2"),
        ([_IDS | _GOOD], 0, "input_ids 2, input_mask 2, segment_ids 2"),
        ([{"input_ids": [1]}], 0, "input_ids 1, input_mask 0, segment_ids 0"),
        ([_IDS, _IDS, {"text": "a"}], 0, "text 0,"),
        ([_IDS, _IDS, {}], 2, "input_ids 0, input_mask 0, segment_ids 0"),
        ([_IDS, _IDS, _IDS | {"text_b": "a"}], 2, "text_b 1"),
        (
            [_IDS, _IDS, _IDS | {"input_mask": [1]}],
            *(2, "input_ids 2, input_mask 1, segment_ids 2"),
        ),
    ],
)
def test_neither_text_nor_ids(rows, number, received, pairs):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        pairs.classify([example(**row) for row in rows])
    problem = str(error.value)
    assert (
        "[Each Example must have one text (or text_a) and at most one text_b; "
        "or all of them input_ids, input_mask and segment_ids, as many of "
        f"each. Received: Example {number} with values of "
    ) in problem
    assert received in problem


def test_a_second_text_of_single_ones(single):
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"one text \(or text_a\) and no text_b; .*Example 0 .*text_b 1",
    ):
        single.classify([example(text="a", text_b="b")])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        *(
            (
                example(**_IDS | {"input_ids": [1, wrong]}),
                r"input_ids must be from 0 to 16,",
            )
            for wrong in (17, 2**32 + 1, -(2**40))
        ),
        (b"no proto", "Could not parse example input"),
        (example(text=[1]), "Key: text.*Expected type: string"),
    ],
    # The bytes of a message differ between processes.
    ids=["beyond", "far", "negative", "no message", "of another type"],
)
def test_ids_beyond_the_vocabulary_and_no_examples(data, problem, pairs):
    with pytest.raises(tf.errors.InvalidArgumentError, match=problem):
        pairs.classify([data])
