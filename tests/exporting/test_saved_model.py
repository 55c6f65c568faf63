"""Tests of exported classifiers, compared with the model in Python."""

import asyncio
import dataclasses
import os

import bert_tf
from bert_tf import heads, modeling, tokenization
from bert_tf.errors import InputError
from bert_tf.exporting import saved_model, version_labels
from bert_tf.server import batching, served_models
from bert_tf.text import graph_windows, long_documents
from bert_tf.vocabularies import word_pieces
from tests import combinations, exports, saved_models, serving_session
from tests.exports import CONFIG, LABELS, LENGTH, PAIRS, TEXTS_A, TEXTS_B, VOCAB
from tests.server import served

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_SINGLE = [(text,) for text in TEXTS_A]


@pytest.fixture(scope="module")
def model() -> heads.BertClassifier:
    return exports.model("classification")


@pytest.fixture(scope="module")
def loaded():
    return exports.loaded("classification")


def classifier(model, labels=LABELS, length=LENGTH, vocab=VOCAB, **settings):
    vocabulary = word_pieces.WordPiece(tuple(vocab), True)
    settings.setdefault("takes_pairs", True)
    config = model.bert.config
    return saved_model.classifier(
        model, config, vocabulary, labels, length, **settings
    )


def check(outputs, logits):
    """Compares the outputs of a signature with logits [B, C]."""
    assert set(outputs) == {"label", "probabilities", "logits"}
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(
        outputs["probabilities"], saved_models.softmax(logits), atol=1e-5
    )
    labels = [label.decode() for label in outputs["label"].numpy()]
    assert labels == [LABELS[i] for i in logits.argmax(-1)]


# ---- Predictions -------------------------------------------------------------


@pytest.mark.usefixtures("grappler")
def test_texts_give_what_python_gives(model, loaded):
    logits = exports.python_logits(model, *PAIRS)
    assert len(set(logits.argmax(-1))) > 1, "the test would see no difference"
    serve = loaded.signatures["serving_default"]
    texts = tf.constant(TEXTS_A), tf.constant(TEXTS_B)
    check(serve(text_a=texts[0], text_b=texts[1]), logits)
    check(loaded(*texts), logits)
    for row, (text_a, text_b) in enumerate(PAIRS):
        one = serve(text_a=tf.constant([text_a]), text_b=tf.constant([text_b]))
        check(one, logits[row : row + 1])
    # The signature contains the default for TensorFlow Serving's clients.
    check(loaded(texts[0]), exports.python_logits(model, *_SINGLE))


def test_ids_of_any_batch_and_length(model, loaded):
    serve = loaded.signatures["serve_ids"]
    for rows, length in [(1, 3), (4, 16), (2, 9)]:
        ids = saved_models.some_ids(rows, length, len(VOCAB))
        inputs = {name: tf.constant(x) for name, x in ids.items()}
        check(serve(**inputs), model(inputs).numpy())


def test_single_texts(model):
    loaded = exports.loaded("one text")
    serve = loaded.signatures["serving_default"]
    assert set(serve.structured_input_signature[1]) == {"text_a"}
    logits = exports.python_logits(model, *_SINGLE)
    check(serve(text_a=tf.constant(TEXTS_A)), logits)
    check(serve(tf.constant(TEXTS_A)), logits)
    pairs = exports.python_logits(model, *PAIRS)
    check(loaded(tf.constant(TEXTS_A), tf.constant(TEXTS_B)), pairs)


def test_regression_of_a_model_on_two_replicas(tmp_path, two_replicas):
    with two_replicas.scope():
        model = heads.BertClassifier(modeling.Bert(CONFIG), 1)
    made = classifier(model, labels=None)
    # One of its functions: the others would be traced, too, for seconds.
    module = tf.Module()
    module.weights, module.serve = made.module.weights, made.module.serve_ids
    export = saved_model.Export(module, {"ids": module.serve}, made.files)
    saved_model.save(str(tmp_path / "scores"), export)
    ids = saved_models.some_ids(4, 9, len(VOCAB))
    inputs = {name: tf.constant(x) for name, x in ids.items()}
    loaded = tf.saved_model.load(str(tmp_path / "scores"))
    outputs = loaded.signatures["ids"](**inputs)
    assert set(outputs) == {"score", "logits"}
    logits = model(inputs).numpy()
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(outputs["score"], logits[:, 0], atol=1e-5)
    assert not (tmp_path / "scores" / "assets" / "labels.txt").exists()


# ---- Files in the folder -----------------------------------------------------


def test_assets():
    folder = exports.exported("classification")
    assets = {path.name: path for path in (folder / "assets").iterdir()}
    assert set(assets) == {
        *("vocab.txt", "labels.txt", "bert_config.json", "export.json")
    }
    assert list(tokenization.load_vocab(assets["vocab.txt"])) == VOCAB
    assert assets["labels.txt"].read_text("utf-8").splitlines() == LABELS
    config = modeling.BertConfig.from_json_file(str(assets["bert_config.json"]))
    assert config == CONFIG
    saved_models.assert_classifier(folder, LENGTH, takes_pairs=True)


