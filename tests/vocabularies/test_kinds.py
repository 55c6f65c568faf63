"""Vocabulary files of all kinds, and a custom kind."""

import hashlib
import json

from bert_tf import errors, vocabularies
from tests.vocabularies import byte_pair_samples, sentence_models, signs

import pytest


@pytest.fixture(name="row")
def _row(monkeypatch):
    monkeypatch.setitem(vocabularies.KINDS, "signs", signs.ROW)


def test_sentence_pieces(tmp_path):
    model = sentence_models.train()
    (tmp_path / "30k-clean.model").write_bytes(model)
    files = vocabularies.open_files(tmp_path / "30k-clean.model")
    expected = vocabularies.Files("sentence_pieces", {"spiece.model": model})
    assert files == expected
    settings = vocabularies.read(files, False, "it").settings
    assert settings == {"do_lower_case": False}
    # Files can be serialized as JSON.
    config = json.loads(json.dumps(files.to_config()))
    assert vocabularies.Files.from_config(config) == files


def test_kind_from_outside(tmp_path, row):
    path = tmp_path / "own.signs"
    path.write_text("\n".join(signs.VOCABULARY.pieces))
    vocabulary = vocabularies.open(path, do_lower_case=True)
    assert vocabulary == signs.VOCABULARY
    assert vocabularies.open_files(path).sha256 == vocabulary.sha256
    vocabulary.check("own.signs")
    files = vocabularies.Files("any", {"a": b"xy", "b": b"z"})
    assert files.sha256 == hashlib.sha256(b"xyz").hexdigest()
    with pytest.raises(errors.InputError, match=r"it is of a kind .*kind=any"):
        vocabularies.read(files, True, "it")


def test_a_folder_is_known_by_all_files_of_a_kind(tmp_path):
    assert vocabularies.find(tmp_path) is None
    byte_pair_samples.write(tmp_path)
    (tmp_path / "spiece.model").write_bytes(sentence_models.train())
    found = vocabularies.find(tmp_path)
    assert found == vocabularies.Files("byte_pairs", byte_pair_samples.files())
    # A file that other programs use as well does not determine a kind.
    (tmp_path / "merges.txt").unlink()
    other = vocabularies.find(tmp_path)
    assert other is not None
    assert other.kind == "sentence_pieces"


def test_differences_are_said():
    files = byte_pair_samples.files()
    brought = vocabularies.Files("byte_pairs", files)
    # The same tokens, as another program writes them.
    written = json.dumps(json.loads(files["vocab.json"]), indent=1).encode()
    same = vocabularies.Files("byte_pairs", files | {"vocab.json": written})
    assert same != brought
    assert vocabularies.difference(same, brought) == ""
    fewer = files["merges.txt"].rsplit(b"\n", 2)[0] + b"\n"
    other = vocabularies.Files("byte_pairs", files | {"merges.txt": fewer})
    assert "merges are other" in vocabularies.difference(other, brought)
    contents = {"spiece.model": sentence_models.train()}
    model = vocabularies.Files("sentence_pieces", contents)
    assert vocabularies.difference(model, brought) == (
        "it is of sentence pieces, and the checkpoint's of byte pairs"
    )
    assert vocabularies.difference(model, model) == ""
