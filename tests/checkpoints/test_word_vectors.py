"""Word vectors from text files and from checkpoints."""

import dataclasses

from bert_tf import heads, modeling, vocabularies
from bert_tf.checkpoints import word_vectors
from bert_tf.contrib import textcnn
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.vocabularies import word_pieces
from tests import tiny_files

import numpy as np
import pytest

_PIECES = ("[UNK]", "[CLS]", "[SEP]", "cat", "##s", "dog", "##!", ".", "Café")
_LOWER = word_pieces.WordPiece(_PIECES, True)
_FILES = vocabularies.Files(_LOWER.kind, _LOWER.files)


def _write(folder, *lines, end="\n"):
    path = folder / "vectors.txt"
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return str(path)


def _read(path, size=2, vocabulary=_LOWER):
    return word_vectors.read(path, _FILES, vocabulary, size)


def _found(path, vocabulary=_LOWER):
    """Returns token -> vector, for the tokens that have a vector."""
    vectors = _read(path, vocabulary=vocabulary)
    assert not vectors.table[~vectors.found].any()
    return {
        piece: vectors.table[number].tolist()
        for number, piece in enumerate(_PIECES)
        if vectors.found[number]
    }


_LINES = ("cat 1 2", "s 3 4", "the -1 1e-3", ". 5 6.5", "! 7 8")
_WANTED = {"cat": [1, 2], ".": [5, 6.5], "##!": [7, 8]}


@pytest.mark.parametrize(
    "lines, end",
    [
        (_LINES, "\n"),
        (_LINES, "\r\n"),
        (("5 2", *_LINES), "\n"),
        (tuple(f"{line} " for line in _LINES), "\n"),
        (tuple(line.replace(" ", "\t") for line in _LINES), "\n"),
        (("\ufeff" + _LINES[0], *_LINES[1:], ""), "\n"),
        # As in GloVe's largest file: words with spaces, which are no tokens.
        ((*_LINES, ". . . 0 0", "cat dog 9 9"), "\n"),
    ],
    ids=["plain", "CRLF", "header", "blanks", "tabs", "mark", "spaces"],
)
def test_words_are_found_by_their_spelling(tmp_path, lines, end):
    assert _found(_write(tmp_path, *lines, end=end)) == _WANTED


@pytest.mark.parametrize("header", [[], ["3 4"]])
def test_size_of_the_file(tmp_path, header):
    lines = [*header, "cat 1 2 3 4", "dog 5 6 7 8", "the 0 0 0 0"]
    vectors = _read(_write(tmp_path, *lines), size=None)
    assert vectors.table.shape == (len(_PIECES), 4)
    assert vectors.table[_PIECES.index("dog")].tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("line", ["cat", "9 0", "9 99999999999"])
def test_size_that_is_none(tmp_path, line):
    with pytest.raises(InputError, match=r"its first line says \d+ numbers"):
        _read(_write(tmp_path, line, "cat 1 2"), size=None)


def test_of_a_word_that_comes_again_the_first_counts(tmp_path):
    path = _write(tmp_path, "cat 1 2", "dog 3 4", "cat 5 6")
    assert _found(path) == {"cat": [1, 2], "dog": [3, 4]}


def test_words_in_capitals_are_for_small_letters_that_lack_one(tmp_path):
    path = _write(tmp_path, "Cat 1 2", "CAT 9 9", "DOG 3 4", "dog 5 6")
    assert _found(path) == {"cat": [1, 2], "dog": [5, 6]}
    cased = word_pieces.WordPiece(_PIECES, False)
    assert _found(path, cased) == {"dog": [5, 6]}
    # The order of the lines does not matter.
    path = _write(tmp_path, "dog 5 6", "DOG 3 4", "Café 1 1")
    assert _found(path, cased) == {"dog": [5, 6], "Café": [1, 1]}


