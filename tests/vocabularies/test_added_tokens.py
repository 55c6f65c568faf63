"""Tokens added to a tokenizer, compared with the library `tokenizers`."""

import contextlib
import dataclasses
import pathlib
import random
import unicodedata
from collections.abc import Callable
from typing import Any

from bert_tf import characters, vocabularies
from bert_tf.checkpoints import tokenizer_files
from bert_tf.errors import InputError
from bert_tf.text import graph_offsets, graph_token_search, text_graph
from bert_tf.vocabularies import (
    added_token_search,
    added_tokens,
    word_pieces,
)
from tests import tiny_model
from tests.vocabularies import byte_pair_samples, sentence_models
from tests.vocabularies.added_token_samples import LENGTH, PIECES

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

_PLAIN = ["<user>", "covid", "covid19", "New York", "Café", "中国", "한국"]
# Accents that are not composed, and what may be within a character's form.
_PLAIN += ["a\u0301w", "가", "fi", "fin", "ê"]
_TOKENS = [
    *(tokenizers.AddedToken(x, normalized=True) for x in _PLAIN),
    tokenizers.AddedToken("<l>", lstrip=True, normalized=False),
    tokenizers.AddedToken("<r>", rstrip=True, normalized=False),
    tokenizers.AddedToken("a+b?", normalized=False),
    # They overlap with others, and some of them are whole words only.
    tokenizers.AddedToken("york x", normalized=False, lstrip=True),
    tokenizers.AddedToken("x2", normalized=False, single_word=True),
    tokenizers.AddedToken("ork", normalized=True, single_word=True),
    tokenizers.AddedToken("paris", single_word=True, lstrip=True, rstrip=True),
    tokenizers.AddedToken("人", single_word=True, normalized=True),
]
# XLNet has the last one in its own vocabulary.
_MARKERS = ["[E1]", "[/E1]", "[E12]", "<sep>"]
_WORDS = (
    "covid COVID covid19 Covid19 <user> <USER> new york New\xa0York café Café "
    "CAFE 中国 我中国人 한국 한국어 [E1] [e1] [E12] [/E1] <l> <r> a+b? A+B? "
    "<sep> Paris x ! x2 ork Ork x2x york\u0301 _ paris 人 covi\u0301d aw áw "
    "a\u0301w 각 가나 \u1100\u1161 x\ufb01x2 fin 人ork co\xadvid fin\u0301 "
    "fi\u0301x fin\u0327 ê ê\u0300 e\u0302 e\u0302\u0300 ế"
)


def _word_pieces(lower: bool) -> vocabularies.Vocabulary:
    return word_pieces.WordPiece(PIECES, lower)


def _texts() -> list[str]:
    choose = random.Random(0).choice
    words = [*_WORDS.split(" "), "New York", "New  York", "york x", ""]
    spaces = ["", "", " ", "  ", "\t", "\xa0"]
    return [
        "".join(choose(words) + choose(spaces) for _ in range(number % 8))
        for number in range(300)
    ]


def _is_composed(text: str) -> bool:
    return unicodedata.is_normalized("NFC", text)


