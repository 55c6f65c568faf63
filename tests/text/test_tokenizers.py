"""All tokenizers of a vocabulary split every text alike.

They are Python's, the one for large texts, the one in the graph, and the one in
the graph with offsets. Where another library has the same tokenizer, Python's
is compared with it.
"""

import contextlib
import functools
import itertools
import random
import string
import unicodedata
from collections.abc import Callable
from typing import Any

from bert_tf import tokenization
from bert_tf.errors import InputError
from bert_tf.text import graph_offsets, text_graph
from bert_tf.vocabularies import byte_pairs, sentence_pieces, word_pieces
from tests import combinations, sample_texts, tiny_model
from tests.contrib import word_end_pair_samples
from tests.test_tokenization import RELEASED
from tests.vocabularies import byte_pair_samples, sentence_models, test_symbols

import numpy as np
import pytest
import tensorflow as tf

_SMALL = """
[PAD] [UNK] [CLS] [SEP] [MASK] a b c ##a ##b d e , - ca 博 ##e fi ##ος οδ x ##x
want ##want ##ed wa un runn ##ing the quick ##est fox . caf 推 z ##z [ ] mask ο
##δος ##δοσ
"""
SMALL = tuple(_SMALL.split())


@functools.cache
def spelling(lower, every):
    """Returns WordPiece tokens in which every character is a token."""
    chars = sample_texts.characters(every)
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    ending = (f"##{char}" for char in chars)
    return word_pieces.WordPiece((*special, *chars, *ending), lower)


# Name -> vocabulary, for texts of some or all characters.
_VOCABULARIES: dict[str, Callable[[bool], Any]] = {
    "uncased": lambda every: word_pieces.WordPiece(SMALL, True),
    "cased": lambda every: word_pieces.WordPiece(SMALL, False),
    "uncased characters": functools.partial(spelling, True),
    "cased characters": functools.partial(spelling, False),
    "uncased sentences": lambda every: sentence_models.vocabulary(True),
    "cased sentences": lambda every: sentence_models.vocabulary(False),
    "fairseq sentences": lambda every: sentence_models.fairseq_vocabulary(
        "xlm-roberta"
    ),
    "byte pairs": lambda every: byte_pair_samples.vocabulary(),
    "symbols": lambda every: test_symbols.VOCABULARY,
    "word end pairs": lambda every: word_end_pair_samples.vocabulary(),
}
# One of each kind is traced; the others run eagerly, which is faster.
_TRACED = {
    *("uncased", "uncased sentences", "byte pairs"),
    *("symbols", "word end pairs"),
}
_LITERALS = [
    "",
    " ",
    " \t\r\n",
    "Hello world",
    "  two  spaces   three ",
    "it's we'll I've you're they'd I'm can't 'sx 'S '' ''s .'s 're're",
    "x'll'll 'llama 1's1 \n's \t't",
    "a\n b\n\nc \n d\t\te \r\n f\v\fg",
    "a\xa0b\u3000 c \u2003\u2003d \x85e\x1cf\u180eg\u200bh\u202fi\u2029j",
    "aaaaaaa aaaaaaaaaaaaaaaa 00000000000",
    "é'sé 's日本'語 don’t １２３ ½ Ⅷ ६ 一",
    "<s> <mask></s> [MASK] [CLS] the[MASK]fox",
    "\U0001f600\U0001f600 \U0001f468\u200d\U0001f469 𝄞\U0001d15e a \U0001f600b",
    "\x00\x01 a\x00b wa\x00n\u200bt\ufffded",
    "x" * 300,
    " " * 50,
    "\n" * 50 + "a",
    "UNwantéd,running the quickest fox. bad ab ca, (a-b) Ab\tCA\r\nd",
    "CA\u0301\u0300, e\u0301\u0301b \u0301\u0301a Cafe\u0301 e\u0323\u0307a",
    "a\u200b\u0301b \x00c\x07d a\u0345\u0301c \u0591b",
    "博a博博 b 博推zz",
    "\ufb01x İ ǅ ΟΔΟΣ Σ ΟΔΟΣ. ΟΔΟΣ\u0301ο ΟΔΟΣΑ ΣΣ aΣ Σa 'Σ' 𝚺A A𝚺",
    "가각 한a x\u1100\u1161\u11a8y \u1100\u1161\u1161 ﬁ ﷺ",
    "x" * 200 + " " + "x" * 201 + " a",
    # Characters that normalize to spaces, and characters that are removed.
    " (¨x) a\u200bb \u200bb b\u200b a\u200b b \u200b ¨ \x83q q\x83 \x83",
    "The\u0301 漢字\u0301漢 in 1999, 30,000, 7,000, and",
    "##\u2028 v_1 V_1 a.b,c [x] \ufeff",
]


