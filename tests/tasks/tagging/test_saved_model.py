"""Tests of exported taggers, compared with the model and Python's words."""

import functools

from bert_tf import heads, modeling
from bert_tf.exporting import saved_model
from bert_tf.tasks.tagging import (
    conll,
    graph_words,
    schemes,
    tagging_model,
    tagging_records,
    tagging_words,
)
from bert_tf.text import graph_windows
from bert_tf.vocabularies import word_pieces
from tests import saved_models
from tests.tasks.tagging import words_of_text

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] a film what ##ever good bad cafe , . 博 o ##δος
( ) : - @ paris ##s
"""
VOCAB = _PIECES.split()
VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)
LABELS = ["B-x", "O", "I-x", "B-médium", "I-médium"]
MAX_SEQ_LENGTH = 12
CONFIG = saved_models.config(VOCAB)
TEXTS = [
    "What a film, (good) Paris.",
    "",
    "Whatever",
    "good bad Café 博博 a\u2028film Pariss " * 7,
    " \t",
    "ΟΔΟΣ ΟΔΟΣ. :-) ... @a\u200b\ufe0f \ufe0f \x00film Paris!",
    "bad Paris " * 70,
    "",
]


@pytest.fixture(scope="module")
def model() -> heads.BertTagger:
    tf.keras.utils.set_random_seed(2)
    return heads.BertTagger(modeling.Bert(CONFIG), len(LABELS))


def save(path, model, labels=LABELS, scheme="BIO", length=MAX_SEQ_LENGTH):
    made = tagging_model.tagger(
        model, CONFIG, VOCABULARY, labels, scheme, length
    )
    saved_model.save(str(path), made)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "tagger"
    with pytest.MonkeyPatch.context() as patch:
        # Makes the longest text take several parts.
        patch.setattr(graph_windows, "MOST_WINDOWS", 8)
        save(path, model)
    return path


@pytest.fixture(scope="module")
def loaded(saved):
    return tf.saved_model.load(str(saved))


def label(model, sentence):
    """Reads the records' windows; returns each word's label."""
    encoder = tagging_records.Encoder(
        tagging_words.WordPieces(VOCABULARY), MAX_SEQ_LENGTH
    )
    if not sentence.words:
        return []
    windows = list(encoder.rows([sentence], {}))
    batch = {
        name: tf.constant([row[name] for row in windows], tf.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    found = []
    for row, logits in zip(windows, model(batch).numpy(), strict=True):
        best = logits.argmax(-1)
        found += [LABELS[i] for i in best[row["label_weights"] > 0]]
    assert len(found) == len(sentence.words)
    return found


@functools.cache
def entities(model, text):
    """Returns Python's entities in raw text: type, start, end, text."""
    spans = words_of_text.split_text(text)
    words = tuple(text[start:end] for start, end in spans)
    found = label(model, conll.Sentence(words, (), (1,) * len(words), 0))
    rows = []
    for entity in schemes.entities(found, "BIO"):
        start, end = spans[entity.start][0], spans[entity.end - 1][1]
        rows.append((entity.type, start, end, text[start:end]))
    return rows


def rows(outputs):
    """Returns the entities of each text, from padded outputs."""
    columns = [outputs[x].numpy() for x in ("type", "start", "end", "text")]
    return [
        [
            (kind.decode(), int(start), int(end), text.decode())
            for kind, start, end, text in zip(
                *(column[i, :count] for column in columns), strict=True
            )
        ]
        for i, count in enumerate(outputs["count"])
    ]


def test_raw_text_gives_what_python_gives(model, loaded):
    expected = [entities(model, text) for text in TEXTS]
    assert len({x[0] for row in expected for x in row}) == 2
    assert any(" " in x[3] for row in expected for x in row), "of more words"
    serve = loaded.signatures["serving_default"]
    assert rows(serve(text=tf.constant(TEXTS))) == expected
    for text, row in zip(TEXTS[:3], expected, strict=False):
        assert rows(serve(text=tf.constant([text]))) == [row]
    ragged = loaded(tf.constant(TEXTS))
    assert ragged["start"].to_list() == [[x[1] for x in r] for r in expected]
    assert [[x.decode() for x in r] for r in ragged["type"].to_list()] == [
        [x[0] for x in r] for r in expected
    ]


