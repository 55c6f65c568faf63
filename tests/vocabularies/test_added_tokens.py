"""Tokens added to a tokenizer, compared with the library `tokenizers`."""

import dataclasses
import json
import pathlib
import random
import unicodedata
from collections.abc import Callable
from typing import Any

from bert_tf import characters, vocabularies
from bert_tf.checkpoints import huggingface_tokenizer, tokenizer_files
from bert_tf.errors import InputError
from bert_tf.text import graph_offsets, graph_token_search, text_graph
from bert_tf.vocabularies import (
    added_token_search,
    added_tokens,
    word_pieces,
)
from tests.vocabularies import byte_pair_samples, sentence_models

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

_LENGTH = 64
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_PIECES = (
    *_SPECIAL,
    *"abceiknoprstuvwxy12!?+,<>[]/人我ᄋ",
    *(f"##{x}" for x in "abceiknoprstuvwxy12ᅥ"),
    *("new", "york", "cafe", "paris", "strasse", "##vid"),
)
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
    return word_pieces.WordPiece(_PIECES, lower)


def _texts() -> list[str]:
    choose = random.Random(0).choice
    words = [*_WORDS.split(" "), "New York", "New  York", "york x", ""]
    spaces = ["", "", " ", "  ", "\t", "\xa0"]
    return [
        "".join(choose(words) + choose(spaces) for _ in range(number % 8))
        for number in range(800)
    ]


def _is_composed(text: str) -> bool:
    return unicodedata.is_normalized("NFC", text)


def _with_tokens(
    plain: vocabularies.Vocabulary, folder: pathlib.Path
) -> tokenizers.Tokenizer:
    """Saves a vocabulary with transformers after adding tokens."""
    assert tokenizer_files.write(str(folder), plain, _LENGTH)
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

    tokenize = text_graph.make_tokenizer(vocabulary).tokenize
    place = graph_offsets.make_tokenizer(vocabulary).tokenize_with_offsets
    if plain == _word_pieces(False):
        # Tracing the others takes longer, and traces the same code for tokens.
        tokenize, place = map(tf.function, (tokenize, place))
    assert tokenize(tf.constant(texts)).to_list() == ids
    placed = place(tf.constant(texts))
    assert placed.ids.to_list() == ids
    flat = [x for row in rows for x in row]
    np.testing.assert_array_equal(placed.starts, [x.start for x in flat])
    np.testing.assert_array_equal(placed.ends, [x.end for x in flat])


def test_invalid_bytes_do_not_cut():
    vocabulary = word_pieces.WordPiece((*_PIECES, "[E1]"), True)
    token = added_tokens.AddedToken("[E1]", len(_PIECES))
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
    assert tokenizer_files.write(str(written), vocabulary, _LENGTH)
    again = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    for text in ("a犬b", "a 犬 b", "x 犬8"):
        assert again.encode(text).ids == library.encode(text).ids


def test_their_case_is_not_the_vocabulary_s():
    """Cased tokens may be added to an uncased vocabulary."""
    contents = ["Paris", "[E1]", "<User>", "Rome"]
    tokens = tuple(
        added_tokens.AddedToken(x, len(_PIECES) + i)
        for i, x in enumerate(contents)
    )
    made = word_pieces.WordPiece((*_PIECES, *contents), True)
    with pytest.raises(InputError, match="is cased"):
        made.check("it")
    dataclasses.replace(made, added=tokens).check("it")


def _count_ops(vocabulary: vocabularies.Vocabulary) -> int:
    tokenize = tf.function(text_graph.make_tokenizer(vocabulary).tokenize)
    made = tokenize.get_concrete_function(tf.TensorSpec([None], tf.string))
    return len(made.graph.get_operations())


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, False])
def test_the_graph_does_not_grow_with_tokens(lower):
    contents = [f"Café{x}" for x in range(1000)]
    size = len(_PIECES)
    tokens = tuple(
        added_tokens.AddedToken(x, size + i, normalized=True)
        for i, x in enumerate(contents)
    )
    many = dataclasses.replace(
        word_pieces.WordPiece((*_PIECES, *contents), lower), added=tokens
    )
    few = dataclasses.replace(many, added=tokens[:3])
    assert _count_ops(many) == _count_ops(few)
    texts = ["Café7", "CAFÉ999 cafe12x", "café"]
    tokenizer = many.tokenizer()
    expected = [
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(x)) for x in texts
    ]
    assert (
        text_graph.make_tokenizer(many).tokenize(tf.constant(texts)).to_list()
        == expected
    )
    assert size + 7 in expected[0]


