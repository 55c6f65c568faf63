"""A custom kind of vocabulary, wherever rows are laid out."""

import itertools

from bert_tf.pretraining_data import pretraining_rows, pretraining_sequences
from bert_tf.tasks.multiple_choice import choice_graph
from bert_tf.tasks.squad import squad_options, squad_questions, squad_windows
from bert_tf.tasks.tagging import conll, tagging_records, tagging_words
from bert_tf.text import graph_windows, text_graph
from tests.vocabularies import signs

import numpy as np
import pytest
import tensorflow as tf

VOCABULARY = signs.VOCABULARY
FRONT, BETWEEN, AFTER, PAD = [4, 0], [2, 2], [2], 1
FIRST, SECOND = 1, 3


@pytest.fixture(name="tokenizer")
def _tokenizer(monkeypatch):
    monkeypatch.setitem(text_graph.TOKENIZERS, "signs", signs.GraphTokenizer)
    return text_graph.make_tokenizer(VOCABULARY)


def row(first, second, length):
    """Returns a padded row: name -> list."""
    ids = [*FRONT, *first]
    segments = [FIRST] * len(ids)
    if second:
        ids += [*BETWEEN, *second]
        segments += [FIRST, FIRST, *([SECOND] * len(second))]
    ids += AFTER
    segments.append(SECOND if second else FIRST)
    rest = length - len(ids)
    return {
        "input_ids": ids + [PAD] * rest,
        "input_mask": [1] * len(ids) + [0] * rest,
        "segment_ids": segments + [FIRST] * rest,
    }


def ids_of(text):
    return [VOCABULARY.ids[piece] for piece in text.split()]


def cut(first, second, length):
    """Removes tokens of the longer text until both fit."""
    first, second = list(first), list(second)
    room = length - 3 - (2 if second else 0)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@pytest.mark.parametrize("pad_to_max", [True, False])
def test_rows_of_texts(tokenizer, pad_to_max):
    length = 11
    letters = "abcdefghijklmn"
    pairs = list(itertools.product([0, 1, 3, 5, 9], [0, 1, 2, 4, 7]))
    texts = [
        (" ".join(letters[:i]), " ".join(letters[-j:] if j else ""))
        for i, j in pairs
    ]
    packed = tokenizer.pack(
        tokenizer.tokenize([a for a, _ in texts]),
        tokenizer.tokenize([b for _, b in texts]),
        length,
        pad_to_max,
    )
    for number, (a, b) in enumerate(texts):
        first, second = cut(ids_of(a), ids_of(b), length)
        for name, values in row(first, second, length).items():
            assert packed[name][number].numpy().tolist() == values, (a, b)
    with pytest.raises(ValueError, match="at least 4: <mask> <s>, one token"):
        tokenizer.pack(tokenizer.tokenize(["a"]), None, 3, True)


def test_windows_of_a_text():
    windows = graph_windows.cut(tf.constant([5, 0], tf.int64), 3)
    ids, mask = graph_windows.layout(tf.range(10, 15), windows, VOCABULARY)
    assert ids.numpy().tolist() == [
        [4, 0, 10, 11, 12, 2],
        [4, 0, 11, 12, 13, 2],
        [4, 0, 12, 13, 14, 2],
        [4, 0, 2, 1, 1, 1],
    ]
    assert mask.numpy().tolist() == [[1] * 6] * 3 + [[1] * 3 + [0] * 3]


def test_prompt_and_choices(tokenizer):
    rows, _ = choice_graph.pack(
        tokenizer,
        tf.constant(["a b c d e f"]),
        tf.constant([["x y", ""]]),
        10,
        pad_to_max=True,
    )
    expected = row(ids_of("a b c"), ids_of("x y"), 10)
    for name, values in expected.items():
        assert rows[name][0, 0].numpy().tolist() == values
    assert rows["input_ids"][0, 1].numpy().tolist() == [PAD] * 10
    assert not rows["input_mask"][0, 1].numpy().any()