@pytest.mark.parametrize(
    "lines, problem",
    [
        ((), "it is empty"),
        (("cat 1 2 3",), "has vectors of 3 numbers, and the model's words"),
        (("9 3", "cat 1 2 3"), "have 2: give other vectors, or say so"),
        (("cat 1 2", "dog 3"), "line 2 has 1 numbers, and 2 were expected"),
        (("cat 1 2", "dog 3 x"), "line 2 holds what is no number"),
        (("cat 1 nan",), "line 1 holds what is no finite number"),
        (("3 2", "cat 1 2", "dog 3 4"), "it ends after 2 of 3 words"),
        (("3 2", "cat \0\1\2\3", "dog"), "it is no text. Vectors in word2vec"),
        (("mouse 1 2", "s 3 4"), "None of the words of"),
    ],
)
def test_bad_files(tmp_path, lines, problem):
    with pytest.raises(InputError) as error:
        _read(_write(tmp_path, *lines))
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_compressed_files_and_missing_ones(tmp_path):
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00 1 2\n")
    with pytest.raises(InputError, match="it is compressed"):
        _read(str(path))
    with pytest.raises(InputError, match=r"none\.txt"):
        _read(str(tmp_path / "none.txt"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    model = heads.BertPretrainer(modeling.Bert(tiny_files.CONFIG))
    tiny_files.write_model(folder, model)
    table = np.asarray(model.bert.embeddings.word_embeddings)
    return folder, table, vocabularies.find(folder)


def _of(checkpoint, size):
    folder, _, files = checkpoint
    vocabulary = vocabularies.read(files, True, "The vocabulary")
    return word_vectors.read(str(folder), files, vocabulary, size)


def test_the_table_of_a_checkpoint(checkpoint):
    vectors = _of(checkpoint, tiny_files.CONFIG.hidden_size)
    np.testing.assert_array_equal(vectors.table, checkpoint[1])
    assert vectors.found.all()


def test_fewer_numbers_are_the_first_principal_components(checkpoint):
    found = _of(checkpoint, 3).table
    centred = checkpoint[1] - checkpoint[1].mean(axis=0)
    # Computed in another way, up to the sign of the axes.
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    wanted = left[:, :3] * values[:3]
    signs = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found, wanted * signs, atol=1e-5)
    again = _of(checkpoint, 3).table
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("size", [8, 3])
def test_the_table_of_a_checkpoint_may_be_padded(checkpoint, size, tmp_path):
    number = tiny_files.CONFIG.vocab_size + 6
    config = dataclasses.replace(tiny_files.CONFIG, vocab_size=number)
    model = modeling.Bert(config)
    words = model.embeddings.word_embeddings
    rows = np.full([6, config.hidden_size], 7, np.float32)
    words.assign(np.concatenate([checkpoint[1], rows]))
    tiny_files.write_model(tmp_path, model)
    tiny_files.write_files(tmp_path, config)
    found = _of((tmp_path, None, checkpoint[2]), size)
    expected = _of(checkpoint, size)
    np.testing.assert_array_equal(found.table, expected.table)
    assert found.found.all()


def test_what_does_not_fit_is_refused(checkpoint):
    with pytest.raises(InputError, match="of 8 numbers, too few for the mo"):
        _of(checkpoint, 9)
    with pytest.raises(InputError, match="The vocabulary is not that of"):
        word_vectors.read(str(checkpoint[0]), _FILES, _LOWER, 8)


def test_a_checkpoint_without_a_vocabulary_is_refused(tmp_path):
    model = heads.BertPretrainer(modeling.Bert(tiny_files.CONFIG))
    tiny_files.write_model(tmp_path, model)
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(InputError, match="There is no vocabulary beside"):
        word_vectors.read(str(tmp_path), _FILES, _LOWER, 8)


def test_the_table_of_a_student(tmp_path):
    config = textcnn.TextCnnConfig(
        vocab_size=len(tiny_files.VOCAB), embedding_size=4, hidden_size=6
    )
    model = heads.BertClassifier(families.make(config), 2)
    tiny_files.write_model(tmp_path, model)
    (tmp_path / "bert_config.json").write_text(config.to_json())
    files = vocabularies.find(tmp_path)
    assert files
    vocabulary = vocabularies.read(files, True, "The vocabulary")
    vectors = word_vectors.read(
        str(tmp_path / "bert_model.ckpt"), files, vocabulary, 4
    )
    wanted = np.asarray(model.bert.embeddings.word_embeddings)
    np.testing.assert_array_equal(vectors.table, wanted)