def test_piece_of_white_space_stays_a_line(model, tmp_path):
    # The Chinese vocabulary's U+2028, which `load_vocab` strips.
    vocab = ["", *VOCAB[1:]]
    path = tmp_path / "vocab.txt"
    path.write_bytes(classifier(model, vocab=vocab).files["vocab.txt"])
    assert list(tokenization.load_vocab(path)) == vocab


# ---- Errors and overwriting --------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"labels": ["yes", "no"]}, "the model has 3 outputs"),
        ({"labels": None}, "the model has 3 outputs"),
        ({"length": 17}, "max_seq_length=17.*embeddings=16"),
        ({"vocab": VOCAB[:-1]}, r"16 tokens.*vocab_size=17"),
    ],
)
def test_arguments_must_fit(changes, problem, model):
    with pytest.raises(ValueError, match=problem):
        classifier(model, **changes)


def small(labels):
    """Returns an export that is written quickly."""
    module = tf.Module()
    spec = tf.TensorSpec([None], tf.string)
    module.serve = tf.function(lambda text: {"text": text}, [spec])
    return saved_model.Export(
        module,
        {"serving_default": module.serve},
        {"labels.txt": labels.encode(), "export.json": b"{}"},
    )


def test_a_path_that_looks_like_a_glob(tmp_path):
    path = tmp_path / "m[1]\\" / "1"
    path.parent.mkdir()
    path.symlink_to(exports.exported("one text"))
    found = [answer["label"] for answer in bert_tf.load(path)(list(TEXTS_A))]
    expected = exports.loaded("one text")(tf.constant(TEXTS_A))["label"]
    assert found == [label.decode() for label in expected.numpy()]
    served.write_model(path.parent / "2", lambda text_a: {"label": text_a})
    place = version_labels.Served("m", str(path.parent))

    async def serve():
        model = served_models.Model(place, batching.Limits())
        await model.update()
        with model.using(None) as servable:
            assert servable.version == 2
        await model.close()

    asyncio.run(serve())


def test_target_must_be_new_or_empty(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(ValueError, match=f"Received: path={path}"):
            saved_model.save(str(path), small("a"))
    assert os.listdir(tmp_path) == ["file"]
    (tmp_path / "empty").mkdir()
    empty = str(tmp_path / "empty")
    saved_model.check_target(empty)
    monkeypatch.setattr(os.path, "ismount", lambda path: path == empty)
    with pytest.raises(ValueError, match="A mounted folder can't be replaced"):
        saved_model.check_target(empty)


def test_another_goes_when_the_next_is_whole(tmp_path):
    path = tmp_path / "x"
    for labels in ("one\n", "two\n"):
        # A failed save leaves the previous state, at first no folder.
        made = small(labels)
        broken = dataclasses.replace(made, signatures={"no": "function"})
        before = sorted(path.rglob("*"))
        with pytest.raises(ValueError, match="function"):
            saved_model.save(str(path), broken, overwrite=True)
        assert sorted(path.rglob("*")) == before
        assert os.listdir(tmp_path) == (["x"] if before else [])
        saved_model.save(str(path), made, overwrite=True)
        assert os.listdir(tmp_path) == ["x"]
    assert (path / "assets" / "labels.txt").read_text() == "two\n"


def test_only_exports_are_replaced(tmp_path):
    path, made = tmp_path / "x", small("a")
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


@pytest.mark.usefixtures("untraced")
def test_several_labels(model):
    serve = exports.made("several labels").signatures["serving_default"]
    outputs = serve(text_a=tf.constant(TEXTS_A))
    assert set(outputs) == {"labels", "probabilities", "logits"}
    logits = exports.python_logits(model, *_SINGLE)
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


def test_pairs_of_long_documents_are_an_error(model):
    with pytest.raises(InputError, match=r"long_documents=tail, pairs=true"):
        classifier(model, documents=long_documents.LongDocuments("tail"))


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize(
    "method",
    combinations.some(["windows"], ["tail", "head_tail", "windows"]),
)
def test_long_documents(method, model, monkeypatch):
    # Makes the text take more than one part.
    monkeypatch.setattr(graph_windows, "MOST_WINDOWS", 2)
    stride = 4 if method == "windows" else None
    made = classifier(
        model,
        takes_pairs=False,
        documents=long_documents.LongDocuments(method, stride),
    )
    words = ["a", "film", "what", "good", "bad", "cafe"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, n)) for n in (3, 10, 11, 30)] + [""]
    room = LENGTH - 2

    def parts(words):
        last = max(len(words) - room, 0)
        if method == "tail":
            return [words[last:]]
        if method == "windows":
            starts = [*range(0, last, 4), last]
            return [words[i : i + room] for i in starts]
        head = round(room * 128 / 510)
        return [words[:head] + words[max(head, len(words) - room + head) :]]

    logits = np.array(
        [
            exports.python_logits(
                model, *[(" ".join(x),) for x in parts(text.split())]
            ).mean(axis=0)
            for text in texts
        ]
    )
    check(made.signatures["serving_default"](tf.constant(texts)), logits)
    check(made.module.__call__(tf.constant(texts)), logits)
    none = made.module.__call__(tf.constant([], tf.string))
    assert none["logits"].shape == (0, 3)
    examples = [serving_session.example(text=text) for text in texts]
    found = made.signatures["serve_examples"](inputs=tf.constant(examples))
    expected = saved_models.softmax(logits)
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