def test_the_shortest_choice(tokenizer):
    texts = tf.constant(["a b"]), tf.constant([["x y"]])
    rows, is_cut = choice_graph.pack(tokenizer, *texts, 6, pad_to_max=False)
    for name, values in row([], ids_of("y"), 6).items():
        assert rows[name].numpy().tolist() == [[values]]
    assert is_cut.numpy().tolist() == [[True]]
    with pytest.raises(ValueError, match=r"at least 6: 5.*max_seq_length=5"):
        choice_graph.pack(tokenizer, *texts, 5, pad_to_max=False)


def test_question_and_context():
    cutter = squad_windows.Cutter(VOCABULARY, squad_options.Layout(12, 2, 2))
    context = "a b c d e f g h"
    answers = (squad_questions.Answer("e f", 8),)
    question = squad_questions.Question("q", "x y z", context, answers)
    windows = cutter.cut(question)
    features, labels = cutter.features(windows), cutter.labels(windows)
    ids, query = ids_of(context), ids_of("x y")
    starts, ends = [], []
    for number, start in enumerate((0, 2, 4, 6)[: len(windows.starts)]):
        part = ids[start : start + 5]
        for name, values in row(query, part, 12).items():
            assert features[name][number].tolist() == values
        inside = start <= 4 and start + len(part) > 5
        # The second of the leading tokens is the pooled one.
        starts.append(4 - start + 6 if inside else 1)
        ends.append(5 - start + 6 if inside else 1)
    assert labels["start_positions"].tolist() == starts
    assert labels["end_positions"].tolist() == ends
    with pytest.raises(ValueError, match=r"more than max_query_length \+ 5"):
        squad_windows.Cutter(VOCABULARY, squad_options.Layout(7, 2, 2))


def test_labels_of_words():
    pieces = tagging_words.WordPieces(VOCABULARY)
    encoder = tagging_records.Encoder(pieces, max_seq_length=6)
    sentence = conll.Sentence(("a", "b"), ("X", "O"), (1, 2), 0)
    (found,) = encoder.rows([sentence], {"O": 0, "X": 1})
    for name, values in row(ids_of("a b"), [], 6).items():
        assert found[name].tolist() == values
    assert found["label_ids"].tolist() == [0, 0, 1, 0, 0, 0]
    assert found["label_weights"].tolist() == [0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("objective", ["nsp", "none", "full_sentences"])
def test_rows_of_sequences(pack, objective):
    settings = pretraining_sequences.Settings(
        32, 5, objective=objective, dynamic_masking=True, pack=pack
    )
    settings.check_room(VOCABULARY)
    rng = np.random.default_rng(0)
    borders = pretraining_sequences.borders
    corpus = pretraining_sequences.Corpus(
        rng.integers(5, 31, 600, dtype=np.int32),
        np.ones(600, bool),
        borders([5] * 120),
        borders([6] * 20),
        np.arange(20, dtype=np.uint64),
    )
    sequences = pretraining_sequences.create_sequences(
        corpus, None, settings, VOCABULARY.template, 1, 0
    )
    rows = pretraining_rows.features(sequences, VOCABULARY, settings, rng)
    expected = []
    for number, middle in enumerate(sequences.middles):
        tokens = sequences.tokens[slice(*sequences.starts[number:][:2])]
        first, second = tokens[:middle].tolist(), tokens[middle:].tolist()
        made = row(first, second, 32)
        real = slice(sum(made["input_mask"]))
        expected.append((made["input_ids"][real], made["segment_ids"][real]))
    assert 25 < max(len(ids) for ids, _ in expected) <= 32
    found = []
    for number, ids in enumerate(rows["input_ids"]):
        slots = rows.get("sequence_ids", rows["input_mask"])[number]
        for slot in range(1, slots.max() + 1):
            inside = slots == slot
            segments = rows["segment_ids"][number][inside]
            found.append((ids[inside].tolist(), segments.tolist()))
            if pack:
                place = rows["cls_positions"][number, slot - 1]
                assert ids[place] == 0
        assert (ids[slots == 0] == PAD).all()
    assert sorted(found) == sorted(expected)