def test_tokens_that_normalize_alike():
    """They can't be told apart by a look-up: the first that fits counts."""
    contents = ["\uac00", "\u1100\u1161", " q", "q", "\n", "<r>"]
    size = len(_PIECES)
    tokens = tuple(
        added_tokens.AddedToken(
            x, size + i, lstrip=i == 3, rstrip=i == 5, normalized=i < 4
        )
        for i, x in enumerate(contents)
    )
    vocabulary = dataclasses.replace(
        word_pieces.WordPiece((*_PIECES, *contents), True), added=tokens
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
    token = added_tokens.AddedToken("[E1]", len(_PIECES))
    vocabulary = word_pieces.WordPiece((*_PIECES, "[E1]"), True, added=(token,))
    monkeypatch.setattr(word_pieces.WordPiece, "normalizer", None)
    monkeypatch.setattr(characters, "assigned", None)
    (search,) = vocabulary.added_searches
    parts = search.cut("a [E1]")
    assert [x.text for x in parts] == ["a ", "[E1]", ""]
    found = graph_token_search.Search(search).cut(tf.constant(["a [E1]"]), None)
    assert found.texts.to_list() == [[b"a ", b"[E1]", b""]]


def _old_files(folder: pathlib.Path, with_decoder: bool) -> None:
    """Writes the files of transformers 4, before and since 4.34."""
    (folder / "vocab.txt").write_text("\n".join(_PIECES) + "\n")
    size = len(_PIECES)
    ids = {"covid": size, "[E1]": size + 1}
    (folder / "added_tokens.json").write_text(json.dumps(ids))
    special = {"additional_special_tokens": ["[E1]"], "cls_token": "[CLS]"}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    if with_decoder:
        (folder / "added_tokens.json").unlink()
        decoder = {
            "2": {"content": "[CLS]", "special": True},
            str(size): {"content": "covid", "normalized": True},
            str(size + 1): {"content": "[E1]", "special": True},
        }
        config = {"added_tokens_decoder": decoder}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("with_decoder", [False, True])
def test_files_of_older_versions(tmp_path, with_decoder):
    _old_files(tmp_path, with_decoder)
    vocabulary = vocabularies.open(tmp_path / "vocab.txt", True)
    size = len(_PIECES)
    assert vocabulary.pieces == (*_PIECES, "covid", "[E1]")
    assert vocabulary.tokenizer().tokenize("COVID[E1][e1]") == [
        *("covid", "[E1]", "[", "e", "##1", "]")
    ]
    assert [(x.id, x.normalized) for x in vocabulary.added] == [
        (size, True),
        (size + 1, False),
    ]
    # With a vocabulary of another name no such files are read.
    (tmp_path / "vocab.txt").rename(tmp_path / "mine.txt")
    assert vocabularies.open(tmp_path / "mine.txt", True).pieces == _PIECES


_LISTED = {"content": "[E1]", "lstrip": True, "normalized": False}
_COVID = {"covid": len(_PIECES) + 1}
_DECODER = {
    str(len(_PIECES)): _LISTED | {"special": True},
    str(len(_PIECES) + 1): {"content": "covid", "normalized": True},
}


def _write_listed(folder: pathlib.Path, files: dict[str, Any]) -> None:
    """Writes a vocabulary with [E1], and JSON files next to it."""
    (folder / "vocab.txt").write_text("\n".join((*_PIECES, "[E1]")) + "\n")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    if files.pop("has_tokenizer", False):
        plain = word_pieces.WordPiece((*_PIECES, "[E1]"), True)
        tokenizer_files.write(str(folder), plain, _LENGTH)
        (folder / "special_tokens_map.json").unlink()
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.mark.slow
@pytest.mark.parametrize("has_tokenizer", [False, True])
@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": {"additional_special_tokens": ["[E1]"]}},
        {"tokenizer_config": {"extra_special_tokens": ["[E1]"]}},
        {"tokenizer_config": {"extra_special_tokens": {"a_token": "[E1]"}}},
        {
            "tokenizer_config": {
                "additional_special_tokens": [
                    _LISTED | {"__type": "AddedToken"},
                    "[MASK]",
                ]
            }
        },
        {"tokenizer_config": {"ent_token": "[E1]", "bos_token": "[CLS]"}},
        {"tokenizer_config": {"bos_token": "[E1]", "eos_token": None}},
        {"special_tokens_map": {"ent_token": _LISTED}},
        {"special_tokens_map": {"additional_special_tokens": ["[E1]"]}},
        {"special_tokens_map": {"extra_special_tokens": [_LISTED]}},
        {"added_tokens": _COVID},
        {
            "added_tokens": _COVID,
            "special_tokens_map": {"additional_special_tokens": ["[E1]"]},
        },
        {"tokenizer_config": {"added_tokens_decoder": _DECODER}},
        # transformers does not read the second where the first has a decoder.
        {
            "tokenizer_config": {"added_tokens_decoder": {}},
            "special_tokens_map": {"additional_special_tokens": ["[E1]"]},
        },
    ],
)
def test_tokens_of_all_files_of_a_folder(tmp_path, files, has_tokenizer):
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    _write_listed(tmp_path, files | {"has_tokenizer": has_tokenizer})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    found = huggingface_tokenizer.read_vocab(str(tmp_path))
    assert found is not None
    vocabulary = vocabularies.read(found, True, "it")
    tokenizer = vocabulary.tokenizer()
    for text in ("a [E1] b", "a[E1]b [e1] covid", "york  [E1]  covid x", ""):
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]


