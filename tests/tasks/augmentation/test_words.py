import dataclasses

from bert_tf import tokenization
from bert_tf.tasks.augmentation import words
from bert_tf.vocabularies import word_pieces
from tests import tiny_files
from tests.vocabularies import byte_pair_samples, sentence_models

import pytest

_VOCABULARY = word_pieces.WordPiece(tuple(tiny_files.VOCAB), True)


def _read(text, stop=(), length=32, vocabulary=_VOCABULARY):
    return words.Reader(vocabulary, stop, length).read(text)


def _texts(text, **how):
    return [word.text for word in _read(text, **how).words]


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat. A dog's bird!",
        "state-of-the-art (2nd) e-mail, x_y $5 abc123 über naïve",
        "e\u0301te\u0301 हिन्दी Привет мир",
        "中文 and 中 letters中mixed",
        "a\u200bb zero\u0000width  tab\tline\nend",
        "",
        " ,.!",
    ],
)
def test_words_are_those_of_the_original_that_are_letters(text):
    """The original accepts only a to z, in its tokenizer's words."""
    split = tokenization.BasicTokenizer(do_lower_case=False).tokenize(text)
    # Without words with marks, which are no letters to Python.
    wanted = [x for x in split if x.isalpha()]
    found = [text[start:end] for start, end in words.of_letters(text)]
    whole = [x for x in found if x.isalpha()]
    hidden = {"ab", "zerowidth"}
    assert whole == [x for x in wanted if x not in hidden]

    # Words with marks are complete.
    if text.startswith("e\u0301"):
        assert found[:2] == text.split()[:2]


def test_stop_words(tmp_path):
    text = "The cat and THE dog"
    assert _texts(text, stop={"the", "and"}) == ["cat", "dog"]
    assert {"the", "don", "isn"} < words.STOP_WORDS
    assert "what" not in words.STOP_WORDS
    path = tmp_path / "words.txt"
    path.write_text("Der\r\n\n die \nCafé\n")
    assert words.read_stop_words(str(path)) == {"der", "die", "café"}
    for text in ("", " ", "3 . 1", "\u200b", "the"):
        assert not _read(text, stop={"the"}).words


def test_pieces_and_characters_of_a_word():
    text = "A cat's, sing-cats!"
    found = _read(text)
    pieces = _VOCABULARY.tokenizer().tokenize(text)
    assert [
        (text[x.start : x.end], pieces[x.first : x.last]) for x in found.words
    ] == [
        ("A", ["a"]),
        ("cat", ["cat"]),
        ("s", ["[UNK]"]),
        ("sing", ["[UNK]"]),
        ("cats", ["cat", "##s"]),
    ]
    assert found.ids == _VOCABULARY.tokenizer().convert_tokens_to_ids(pieces)


def test_words_beyond_the_length_are_left():
    text = "cat dog cats bird"
    # [CLS] and [SEP], and three tokens: half of "cats" is cut off.
    found = _read(text, length=5)
    assert len(found.ids) == 3
    assert [x.text for x in found.words] == ["cat", "dog"]
    assert [x.text for x in _read(text, length=6).words][-1] == "cats"
    # Words of very many tokens are not read either.
    assert _texts(f"sing{8 * 's'} cat{7 * 's'} cat{8 * 's'}") == [
        f"sing{8 * 's'}",
        f"cat{7 * 's'}",
    ]


@pytest.mark.parametrize(
    "vocabulary",
    [byte_pair_samples.vocabulary(), sentence_models.vocabulary()],
    ids=lambda vocabulary: vocabulary.kind,
)
def test_spaces_that_belong_to_pieces(vocabulary):
    text = 'The files, isn\'t it? "Give a name."  Data\tset'
    found = _read(text, stop={"the"}, length=64, vocabulary=vocabulary)
    tokens = vocabulary.tokenizer().tokenize_with_offsets(text)
    assert {"files", "it", "Give", "name", "Data"} <= {
        x.text for x in found.words
    }
    for word in found.words:
        own = tokens[word.first : word.last]
        assert text[word.start : word.end] == word.text
        assert (own[0].start, own[-1].end) == (word.start, word.end)
        others = tokens[: word.first] + tokens[word.last :]
        assert all(x.end <= word.start or x.start >= word.end for x in others)


def test_a_piece_that_reaches_across_an_end_is_no_words():
    """As in 't of isn't: neither the apostrophe nor the letter is a word."""

    class Tokenizer:
        def tokenize_with_offsets(self, text):
            del text
            token = tokenization.Token
            return [token("a", 0, 1), token("'t", 1, 3), token("b", 4, 5)]

        def convert_tokens_to_ids(self, tokens):
            return [0 for _ in tokens]

    @dataclasses.dataclass(frozen=True)
    class Vocabulary(word_pieces.WordPiece):
        def tokenizer(self):
            return Tokenizer()

    vocabulary = Vocabulary(tuple(tiny_files.VOCAB), True)
    assert _texts("a't b", vocabulary=vocabulary) == ["a", "b"]
