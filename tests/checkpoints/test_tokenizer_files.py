"""Tokenizer files for transformers, for every kind of vocabulary."""

import functools
import json
import re
import unicodedata
from collections.abc import Callable

from bert_tf import vocabularies
from bert_tf.checkpoints import tokenizer_files
from bert_tf.errors import InputError
from bert_tf.text import learning, learning_byte_pairs, learning_symbols
from bert_tf.vocabularies import (
    byte_pairs,
    fairseq_sentence_pieces,
    sentence_pieces,
    symbols,
    word_pieces,
)
from tests import sample_texts
from tests.huggingface_models import transformers
from tests.vocabularies import byte_pair_samples, sentence_models, signs

import pytest

# Characters whose category differs in Unicode 3.2 and the library's tables:
# marks, letters and punctuation. Only WordPiece uses categories.
_MOVED = "\u166d\u1734\u1885\u1886"


@functools.cache
def _word_pieces(do_lower_case):
    lines = sentence_models.lines()
    words = learning.count_words(lines, do_lower_case)
    pieces = learning.learn(words, 2000)
    return word_pieces.WordPiece(tuple(pieces), do_lower_case)


@functools.cache
def _byte_pairs():
    text = sentence_models.lines()
    words = learning_byte_pairs.count_words(text)
    return learning_byte_pairs.learn(words, 1500)


@functools.cache
def _symbols():
    counts = learning_symbols.count(sentence_models.lines())
    return learning_symbols.learn(counts, 2000)


# Name -> its factory, and the type of a model that uses it.
_KINDS: dict[str, tuple[Callable[[], vocabularies.Vocabulary], str]] = {
    "word pieces, uncased": (lambda: _word_pieces(True), "bert"),
    "word pieces, cased": (lambda: _word_pieces(False), "bert"),
    "byte pairs": (_byte_pairs, "roberta"),
    "sentence pieces, uncased": (
        lambda: sentence_models.vocabulary(True),
        "albert",
    ),
    "sentence pieces, cased": (
        lambda: sentence_models.vocabulary(False),
        "albert",
    ),
    "fairseq sentence pieces": (
        lambda: sentence_models.fairseq_vocabulary("camembert"),
        "camembert",
    ),
    "symbols": (_symbols, "bert"),
}


@pytest.fixture(name="made", scope="module", params=_KINDS)
def _made(request, tmp_path_factory):
    """Returns a vocabulary, its folder, and transformers' tokenizer of it."""
    make, model_type = _KINDS[request.param]
    vocabulary, folder = make(), tmp_path_factory.mktemp("folder")
    assert tokenizer_files.write(str(folder), vocabulary, max_length=64)
    config = json.dumps({"model_type": model_type})
    (folder / "config.json").write_text(config)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    return vocabulary, folder, theirs


def _ids(vocabulary, text):
    tokenizer = vocabulary.tokenizer()
    return tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))


def _differ(vocabulary, theirs, texts):
    """Returns texts, our ids and theirs, where these differ."""
    # The library rejects halves of surrogate pairs.
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    tokenizer, template = vocabulary.tokenizer(), vocabulary.template
    different = []
    for text, row in zip(texts, theirs(texts)["input_ids"], strict=True):
        pieces = tokenizer.tokenize(text)
        ids = template.row(tokenizer.convert_tokens_to_ids(pieces))[0]
        if row != ids:
            different.append((text, ids, row))
    return different


def _not_known(vocabulary, different):
    """Removes the known differences: the rule of commas, and ties."""
    if not isinstance(vocabulary, sentence_pieces.SentencePieces):
        return [text for text, _, _ in different]
    scores = [entry.score for entry in vocabulary.proto.pieces]
    wrong = []
    for text, ours, theirs in different:
        # sentencepiece adds up in single precision, the library in double.
        rest = sum(scores[x] for x in ours) - sum(scores[x] for x in theirs)
        if not _has_comma_rule(text) and abs(rest) > 1e-4:
            wrong.append(text)
    return wrong


def _has_comma_rule(text):
    """Whether ALBERT's rule, which the library lacks, applies to a text."""
    return re.search(r"\d,", unicodedata.normalize("NFKD", text))


def _check(vocabulary, theirs, texts, moved=""):
    """Asserts that only known texts differ; returns all that differ."""
    different = _differ(vocabulary, theirs, texts)
    wrong = _not_known(vocabulary, different)
    wrong = [text for text in wrong if text[:1] not in {*moved}]
    assert not wrong, wrong[:5]
    return different


def _is_old(text):
    """Whether all characters of a text are in the library's Unicode tables."""
    return all(unicodedata.ucd_3_2_0.category(x) != "Cn" for x in text)


