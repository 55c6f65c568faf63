"""Tests of the Python tokenizer, compared with the original's rules."""

import pickle
import unicodedata

from bert_tf import tokenization, vocab_files
from tests import sample_texts, tokenizer_rules

import pytest
import tensorflow as tf

RELEASED = {  # Vocabulary -> the do_lower_case that it was released with.
    "bert_uncased": True,
    "bert_cased": False,
    "bert_multi_cased": False,
    "bert_chinese": True,
}
_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] want ##want ##ed wa un runn ##ing , the quick
##est fox . caf ##e 博 推 z ##z [ ] mask
"""
PIECES = _PIECES.split()
VOCAB = {piece: index for index, piece in enumerate(PIECES)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vocab.txt"


def test_cased_words_and_invalid_utf8():
    tokenizer = tokenization.BasicTokenizer(do_lower_case=False)
    words = ["HeLLo", "!", "how", "Is", "Zoë", "?"]
    assert tokenizer.tokenize(" \tHeLLo!how  \n Is Zoë?") == words
    assert tokenizer.tokenize(b"a\xffb \xe5\x8d c") == ["ab", "c"]
    with pytest.raises(ValueError, match="Received: text=3"):
        tokenizer.tokenize(3)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "every_character", [False, pytest.param(True, marks=pytest.mark.exhaustive)]
)
def test_words_of_all_characters(do_lower_case, every_character):
    tokenizer = tokenization.BasicTokenizer(do_lower_case)
    reference = tokenizer_rules.Tokenizer({}, do_lower_case)
    for char in sample_texts.characters(every_character):
        text = sample_texts.in_contexts(char)
        assert tokenizer.tokenize(text) == reference.words(text), repr(char)


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_words_of_random_texts(do_lower_case):
    tokenizer = tokenization.BasicTokenizer(do_lower_case)
    reference = tokenizer_rules.Tokenizer({}, do_lower_case)
    for text in sample_texts.random_texts(seed=1, count=500):
        assert tokenizer.tokenize(text) == reference.words(text)


@pytest.mark.slow
def test_full_tokenizer(path):
    path.write_text("".join(piece + "\n" for piece in PIECES), "utf-8")
    tokenizer = tokenization.FullTokenizer(path)
    # Tokenizers can be sent to another process.
    tokenizer = pickle.loads(pickle.dumps(tokenizer))
    pieces = tokenizer.tokenize("UNwantéd,running the quickest")
    expected = ["un", "##want", "##ed", ",", "runn", "##ing"]
    assert pieces == [*expected, "the", "quick", "##est"]
    ids = tokenizer.convert_tokens_to_ids(pieces)
    assert ids == [9, 6, 7, 12, 10, 11, 13, 14, 15]
    assert tokenizer.convert_ids_to_tokens(ids) == pieces
    with pytest.raises(KeyError):
        tokenizer.convert_tokens_to_ids(["unwanted"])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("unwanted running", ["un", "##want", "##ed", "runn", "##ing"]),
        ("unwantedX running", ["[UNK]", "runn", "##ing"]),
        ("want[MASK]", ["[UNK]"]),
        ("z" * 200, ["z"] + ["##z"] * 199),
        ("z" * 201, ["[UNK]"]),
    ],
)
def test_wordpiece_tokenizer(text, pieces):
    assert tokenization.WordpieceTokenizer(VOCAB).tokenize(text) == pieces


def test_module_functions():
    vocab = {"[UNK]": 0, "un": 1, "##ed": 2}
    ids = tokenization.convert_tokens_to_ids(vocab, ["##ed", "un"])
    assert ids == [2, 1]
    inverse = {index: piece for piece, index in vocab.items()}
    assert tokenization.convert_ids_to_tokens(inverse, ids) == ["##ed", "un"]
    assert tokenization.whitespace_tokenize(" a\n b ") == ["a", "b"]
    assert tokenization.printable_text("é".encode()) == "é"


def test_special_tokens_are_taken_apart_unless_kept():
    text = "the [MASK]fox [PAD] [MASK"
    apart = tokenization.FullTokenizer.from_vocab(VOCAB)
    assert apart.tokenize("[MASK]") == ["[", "mask", "]"]
    kept = tokenization.FullTokenizer.from_vocab(
        VOCAB, keep_special_tokens=True
    )
    words = ["the", "[MASK]", "fox", "[PAD]", "["]
    assert kept.tokenize(text) == [*words, "mask"]
    tokens = kept.tokenize_with_offsets(text)
    found = [text[token.start : token.end] for token in tokens]
    assert found == [*words, "MASK"]


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("UNwantéd,  running", ["UN", "want", "éd", ",", "runn", "ing"]),
        ("Cafe\u0301 the", ["Caf", "e\u0301", "the"]),  # Includes the accent.
        ("the bad 博推", ["the", "bad", "博", "推"]),  # [UNK]: the whole word.
        ("w\u00adant", ["w\u00adant"]),
        ("", []),
    ],
)
def test_offsets(text, slices):
    tokenizer = tokenization.FullTokenizer.from_vocab(VOCAB)
    tokens = tokenizer.tokenize_with_offsets(text)
    assert [text[token.start : token.end] for token in tokens] == slices
    assert [token.text for token in tokens] == tokenizer.tokenize(text)


@pytest.mark.slow
def test_offsets_of_random_texts_give_the_pieces_back():
    # Every character is a token: a slice must contain the token's source.
    vocab = {"[UNK]": 0}
    for char in sample_texts.characters(every=False):
        vocab.setdefault(char, len(vocab))
        vocab.setdefault("##" + char, len(vocab))
    tokenizer = tokenization.FullTokenizer.from_vocab(vocab)
    basic = tokenizer.basic_tokenizer
    for text in sample_texts.random_texts(seed=2, count=200):
        tokens = tokenizer.tokenize_with_offsets(text)
        assert [token.text for token in tokens] == tokenizer.tokenize(text)
        starts = [token.start for token in tokens]
        assert starts == sorted(starts)
        for piece, start, end in tokens:
            word = "".join(basic.tokenize(text[start:end]))
            char = piece.removeprefix("##") or piece
            # Alone, a sigma is never final; marks may have been reordered.
            if piece != "[UNK]" and not unicodedata.combining(char):
                assert char.replace("ς", "σ") in word.replace("ς", "σ")


def test_remembered_words_are_bounded(monkeypatch):
    monkeypatch.setattr(tokenization, "_CACHED_WORDS", 2)
    vocab = {"[UNK]": 0, "a": 1, "##b": 2}
    tokenizer = tokenization.WordpieceTokenizer(vocab)
    reference = tokenizer_rules.Tokenizer(vocab, do_lower_case=True)
    for text in ["a", "ab", "abb", "b", "ab"]:
        assert tokenizer.tokenize(text) == reference.pieces(text)
        assert len(tokenizer._cache) <= 2
    # Long ones, such as base64, would take a gigabyte.
    assert tokenizer.tokenize("a" * 9999) == ["[UNK]"]
    assert max(map(len, tokenizer._cache)) < 4


def test_load_vocab_strips_as_the_original(path):
    # No newline at the end; a line of white space other than the newline.
    path.write_bytes("[UNK]\n a \n\u2028\n##b".encode())
    vocab = {"[UNK]": 0, "a": 1, "": 2, "##b": 3}
    assert tokenization.load_vocab(path) == vocab
    # Line ends of classic Mac OS.
    path.write_bytes(b"[UNK]\ra\r##b\r")
    assert list(tokenization.load_vocab(path)) == ["[UNK]", "a", "##b"]
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"vocab\.txt"):
        tokenization.load_vocab(path)


def originals_rows(path):
    """Returns the rows that the original's load_vocab reads, by TensorFlow."""
    with tf.io.gfile.GFile(str(path), "r") as reader:
        return [line.strip() for line in iter(reader.readline, "")]