def _with_tokens(
    plain: vocabularies.Vocabulary, folder: pathlib.Path
) -> tokenizers.Tokenizer:
    """Saves a vocabulary with transformers after adding tokens."""
    assert tokenizer_files.write(str(folder), plain, LENGTH)
    path = folder / "tokenizer.json"
    made = tokenizers.Tokenizer.from_file(str(path))
    made.add_tokens(_TOKENS)
    made.add_special_tokens(_MARKERS)
    made.save(str(path))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: _word_pieces(True), id="uncased"),
        pytest.param(lambda: _word_pieces(False), id="cased"),
        pytest.param(byte_pair_samples.vocabulary, id="byte pairs"),
        pytest.param(sentence_models.vocabulary, id="sentence pieces"),
        pytest.param(
            lambda: sentence_models.fairseq_vocabulary("xlm-roberta"),
            id="fairseq",
        ),
    ],
)
def test_ids_are_the_librarys(
    tmp_path: pathlib.Path, make: Callable[[], vocabularies.Vocabulary]
) -> None:
    plain = make()
    library = _with_tokens(plain, tmp_path)
    files = vocabularies.open_files(tmp_path / "tokenizer.json")
    lower = plain.settings.get("do_lower_case", False)
    vocabulary = vocabularies.read(files, lower, "it")
    texts = _texts()
    expected = [library.encode(x, add_special_tokens=False) for x in texts]
    ids = [x.ids for x in expected]
    added = {x.id for x in vocabulary.added}
    assert added < {y for x in ids for y in x}, "each is in some text"

    tokenizer = vocabulary.tokenizer()
    rows = [tokenizer.tokenize_with_offsets(x) for x in texts]
    found = [
        tokenizer.convert_tokens_to_ids([x.text for x in row]) for row in rows
    ]
    assert found == ids
    assert [tokenizer.tokenize(x) for x in texts] == [
        [x.text for x in row] for row in rows
    ]
    # Offsets with white space depend on the kind, also for other tokens.
    spaced = {x.id for x in vocabulary.added if x.lstrip or x.rstrip}
    for text, row, other in zip(texts, rows, expected, strict=True):
        for piece, number, offsets in zip(
            row, other.ids, other.offsets, strict=True
        ):
            # The library counts one character of those that are composed.
            part = text[piece.start : piece.end]
            is_other = number in spaced or not _is_composed(part)
            assert number not in added or is_other or piece[1:] == offsets

    bulk, lengths = vocabulary.bulk_tokenizer().tokenize(texts)
    ends = np.cumsum(lengths)[:-1]
    assert [x.tolist() for x in np.split(bulk, ends)] == ids

    # Tracing the others takes longer, and traces the same code for tokens.
    is_traced = plain == _word_pieces(False)
    with contextlib.nullcontext() if is_traced else tiny_model.untraced():
        tokenize = text_graph.make_tokenizer(vocabulary).tokenize
        place = graph_offsets.make_tokenizer(vocabulary).tokenize_with_offsets
        place = tf.function(place, autograph=False)
        assert tokenize(tf.constant(texts)).to_list() == ids
        placed = place(tf.constant(texts))
    assert placed.ids.to_list() == ids
    flat = [x for row in rows for x in row]
    np.testing.assert_array_equal(placed.starts, [x.start for x in flat])
    np.testing.assert_array_equal(placed.ends, [x.end for x in flat])


@pytest.mark.usefixtures("untraced")
def test_invalid_bytes_do_not_cut():
    vocabulary = word_pieces.WordPiece((*PIECES, "[E1]"), True)
    token = added_tokens.AddedToken("[E1]", len(PIECES))
    vocabulary = dataclasses.replace(vocabulary, added=(token,))
    texts = [b"a\xff[E1]\xffb", b"\xff", b"[E\xff1]", b""]
    ids = vocabulary.ids
    row = [ids["a"], token.id, ids["b"]]
    expected = [row, [], [token.id], []]
    assert text_graph.make_tokenizer(vocabulary).tokenize(
        tf.constant(texts)
    ).to_list() == (expected)
    tokenizer = vocabulary.tokenizer()
    for text, numbers in zip(texts, expected, strict=True):
        found = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        assert found == numbers