# ---- Ids ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.exhaustive)]
)
def test_every_character(made, every):
    vocabulary, _, theirs = made
    chars = list(filter(_is_old, sample_texts.characters(every)))
    if not every:
        chars = [*chars[::20], *map(chr, range(0x80)), *"▁ςΣﬁ가がé０"]
    texts = list(map(sample_texts.in_contexts, chars))
    is_bert = vocabulary.kind == word_pieces.WordPiece.kind
    if is_bert:
        # Its own normalizer ignores a final sigma.
        texts = [text.replace("Σ", "S") for text in texts if "Σ" not in text[0]]
    if vocabulary.kind == "fairseq_sentence_pieces":
        # The library drops marks behind characters that become others.
        texts = [text.replace("\u0301", "") for text in texts]
        texts = [unicodedata.normalize("NFC", text) for text in texts]
    _check(vocabulary, theirs, texts, _MOVED if is_bert else "")


def test_random_texts(made):
    vocabulary, _, theirs = made
    texts = sample_texts.random_texts(seed=3, count=1000)
    if vocabulary.kind == word_pieces.WordPiece.kind:
        # It removes private-use characters, which are words here.
        known = f"Σ{_MOVED}\ue000\uf8ff\U000f0000"
        texts = [x for x in texts if {*known}.isdisjoint(x)]
    texts = [x for x in texts if _is_old(x)]
    _check(vocabulary, theirs, texts)


def test_real_text(made, shared_data):
    vocabulary, _, theirs = made
    texts = []
    for name in ("text/blns.txt", "text/emoji-test.txt", "glue/CoLA/dev.tsv"):
        texts += (shared_data / name).read_text("utf-8").split("\n")[:700]
    different = _check(vocabulary, theirs, texts)
    ties = [text for text, _, _ in different if not _has_comma_rule(text)]
    assert len(ties) < 12


def test_pairs(made):
    vocabulary, _, theirs = made
    template = vocabulary.template
    pairs = [("It's  a word.", "Größe 中文"), (" a\nb ", "x"), ("one", "  two")]
    for first, second in pairs:
        found = theirs(first, second)
        row, segments = template.row(
            _ids(vocabulary, first), _ids(vocabulary, second)
        )
        assert found["input_ids"] == row
        has_segments = template.segments == (0, 1)
        assert ("token_type_ids" in found) == has_segments
        if has_segments:
            assert found["token_type_ids"] == segments


def test_padding_and_truncation(made):
    vocabulary, _, theirs = made
    assert theirs.model_max_length == 64
    assert len(theirs) == len(vocabulary.pieces)
    pieces = vocabulary.special
    for name in ("pad", "mask", "unk"):
        own = getattr(pieces, name).id
        assert getattr(theirs, f"{name}_token_id") == own
    short, long = theirs(["the", "the word " * 90], padding=True)["input_ids"]
    assert short == [*short[:3], *[pieces.pad.id] * (len(long) - 3)]
    ids = _ids(vocabulary, "the word " * 90)
    found = theirs("the word " * 90, truncation=True)["input_ids"]
    assert found == vocabulary.template.row(ids[:62])[0]
    room = 64 - 1 - vocabulary.template.special(2)
    found = theirs("the", "the word " * 90, truncation="only_second")
    first = _ids(vocabulary, "the")
    assert len(first) == 1
    assert found["input_ids"] == vocabulary.template.row(first, ids[:room])[0]


def test_text_again(made):
    vocabulary, _, theirs = made
    text = "the end of the function is in the class"
    assert theirs.decode(_ids(vocabulary, text)).strip() == text


# ---- Known differences -------------------------------------------------------


def test_names_of_special_pieces(made):
    vocabulary, _, theirs = made
    special = vocabulary.special
    for piece in (special.sep, special.mask):
        found = theirs(f"a {piece.text}")["input_ids"]
        assert piece.id in found[1:-1]
        assert piece.id not in _ids(vocabulary, f"a {piece.text}")


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_the_rule_of_commas(do_lower_case):
    vocabulary = sentence_models.vocabulary(do_lower_case)
    made = tokenizer_files.make(vocabulary, 64)
    assert made is not None
    tokenizer = made.tokenizer
    texts = [x for x in sentence_models.lines() if re.search(r"\d,", x)]
    ours = vocabulary.tokenizer()
    different = 0
    for text in texts:
        expected = ours.tokenize(text)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        pieces = [vocabulary.pieces[number] for number in ids]
        for found in (expected, pieces):
            assert not any(re.search(r"\d,$", piece) for piece in found)
        letters = ("".join(x).replace("▁", "") for x in (expected, pieces))
        assert len({*letters}) == 1
        different += pieces != expected
    assert different > 0


# ---- Files -------------------------------------------------------------------


_OPEN = {
    "word_pieces": word_pieces.open_file,
    "byte_pairs": byte_pairs.open_files,
    "fairseq_sentence_pieces": fairseq_sentence_pieces.open_file,
    "sentence_pieces": sentence_pieces.open_file,
    "symbols": symbols.open_file,
}