_MARK = "\ufeff"
_LINE_ENDS = "the line ends made LF"
_AT_THE_END = "empty lines at the end left out"


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("[UNK]\r\na\r\n##b\r\n", _LINE_ENDS),
        ("[UNK]\r\na\r\n##b", _LINE_ENDS),
        # Converted twice; one of each kind of line end; a lone CR.
        ("[UNK]\r\r\na\r\r\n##b\r\r\n", _LINE_ENDS),
        ("[UNK]\na\r\n##b\n", _LINE_ENDS),
        ("[UNK]\na\n#\r#b\r", _LINE_ENDS),
        ("[UNK]\na\n##b\n\n\n", _AT_THE_END),
        ("[UNK]\na\n##b\n \t\n  ", _AT_THE_END),
        (f"{_MARK}[UNK]\na\n##b\n", "the byte-order mark left out"),
        (
            f"{_MARK}[UNK]\r\na\r\n##b\r\n\r\n",
            "the byte-order mark left out and the line ends made LF and "
            "empty lines at the end left out",
        ),
    ],
)
def test_what_editors_add_is_left_out(text, done, path, caplog):
    path.write_bytes(text.encode())
    caplog.set_level("INFO", "absl")
    vocab = tokenization.load_vocab(path)
    rows = originals_rows(path)
    rows[0] = rows[0].removeprefix(_MARK)
    assert list(vocab) == [row for row in rows if row]
    assert list(vocab.values()) == [0, 1, 2]
    # The text is the same for all line ends: it is hashed and saved.
    assert vocab_files.read_vocab(path).removesuffix("\n") == "[UNK]\na\n##b"
    # Logged once, however often the file is read.
    assert caplog.messages == [f"{path} is read with {done}."]


def test_what_need_not_be_said(path, caplog):
    caplog.set_level("INFO", "absl")
    # Nothing is changed; worker processes log nothing.
    path.write_bytes(b"[UNK]\n a \n##b")
    assert vocab_files.read_vocab(path) == "[UNK]\n a \n##b"
    path.write_bytes(b"[UNK]\r\na\r\n")
    assert tokenization.load_vocab(path, say=False) == {"[UNK]": 0, "a": 1}
    assert not caplog.messages


