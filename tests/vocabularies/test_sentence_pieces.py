"""The SentencePiece vocabulary; test_tokenizers.py tokenizes texts with it."""

from bert_tf.errors import InputError
from bert_tf.text import learning_sentence_pieces as learning
from bert_tf.vocabularies import sentence_pieces
from tests import sample_texts
from tests.vocabularies import sentence_models

import pytest
import sentencepiece

_CASINGS = pytest.mark.parametrize(
    "do_lower_case", [True, False], ids=["uncased", "cased"]
)


def test_literal_pieces():
    tokenizer = sentence_models.vocabulary().own_tokenizer()
    for text, pieces in (
        ("", []),
        (" \t\r\n\u2028", []),
        ("\u0301", []),
        ("THE thé", ["▁the", "▁the"]),
        ("(the)", ["▁", "(", "the", ")"]),
        ("漢字", ["▁", "<unk>"]),
        ("the\ud800 \ud800the", ["▁the", "▁the"]),
        (b"th\xffe", ["▁the"]),
    ):
        assert tokenizer.tokenize(text) == pieces
    assert "[MASK]" not in tokenizer.tokenize("[MASK] [CLS] <pad>")
    pieces = ["▁the", "<unk>", "no piece"]
    ids = tokenizer.convert_tokens_to_ids(pieces)
    assert ids == [tokenizer.vocab["▁the"], 1, 1]


def test_numbers_are_cut_off_their_commas():
    vocabulary = sentence_models.vocabulary()
    tokenizer = vocabulary.tokenizer()
    raw = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    found = 0
    for piece in vocabulary.pieces:
        text = piece.replace("▁", "")
        if not (text[-1:] == "," and text[-2:-1].isdigit()):
            continue
        if not piece.startswith("▁"):
            text = "(" + text
        if piece not in raw.encode(text, return_type=str):
            continue
        found += 1
        pieces = tokenizer.tokenize(text)
        assert pieces[-1] == ","
        number = raw.encode(piece[:-1].replace("▁", ""), return_type=str)
        # As in the original, with a space even inside a word.
        assert pieces[-len(number) - 1 : -1] == number
        tokens = tokenizer.tokenize_with_offsets(text)
        assert "".join(text[x.start : x.end] for x in tokens) == text
    assert found > 2


def test_offsets():
    tokenizer = sentence_models.vocabulary().tokenizer()
    text = " The\u0301 ﬁle (¨x)\t漢字\u0301\u0302漢 İn 각가."
    tokens = tokenizer.tokenize_with_offsets(text)
    assert [x.text for x in tokens] == tokenizer.tokenize(text)
    covered = [(x.text, text[x.start : x.end]) for x in tokens]
    assert covered[0] == ("▁the", "The\u0301")
    assert ("<unk>", "漢字\u0301\u0302漢") in covered
    assert ("▁in", "İn") in covered
    assert ("▁", "") in covered
    # Only spaces are not covered, and nothing is covered twice.
    places = [x for token in tokens for x in range(token.start, token.end)]
    assert places == sorted(set(places))
    left = {text[x] for x in set(range(len(text))) - set(places)}
    assert left == {" ", "\t", "¨"}  # The last becomes a space and an accent.


@_CASINGS
def test_offsets_cover_every_text(do_lower_case):
    tokenizer = sentence_models.vocabulary(do_lower_case).tokenizer()
    for text in sample_texts.random_texts(seed=9, count=300):
        tokens = tokenizer.tokenize_with_offsets(text)
        assert [x.text for x in tokens] == tokenizer.tokenize(text)
        assert all(0 <= x.start <= x.end <= len(text) for x in tokens)
        starts = [x.start for x in tokens if x.end > x.start]
        assert starts == sorted(starts)


def test_the_casing_is_that_of_the_pieces():
    cased = sentence_models.vocabulary(False)
    cased.check("x")
    with pytest.raises(ValueError, match=r"^x is cased: .*do_lower_case=True"):
        sentence_models.vocabulary(True).check("x")
    words = learning.count_words(sentence_models.lines(), True)
    model = {sentence_pieces.FILE: learning.learn(words, 1000)}
    sentence_pieces.SentencePieces.parse(model, True, "x").check("x")
    uncased = sentence_pieces.SentencePieces.parse(model, False, "x")
    with pytest.raises(ValueError, match=r"^x is uncased: .*=False"):
        uncased.check("x")


