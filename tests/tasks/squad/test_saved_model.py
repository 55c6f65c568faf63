"""Tests of exported question answerers, compared with the Python code."""

from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.tasks.squad import (
    squad_answers,
    squad_model,
    squad_options,
    squad_questions,
    squad_windows,
)
from bert_tf.vocabularies import word_pieces
from tests import saved_models, tiny_model

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] a b c ##a ##b d e , - ca 博 ##e fi ##ος οδ ? who
"""
VOCAB = _PIECES.split()
VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)
CONFIG = saved_models.config(VOCAB)
LAYOUT = squad_options.Layout(14, 3, 4)
SEARCH = squad_options.Search(5, 3, True)
_CONTEXTS = [
    "ab, ca (a-b) d",
    "a",
    "Ab ca e\u0301, 博b d\u202fe a b c d e ab ca, a b c d e fi" * 3,
    "\U0001f600 a\u200bb\u2028c\t\n\nΟΔΟΣ 𝄞 \ufb01",
    "x" * 201 + " a " + "y" * 200,
]
_QUESTIONS = ["who?", "", "A b c d e", "unheard", "a \x00 b"]
PAIRS = [(q, c) for q in _QUESTIONS for c in _CONTEXTS]


@pytest.fixture(scope="module")
def model() -> heads.BertSpanFinder:
    tf.keras.utils.set_random_seed(1)
    return heads.BertSpanFinder(modeling.Bert(CONFIG))


def finder(model, search=SEARCH, threshold=None, vocab=VOCAB):
    vocabulary = word_pieces.WordPiece(tuple(vocab), True)
    return squad_model.span_finder(
        model, CONFIG, vocabulary, LAYOUT, search, threshold
    )


def find(*made):
    serve = finder(*made).signatures["serving_default"]
    with tiny_model.untraced():
        return serve(*map(tf.constant, zip(*PAIRS, strict=True)))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "1"
    saved_model.save(str(path), finder(model))
    return path


@pytest.fixture(scope="module")
def loaded(saved):
    return tf.saved_model.load(str(saved))


def python_answer(model, question, context, search=SEARCH):
    """Cuts windows and searches in Python, with each window read separately."""
    cutter = squad_windows.Cutter(VOCABULARY, LAYOUT)
    windows = cutter.cut(squad_questions.Question("q", question, context))
    features = cutter.features(windows)
    starts, ends = model({k: tf.constant(v) for k, v in features.items()})
    return squad_answers.find(windows, starts.numpy(), ends.numpy(), search)


def check(outputs, answers):
    """Compares the outputs of a signature with Python's answers."""
    assert {name: x.dtype for name, x in outputs.items()} == {
        "answer": tf.string,
        **dict.fromkeys(("start", "end"), tf.int32),
        **dict.fromkeys(("score", "null_score"), tf.float32),
    }
    found = [answer.decode() for answer in outputs["answer"].numpy()]
    assert found == [answer.text for answer in answers]
    for name in ("start", "end", "score", "null_score"):
        expected = [getattr(answer, name) for answer in answers]
        most = 0 if name in ("start", "end") else 1e-4
        np.testing.assert_allclose(outputs[name], expected, rtol=0, atol=most)


def test_answers_are_pythons(model, loaded):
    answers = [python_answer(model, *pair) for pair in PAIRS]
    assert len({answer.text for answer in answers}) > 5
    questions, contexts = map(tf.constant, zip(*PAIRS, strict=True))
    serve = loaded.signatures["serving_default"]
    check(serve(question=questions, context=contexts), answers)
    check(loaded(questions, contexts), answers)
    for i in range(0, len(PAIRS), 6):
        one = loaded(questions[i : i + 1], contexts[i : i + 1])
        check(one, answers[i : i + 1])


@pytest.mark.parametrize(("n_best_size", "longest"), [(1, 1), (99, 2)])
def test_other_searches(model, n_best_size, longest):
    search = squad_options.Search(n_best_size, longest, False)
    answers = [python_answer(model, *pair, search) for pair in PAIRS]
    check(find(model, search), answers)


def test_no_answer_beyond_the_threshold(model):
    answers = [python_answer(model, *pair) for pair in PAIRS]
    odds = sorted(answer.null_odds for answer in answers)
    threshold = (odds[11] + odds[12]) / 2
    outputs = find(model, SEARCH, threshold)
    is_null = [answer.null_odds > threshold for answer in answers]
    assert sum(is_null) == len(PAIRS) - 12
    texts = [x.decode() for x in outputs["answer"].numpy()]
    assert texts == [
        "" if null else answer.text
        for null, answer in zip(is_null, answers, strict=True)
    ]
    for name in ("start", "end"):
        assert not outputs[name].numpy()[is_null].any()


def test_contexts_without_words(model, loaded):
    contexts = ["", "ab d", "\x00 \u200b"]
    outputs = loaded(tf.constant(["who?"] * 3), tf.constant(contexts))
    assert outputs["answer"].numpy()[[0, 2]].tolist() == [b"", b""]
    for name in ("start", "end"):
        assert outputs[name].numpy()[[0, 2]].tolist() == [0, 0]
    # "No answer" is the only candidate.
    score, null = outputs["score"].numpy(), outputs["null_score"].numpy()
    assert (score == null).tolist() == [True, False, True]
    assert np.abs(score).max() < 100
    text = python_answer(model, "who?", "ab d").text
    assert outputs["answer"].numpy()[1].decode() == text
    alone = loaded(tf.constant(["who?"]), tf.constant([""]))
    assert alone["answer"].numpy().tolist() == [b""]


# Text of more windows than are read at a time.
_WORDS = ["ab", "ca,", "d", "e\u0301"]
_MANY = " ".join(_WORDS[i % 7 % 4] for i in range(700)).encode()


@pytest.mark.parametrize("data", [_MANY, b"ab\xff ca \xc3"], ids=len)
def test_many_windows_and_invalid_bytes(model, loaded, data):
    outputs = loaded(tf.constant(["who?"]), tf.constant([data]))
    context = data.decode("utf-8", "ignore")
    check(outputs, [python_answer(model, "who?", context)])


def test_ids(model, loaded):
    inputs = saved_models.some_ids(3, 9, len(VOCAB))
    inputs = {name: tf.constant(ids) for name, ids in inputs.items()}
    outputs = loaded.signatures["serve_ids"](**inputs)
    starts, ends = model(inputs)
    np.testing.assert_allclose(outputs["start_logits"], starts, atol=1e-5)
    np.testing.assert_allclose(outputs["end_logits"], ends, atol=1e-5)


def test_assets(saved):
    assets = {path.name for path in (saved / "assets").iterdir()}
    assert assets == {"vocab.txt", "bert_config.json", "export.json"}
    saved_models.assert_described(
        *(saved, "span", 14),
        doc_stride=3,
        max_query_length=4,
        n_best_size=5,
        max_answer_length=3,
        version_2_with_negative=True,
        null_score_diff_threshold=None,
    )


def test_arguments_must_fit(model):
    with pytest.raises(ValueError, match=r"21 tokens.*vocab_size=22"):
        finder(model, vocab=VOCAB[:-1])
    layout = squad_options.Layout(17, 3, 4)
    with pytest.raises(ValueError, match=r"max_seq_length=17.*embeddings=16"):
        squad_model.span_finder(model, CONFIG, VOCABULARY, layout, SEARCH, None)