@pytest.mark.parametrize("name", RELEASED)
def test_released_vocabularies_stay_as_they_are(name, shared_data):
    path = shared_data / "vocab" / f"{name}.txt"
    assert vocab_files.read_vocab(path).encode() == path.read_bytes()


def test_released_vocabulary_with_windows_line_ends(path, shared_data):
    # One of its tokens is U+2028, which Python reads as a line end.
    data = (shared_data / "vocab" / "bert_chinese.txt").read_bytes()
    path.write_bytes(data.replace(b"\n", b"\r\n") + b"\r\n")
    assert vocab_files.read_vocab(path).encode() == data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a\nb\n", r"lacks the token '\[UNK\]'.*Received: 2 tokens"),
        (b"", "is not a BERT vocabulary: it is empty"),
        (b"{" * 10**5, "Received: 1 tokens, the first .'{{{{{{{{{{{{{{{{{{{{'"),
        (
            b"[UNK]\na\nb\na\n",
            r"line 4: .* already on line 2\. .* give line 2 a name .*"
            r"\[unused-2\]\. The rows .* stay .*line='a'",
        ),
        (
            b"[UNK]\r\na\r\n\r\nb\r\n",
            r"line 3: .*empty lines, but at its end\. .*\[unused-3\]; else "
            r"remove the line\. Received: line=''",
        ),
        (b"[UNK]\na\n\xff\n", "line 3: .*UTF-8.*byte=0xff"),
    ],
)
def test_load_vocab_refuses(data, problem, path):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=problem) as error:
        tokenization.load_vocab(path)
    assert str(path) in str(error.value)


def test_the_way_out_of_a_piece_that_is_there_twice(path):
    path.write_bytes(b"[UNK]\na\nb\na\n")
    # As in the original's dictionary: the last of two equal tokens counts.
    wanted = {piece: i for i, piece in enumerate(originals_rows(path))}
    path.write_bytes(b"[UNK]\n[unused-2]\nb\na\n")
    tokenizer = tokenization.FullTokenizer(path)
    for text in ("a", "b", "a b", "[unused-2]"):
        pieces = tokenizer.tokenize(text)
        ids = tokenizer.convert_tokens_to_ids(pieces)
        assert ids == [wanted[piece] for piece in pieces]
    assert tokenizer.tokenize("[unused-2]") == ["[UNK]"] * 5


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASED)
def test_casing_of_released_vocabularies(name, shared_data):
    path = shared_data / "vocab" / f"{name}.txt"
    tokenization.FullTokenizer(path, RELEASED[name])
    message = rf"{name}.*Set `--do_lower_case={RELEASED[name]}`"
    with pytest.raises(ValueError, match=message):
        tokenization.FullTokenizer(path, not RELEASED[name])


@pytest.mark.parametrize(
    ("pieces", "fits_lower", "fits_cased"),
    [
        (["the", "##ing", "[MASK]", "<S>"], True, False),
        (["the", "The"], False, True),
        (["cafe", "café"], False, True),
        # Marks on letters without case count as accents.
        (["नमस्ते", "में", "घर"], False, True),
        # Capitals among many letters without case.
        ([*map(chr, range(0x4E00, 0x5200)), *"aBcDe"], False, True),
        # Scripts without case, digits: both casings fit.
        (["東", "の", "12", "."], True, True),
        # A few custom words in an uncased vocabulary.
        (["URL", *[f"word{n}" for n in range(200)]], True, True),
    ],
)
def test_casing_of_small_vocabularies(pieces, fits_lower, fits_cased):
    for do_lower_case, fits in [(True, fits_lower), (False, fits_cased)]:
        if fits:
            vocab_files.check_casing(pieces, do_lower_case, "v.txt")
        else:
            # The error begins with the name, whatever it is.
            for name in ("v.txt", "The vocabulary of x"):
                with pytest.raises(ValueError, match=f"^{name} is"):
                    vocab_files.check_casing(pieces, do_lower_case, name)


@pytest.mark.parametrize(
    ("checkpoint", "fits_lower", "fits_cased"),
    [
        ("gs://b/uncased_L-12_H-768_A-12/bert_model.ckpt", True, False),
        ("/x/chinese_L-12_H-768_A-12/bert_model.ckpt", True, False),
        ("cased_L-24_H-1024_A-16/bert_model.ckpt", False, True),
        ("/x/multi_cased_L-12_H-768_A-12/bert_model.ckpt", False, True),
        ("/x/my_model/bert_model.ckpt", True, True),
        ("/x/cased_L-24_H-1024_A-16/model.ckpt-100", True, True),
        (None, True, True),
    ],
)
def test_casing_by_the_name_of_the_checkpoint(
    checkpoint, fits_lower, fits_cased
):
    # The name and the module of the original.
    check = tokenization.validate_case_matches_checkpoint
    for do_lower_case, fits in [(True, fits_lower), (False, fits_cased)]:
        if fits:
            check(do_lower_case, checkpoint)
        else:
            message = f"set `--do_lower_case={not do_lower_case}`"
            with pytest.raises(ValueError, match=message):
                check(do_lower_case, checkpoint)
