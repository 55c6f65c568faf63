"""Tests of features, compared with the model itself, line by line."""

import dataclasses
import itertools
from contextlib import nullcontext

from bert_tf import modeling, options
from bert_tf.tasks.features import extraction, feature_layers, feature_lines
from bert_tf.vocabularies import word_pieces
from tests import combinations, tiny_model

import numpy as np
import pytest
import tensorflow as tf

_PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a film what ##ever good bad paris ."
VOCAB = _PIECES.split()
VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)
CONFIG = modeling.BertConfig(
    vocab_size=len(VOCAB),
    hidden_size=8,
    num_hidden_layers=5,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    type_vocab_size=2,
    initializer_range=0.3,
)
LENGTH = 12
TEXTS = [
    "What a film.",
    "",
    "whatever ||| good Paris .",
    "bad " * 30,
    "good " * 9 + "||| whatever whatever " + "bad " * 9,
    "paris",
    " a \u200b film ",
]


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    return modeling.Bert(CONFIG)


@pytest.fixture(scope="module")
def small():
    tf.keras.utils.set_random_seed(1)
    return modeling.Bert(dataclasses.replace(CONFIG, num_hidden_layers=2))


def original_rows(by_word=False):
    """Returns tokens and segments as the original makes them, word by word."""
    tokenizer = VOCABULARY.tokenizer()
    rows = []
    for text in TEXTS:
        texts = text.strip().split(" ||| ")
        pairs: list[list] = []
        for part in texts:
            pairs.append([])
            for i, word in enumerate(part.split()):
                pieces = tokenizer.tokenize(word)
                if by_word and not pieces:
                    pieces = ["[UNK]"]
                pairs[-1] += [(piece, (len(pairs), i)) for piece in pieces]
        room = LENGTH - (3 if len(texts) > 1 else 2)
        while sum(map(len, pairs)) > room:
            longest = 0 if len(pairs[0]) > len(pairs[-1]) else -1
            pairs[longest].pop()
        row: list[tuple] = [("[CLS]", 0, None)]
        for segment, pieces in enumerate(pairs):
            row += [(x[0], segment, x[1]) for x in pieces]
            row.append(("[SEP]", segment, None))
        rows.append(row)
    return rows


def outputs_of(model, row):
    inputs = {
        "input_ids": tf.constant([[VOCAB.index(x[0]) for x in row]]),
        "input_mask": tf.ones([1, len(row)], tf.int32),
        "segment_ids": tf.constant([[x[1] for x in row]]),
    }
    outputs = model(inputs)
    layers = [x.numpy()[0] for x in outputs.layers]  # [S, D] each
    return outputs.embeddings.numpy()[0], layers, outputs


def extract(model, choice, unit, strategy=None, batch_size=2, normalize=False):
    strategy = strategy or tf.distribute.get_strategy()
    reader = feature_lines.Reader(VOCABULARY, LENGTH, unit == "word")
    extractor = extraction.Extractor(
        strategy, model, choice, unit, batch_size, LENGTH, normalize
    )
    lines = reader.read(TEXTS, first=10)
    return lines, extractor.extract(lines)


@pytest.mark.slow
def test_tokens_in_order_whatever_the_batches(small):
    choice = feature_layers.Choice("layers", (-1, 0))
    rows = original_rows()
    for batch_size in (3, 100):
        with tiny_model.untraced() if batch_size == 3 else nullcontext():
            lines, found = extract(small, choice, "token", None, batch_size)
        assert [line.index for line in lines] == list(range(10, 17))
        cut = [False, False, False, True, True, False, False]
        assert [line.is_cut for line in lines] == cut
        for row, line, vectors in zip(rows, lines, found, strict=True):
            assert [VOCAB[i] for i in line.ids] == [x[0] for x in row]
            assert list(line.segments) == [x[1] for x in row]
            _, layers, _ = outputs_of(small, row)
            expected = np.stack([layers[-1], layers[0]], axis=1)
            np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("embeddings", lambda e, x: e),
        ("second_to_last", lambda e, x: x[3]),
        ("last", lambda e, x: x[4]),
        ("weighted_sum_last_four", lambda e, x: sum(x[1:]) / 4),
        ("concat_last_four", lambda e, x: np.concatenate(x[:0:-1], axis=-1)),
        (
            "concat_embeddings_last",
            lambda e, x: np.concatenate([e, x[4]], axis=-1),
        ),
        ("sum_all", lambda e, x: sum(x)),
        ("mean_all", lambda e, x: sum(x) / 5),
        ("weighted_sum_last_four 1 0 0 -2", lambda e, x: x[4] - 2 * x[1]),
    ],
)
def test_the_papers_choices(name, expected, model):
    name, *weights = name.split()
    choice = feature_layers.Choice(name, weights=(*map(float, weights),))
    assert choice.names == (name,)
    *of_layers, outputs = outputs_of(model, original_rows()[2])
    found = choice.select(outputs).numpy()[0]
    wanted = expected(*of_layers)[:, np.newaxis]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["cls", "mean"])
@tiny_model.untraced()
def test_one_vector_of_a_line(small, unit):
    _, found = extract(small, feature_layers.Choice("last"), unit)
    for row, vectors in zip(original_rows(), found, strict=True):
        last = outputs_of(small, row)[1][-1]
        expected = last[0] if unit == "cls" else last.mean(axis=0)
        assert vectors.shape == (1, 1, 8)
        np.testing.assert_allclose(vectors[0, 0], expected, atol=1e-5)


