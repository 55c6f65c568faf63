"""Byte pairs in the graph, in bulk and in Python equal `tokenizers`."""

import functools
import random

from bert_tf import vocabularies
from bert_tf.text import byte_pairs as graph_byte_pairs
from bert_tf.text import graph as text_graph
from bert_tf.text import graph_offsets
from bert_tf.vocabularies import byte_pairs
from tests import sample_texts
from tests.vocabularies import byte_pair_samples

import numpy as np
import pytest
import tensorflow as tf

_LITERALS = [
    "",
    " ",
    "Hello world",
    "  two  spaces   three ",
    "it's we'll I've you're they'd I'm can't 'sx 'S '' ''s .'s 're're",
    "x'll'll 'llama 1's1 \n's \t't",
    "a\n b\n\nc \n d\t\te \r\n f\v\fg",
    "a\xa0b\u3000 c \u2003\u2003d \x85e\x1cf\u180eg\u200bh",
    "aaaaaaa aaaaaaaaaaaaaaaa 00000000000",
    "é'sé 's日本'語 don’t １２３ ½ Ⅷ ६ 一",
    "<s> <mask></s>",
    "\U0001f600\U0001f600 \U0001f468\u200d\U0001f469",
    "\x00\x01 a\x00b",
    "x" * 300,
    " " * 50,
    "\n" * 50 + "a",
]


def contexts(char):
    """Texts with a character alone, doubled, and among others."""
    return [
        char,
        char * 2,
        f"a{char}b 1{char}2 .{char}. {char} {char}s '{char}s",
        f"{char}'s{char}'ll {char}{char} x{char}{char}y \n{char}\n {char}",
    ]


def random_texts(seed, count):
    """Strings of what the rule of words is about."""
    rng = random.Random(seed)
    pools = [
        "  \n\t'.ast1é",
        "'' smtdrevlxSLE.1 ",
        " \u3000\xa0\x85\u2028\n a1.日",
        "aab b aaaa 00",
        "".join(map(chr, range(0x20, 0x300))),
    ]
    return [
        "".join(rng.choices(rng.choice(pools), k=rng.randint(1, 30)))
        for _ in range(count)
    ]