def test_read_again(made):
    vocabulary, folder, _ = made
    contents = _OPEN[vocabulary.kind](folder / "tokenizer.json", True)
    if vocabulary.kind != sentence_pieces.SentencePieces.kind:
        assert contents == vocabulary.files
        return
    again = sentence_pieces.SentencePieces.parse(
        contents, vocabulary.do_lower_case, "again"
    )
    pairs = zip(again.proto.pieces, vocabulary.proto.pieces, strict=True)
    for ours, expected in pairs:
        assert ours.piece == expected.piece
        assert (ours.type, ours.score) == (expected.type, expected.score)
    charsmap = vocabulary.proto.normalizer_spec.precompiled_charsmap
    assert again.proto.normalizer_spec.precompiled_charsmap == charsmap
    texts = [*sentence_models.lines(), *sample_texts.random_texts(3, 300)]
    ids, lengths = again.bulk_tokenizer().tokenize(texts)
    expected, expected_lengths = vocabulary.bulk_tokenizer().tokenize(texts)
    assert lengths.tolist() == expected_lengths.tolist()
    assert ids.tolist() == expected.tolist()


def test_classes(made):
    vocabulary, folder, theirs = made
    config = json.loads((folder / "tokenizer_config.json").read_text())
    own = {"word_pieces": "BertTokenizer", "byte_pairs": "RobertaTokenizer"}
    fast = "PreTrainedTokenizerFast"
    assert config["tokenizer_class"] == own.get(vocabulary.kind, fast)
    for name, value in vocabulary.settings.items():
        assert config[name] is value
    special = json.loads((folder / "special_tokens_map.json").read_text())
    assert special["pad_token"] == theirs.pad_token
    again = folder / "again"
    theirs.save_pretrained(again)
    saved = transformers.AutoTokenizer.from_pretrained(again)
    text = "The words, as they are."
    assert saved(text)["input_ids"] == theirs(text)["input_ids"]


def test_sentence_pieces_of_other_models(tmp_path):
    """Without `[MASK]` and `<pad>`, without rules, with unused tokens."""
    model = sentence_models.train(
        control_symbols=("[CLS]", "[SEP]"),
        pad_id=-1,
        unk_id=0,
        normalization_rule_name="identity",
    )
    vocabulary = sentence_models.open_from(tmp_path, model)
    folder = tmp_path / "hf"
    folder.mkdir()
    tokenizer_files.write(str(folder), vocabulary, 64)
    (folder / "config.json").write_text('{"model_type": "albert"}')
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert theirs.mask_token is None
    assert (theirs.pad_token_id, theirs.unk_token_id) == (0, 0)
    texts = sample_texts.random_texts(seed=5, count=200)
    _check(vocabulary, theirs, filter(_is_old, texts))


def test_byte_pairs_without_a_mask(tmp_path):
    pieces = byte_pair_samples.vocabulary().pieces[:-1]
    merges = byte_pair_samples.vocabulary().merges
    vocabulary = byte_pairs.BytePairs(pieces, merges)
    tokenizer_files.write(str(tmp_path), vocabulary, 64)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.mask_token is None
    assert len(theirs) == len(pieces)
    contents = byte_pairs.open_files(tmp_path / "tokenizer.json", True)
    assert contents == vocabulary.files


@pytest.mark.parametrize(
    "pieces",
    [
        ("[UNK]", "[CLS]", "[SEP]", "the", "a"),
        ("the", "a", "[UNK]", "[CLS]", "[SEP]"),
    ],
)
def test_word_pieces_without_padding_and_mask(tmp_path, pieces):
    vocabulary = word_pieces.WordPiece(pieces, True)
    tokenizer_files.write(str(tmp_path), vocabulary, 64)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert (theirs.mask_token, len(theirs)) == (None, len(pieces))
    rows = theirs(["the a they", "the"], padding=True)
    ids = [pieces.index(x) for x in ("[CLS]", "the", "a", "[UNK]", "[SEP]")]
    assert rows["input_ids"][0] == ids
    assert max(rows["input_ids"][1]) < len(pieces)
    assert rows["attention_mask"][1] == [1, 1, 1, 0, 0]


def test_a_kind_without_a_row(tmp_path):
    assert not tokenizer_files.write(str(tmp_path), signs.VOCABULARY, 64)
    (path,) = tmp_path.iterdir()
    assert path.name == "signs.txt"
    assert path.read_bytes() == signs.VOCABULARY.files["signs.txt"]


def test_word_pieces_without_ends(tmp_path):
    vocabulary = word_pieces.WordPiece(("[UNK]", "[CLS]", "a"), True)
    with pytest.raises(InputError, match=r"a vocabulary without \[SEP\]"):
        tokenizer_files.write(str(tmp_path), vocabulary, 64)
    assert not list(tmp_path.iterdir())


def test_white_space_around_word_pieces(tmp_path):
    text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n the\na \n\u2028\ncat\n##\u2028\n"
    vocabulary = word_pieces.WordPiece.parse(text, True, "vocab.txt")
    tokenizer_files.write(str(tmp_path), vocabulary, 64)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    expected = [2, 4, 5, 7, 3]
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("the a cat")["input_ids"] == expected
    lines = (tmp_path / "vocab.txt").read_text().split("\n")
    assert [lines[i] for i in expected[1:4]] == ["the", "a", "cat"]
    assert (lines[6], lines[8]) == ("\u2028", "##\u2028")
