"""Tests of exported classifiers, against the model and Python's tokenizer."""

import dataclasses
import json
import os

from bert_tf import heads, modeling, tokenization
from bert_tf.exporting import saved_model
from bert_tf.text import graph_windows, long_documents
from bert_tf.vocabularies import word_pieces
from tests import saved_models

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] a film what ##ever good bad cafe , . 博 o ##δος
"""
VOCAB = _PIECES.split()
VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)
LABELS = ["no", "yes, médium", "博"]
MAX_SEQ_LENGTH = 12
CONFIG = saved_models.config(VOCAB)
PAIRS = [
    ("What a film.", ""),
    ("Whatever", "good, good Café"),
    ("", "bad"),
    ("good " * 30, ""),
    ("good " * 30, "bad " * 7 + "Film"),
    ("bad\u2028博博 ΟΔΟΣ", "a\u200b \x00film [MASK]"),
    ("", ""),
    ("unheard", " \t"),
]
TEXTS_A, TEXTS_B = map(list, zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def model() -> heads.BertClassifier:
    tf.keras.utils.set_random_seed(1)
    return heads.BertClassifier(modeling.Bert(CONFIG), len(LABELS))


def save(
    path,
    model,
    labels=LABELS,
    takes_pairs=True,
    max_seq_length=MAX_SEQ_LENGTH,
    vocab=VOCAB,
):
    made = saved_model.classifier(
        model,
        CONFIG,
        word_pieces.WordPiece(tuple(vocab), True),
        labels=labels,
        max_seq_length=max_seq_length,
        takes_pairs=takes_pairs,
    )
    saved_model.save(str(path), made)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "pairs"
    save(path, model)
    return path


@pytest.fixture(scope="module")
def loaded(saved):
    return tf.saved_model.load(str(saved))


def python_logits(model, text_a, text_b):
    """Python's tokenizer, a row of its own, the model: [C]."""
    tokenizer = tokenization.FullTokenizer.from_vocab(
        {piece: index for index, piece in enumerate(VOCAB)}
    )
    first, second = tokenizer.tokenize(text_a), tokenizer.tokenize(text_b)
    room = MAX_SEQ_LENGTH - (3 if second else 2)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    pieces = ["[CLS]", *first, "[SEP]"]
    segments = [0] * len(pieces)
    if second:
        pieces += [*second, "[SEP]"]
        segments += [1] * (len(second) + 1)
    inputs = {
        "input_ids": tokenizer.convert_tokens_to_ids(pieces),
        "input_mask": [1] * len(pieces),
        "segment_ids": segments,
    }
    row = {name: tf.constant([ids]) for name, ids in inputs.items()}
    return model(row).numpy()[0]


def check(outputs, logits):
    """Compares what a signature returned with what logits [B, C] mean."""
    assert set(outputs) == {"label", "probabilities", "logits"}
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(
        outputs["probabilities"], saved_models.softmax(logits), atol=1e-5
    )
    labels = [label.decode() for label in outputs["label"].numpy()]
    assert labels == [LABELS[i] for i in logits.argmax(-1)]


# ---- What it predicts --------------------------------------------------------


def test_texts_give_what_python_gives(model, loaded):
    logits = np.array([python_logits(model, *pair) for pair in PAIRS])
    assert len(set(logits.argmax(-1))) > 1, "the test would see no difference"
    serve = loaded.signatures["serving_default"]
    texts = tf.constant(TEXTS_A), tf.constant(TEXTS_B)
    check(serve(text_a=texts[0], text_b=texts[1]), logits)
    check(loaded(*texts), logits)
    for row, (text_a, text_b) in enumerate(PAIRS):
        one = serve(text_a=tf.constant([text_a]), text_b=tf.constant([text_b]))
        check(one, logits[row : row + 1])


def test_second_text_may_be_left_out(model, saved, loaded):
    logits = np.array([python_logits(model, text, "") for text in TEXTS_A])
    check(loaded(tf.constant(TEXTS_A)), logits)
    # For clients of TensorFlow Serving the signature holds the default.
    message = saved_model_pb2.SavedModel()
    message.ParseFromString((saved / "saved_model.pb").read_bytes())
    signature = message.meta_graphs[0].signature_def["serving_default"]
    assert list(signature.defaults["text_b"].string_val) == [b""]


def test_ids_of_any_batch_and_length(model, loaded):
    serve = loaded.signatures["serve_ids"]
    rng = np.random.default_rng(1)
    for rows, length in [(1, 3), (4, 16), (2, 9)]:
        mask = np.arange(length) < rng.integers(1, length + 1, [rows, 1])
        inputs = {
            "input_ids": rng.integers(0, len(VOCAB), [rows, length]),
            "input_mask": mask,
            "segment_ids": rng.integers(0, 2, [rows, length]),
        }
        inputs = {
            name: tf.constant(ids, tf.int32) for name, ids in inputs.items()
        }
        check(serve(**inputs), model(inputs).numpy())