@pytest.mark.slow
@pytest.mark.parametrize("place", [None, 9])
@pytest.mark.parametrize("has_entry", [False, True])
@pytest.mark.parametrize(
    "config",
    [{"extra_special_tokens": ["[E1]"]}, {"ent_token": "[E1]"}],
)
def test_tokens_that_an_older_vocabulary_lacks(
    tmp_path, caplog, place, has_entry, config
):
    """transformers takes the ids of tokenizer.json."""
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    pieces = [*_PIECES]
    pieces.insert(len(pieces) if place is None else place, "[E1]")
    plain = word_pieces.WordPiece(tuple(pieces), True)
    tokenizer_files.write(str(tmp_path), plain, _LENGTH)
    file = tmp_path / "tokenizer.json"
    whole = json.loads(file.read_text())
    entry = {**whole["added_tokens"][-1], "content": "[E1]"}
    whole["added_tokens"] += [entry | {"id": plain.ids["[E1]"]}] * has_entry
    file.write_text(json.dumps(whole))
    (tmp_path / "special_tokens_map.json").unlink()
    _write_listed(tmp_path, {"tokenizer_config": config})
    (tmp_path / "vocab.txt").write_text("\n".join(_PIECES) + "\n")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    found = huggingface_tokenizer.read_vocab(str(tmp_path))
    assert found is not None
    vocabulary = vocabularies.read(found, True, "it")
    assert vocabulary.pieces == plain.pieces
    tokenizer = vocabulary.tokenizer()
    for text in ("a[E1]b [e1] york", "new [E1]"):
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]
    if place is None:
        assert vocabularies.open_files(tmp_path / "vocab.txt") == found
        assert not caplog.messages
        return
    assert "and '[E1]' in tokenizer.json" in caplog.text
    with pytest.raises(InputError, match=r"or give tokenizer.json, which"):
        vocabularies.open_files(tmp_path / "vocab.txt")


def test_named_tokens_without_a_row_are_text(tmp_path, caplog):
    _write_listed(tmp_path, {"tokenizer_config": {"bos_token": "[E9]"}})
    vocabulary = vocabularies.open(tmp_path / "vocab.txt", True)
    assert not vocabulary.added
    assert "vocab.txt lacks '[E9]', which a file next" in caplog.text


def test_flags_of_older_versions(tmp_path):
    """transformers 4 takes them from special_tokens_map.json."""
    _old_files(tmp_path, False)
    listed = {"additional_special_tokens": [_LISTED]}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(listed))
    tokenizer = vocabularies.open(tmp_path / "vocab.txt", True).tokenizer()
    found = tokenizer.tokenize_with_offsets("a  [E1] b")
    assert [x[1:] for x in found] == [(0, 1), (1, 7), (8, 9)]


@pytest.mark.parametrize(
    ("listed", "named"),
    [
        (["[E9]"], r"must have the special tokens.*Received: '\[E9\]'"),
        ([5], "must have a text"),
        ("[E1]5", r"Received: '\[E1\]5'"),
    ],
)
def test_listed_tokens_that_are_wrong_are_refused(tmp_path, listed, named):
    config = {"tokenizer_config": {"additional_special_tokens": listed}}
    _write_listed(tmp_path, config)
    with pytest.raises(InputError, match=named) as error:
        vocabularies.open(tmp_path / "vocab.txt", True)
    assert "\n" not in str(error.value)


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
    tokenizer_files.write(str(written), vocabulary, _LENGTH)
    again = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    texts = _texts()
    assert [x.ids for x in again.encode_batch(texts)] == [
        x.ids for x in made.encode_batch(texts)
    ]
    assert vocabularies.open(written / "vocab.txt", True) == vocabulary


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({"covid": 9}, "the vocabulary has for them, or go on"),
        ({"a": 9}, "'a' with id=9, where 5 is expected"),
        ({"covid": "x"}, "Received: id='x'"),
        ({"": len(_PIECES)}, "must have a text"),
        ([1], "must have a text"),
    ],
)
def test_damaged_files_are_refused(tmp_path, found, named):
    _old_files(tmp_path, False)
    (tmp_path / "special_tokens_map.json").unlink()  # It lists [E1].
    (tmp_path / "added_tokens.json").write_text(json.dumps(found))
    with pytest.raises(InputError, match=named) as error:
        vocabularies.open(tmp_path / "vocab.txt", True)
    assert "\n" not in str(error.value)


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


def test_damaged_settings_are_refused(tmp_path):
    _old_files(tmp_path, False)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(InputError, match="is not whole JSON"):
        vocabularies.open(tmp_path / "vocab.txt", True)


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