@functools.cache
def _made(vocabulary, is_traced):
    in_graph = text_graph.make_tokenizer(vocabulary).tokenize  # is traced
    place = graph_offsets.make_tokenizer(vocabulary).tokenize_with_offsets
    if is_traced:
        texts = [tf.TensorSpec([None], tf.string)]
        place = tf.function(place, texts, autograph=False)
    return vocabulary.tokenizer(), vocabulary.bulk_tokenizer(), in_graph, place


def check(vocabulary, texts, is_traced=False):
    """Compares all tokenizers; few texts may be ties for SentencePiece.

    Tracing those in the graph takes longer than some calls.
    """
    eagerly = contextlib.nullcontext() if is_traced else tiny_model.untraced()
    with eagerly:
        _check(vocabulary, texts, *_made(vocabulary, is_traced))


def _check(vocabulary, texts, python, bulk, in_graph, with_offsets):
    decoded = [
        text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
        for text in texts
    ]
    ties = 0
    for start in range(0, len(texts) or 1, 1000):
        batch = texts[start : start + 1000]
        some = decoded[start : start + 1000]
        rows = [python.tokenize_with_offsets(text) for text in some]
        pieces = [[token.text for token in row] for row in rows]
        expected = list(map(python.convert_tokens_to_ids, pieces))
        ids, counts = bulk.tokenize(some)
        assert ids.dtype == np.int32
        in_bulk = np.split(ids, np.cumsum(counts)[:-1]) if some else []
        graph = in_graph(tf.constant(batch, tf.string)).to_list()
        found = with_offsets(tf.constant(batch, tf.string))
        assert found.ids.to_list() == graph
        spans = np.stack([found.starts, found.ends], -1)
        spans = found.ids.with_values(spans).to_list()
        for i, text in enumerate(batch):
            assert python.tokenize(text) == pieces[i], repr(text)
            assert in_bulk[i].tolist() == expected[i], repr(text)
            if graph[i] == expected[i]:
                places = [[x.start, x.end] for x in rows[i]]
                assert spans[i] == places or _falls_apart(some[i]), repr(text)
                continue
            assert vocabulary.kind == "sentence_pieces", repr(text)
            assert sentence_models.are_equally_good(
                vocabulary, graph[i], expected[i]
            ), repr(text)
            ties += 1
        _check_with_others(vocabulary, some, expected, rows)
    assert ties <= len(texts) / 10_000


def _falls_apart(text):
    """Whether a character decomposes into several letters plus accents.

    If an accent follows them, Python attributes it to the last letter, and the
    graph to each letter.
    """
    letters = (unicodedata.normalize("NFD", char) for char in text)
    return any(
        sum(unicodedata.category(x) != "Mn" for x in parts) > 1
        for parts in letters
    )


def _check_with_others(vocabulary, texts, ids, rows):
    if vocabulary == byte_pair_samples.vocabulary():
        theirs = byte_pair_samples.reference().encode_batch(texts)
        assert [x.ids for x in theirs] == ids
        spans = [[(x.start, x.end) for x in row] for row in rows]
        assert [x.offsets for x in theirs] == spans
    if vocabulary.kind == "word_end_pairs":
        theirs = word_end_pair_samples.reference().encode_batch(texts)
        for text, ours, found in zip(texts, ids, theirs, strict=True):
            if word_end_pair_samples.is_known(text):
                assert found.ids == ours, repr(text)
    if vocabulary.kind == "symbols":
        assert list(map(test_symbols.expected, texts)) == ids
        for text, row in zip(texts, rows, strict=True):
            assert [text[x.start : x.end] for x in row] == text.split()
    if vocabulary.kind == "sentence_pieces":
        original = sentence_models.original(vocabulary.do_lower_case)
        others = [
            (original(text), ours)
            for text, ours in zip(texts, ids, strict=True)
            if original(text) != ours
        ]
        assert len(others) <= 2
        for both in others:
            assert sentence_models.are_equally_good(vocabulary, *both)


