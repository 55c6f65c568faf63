"""The vocabulary of symbols and its file."""

import json

from bert_tf import errors, vocabularies
from bert_tf.vocabularies import symbols
from tests.tasks.masked_words import mask_filling

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# Symbols that no text has as words: punctuation, case, accents, other scripts.
OWN = ("v_1", "V_1", "a.b,c", "##x", "é", "e\u0301", "東京", "[x]", "\ufeff")
VOCABULARY = symbols.Symbols((*SPECIAL, *OWN))
UNKNOWN = 1


def expected(text):
    """Returns ids computed in Python alone."""
    own = {symbol: len(SPECIAL) + i for i, symbol in enumerate(OWN)}
    return [own.get(symbol, UNKNOWN) for symbol in text.split()]


def test_special_pieces_are_no_text_and_rows_are_berts():
    tokenizer = VOCABULARY.tokenizer()
    assert tokenizer.tokenize("[CLS] [MASK] [x]") == ["[UNK]", "[UNK]", "[x]"]
    assert tokenizer.convert_tokens_to_ids(SPECIAL) == [0, 1, 2, 3, 4]
    row = VOCABULARY.template.row([5, 6], [7])
    assert row == ([2, 5, 6, 3, 7, 3], [0, 0, 0, 0, 1, 1])
    assert VOCABULARY.special.pad == vocabularies.SpecialToken("[PAD]", 0)
    assert not VOCABULARY.continues.any()
    assert VOCABULARY.settings == {}


def test_a_masked_symbol_is_filled_as_it_is():
    piece = VOCABULARY.spellings[5]
    assert mask_filling.fill("é [MASK] é", 0, piece) == "é v_1 é"
    assert mask_filling.fill("é[MASK]", 0, piece) == "é v_1"
    assert mask_filling.fill("[MASK]", 0, piece) == "v_1"


@pytest.mark.parametrize("name", ["symbols.txt", "codes.symbols"])
def test_a_file_is_known_by_its_name(tmp_path, name):
    path = tmp_path / name
    lines = [*SPECIAL, *OWN]
    # As saved by an editor on Windows, without a final line end.
    path.write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    found = vocabularies.open(path, do_lower_case=True)
    assert found == VOCABULARY
    assert found.files == {"symbols.txt": ("\n".join(lines) + "\n").encode()}
    files = vocabularies.open_files(path)
    assert files.sha256 == found.sha256
    assert vocabularies.difference(files, files) == ""


def _tokenizer(**changes):
    made = tokenizers.Tokenizer(models.WordLevel(dict(VOCABULARY.ids), "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(list(SPECIAL))
    return {**json.loads(made.to_str()), **changes}


_NO_UNKNOWN = {"type": "WordLevel", "vocab": {}, "unk_token": "?"}
_NO_ZERO = {"type": "WordLevel", "vocab": {"[UNK]": 7}, "unk_token": "[UNK]"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "by its normalizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "by its pre_tokenizer"),
        ({"pre_tokenizer": None}, "by its pre_tokenizer"),
        ({"model": _NO_UNKNOWN}, "by its model.unk_token"),
        ({"model": _NO_ZERO}, "must map the tokens to 0, 1, 2"),
    ],
)
def test_another_tokenizer_json(tmp_path, changes, problem):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_tokenizer()))
    assert vocabularies.open(path, do_lower_case=True) == VOCABULARY
    path.write_text(json.dumps(_tokenizer(**changes)))
    with pytest.raises(errors.InputError, match=problem):
        vocabularies.open_files(path)


def test_a_folder_has_it(tmp_path):
    (tmp_path / "symbols.txt").write_bytes(VOCABULARY.files["symbols.txt"])
    found = vocabularies.find(tmp_path)
    assert found == vocabularies.Files("symbols", VOCABULARY.files)


def test_special_pieces_may_stand_anywhere():
    lines = ["a", "[SEP]", "[CLS]", "b", "[UNK]", "[PAD]"]
    data = {"symbols.txt": "".join(f"{x}\n" for x in lines).encode()}
    found = symbols.Symbols.parse(data, "it")
    assert found.special.pad.id == 5
    assert found.missing == ("[MASK]",)
    assert found.own_tokenizer().ids("b c a") == [3, 4, 0]
    other = dict(data)
    other["symbols.txt"] = data["symbols.txt"].replace(b"b\n", b"c\n")
    assert symbols.difference(data, other) == (
        "token 3 is 'b', and the checkpoint's is 'c'"
    )


# ---- In a WordPiece vocabulary -----------------------------------------------


def test_names_of_letters_and_digits_are_one_word_piece(tmp_path):
    """Text and symbols in one vocabulary, as in docs/symbols.md."""
    path = tmp_path / "vocab.txt"
    pieces = (*SPECIAL, "a", "cat", "##s", "v", "##1", "v17", "v1", "##7")
    path.write_text("".join(f"{piece}\n" for piece in pieces))
    vocabulary = vocabularies.open(path, do_lower_case=True)
    text = "a cat v17 v1 cats v17."
    wanted = ["a", "cat", "v17", "v1", "cat", "##s", "v17", "[UNK]"]
    assert vocabulary.tokenizer().tokenize(text) == wanted
    ids, _ = vocabulary.bulk_tokenizer().tokenize([text])
    assert [pieces[i] for i in ids] == wanted