def test_no_rows(loaded):
    outputs = loaded.signatures["serving_default"](
        text_a=tf.constant([], tf.string), text_b=tf.constant([], tf.string)
    )
    assert outputs["label"].shape == [0]
    assert outputs["logits"].shape == [0, 3]


@pytest.mark.slow
def test_single_texts(model, tmp_path):
    save(tmp_path / "single", model, takes_pairs=False)
    loaded = tf.saved_model.load(str(tmp_path / "single"))
    serve = loaded.signatures["serving_default"]
    assert set(serve.structured_input_signature[1]) == {"text_a"}
    logits = np.array([python_logits(model, text, "") for text in TEXTS_A])
    check(serve(text_a=tf.constant(TEXTS_A)), logits)
    check(serve(tf.constant(TEXTS_A)), logits)
    pairs = np.array([python_logits(model, *pair) for pair in PAIRS])
    check(loaded(tf.constant(TEXTS_A), tf.constant(TEXTS_B)), pairs)


@pytest.mark.slow
def test_regression_of_a_model_on_two_replicas(tmp_path, two_replicas):
    with two_replicas.scope():
        model = heads.BertClassifier(modeling.Bert(CONFIG), 1)
    save(tmp_path / "scores", model, labels=None)
    outputs = tf.saved_model.load(str(tmp_path / "scores"))(
        tf.constant(TEXTS_A), tf.constant(TEXTS_B)
    )
    assert set(outputs) == {"score", "logits"}
    logits = np.array([python_logits(model, *pair) for pair in PAIRS])
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(outputs["score"], logits[:, 0], atol=1e-5)
    assert not (tmp_path / "scores" / "assets" / "labels.txt").exists()


# ---- What is in the folder ---------------------------------------------------


def test_signatures(loaded):
    inputs = {
        name: {
            key: (spec.shape.as_list(), spec.dtype)
            for key, spec in function.structured_input_signature[1].items()
        }
        for name, function in loaded.signatures.items()
    }
    ids = ([None, None], tf.int32)
    assert inputs == {
        "serving_default": {
            "text_a": ([None], tf.string),
            "text_b": ([None], tf.string),
        },
        "serve_text": {"text": ([None], tf.string)},
        "serve_pairs": {
            "text": ([None], tf.string),
            "text_b": ([None], tf.string),
        },
        "serve_examples": {"inputs": ([None], tf.string)},
        "serve_ids": {
            "input_ids": ids,
            "input_mask": ids,
            "segment_ids": ids,
        },
    }


def test_assets(saved):
    assets = {path.name: path for path in (saved / "assets").iterdir()}
    assert set(assets) == {
        *("vocab.txt", "labels.txt", "bert_config.json", "export.json")
    }
    assert list(tokenization.load_vocab(assets["vocab.txt"])) == VOCAB
    assert assets["labels.txt"].read_text("utf-8").splitlines() == LABELS
    config = modeling.BertConfig.from_json_file(str(assets["bert_config.json"]))
    assert config == CONFIG
    assert json.loads(assets["export.json"].read_text()) == {
        "head": "classification",
        "do_lower_case": True,
        "max_seq_length": MAX_SEQ_LENGTH,
        "takes_pairs": True,
        "multi_label": False,
        "long_documents": "head",
        "window_stride": None,
    }


def test_piece_of_white_space_stays_a_line(tmp_path):
    # The Chinese vocabulary's U+2028, which `load_vocab` strips.
    vocab = ["", *VOCAB[1:]]
    model = heads.BertClassifier(modeling.Bert(CONFIG), 1)
    save(tmp_path / "new", model, labels=None, vocab=vocab)
    path = tmp_path / "new" / "assets" / "vocab.txt"
    assert list(tokenization.load_vocab(path)) == vocab


@pytest.mark.slow
def test_needs_only_tensorflow_and_the_serving_binary_s_ops(
    model, saved, tmp_path
):
    found = saved_models.serve_elsewhere(
        tmp_path, saved, batch_size=3, text_a=TEXTS_A, text_b=TEXTS_B
    )
    logits = [python_logits(model, *pair) for pair in PAIRS]
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)


# ---- What it refuses ---------------------------------------------------------


