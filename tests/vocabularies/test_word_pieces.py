"""Properties of a WordPiece vocabulary, and the tokenizers it makes."""

import hashlib

from bert_tf import vocabularies
from bert_tf.vocabularies import word_pieces

import pytest

_PIECES = ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "un", "##able", "##")


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join(_PIECES).encode())
    return path


def test_open(vocab_file):
    vocabulary = vocabularies.open(vocab_file, do_lower_case=True)
    assert vocabulary.kind == "word_pieces"
    assert vocabulary.pieces == _PIECES
    text = "\n".join(_PIECES)
    assert vocabulary.files == {"vocab.txt": text.encode()}
    assert vocabulary.sha256 == hashlib.sha256(text.encode()).hexdigest()

    # The file may have any name.
    path = vocab_file.rename(vocab_file.with_name("vocab.2024"))
    assert vocabularies.open(path, do_lower_case=True).pieces == _PIECES
    made = word_pieces.WordPiece(_PIECES, do_lower_case=True)
    assert made.files == {"vocab.txt": f"{text}\n".encode()}


def test_special_pieces():
    special = word_pieces.WordPiece(_PIECES, do_lower_case=True).special
    assert special.unk == ("[UNK]", 0)
    assert special.cls == ("[CLS]", 2)
    assert special.sep == ("[SEP]", 3)
    assert special.mask == ("[MASK]", -1)
    # The original pads with 0, wherever [PAD] is.
    assert special.pad == ("[PAD]", 0)
    pieces = (*_PIECES, "[MASK]")
    assert word_pieces.WordPiece(pieces, True).special.mask == ("[MASK]", 7)
    assert word_pieces.WordPiece(pieces, True).missing == ()
    assert word_pieces.WordPiece(_PIECES, True).missing == ("[MASK]",)


@pytest.mark.parametrize("missing", ["[UNK]", "[CLS]", "[SEP]"])
def test_without_a_special_piece(missing):
    pieces = tuple(piece for piece in _PIECES if piece != missing)
    with pytest.raises(ValueError, match=rf"'\[{missing[1:-1]}\]'.*Received:"):
        _ = word_pieces.WordPiece(pieces, do_lower_case=True).special


def test_rows():
    template = word_pieces.WordPiece(_PIECES, do_lower_case=True).template
    assert template.row([4, 5]) == ([2, 4, 5, 3], [0] * 4)
    assert template.row([4], [5, 6]) == (
        [2, 4, 3, 5, 6, 3],
        [0, 0, 0, 1, 1, 1],
    )
    assert (template.special(1), template.special(2)) == (2, 3)
    assert template.second(1) == 3
    assert template.pooled == 0
    continues = word_pieces.WordPiece(_PIECES, do_lower_case=True).continues
    assert continues.tolist() == [False] * 5 + [True] * 2


def test_row_of_another_template():
    """As in RoBERTa: two separators between texts, and no second segment."""
    template = vocabularies.Template((0,), (2, 2), (2,), (0, 0), 0)
    assert template.row([7], [8, 9]) == ([0, 7, 2, 2, 8, 9, 2], [0] * 7)
    assert (template.special(1), template.special(2)) == (2, 4)
    assert template.second(1) == 4


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_tokenizers(do_lower_case):
    vocabulary = word_pieces.WordPiece(_PIECES, do_lower_case)
    tokenizer = vocabulary.tokenizer()
    expected = ["un", "##able"] if do_lower_case else ["[UNK]"]
    assert tokenizer.tokenize("UNable") == expected
    spans = [x[1:] for x in tokenizer.tokenize_with_offsets("UNable")]
    assert spans == ([(0, 2), (2, 6)] if do_lower_case else [(0, 6)])
    ids, lengths = vocabulary.bulk_tokenizer().tokenize(["UNable", "un"])
    expected_ids = [4, 5, 4] if do_lower_case else [0, 4]
    assert ids.tolist() == expected_ids
    assert lengths.tolist() == [len(expected_ids) - 1, 1]
