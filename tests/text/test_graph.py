"""WordPiece in the graph, and the rows made of its tokens."""

import random

from bert_tf.text import text_graph

import numpy as np
import pytest
import tensorflow as tf

_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] want ##want ##ed wa un runn ##ing , the quick
##est fox . caf ##e 博 推 z ##z [ ] mask ο ##δος ##δοσ ##\U0001d165 ##\U0001d16d
"""
PIECES = _PIECES.split()


@pytest.fixture(scope="module")
def small() -> text_graph.BertTokenizer:
    return text_graph.BertTokenizer(PIECES, do_lower_case=True)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ""),
        (" \t\r\n", ""),
        ("UNwantéd,running", "un ##want ##ed , runn ##ing"),
        ("the quickest fox.", "the quick ##est fox ."),
        ("the[MASK]fox", "the [ mask ] fox"),
        ("Cafe\u0301", "caf ##e"),
        ("wa\x00n\u200bt\ufffded", "want ##ed"),
        ("博推zz", "博 推 z ##z"),
        ("bad fox", "[UNK] fox"),
        ("ΟΔΟΣ ΟΔΟΣΑ", "ο ##δος [UNK]"),
        ("ΟΔΟΣ. ΟΔΟΣ\u0301ο", "ο ##δος . [UNK]"),
        ("the\u2028fox\u00a0.", "the fox ."),
        ("z" * 200 + " " + "z" * 201, "z" + " ##z" * 199 + " [UNK]"),
        # Two marks that swap, and a character above all marks.
        ("z\U0001d16d\U0001d165", "z ##\U0001d165 ##\U0001d16d"),
        ("ΟΔΟΣ \U0001f600", "ο ##δος [UNK]"),
    ],
)
def test_literal_pieces(small, text, pieces):
    ids = small.tokenize(tf.constant([text])).to_list()
    assert [PIECES[i] for i in ids[0]] == pieces.split()


def test_batches(small):
    ids = small.tokenize(tf.constant(["fox", "", "é the", "the fox"]))
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[16], [], [1, 13], [13, 16]]
    assert small.tokenize(tf.constant([], tf.string)).to_list() == []


@pytest.mark.parametrize("missing", ["[UNK]", "[CLS]", "[SEP]"])
def test_vocab_without_special_tokens(missing):
    vocab = [piece for piece in PIECES if piece != missing]
    with pytest.raises(ValueError, match=rf"\[{missing[1:-1]}\].*Received:"):
        text_graph.BertTokenizer(vocab, do_lower_case=True)


def reference_pack(first, second, max_seq_length):
    """Truncates token by token and joins, as the original's scripts do."""
    first, second = list(first), list(second)
    room = max_seq_length - (3 if second else 2)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    ids = [2, *first, 3]
    segments = [0] * len(ids)
    if second:
        ids += [*second, 3]
        segments += [1] * (len(second) + 1)
    return ids, segments


@pytest.mark.slow
@pytest.mark.parametrize("pad_to_max", [True, False])
@pytest.mark.parametrize("max_seq_length", [3, 4, 5, 12, 13])
def test_pack_equals_the_loop(small, max_seq_length, pad_to_max):
    rng = random.Random(max_seq_length)
    pairs = [
        [rng.choices(range(5, 25), k=rng.choice([0, 1, 5, 20])) for _ in "ab"]
        for _ in range(60)
    ]
    pairs += [[[7] * a, [8] * b] for a in range(16) for b in range(16)]
    first, second = zip(*pairs, strict=True)
    packed = small.pack(
        tf.ragged.constant(first, tf.int32),
        tf.ragged.constant(second, tf.int32),
        max_seq_length,
        pad_to_max,
    )
    assert {x.dtype for x in packed.values()} == {tf.int32}
    found = {name: x.numpy().tolist() for name, x in packed.items()}
    expected: dict[str, list[list[int]]] = {x: [] for x in packed}
    for a, b in pairs:
        ids, segments = reference_pack(a, b, max_seq_length)
        padding = [0] * (max_seq_length - len(ids))
        expected["input_ids"].append(ids + padding)
        expected["input_mask"].append([1] * len(ids) + padding)
        expected["segment_ids"].append(segments + padding)
    assert found == expected


def test_pack_pads_to_the_longest_row(small):
    first = tf.ragged.constant([[7], [8, 9]], tf.int32)
    packed = small.pack(first, None, max_seq_length=10, pad_to_max=False)
    assert {name: x.numpy().tolist() for name, x in packed.items()} == {
        "input_ids": [[2, 7, 3, 0], [2, 8, 9, 3]],
        "input_mask": [[1, 1, 1, 0], [1, 1, 1, 1]],
        "segment_ids": [[0] * 4] * 2,
    }
    full = small.pack(first, None, max_seq_length=10, pad_to_max=True)
    assert full["input_ids"].shape == [2, 10]
    none = small.tokenize(tf.constant([], tf.string))
    for second in (None, none):
        for pad_to_max, width in ((True, 8), (False, 2)):
            packed = small.pack(none, second, 8, pad_to_max)
            assert packed["input_ids"].shape == [0, width]
    with pytest.raises(ValueError, match="Received: max_seq_length=2"):
        small.pack(first, None, 2, pad_to_max=True)


@pytest.mark.slow
def test_tf_data(small):
    texts = ["the fox", "Cafe\u0301", "", "ΟΔΟΣ", "want" * 60]

    def pack(batch):
        pieces = small.tokenize(batch)
        return small.pack(pieces, pieces, max_seq_length=8, pad_to_max=True)

    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(pack)
    assert dataset.element_spec["input_ids"].shape.as_list() == [None, 8]
    rows = [row for batch in dataset for row in batch["input_ids"].numpy()]
    eager = pack(tf.constant(texts))["input_ids"].numpy()
    np.testing.assert_array_equal(rows, eager)
    assert eager[0].tolist() == [2, 13, 16, 3, 13, 16, 3, 0]
