"""Files of tokens added to a tokenizer, as other versions write them."""

import json
import pathlib
from typing import Any

from bert_tf import vocabularies
from bert_tf.checkpoints import huggingface_tokenizer, tokenizer_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import word_pieces
from tests.vocabularies.added_token_samples import LENGTH, PIECES

import pytest


def _old_files(folder: pathlib.Path, with_decoder: bool) -> None:
    """Writes the files of transformers 4, before and since 4.34."""
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    size = len(PIECES)
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
    size = len(PIECES)
    assert vocabulary.pieces == (*PIECES, "covid", "[E1]")
    assert vocabulary.tokenizer().tokenize("COVID[E1][e1]") == [
        *("covid", "[E1]", "[", "e", "##1", "]")
    ]
    assert [(x.id, x.normalized) for x in vocabulary.added] == [
        (size, True),
        (size + 1, False),
    ]
    # With a vocabulary of another name no such files are read.
    (tmp_path / "vocab.txt").rename(tmp_path / "mine.txt")
    assert vocabularies.open(tmp_path / "mine.txt", True).pieces == PIECES


_LISTED = {"content": "[E1]", "lstrip": True, "normalized": False}
_COVID = {"covid": len(PIECES) + 1}
_DECODER = {
    str(len(PIECES)): _LISTED | {"special": True},
    str(len(PIECES) + 1): {"content": "covid", "normalized": True},
}


def _write_listed(folder: pathlib.Path, files: dict[str, Any]) -> None:
    """Writes a vocabulary with [E1], and JSON files next to it."""
    (folder / "vocab.txt").write_text("\n".join((*PIECES, "[E1]")) + "\n")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    if files.pop("has_tokenizer", False):
        plain = word_pieces.WordPiece((*PIECES, "[E1]"), True)
        tokenizer_files.write(str(folder), plain, LENGTH)
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
    pieces = [*PIECES]
    pieces.insert(len(pieces) if place is None else place, "[E1]")
    plain = word_pieces.WordPiece(tuple(pieces), True)
    tokenizer_files.write(str(tmp_path), plain, LENGTH)
    file = tmp_path / "tokenizer.json"
    whole = json.loads(file.read_text())
    entry = {**whole["added_tokens"][-1], "content": "[E1]"}
    whole["added_tokens"] += [entry | {"id": plain.ids["[E1]"]}] * has_entry
    file.write_text(json.dumps(whole))
    (tmp_path / "special_tokens_map.json").unlink()
    _write_listed(tmp_path, {"tokenizer_config": config})
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
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


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({"covid": 9}, "the vocabulary has for them, or go on"),
        ({"a": 9}, "'a' with id=9, where 5 is expected"),
        ({"covid": "x"}, "Received: id='x'"),
        ({"": len(PIECES)}, "must have a text"),
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


def test_damaged_settings_are_refused(tmp_path):
    _old_files(tmp_path, False)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(InputError, match="is not whole JSON"):
        vocabularies.open(tmp_path / "vocab.txt", True)