def test_a_token_that_was_learned_as_well(tmp_path):
    """It stays one of the model's, where it is not found before."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *"\u2581aceldlps", "led", "call"]
    scores = [0.0] * 4 + [-5.0] * 9 + [-9.0, -6.0]
    model = tokenizers.models.Unigram(
        list(zip(dict.fromkeys(pieces), scores, strict=False)), 3
    )
    library = tokenizers.Tokenizer(model)
    space = tokenizers.pre_tokenizers.Metaspace()
    split = tokenizers.pre_tokenizers.WhitespaceSplit()
    library.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, space])
    library.add_special_tokens(pieces[:4])
    library.add_tokens([tokenizers.AddedToken("led", single_word=True)])
    library.add_special_tokens(["call"])
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    files = vocabularies.open_files(path)
    tokenizer = vocabularies.read(files, False, "it").tokenizer()
    for text in ("called led", "spelled", "callled", "sled led."):
        found = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        assert found == library.encode(text, add_special_tokens=False).ids
    # Here the library makes a token of the space before an added token.
    library.pre_tokenizer = space
    library.normalizer = tokenizers.normalizers.Strip(left=False)
    library.save(str(path))
    with pytest.raises(InputError, match="token of its own, which is not sup"):
        vocabularies.open_files(path)


@pytest.mark.slow
def test_part_of_a_word_is_unknown_as_before(tmp_path):
    """Files for transformers do not make added tokens of the model's."""
    plain = sentence_models.vocabulary()
    _with_tokens(plain, tmp_path)
    path = tmp_path / "tokenizer.json"
    library = tokenizers.Tokenizer.from_file(str(path))
    library.add_tokens([tokenizers.AddedToken("犬", single_word=True)])
    library.save(str(path))
    files = vocabularies.open_files(path)
    vocabulary = vocabularies.read(files, True, "it")
    written = tmp_path / "written"
    written.mkdir()
    assert tokenizer_files.write(str(written), vocabulary, LENGTH)
    again = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    for text in ("a犬b", "a 犬 b", "x 犬8"):
        assert again.encode(text).ids == library.encode(text).ids


def test_their_case_is_not_the_vocabulary_s():
    """Cased tokens may be added to an uncased vocabulary."""
    contents = ["Paris", "[E1]", "<User>", "Rome"]
    tokens = tuple(
        added_tokens.AddedToken(x, len(PIECES) + i)
        for i, x in enumerate(contents)
    )
    made = word_pieces.WordPiece((*PIECES, *contents), True)
    with pytest.raises(InputError, match="is cased"):
        made.check("it")
    dataclasses.replace(made, added=tokens).check("it")


def _count_ops(tokenizer: Any) -> int:
    made = tokenizer.tokenize.get_concrete_function()
    return len(made.graph.get_operations())


@pytest.mark.slow
def test_the_graph_does_not_grow_with_tokens():
    contents = [f"Café{x}" for x in range(1000)]
    size = len(PIECES)
    tokens = tuple(
        added_tokens.AddedToken(x, size + i, normalized=True)
        for i, x in enumerate(contents)
    )
    many = dataclasses.replace(
        word_pieces.WordPiece((*PIECES, *contents), True), added=tokens
    )
    few = dataclasses.replace(many, added=tokens[:3])
    in_graph = text_graph.make_tokenizer(many)
    assert _count_ops(in_graph) == _count_ops(text_graph.make_tokenizer(few))
    texts = ["Café7", "CAFÉ999 cafe12x", "café"]
    tokenizer = many.tokenizer()
    expected = [
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(x)) for x in texts
    ]
    assert in_graph.tokenize(tf.constant(texts)).to_list() == expected
    assert size + 7 in expected[0]


@pytest.mark.usefixtures("untraced")
def test_tokens_that_normalize_alike():
    """They can't be told apart by a look-up: the first that fits counts."""
    contents = ["\uac00", "\u1100\u1161", " q", "q", "\n", "<r>"]
    size = len(PIECES)
    tokens = tuple(
        added_tokens.AddedToken(
            x, size + i, lstrip=i == 3, rstrip=i == 5, normalized=i < 4
        )
        for i, x in enumerate(contents)
    )
    vocabulary = dataclasses.replace(
        word_pieces.WordPiece((*PIECES, *contents), True), added=tokens
    )
    texts = ["\uac00", "\u1100\u1161", " q", "  Q", "aq", "<r>\n\n q", ""]
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, "?"))
    library.add_tokens(
        [
            tokenizers.AddedToken(x.content, rstrip=x.rstrip, normalized=False)
            for x in tokens[4:]
        ]
    )
    assert library.encode(texts[5]).tokens[:3] == ["<r>\n\n ", "\n", "\n"]
    tokenizer = vocabulary.tokenizer()
    expected = [
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(x)) for x in texts
    ]
    assert expected[5] == [size + x for x in (5, 4, 4, 3)]
    assert text_graph.make_tokenizer(vocabulary).tokenize(
        tf.constant(texts)
    ).to_list() == (expected)