def test_target_must_be_new_or_empty(model, tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(ValueError, match=f"Received: path={path}"):
            save(path, model)
    assert os.listdir(tmp_path) == ["file"]
    (tmp_path / "empty").mkdir()
    saved_model.check_target(str(tmp_path / "empty"))


def test_failure_leaves_nothing_behind(model, tmp_path):
    made = saved_model.classifier(
        model, CONFIG, VOCABULARY, LABELS, MAX_SEQ_LENGTH, False
    )
    broken = dataclasses.replace(made, signatures={"no": "function"})
    with pytest.raises(ValueError, match="function"):
        saved_model.save(str(tmp_path / "new"), broken)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"labels": ["yes", "no"]}, "the model has 3 outputs"),
        ({"labels": None}, "the model has 3 outputs"),
        ({"max_seq_length": 17}, "max_seq_length=17.*embeddings=16"),
        ({"vocab": VOCAB[:-1]}, r"16 pieces.*vocab_size=17"),
    ],
)
def test_arguments_must_fit(changes, problem, model, tmp_path):
    with pytest.raises(ValueError, match=problem):
        save(tmp_path / "new", model, **changes)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_another_goes_when_the_next_is_whole(model, tmp_path):
    made = [
        saved_model.classifier(
            model, CONFIG, VOCABULARY, labels, MAX_SEQ_LENGTH, False
        )
        for labels in (LABELS, LABELS[::-1])
    ]
    path = tmp_path / "x"
    for each in made:
        # What can't be saved leaves what is there.
        broken = dataclasses.replace(each, signatures={"no": "function"})
        before = sorted(path.rglob("*"))
        with pytest.raises(ValueError, match="function"):
            saved_model.save(str(path), broken, overwrite=True)
        assert sorted(path.rglob("*")) == before
        saved_model.save(str(path), each, overwrite=True)
        assert os.listdir(tmp_path) == ["x"]
    text = (path / "assets" / "labels.txt").read_text()
    assert text.split("\n") == [*LABELS[::-1], ""]


@pytest.mark.slow
def test_only_exports_are_replaced(model, tmp_path):
    made = saved_model.classifier(
        model, CONFIG, VOCABULARY, LABELS, MAX_SEQ_LENGTH, False
    )
    path = tmp_path / "x"
    saved_model.save(str(path), made)
    for name in ("model.ckpt-7.index", "thesis.tex", "best"):
        (path / name).write_text("of another")
        before = sorted(path.rglob("*"))
        with pytest.raises(
            ValueError, match=f"path={path}, which holds {name}"
        ):
            saved_model.save(str(path), made, overwrite=True)
        assert sorted(path.rglob("*")) == before
        (path / name).unlink()
    saved_model.save(str(path), made, overwrite=True)
    file = tmp_path / "file"
    file.write_text("of another")
    with pytest.raises(ValueError, match=f"path={file}, which is a file"):
        saved_model.save(str(file), made, overwrite=True)


# ---- Several labels, long documents ------------------------------------------


@pytest.mark.slow
def test_several_labels(model, tmp_path):
    made = saved_model.classifier(
        model,
        CONFIG,
        VOCABULARY,
        LABELS,
        MAX_SEQ_LENGTH,
        False,
        is_multi_label=True,
    )
    saved_model.save(str(tmp_path / "x"), made)
    texts = [text for text, other in PAIRS if not other]
    serve = tf.saved_model.load(str(tmp_path / "x")).signatures
    outputs = serve["serving_default"](text_a=tf.constant(texts))
    assert set(outputs) == {"labels", "probabilities", "logits"}
    logits = np.array([python_logits(model, text, "") for text in texts])
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    probabilities = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(
        outputs["probabilities"], probabilities, atol=1e-5
    )
    given = []
    for row, named in zip(
        probabilities, outputs["labels"].numpy().tolist(), strict=True
    ):
        best = sorted(range(3), key=lambda i: -row[i])
        names = [LABELS[i] for i in best if row[i] > 0.5]
        assert [x.decode() for x in named] == names + [""] * (3 - len(names))
        given.append(len(names))
    assert len(set(given)) > 1, "the test would see no difference"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tail", "head_tail", "windows"])
def test_long_documents(method, model, tmp_path, monkeypatch):
    # So that there is more than one part.
    monkeypatch.setattr(graph_windows, "MOST_WINDOWS", 2)
    stride = 4 if method == "windows" else None
    made = saved_model.classifier(
        model,
        CONFIG,
        VOCABULARY,
        LABELS,
        MAX_SEQ_LENGTH,
        False,
        documents=long_documents.LongDocuments(method, stride),
    )
    saved_model.save(str(tmp_path / "x"), made)
    words = ["a", "film", "what", "good", "bad", "cafe"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, n)) for n in (3, 10, 11, 30)] + [""]
    room = MAX_SEQ_LENGTH - 2

    def parts(words):
        last = max(len(words) - room, 0)
        if method == "tail":
            return [words[last:]]
        if method == "windows":
            starts = [*range(0, last, 4), last]
            return [words[i : i + room] for i in starts]
        head = round(room * 128 / 510)
        return [words[:head] + words[max(head, len(words) - room + head) :]]

    logits = [
        np.mean(
            [python_logits(model, " ".join(x), "") for x in parts(t.split())],
            axis=0,
        )
        for t in texts
    ]
    loaded = tf.saved_model.load(str(tmp_path / "x"))
    serve = loaded.signatures["serving_default"]
    check(serve(text_a=tf.constant(texts)), np.array(logits))
    check(loaded(tf.constant(texts)), np.array(logits))
    assert loaded(tf.constant([], tf.string))["logits"].shape == (0, 3)