@pytest.mark.slow
@tiny_model.untraced()
def test_words_are_means_of_their_pieces(small):
    lines, found = extract(small, feature_layers.Choice("last"), "word")
    texts = [text.replace("|||", "").split() for text in TEXTS]
    for row, line, vectors, text in zip(
        original_rows(by_word=True), lines, found, texts, strict=True
    ):
        _, layers, _ = outputs_of(small, row)
        words = list(dict.fromkeys(x[2] for x in row if x[2]))
        assert len(line.words) == len(words) == len(vectors)
        for word, vector in zip(words, vectors, strict=True):
            pieces = [i for i, x in enumerate(row) if x[2] == word]
            np.testing.assert_allclose(
                vector[0], layers[-1][pieces].mean(axis=0), atol=1e-5
            )
        if not line.is_cut:
            assert list(line.words) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "name"),
    combinations.some(
        # Tokens and [CLS] are compared in test_saved_model.py.
        [("word", "layers"), ("mean", "concat_last_four")],
        itertools.product(options.UNITS, ["layers", "concat_last_four"]),
    ),
)
@tiny_model.untraced()
def test_unit_length(unit, name, model):
    choice = feature_layers.Choice(name)
    _, plain = extract(model, choice, unit)
    _, found = extract(model, choice, unit, normalize=True)
    for ours, vectors in zip(found, plain, strict=True):
        assert ours.dtype == np.float32
        # Each of several layers' vectors separately.
        lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(-1))
        np.testing.assert_allclose(
            ours, vectors / lengths[..., np.newaxis], atol=1e-6
        )


def test_no_vector_has_no_length():
    zeros = feature_layers.unit_length(tf.zeros([2, 3]))
    np.testing.assert_array_equal(zeros, np.zeros([2, 3]))
    tiny = feature_layers.unit_length(tf.constant([[3e-10, 4e-10]]))
    np.testing.assert_allclose(tiny, [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.slow
def test_two_replicas_find_the_same(two_replicas):
    choice = feature_layers.Choice("last")
    config = dataclasses.replace(CONFIG, num_hidden_layers=1)
    model = modeling.Bert(config)
    with two_replicas.scope():
        copy = modeling.Bert(config)
    for variable, value in zip(copy.variables, model.variables, strict=True):
        variable.assign(value)
    with tiny_model.untraced():
        _, expected = extract(model, choice, "token")
    _, found = extract(copy, choice, "token", two_replicas, batch_size=4)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("choice", "weights", "number", "problem"),
    [
        (("nose",), None, 5, "features=nose"),
        (("layers", (-6,)), None, 5, "no layer -6: .*0 to 4.*layers=-6"),
        (("layers", (-1, 7, 5)), None, 5, "no layer 7, 5: .*layers=-1,7,5"),
        (("layers", (5,)), None, 5, "layers=5"),
        (("layers", ()), None, 5, "layers="),
        (("second_to_last",), None, 1, "at least 2 layers"),
        (("concat_last_four",), None, 3, "at least 4 layers"),
        (("last",), (1.0,) * 4, 5, "four, and go with"),
        (("weighted_sum_last_four",), (1.0,), 5, "layer_weights=1.0"),
    ],
)
def test_choices_that_a_model_has_not(choice, weights, number, problem):
    how = {"weights": weights} if weights else {}
    with pytest.raises(ValueError, match=problem):
        feature_layers.Choice(*choice, **how).check(number)


def test_the_default_of_a_model_of_two_layers():
    choice = feature_layers.Choice().limited_to(2)
    assert choice.layers == (-1, -2)
    choice.check(2)
    assert feature_layers.Choice().limited_to(12).layers == (-1, -2, -3, -4)


def test_windows():
    cut = feature_lines.windows(iter("abcde"), 2)
    assert list(cut) == [["a", "b"], ["c", "d"], ["e"]]
    long = "a" * (1 << 23)
    cut = feature_lines.windows(iter([long, long, long, "b"]), 9)
    assert list(cut) == [[long, long], [long, "b"]]


@pytest.mark.parametrize(
    ("name", "unit", "bytes_of_a_line"),
    [
        # 512 tokens of BERT-Base, float32.
        ("layers", "token", 512 * 4 * 768 * 4),
        ("concat_last_four", "word", 512 * 4 * 768 * 4),
        ("concat_embeddings_last", "mean", 2 * 768 * 4),
        ("last", "mean", 768 * 4),
    ],
)
def test_lines_in_half_a_gigabyte(name, unit, bytes_of_a_line):
    choice = feature_layers.Choice(name)
    found = extraction.lines_in_memory(choice, unit, 768, 512)
    assert found == 2**29 // bytes_of_a_line


def test_means_lose_no_digits_far_back():
    rng = np.random.default_rng(0)
    vectors = rng.normal(-10, 1, [512, 1, 8]).astype(np.float32)
    starts = np.array([0, 5, 500, 511])
    ends = np.array([1, 9, 503, 512])
    expected = [
        vectors[a:b].astype(np.float64).mean(0)
        for a, b in zip(starts, ends, strict=True)
    ]
    found = extraction.means(vectors, starts, ends)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-7)