def test_words_that_are_split_already(model, loaded):
    outputs = loaded.signatures["serve_words"](text=tf.constant(TEXTS))
    names = outputs["label"].numpy()
    for i, text in enumerate(TEXTS):
        words = tuple(text.split())
        sentence = conll.Sentence(words, (), (1,) * len(words), 0)
        labels = label(model, sentence)
        given = [x.decode() for x in names[i]]
        assert given[: len(words)] == labels
        assert not any(given[len(words) :])
        found = [x[0] for x in rows(outputs)[i]]
        assert found == [x.type for x in schemes.entities(labels, "BIO")]


def test_no_texts_and_invalid_bytes(loaded):
    serve = loaded.signatures["serving_default"]
    outputs = serve(text=tf.constant([], tf.string))
    assert outputs["count"].shape == [0]
    assert outputs["type"].shape[0] == 0
    good = b"What a film, (good) Paris. bad Paris"
    outputs = serve(text=tf.constant([good, good.replace(b" a ", b" \xffa ")]))
    assert rows(outputs)[0] == rows(outputs)[1]


@pytest.mark.parametrize("splits_cjk", [False, True])
def test_words_are_those_of_python_for_any_characters(splits_cjk):
    splitter = graph_words.WordSplitter(splits_cjk)
    rng = np.random.default_rng(2)
    characters = list(
        "ab.,(@$ \t\u3000\u2028é博\U00020000士カ。，“’–!?\u0301\x01\U0001f600"
    )
    texts = [
        "".join(characters[i] for i in rng.integers(0, len(characters), n))
        for n in rng.integers(0, 30, 500)
    ]
    found = splitter.split(tf.constant(texts), split_punctuation=True)
    columns = (found.rows, found.starts, found.ends, found.texts)
    listed = list(zip(*(x.numpy() for x in columns), strict=True))
    assert listed == [
        (i, start, end, text[start:end].encode())
        for i, text in enumerate(texts)
        for start, end in words_of_text.split_text(text, splits_cjk)
    ]
    words = splitter.split(tf.constant(texts), split_punctuation=False)
    assert [x.decode() for x in words.texts.numpy()] == [
        word for text in texts for word in text.split()
    ]


@pytest.mark.parametrize("scheme", [*schemes.SCHEMES, schemes.NO_SCHEME])
def test_entities_in_the_graph_are_those_of_python(scheme):
    prefixes = schemes.SCHEMES.get(scheme, schemes.SCHEMES["BIO"]).prefixes
    labels = ["O", *(f"{p}-{t}" for p in prefixes for t in "xy")]
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 8, 300)
    ids = [rng.integers(0, len(labels), n) for n in lengths]
    decoder = tagging_model.Decoder(labels, scheme)
    for some in (ids, ids[:1], []):
        first, last = decoder.find(
            tf.constant(np.concatenate([np.zeros(0), *some]), tf.int32),
            tf.constant(np.repeat(np.arange(len(some)), lengths[: len(some)])),
        )
        expected, offset = [], 0
        for row in some:
            for x in schemes.entities([labels[i] for i in row], scheme):
                expected.append((offset + x.start, offset + x.end - 1))
            offset += len(row)
        found = zip(first.numpy(), last.numpy(), strict=True)
        assert list(found) == expected


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"labels": LABELS[:2]}, "the model has 5 outputs"),
        ({"scheme": "IO"}, "Received: label='B-x'"),
        ({"length": 17}, "max_seq_length=17.*embeddings=16"),
    ],
)
def test_arguments_must_fit(changes, problem, model, tmp_path):
    with pytest.raises(ValueError, match=problem):
        save(tmp_path / "new", model, **changes)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("rows", "length"), [(1, 3), (4, 16), (0, 5)])
def test_ids_of_any_batch_and_length(rows, length, model, loaded):
    inputs = saved_models.some_ids(rows, length, len(VOCAB))
    inputs = {name: tf.constant(ids) for name, ids in inputs.items()}
    found = loaded.signatures["serve_ids"](**inputs)
    logits = model(inputs).numpy()  # [B, S, C]
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(
        found["probabilities"], saved_models.softmax(logits), atol=1e-5
    )
    labels = [[x.decode() for x in row] for row in found["label"].numpy()]
    assert labels == [[LABELS[i] for i in row.argmax(-1)] for row in logits]
