"""Serialized tf.Examples, asked as by TensorFlow Serving's classify."""

from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.text import long_documents
from tests import every_head, saved_models, serving_session
from tests.exporting import test_saved_model as test_export

import numpy as np
import pytest
import tensorflow as tf

_PAIRS, _LABELS = test_export.PAIRS, test_export.LABELS
_example = serving_session.example


def _save(path, model, labels=_LABELS, takes_pairs=True, **settings):
    made = saved_model.classifier(
        model,
        test_export.CONFIG,
        test_export.VOCABULARY,
        labels,
        test_export.MAX_SEQ_LENGTH,
        takes_pairs,
        **settings,
    )
    saved_model.save(str(path), made)
    return serving_session.Server(path)


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    return heads.BertClassifier(modeling.Bert(test_export.CONFIG), len(_LABELS))


@pytest.fixture(scope="module")
def pairs(model, tmp_path_factory):
    return _save(tmp_path_factory.mktemp("pairs") / "1", model)


@pytest.fixture(scope="module")
def single(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("single") / "1"
    return _save(path, model, takes_pairs=False)


def _logits(model, rows):
    return np.array([test_export.python_logits(model, *row) for row in rows])


def _check(answers, probabilities):
    """Compares answers with probabilities [B, C] in the labels' order."""
    assert [[label for label, _ in row] for row in answers] == (
        [_LABELS] * len(probabilities)
    )
    scores = [[score for _, score in row] for row in answers]
    np.testing.assert_allclose(scores, probabilities, atol=1e-5)


# ---- Answers ----------------------------------------------------------------


@pytest.mark.parametrize("first", ["text", "text_a"])
def test_pairs(first, model, pairs):
    examples = [_example(**{first: a, "text_b": b}) for a, b in _PAIRS]
    expected = saved_models.softmax(_logits(model, _PAIRS))
    _check(pairs.classify(examples), expected)


def test_texts_of_both_names_and_without_a_second(model, pairs):
    examples = [
        _example(text="good film"),
        _example(text_a="bad", text_b="a film"),
        _example(text=""),
        # Others are not read.
        _example(text="bad film", label_ids=[1], guid="dev-1"),
    ]
    rows = [("good film", ""), ("bad", "a film"), ("", ""), ("bad film", "")]
    _check(pairs.classify(examples), saved_models.softmax(_logits(model, rows)))


def test_single_texts(model, single):
    examples = [_example(text=text) for text, _ in _PAIRS]
    expected = _logits(model, [(text, "") for text, _ in _PAIRS])
    _check(single.classify(examples), saved_models.softmax(expected))


@pytest.mark.parametrize("takes_pairs", [True, False])
def test_ids_of_several_lengths(takes_pairs, model, pairs, single):
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
    server = pairs if takes_pairs else single
    found = server.classify([_example(**row) for row in rows])
    _check(found, saved_models.softmax(np.array(logits)))


@pytest.mark.slow
def test_a_regression(tmp_path):
    tf.keras.utils.set_random_seed(1)
    model = heads.BertClassifier(modeling.Bert(test_export.CONFIG), 1)
    server = _save(tmp_path / "1", model, labels=None)
    found = server.regress([_example(text=a, text_b=b) for a, b in _PAIRS])
    expected = _logits(model, _PAIRS)[:, 0]
    assert len(set(expected.round(4))) > 4
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_several_labels(model, tmp_path):
    server = _save(
        tmp_path / "1", model, takes_pairs=False, is_multi_label=True
    )
    texts = [text for text, _ in _PAIRS]
    logits = _logits(model, [(text, "") for text in texts])
    found = server.classify([_example(text=text) for text in texts])
    _check(found, 1 / (1 + np.exp(-logits)))


@pytest.mark.slow
def test_long_documents(model, tmp_path):
    server = _save(
        tmp_path / "1",
        model,
        takes_pairs=False,
        documents=long_documents.LongDocuments("windows", 4),
    )
    texts = ["good " * 30 + "bad", "a film", ""]
    expected = server.ask("serving_default", text_a=texts)["probabilities"]
    found = server.classify([_example(text=text) for text in texts])
    _check(found, expected)
    cut = _logits(model, [(texts[0], "")])
    assert np.abs(expected[0] - saved_models.softmax(cut)[0]).max() > 1e-3


def test_no_examples(pairs):
    assert pairs.classify([]) == []


@pytest.mark.slow
def test_python_takes_them_too(model, tmp_path):
    made = every_head.classifier()
    saved_model.save(str(tmp_path / "1"), made)
    found = saved_models.serve_elsewhere(
        tmp_path, tmp_path / "1", text_a=["good"], text_b=["bad"]
    )
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures[
        "serve_examples"
    ]
    outputs = serve(inputs=tf.constant([_example(text="good", text_b="bad")]))
    np.testing.assert_allclose(
        outputs["scores"], found["probabilities"], atol=1e-5
    )


# ---- What is refused --------------------------------------------------------

_IDS = {"input_ids": [1, 2], "input_mask": [1, 1], "segment_ids": [0, 0]}


@pytest.mark.parametrize(
    ("wrong", "received"),
    [
        ({}, "text 0, text_a 0, text_b 0"),
        ({"text_b": "a"}, "text 0, text_a 0, text_b 1"),
        ({"text": "a", "text_a": "a"}, "text 1, text_a 1, text_b 0"),
        ({"text": ["a", "b"]}, "text 2, text_a 0, text_b 0"),
        ({"text": "a", "text_b": ["b", "c"]}, "text 1, text_a 0, text_b 2"),
        (_IDS, "input_ids 2, input_mask 2, segment_ids 2"),
        (_IDS | {"text": "a"}, "input_ids 2, input_mask 2, segment_ids 2"),
        ({"input_ids": [1]}, "input_ids 1, input_mask 0, segment_ids 0"),
    ],
)
def test_neither_text_nor_ids(wrong, received, pairs):
    examples = [_example(text="good"), _example(**wrong), _example()]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        pairs.classify(examples)
    problem = str(error.value)
    assert (
        "[Each Example must have one text (or text_a) and at most one text_b; "
        "or all of them input_ids, input_mask and segment_ids, as many of "
        "each. Received: Example 1 with values of "
    ) in problem
    assert received in problem


@pytest.mark.parametrize(
    ("wrong", "received"),
    [
        ({"text": "a"}, "text 1,"),
        ({}, "input_ids 0, input_mask 0, segment_ids 0"),
        (_IDS | {"text_b": "a"}, "text_b 1"),
        (
            _IDS | {"input_mask": [1]},
            "input_ids 2, input_mask 1, segment_ids 2",
        ),
    ],
)
def test_ids_are_of_all(wrong, received, pairs):
    examples = [_example(**_IDS), _example(**_IDS), _example(**wrong)]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        pairs.classify(examples)
    number = 0 if "text" in wrong else 2
    assert f"Received: Example {number} with" in str(error.value)
    if number:
        assert received in str(error.value)


def test_a_second_text_of_single_ones(single):
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"one text \(or text_a\) and no text_b; .*Example 0 .*text_b 1",
    ):
        single.classify([_example(text="a", text_b="b")])


@pytest.mark.parametrize("wrong", [17, 2**32 + 1, -(2**40)])
def test_ids_beyond_the_vocabulary(wrong, pairs):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"input_ids must be from 0 to 16,"
    ):
        pairs.classify([_example(**_IDS | {"input_ids": [1, wrong]})])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"no proto", "Could not parse example input"),
        (_example(text=[1]), "Key: text.*Expected type: string"),
    ],
)
def test_what_is_no_example(data, problem, pairs):
    with pytest.raises(tf.errors.InvalidArgumentError, match=problem):
        pairs.classify([data])