_EVERY = pytest.mark.parametrize("name", _VOCABULARIES)


def _some_and_many(some, many):
    """Returns vocabularies with few texts; one of each kind with many, too."""
    parts = [pytest.param(name, some) for name in _VOCABULARIES]
    for name in (
        *("uncased characters", "cased characters", "uncased sentences"),
        *("cased sentences", "byte pairs"),
    ):
        parts.append(pytest.param(name, many, marks=pytest.mark.exhaustive))
    return parts


@pytest.mark.slow
@_EVERY
def test_literal_texts(name):
    vocabulary = _VOCABULARIES[name](False)
    alone = [[text] for text in _LITERALS] if name in _TRACED else []
    for texts in (_LITERALS, [], *alone):
        check(vocabulary, texts, name in _TRACED)


def _in_contexts(char):
    return [
        sample_texts.in_contexts(char),
        f"{char}'s{char}'ll '{char}s 1{char}2 .{char}. \n{char}\n v_1{char}v_1",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [
        *_some_and_many(100, 1),
        pytest.param("uncased characters", 7, marks=pytest.mark.exhaustive),
    ],
)
def test_characters(name, step):
    every = step == 1
    chars = [*sample_texts.characters(every)[::step], *string.printable]
    texts = [text for char in chars for text in _in_contexts(char)]
    check(_VOCABULARIES[name](every), texts, name in _TRACED)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), _some_and_many(150, 10_000))
def test_random_texts(name, count):
    rng = random.Random(0)
    # Characters that matter to the byte-pair word rule, and symbols.
    pools = [
        "  \n\t'.ast1é",
        "'' smtdrevlxSLE.1 ",
        " \u3000\xa0\x85\u2028\n a1.日",
        "aab b aaaa 00",
        "".join(map(chr, range(0x20, 0x300))),
        [*test_symbols.OWN, *test_symbols.SPECIAL, "x", " ", " "],
    ]
    texts = [
        "".join(rng.choices(rng.choice(pools), k=rng.randint(1, 30)))
        for _ in range(count)
    ]
    texts += sample_texts.random_texts(seed=4, count=count)
    check(_VOCABULARIES[name](False), texts, name in _TRACED)


@pytest.mark.slow
@_EVERY
def test_invalid_bytes_are_left_out(name):
    rng = random.Random(1)
    alphabet = [0x61, 0x20, 0xC3, 0xA9, 0xE4, 0xB8, 0x80, 0xED, 0xA0, 0xF0]
    alphabet += range(256)
    texts = [
        bytes(rng.choices(alphabet, k=rng.randint(1, 30))) for _ in range(300)
    ]
    texts += [b"a\xffb \xe5\x8d c\xc3", b"\xff", b"\xed\xa0\x80the", b"v_\xff1"]
    check(_VOCABULARIES[name](False), texts, name in _TRACED)


@_EVERY
def test_halves_of_surrogate_pairs_are_left_out(name):
    """JSON can contain them, but text in the graph is UTF-8."""
    python, bulk, *_ = _made(_VOCABULARIES[name](False), name in _TRACED)
    texts = ["\ud800 b", "a\udfff  b", "\n\ud800 b", "\ud800a\udfffb c\ud800"]
    if name in ("symbols", "uncased", "cased"):
        texts = ["\ud800 b"]
    ids, counts = bulk.tokenize(texts)
    rows = [python.tokenize(text) for text in texts]
    expected = list(map(python.convert_tokens_to_ids, rows))
    assert counts.tolist() == list(map(len, expected))
    assert ids.tolist() == [x for row in expected for x in row]


def _real_texts(shared_data, count):
    texts = []
    for name in ("text/blns.txt", "text/emoji-test.txt", "glue/CoLA/dev.tsv"):
        texts += (shared_data / name).read_text("utf-8").split("\n")[:count]
    texts += (shared_data / "text/zhwiki_2mb.txt").read_text().split("\n")[:200]
    with (shared_data / "corpus/enwiki_AA.txt").open(encoding="utf-8") as file:
        return texts + file.readlines(100 * count)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), _some_and_many(300, 50_000))
