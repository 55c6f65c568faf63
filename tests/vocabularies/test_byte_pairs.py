"""The byte-pair vocabulary and its files."""

import hashlib
import json
from typing import Any

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.vocabularies import byte_pair_files, byte_pairs
from tests.vocabularies import byte_pair_samples

import pytest
import tokenizers


@pytest.fixture(name="folder")
def _folder(tmp_path):
    byte_pair_samples.write(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_open(folder, name):
    vocabulary = vocabularies.open(folder / "vocab.json", do_lower_case=False)
    assert byte_pairs.BytePairs.read(folder / name) == vocabulary
    files = byte_pair_samples.files()
    assert vocabulary.files == files
    both = files["vocab.json"] + files["merges.txt"]
    assert vocabulary.sha256 == hashlib.sha256(both).hexdigest()
    assert (vocabulary.settings, vocabulary.missing) == ({}, ())
    made = byte_pairs.BytePairs(vocabulary.pieces, vocabulary.merges)
    again = byte_pairs.BytePairs.parse(made.files, "made")
    assert again.pieces == vocabulary.pieces
    assert again.merges == vocabulary.merges


def test_bytes_are_those_of_the_library():
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    assert sorted(byte_pair_files.BYTES) == sorted(alphabet)
    rule = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for code in range(0x800):
        ((shown, _),) = rule.pre_tokenize_str(chr(code))
        data = chr(code).encode()
        assert shown == "".join(byte_pair_files.BYTES[x] for x in data)


def test_rows_and_words():
    vocabulary = byte_pair_samples.vocabulary()
    special = vocabulary.special
    ids = [special.cls, special.pad, special.sep, special.unk, special.mask]
    assert [x.text for x in ids] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert [x.id for x in ids] == [0, 1, 2, 3, len(vocabulary.pieces) - 1]
    row = vocabulary.template.row([7], [8, 9])
    assert row == ([0, 7, 2, 2, 8, 9, 2], [0] * 7)
    pieces = vocabulary.tokenizer().tokenize("unlike these, it's")
    goes_on = [x for x in pieces if vocabulary.continues[vocabulary.ids[x]]]
    assert {"Ġthese", "Ġit"}.isdisjoint(goes_on)
    assert {",", "like", "s"} <= {*goes_on}
    assert not vocabulary.continues[[0, 1, 2, 3, special.mask.id]].any()


def test_equals_transformers(folder):
    # Its type names flags only.
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    made: Any = transformers.RobertaTokenizer
    paths = {"vocab": "vocab.json", "merges": "merges.txt"}
    theirs = made(**{key: str(folder / x) for key, x in paths.items()})
    vocabulary = byte_pairs.BytePairs.read(folder / "vocab.json")
    ours = vocabulary.own_tokenizer()
    pairs = [("It's  a word.", "Größe 中文"), (" a\nb ", "x")]
    for first, second in pairs:
        row = vocabulary.template.row(ours.ids(first), ours.ids(second))[0]
        assert theirs(first, second)["input_ids"] == row


def _json(change):
    found = json.loads(json.dumps(byte_pair_samples.learned()))
    change(found)
    return json.dumps(found)


def test_tokenizer_json(folder):
    path = folder / "tokenizer.json"
    path.write_text(_json(lambda found: None))
    vocabulary = byte_pairs.BytePairs.read(path)
    expected = byte_pair_samples.vocabulary()
    assert vocabulary.pieces == expected.pieces
    assert vocabulary.merges == expected.merges
    lines = [" ".join(pair) for pair in expected.merges]
    older = _json(lambda found: found["model"].update(merges=lines))
    path.write_text(older)
    assert vocabularies.open(path, do_lower_case=False) == vocabulary


@pytest.mark.parametrize(
    ("part", "values", "named"),
    [
        ("model", {"dropout": 0.1}, "model.dropout=0.1"),
        ("model", {"byte_fallback": True}, "model.byte_fallback=true"),
        ("model", {"ignore_merges": True}, "model.ignore_merges=true"),
        ("model", {"fuse_unk": True}, "model.fuse_unk=true"),
        ("model", {"end_of_word_suffix": "</w>"}, "model.end_of_word_suffix"),
        ("model", {"continuing_subword_prefix": "##"}, "subword_prefix"),
        ("model", {"merges": None}, "merges=None"),
        ("model", {"merges": [["a"]]}, "Received: ['a']"),
        ("model", {"vocab": {"a": 7}}, "4 is missing"),
        ("pre_tokenizer", {"type": "Metaspace"}, 'type="Metaspace"'),
        ("pre_tokenizer", {"use_regex": False}, "use_regex=false"),
        ("", {"normalizer": {"type": "NFC"}}, 'normalizer={"type": "NFC"}'),
        ("", {"pre_tokenizer": None}, "pre_tokenizer.type=null"),
    ],
)
def test_what_splits_otherwise_is_refused(folder, part, values, named):
    path = folder / "tokenizer.json"

    def change(found):
        (found[part] if part else found).update(values)

    path.write_text(_json(change))
    with pytest.raises(InputError) as error:
        vocabularies.open(path, do_lower_case=False)
    for text in (str(path), named):
        assert text in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_one_file_is_missing(folder, name):
    (folder / name).unlink()
    (other,) = {"vocab.json", "merges.txt"} - {name}
    with pytest.raises(InputError, match=rf"{name} is missing"):
        byte_pairs.BytePairs.read(folder / other)
    contents = {other: (folder / other).read_bytes()}
    with pytest.raises(InputError, match=rf"{name} is missing"):
        byte_pairs.BytePairs.parse(contents, "made")


def _bytes(**more):
    ids = {
        **{piece: i for i, piece in enumerate(byte_pairs.FIRST)},
        **{piece: i + 4 for i, piece in enumerate(byte_pair_files.BYTES)},
        "<mask>": 260,
    }
    return json.dumps(ids | more).encode()


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [
        ("vocab.json", b'{"a": 0', "is not whole JSON: Expecting"),
        ("vocab.json", b"[" * 100_000, "is not whole JSON: maximum recursion"),
        ("vocab.json", b'{"model":' * 100_000, "is not whole JSON"),
        ("vocab.json", b"[PAD]\n[UNK]\n", "is not whole JSON"),
        ("vocab.json", b"\xff\xfea", "UTF-16"),
        ("vocab.json", b"[1]", "must map tokens to numbers"),
        ("vocab.json", b'{"a": 0, "b": 2}', "1 is missing"),
        ("vocab.json", b'{"a": 0, "b": 0}', "0 is there twice"),
        ("vocab.json", b'{"a": -1, "b": 0}', "-1 is not allowed"),
        ("vocab.json", b'{"a": 0, "a": 1}', "stands there twice"),
        ("vocab.json", b'{"a": true}', "must map tokens to numbers"),
        ("vocab.json", _bytes(), "which vocab.json lacks"),
        ("merges.txt", b"[PAD]\n[UNK]\n", "line 1: a merge is two tokens"),
        ("merges.txt", b"#version: 0.2\na b\n\na n\n", "line 3: a merge"),
        ("merges.txt", b"i n\nt h\ni n\n", "already on line 1"),
        ("merges.txt", b"zz qq\n", "merge 1 of merges.txt has or makes"),
    ],
)
def test_bad_files(folder, name, data, named):
    (folder / name).write_bytes(data)
    with pytest.raises(InputError) as error:
        vocabularies.open(folder / "vocab.json", do_lower_case=False)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_pieces_that_are_needed(folder):
    (folder / "merges.txt").write_bytes(b"#version: 0.2\n")

    def without(piece):
        data = json.loads(_bytes())
        data["other"] = data.pop(piece)
        (folder / "vocab.json").write_text(json.dumps(data))
        return byte_pairs.BytePairs.read(folder / "vocab.json")

    for piece, named in (("</s>", "none of </s>"), ("Ġ", "byte=0x20")):
        with pytest.raises(InputError, match=named):
            without(piece)
    vocabulary = without("<mask>")
    assert vocabulary.missing == ("<mask>",)
    assert vocabulary.special.mask.id == -1