def test_tokens_that_are_not_normalized_need_no_tables(monkeypatch):
    """Tables of all characters would take a second at every start."""
    token = added_tokens.AddedToken("[E1]", len(PIECES))
    vocabulary = word_pieces.WordPiece((*PIECES, "[E1]"), True, added=(token,))
    monkeypatch.setattr(word_pieces.WordPiece, "normalizer", None)
    monkeypatch.setattr(characters, "assigned", None)
    (search,) = vocabulary.added_searches
    parts = search.cut("a [E1]")
    assert [x.text for x in parts] == ["a ", "[E1]", ""]
    found = graph_token_search.Search(search).cut(tf.constant(["a [E1]"]), None)
    assert found.texts.to_list() == [[b"a ", b"[E1]", b""]]


def test_they_travel(tmp_path):
    """They are kept in runs, exports, and folders for transformers."""
    made = _with_tokens(_word_pieces(True), tmp_path)
    files = vocabularies.open_files(tmp_path / "tokenizer.json")
    vocabulary = vocabularies.read(files, True, "it")
    assert vocabulary.files == files.contents
    assert vocabularies.among(vocabulary.files) == files
    config = files.to_config()
    assert vocabularies.Files.from_config(config) == files
    kept = tmp_path / "kept"
    kept.mkdir()
    for name, data in vocabulary.files.items():
        (kept / name).write_bytes(data)
    assert vocabularies.open(kept / "vocab.txt", True) == vocabulary
    plain = vocabularies.Files(files.kind, vocabulary.own_files)
    assert vocabularies.difference(files, plain) == (
        "other tokens are added to it"
    )
    assert vocabularies.listed(files, vocabulary.pieces) is None
    written = tmp_path / "written"
    written.mkdir()
    tokenizer_files.write(str(written), vocabulary, LENGTH)
    again = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    texts = _texts()
    assert [x.ids for x in again.encode_batch(texts)] == [
        x.ids for x in made.encode_batch(texts)
    ]
    assert vocabularies.open(written / "vocab.txt", True) == vocabulary


def test_they_are_words_by_themselves():
    """In whole-word masking, whatever the kind's rule for words."""
    plain = byte_pair_samples.vocabulary()
    place = len(plain.pieces)
    token = added_tokens.AddedToken("<user>", place)
    vocabulary = dataclasses.replace(
        plain, pieces=(*plain.pieces, "<user>"), added=(token,)
    )
    assert vocabulary.continues[place]
    assert not vocabulary.goes_on[place]
    np.testing.assert_array_equal(vocabulary.goes_on[:place], plain.continues)


def test_what_counts_as_a_word():
    """Every character of Unicode before a token of whole words."""
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, "?"))
    token = tokenizers.AddedToken("x", single_word=True, normalized=False)
    library.add_tokens([token])
    tokens = (added_tokens.AddedToken("x", 1, single_word=True),)
    search = added_token_search.searches(tokens, None, composes=False)
    # Others may be in one version of Unicode only.
    text = "".join(
        f"{char}x ."
        for char in map(chr, range(0x110000))
        if unicodedata.ucd_3_2_0.category(char) not in ("Cn", "Cs", "Co")
    )
    ids = library.encode(text)
    expected = [x for x, y in zip(ids.offsets, ids.ids, strict=True) if y]
    found = [
        part.bounds(0, len(part.text))
        for part in added_token_search.parts(search, text)
        if part.token
    ]
    assert len(found) > 1000
    differing = {text[start - 1] for start, _ in {*found} ^ {*expected}}
    assert differing <= {"\u1734"}, sorted(differing)