def test_real_text(name, count, shared_data):
    texts = _real_texts(shared_data, count)
    check(_VOCABULARIES[name](False), texts, name in _TRACED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "every"),
    combinations.some(
        [("bert_uncased", False), ("bert_multi_cased", False)],
        itertools.product(RELEASED, [False, True]),
    ),
)
def test_released_vocabularies(name, every, shared_data):
    pieces = tokenization.load_vocab(shared_data / "vocab" / f"{name}.txt")
    texts = sample_texts.random_texts(seed=5, count=100)
    texts += _real_texts(shared_data, 20_000 if every else 200)
    if every and name == "bert_multi_cased":
        chars = sample_texts.characters(every=True)
        texts += map(sample_texts.in_contexts, chars)
    check(word_pieces.WordPiece(tuple(pieces), RELEASED[name]), texts)


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_word_limit_counts_characters(do_lower_case):
    letters = "zé字𐐨"  # Of 1 to 4 bytes; the third is a word by itself.
    vocab = ["[UNK]", "[CLS]", "[SEP]", ".", *letters]
    vocab += ["##" + letter for letter in [*letters, "e"]]
    texts = []
    for letter in letters:
        for length in [199, 200, 201, 799, 800, 801, 2000]:
            texts.append(letter * length)
            texts.append(f"{letter}.{letter * length}.{letter} {letter}")
    check(word_pieces.WordPiece(tuple(vocab), do_lower_case), texts)


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_pieces_that_no_text_reaches(do_lower_case):
    strange = ["", "##", " ", "##\u2028", "\u200b", "a b", "##\x01", "\ue000"]
    vocab = ["[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "#", *strange]
    texts = ["a  b", "a \u2028 a\u2028a", "a\u200ba", "##", "a\x01", "\ue000"]
    texts += ["a" * 201 + "é", "é" + "\ue000" * 201]
    check(word_pieces.WordPiece(tuple(vocab), do_lower_case), texts)


@pytest.mark.slow
def test_pieces_that_are_too_long():
    vocab = ["[UNK]", "[CLS]", "[SEP]", "a", "##a", "a" * 201, "##" + "é" * 201]
    check(word_pieces.WordPiece(tuple(vocab), True), ["a" * 200, "a" * 201])
    with pytest.raises(InputError, match=r"at most 256 bytes.*'ккк.*260 bytes"):
        text_graph.make_tokenizer(
            word_pieces.WordPiece((*vocab, "к" * 130), True)
        )


@pytest.mark.slow
def test_merges_that_are_not_in_order():
    pieces = list(byte_pair_samples.SPECIAL)
    pieces += byte_pairs.byte_pair_files.BYTES
    merges = [("ab", "a"), ("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")]
    merges.insert(0, ("abc", "a"))
    pieces += sorted({a + b for a, b in merges} | {"<mask>"})
    rng = random.Random(0)
    texts = ["".join(rng.choices("abc", k=12)) for _ in range(500)]
    check(byte_pairs.BytePairs(tuple(pieces), tuple(merges)), texts)


@pytest.mark.slow
def test_sentence_models_with_characters_that_are_no_pieces():
    model = sentence_models.train(user_defined_symbols=("<ɮ>",))
    vocabulary = sentence_pieces.SentencePieces.parse(
        {"spiece.model": model}, True, "spiece.model"
    )
    with pytest.raises(InputError, match=r"Received: pieces with .*'ɮ'"):
        graph_offsets.make_tokenizer(vocabulary)


def test_equal_vocabularies_share_a_tokenizer():
    class Reversed(word_pieces.WordPiece):  # no dataclass
        pass

    tokens = ("[UNK]", "[CLS]", "[SEP]", "a")
    make = text_graph.make_tokenizer
    first, cased = (word_pieces.WordPiece(tokens, x) for x in (True, False))
    shared = make(first)
    assert make(word_pieces.WordPiece(tokens, True)) is shared
    assert make(cased) is not shared
    assert make(Reversed(tokens, True)) is not make(Reversed(tokens, True))
    with tf.Graph().as_default():
        assert make(first) is not shared