@functools.cache
def _made():
    vocabulary = byte_pair_samples.vocabulary()
    tokenizer = graph_byte_pairs.BytePairTokenizer(vocabulary)
    compiled = tf.function(
        tokenizer.tokenize, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    both = vocabulary.bulk_tokenizer(), vocabulary.tokenizer()
    return byte_pair_samples.reference(), compiled, *both


def check(texts):
    """Compares all three with the library."""
    reference, in_graph, bulk, python = _made()
    for start in range(0, len(texts), 2000):
        batch = texts[start : start + 2000]
        expected = [x.ids for x in reference.encode_batch(batch)]
        ids, counts = bulk.tokenize(batch)
        assert ids.dtype == np.int32
        in_bulk = np.split(ids, np.cumsum(counts)[:-1])
        found = in_graph(tf.constant(batch)).to_list()
        rows = zip(batch, expected, found, in_bulk, strict=True)
        for text, right, a, b in rows:
            assert a == right, repr(text)
            assert b.tolist() == right, repr(text)
            assert python.ids(text) == right, repr(text)


def test_literals():
    check(_LITERALS)
    for text in _LITERALS:
        check([text])


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_characters(every):
    chars = sample_texts.characters(every)[:: 1 if every else 23]
    check([text for char in chars for text in contexts(char)])


@pytest.mark.parametrize(
    "count", [4000, pytest.param(30_000, marks=pytest.mark.slow)]
)
def test_random_texts(count):
    check(random_texts(0, count) + sample_texts.random_texts(1, 300))


def test_real_text(shared_data):
    folder = shared_data / "text"
    for name in ("blns.txt", "emoji-test.txt"):
        check((folder / name).read_text(encoding="utf-8").split("\n"))
    with (shared_data / "corpus/enwiki_AA.txt").open(encoding="utf-8") as file:
        check(file.readlines(200_000))


@pytest.mark.slow
def test_much_real_text(shared_data):
    for path in sorted((shared_data / "text").glob("*.txt")):
        check(path.read_text(encoding="utf-8").splitlines(True))
    with (shared_data / "corpus/enwiki_AA.txt").open(encoding="utf-8") as file:
        check(file.readlines(5_000_000))


def test_the_kind_has_its_tokenizer(tmp_path):
    path = byte_pair_samples.write(tmp_path)
    vocabulary = vocabularies.open(path, do_lower_case=False)
    assert isinstance(vocabulary, byte_pairs.BytePairs)
    tokenizer = text_graph.of(vocabulary)
    first, second = tokenizer.tokenize(["a b"]), tokenizer.tokenize(["c"])
    rows = tokenizer.pack(first, second, 10, pad_to_max=True)
    a, b, c = (vocabulary.ids[x] for x in ("a", "Ġb", "c"))
    assert rows["input_ids"].numpy().tolist() == [
        [0, a, b, 2, 2, c, 2, 1, 1, 1]
    ]
    assert rows["input_mask"].numpy().tolist() == [[1] * 7 + [0] * 3]
    assert not rows["segment_ids"].numpy().any()


def test_offsets():
    vocabulary = byte_pair_samples.vocabulary()
    tokenizer = graph_offsets.of(vocabulary)
    python, reference = vocabulary.tokenizer(), byte_pair_samples.reference()
    texts = [*_LITERALS, *random_texts(5, 1000)]
    texts += sample_texts.random_texts(6, 50)
    found = tokenizer.tokenize_with_offsets(tf.constant(texts))
    expected = [reference.encode(text) for text in texts]
    assert found.ids.to_list() == [x.ids for x in expected]
    spans = np.stack([found.starts, found.ends], 1).tolist()
    wanted = [list(span) for x in expected for span in x.offsets]
    pieces = [x for row in expected for x in row.tokens]
    for piece, a, b in zip(pieces, spans, wanted, strict=True):
        assert a == b, repr(piece)
    for text, right in zip(texts, expected, strict=True):
        tokens = python.tokenize_with_offsets(text)
        assert [x.piece for x in tokens] == right.tokens
        assert [(x.start, x.end) for x in tokens] == right.offsets
    # Halves of surrogate pairs count.
    tokens = python.tokenize_with_offsets("\ud800a\udfffb c\ud800")
    assert "".join(x.piece for x in tokens) == "abĠc"
    assert (tokens[0].start, tokens[-1].end) == (1, 6)


def test_no_texts():
    _, in_graph, bulk, _ = _made()
    assert in_graph(tf.constant([], tf.string)).to_list() == []
    assert bulk.tokenize([])[0].shape == (0,)


def test_invalid_bytes_are_left_out():
    reference, in_graph, bulk, python = _made()
    rng = random.Random(1)
    alphabet = [0x61, 0x20, 0xC3, 0xA9, 0xE4, 0xB8, 0x80, 0xED, 0xF0]
    texts = [
        bytes(rng.choices([*alphabet, *range(256)], k=20)) for _ in range(300)
    ]
    found = in_graph(tf.constant(texts)).to_list()
    for text, ids in zip(texts, found, strict=True):
        valid = text.decode("utf-8", "ignore")
        assert ids == reference.encode(valid).ids, text
        assert python.tokenize(text) == reference.encode(valid).tokens
    halves = ["\ud800 b", "a\udfff  b", "\n\ud800 b"]
    ids, counts = bulk.tokenize(halves)
    expected = [
        reference.encode(x.encode("utf-8", "ignore").decode()).ids
        for x in halves
    ]
    assert ids.tolist() == [x for ids in expected for x in ids]
    assert counts.tolist() == [len(x) for x in expected]


def test_merges_that_are_not_in_order():
    pieces = list(byte_pair_samples.SPECIAL)
    pieces += byte_pairs.byte_pair_files.BYTES
    merges = [("ab", "a"), ("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")]
    merges.insert(0, ("abc", "a"))
    pieces += sorted({a + b for a, b in merges} | {"<mask>"})
    vocabulary = byte_pairs.BytePairs(tuple(pieces), tuple(merges))
    in_graph = graph_byte_pairs.BytePairTokenizer(vocabulary)
    python = vocabulary.tokenizer()
    rng = random.Random(0)
    texts = ["".join(rng.choices("abc", k=12)) for _ in range(500)]
    found = in_graph.tokenize(tf.constant(texts)).to_list()
    assert found == [python.ids(text) for text in texts]
