"""Which tokens were replaced, against the model by itself."""

import json

import bert_tf
from bert_tf.encoders import electra
from bert_tf.exporting import saved_model
from bert_tf.tasks import token_detection
from bert_tf.vocabularies import word_pieces
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_SIZES = samples.SMALL | {"num_hidden_layers": 1}
CONFIG = electra.ElectraConfig(**_SIZES, embedding_size=16)
VOCABULARY = word_pieces.WordPiece(tuple(samples.VOCAB), True)
LENGTH = 9
TEXTS = ("The cats sat", "", "a zebra ", "dog , the mat s")


@pytest.fixture(scope="module", name="model")
def _model():
    return samples.random_model("replaced_tokens", CONFIG)


@pytest.fixture(scope="module", name="folder")
def _folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    made = token_detection.detector(model, CONFIG, VOCABULARY, LENGTH)
    saved_model.save(str(folder / "1"), made)
    return str(folder / "1")


@pytest.fixture(scope="module", name="loaded")
def _loaded(folder):
    return tf.saved_model.load(folder)


def _probabilities(model, ids):
    """By the formula: the sigmoid of the discriminator's logits."""
    logits = model({"input_ids": tf.constant([[2, *ids, 3]])})[0].numpy()
    return 1 / (1 + np.exp(-logits.astype(np.float64)))[1:-1]


def _expected(model, text):
    tokens = VOCABULARY.tokenizer().tokenize_with_offsets(text)
    ids = [VOCABULARY.ids[x.text] for x in tokens]
    return [
        (x.text, x.start, x.end, probability)
        for x, probability in zip(
            tokens, _probabilities(model, ids), strict=True
        )
    ]


def test_probabilities_of_tokens(model, loaded):
    found = loaded(tf.constant(TEXTS))
    for row, text in enumerate(TEXTS):
        expected = _expected(model, text)
        count = int(found["count"][row])
        assert count == len(expected)
        for place, (token, start, end, probability) in enumerate(expected):
            assert found["token"][row, place].numpy().decode() == token
            assert found["start"][row, place] == start
            assert found["end"][row, place] == end
            score = float(found["probability"][row, place])
            assert score == pytest.approx(probability, abs=1e-6)
        assert (found["start"][row, count:].numpy() == -1).all()


def test_long_texts_are_read_in_windows(model, loaded):
    """A token's score is that in one of the windows that hold it."""
    text = "the cat sat on " * 5
    found = loaded(tf.constant([text]))
    assert found["count"][0] == 20
    room = LENGTH - 2
    ids = [VOCABULARY.ids[x] for x in text.split()]
    windows = {
        start: _probabilities(model, ids[start : start + room])
        for start in range(len(ids) - room + 1)
    }
    for place, score in enumerate(found["probability"][0].numpy()):
        near = [
            scores[place - start]
            for start, scores in windows.items()
            if start <= place < start + room
        ]
        assert min(abs(score - x) for x in near) < 1e-6
    first = float(found["probability"][0, 0])
    assert first == pytest.approx(windows[0][0], abs=1e-6)


def test_ids(model, loaded):
    ids = np.array([[2, 5, 6, 3, 0], [2, 7, 8, 9, 3]], np.int32)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], np.int32)
    found = loaded.signatures["serve_ids"](
        input_ids=tf.constant(ids),
        input_mask=tf.constant(mask),
        segment_ids=tf.zeros([2, 5], tf.int32),
    )["probability"].numpy()
    np.testing.assert_allclose(
        found[0, 1:3], _probabilities(model, ids[0, 1:3]), atol=1e-6
    )
    np.testing.assert_allclose(
        found[1, 1:4], _probabilities(model, ids[1, 1:4]), atol=1e-6
    )


def test_in_python(model, folder, tmp_path):
    path = samples.write_tf1(tmp_path / "model", model)
    predictor = bert_tf.load(path, max_seq_length=LENGTH)
    assert predictor.head == "replaced_tokens"
    answer = predictor(TEXTS[0])
    assert answer == bert_tf.load(folder)(TEXTS[0])
    tokens = [x["token"] for x in answer["tokens"]]
    assert tokens == ["the", "cat", "##s", "sat"]
    first = answer["tokens"][0]
    assert first.keys() == {"token", "start", "end", "probability"}
    assert json.loads(json.dumps(first)) == first
    assert bert_tf.load(path, head="encoder").head == "encoder"