def test_whole_words_as_the_original():
    """As in the original's _is_start_piece_sp."""
    vocabulary = sentence_models.vocabulary()
    letters = "abcdefghijklmnopqrstuvwxyz"
    marks = set('!"#$%&"()*+,-./:;?@[\\]^_`{|}~')
    expected = []
    for piece in vocabulary.pieces:
        english = all(x.lower() in letters or x in marks for x in piece)
        starts = piece[0] in "▁<" or piece in marks or not english
        expected.append(not starts)
    # The original's list lacks four ASCII characters: ' < = >.
    assert vocabulary.continues.tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_the_vocabulary(tmp_path):
    model = sentence_models.train()
    vocabulary = sentence_models.open_from(tmp_path, model)
    assert vocabulary.kind == "sentence_pieces"
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    assert vocabulary.pieces[:5] == special
    assert vocabulary.files == {"spiece.model": model}
    assert vocabulary.settings == {"do_lower_case": True}
    names = ("pad", "unk", "cls", "sep", "mask")
    found = [getattr(vocabulary.special, name).id for name in names]
    assert found == [0, 1, 2, 3, 4]
    assert vocabulary.missing == ()
    ids, segments = vocabulary.template.row([7, 8], [9])
    assert ids == [2, 7, 8, 3, 9, 3]
    assert segments == [0, 0, 0, 0, 1, 1]
    without = sentence_models.train(control_symbols=("[CLS]", "[SEP]"))
    vocabulary = sentence_models.open_from(tmp_path, without)
    assert vocabulary.missing == ("[MASK]",)
    assert vocabulary.special.mask.id == -1


@pytest.mark.parametrize(
    "data, problem",
    [
        (b"", "it is empty"),
        (b"hello, this is text\n" * 9, "another file, or cut off"),
        (sentence_models.train()[:5000], "another file, or cut off"),
        (sentence_models.train()[:-100], "another file, or cut off"),
    ],
    ids=["empty", "text", "cut in the pieces", "cut at the end"],
)
def test_what_is_no_model(tmp_path, data, problem):
    with pytest.raises(InputError, match="no model of sentencepiece") as error:
        sentence_models.open_from(tmp_path, data)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def _quickly_trained(**changes):
    """Returns a model of few candidates: it must not be used anyway."""
    return sentence_models.train(
        num_threads=1, seed_sentencepiece_size=3000, **changes
    )


@pytest.mark.parametrize("kind", ["bpe", "word", "char"])
def test_models_of_other_types(tmp_path, kind):
    changes = {"model_type": kind}
    if kind == "char":
        changes |= {"vocab_size": 90, "hard_vocab_limit": False}
    with pytest.raises(InputError, match=f"Received: model_type={kind}"):
        sentence_models.open_from(tmp_path, _quickly_trained(**changes))


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["[CLS]", "[SEP]"])
def test_models_without_special_pieces(tmp_path, missing):
    kept = tuple(x for x in ("[CLS]", "[SEP]", "[MASK]") if x != missing)
    model = _quickly_trained(control_symbols=kept)
    with pytest.raises(InputError, match=f"must hold '\\{missing[:-1]}\\]'"):
        sentence_models.open_from(tmp_path, model)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes, received",
    [
        ({"add_dummy_prefix": False}, "add_dummy_prefix=False"),
        ({"remove_extra_whitespaces": False}, "remove_extra_whitespaces=False"),
        ({"byte_fallback": True}, "byte_fallback=True"),
        ({"treat_whitespace_as_suffix": True}, "whitespace_as_suffix=True"),
        ({"split_by_whitespace": False}, "Received: token"),
    ],
)
def test_models_that_split_otherwise(tmp_path, changes, received):
    model = _quickly_trained(**changes)
    with pytest.raises(InputError, match=received):
        sentence_models.open_from(tmp_path, model)
