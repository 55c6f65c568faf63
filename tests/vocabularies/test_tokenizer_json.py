"""Reading tokenizer.json, for each type of model."""

import base64
import json
import pathlib
from typing import Any

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    sentence_models,
    sentence_pieces,
    tokenizer_json,
    word_pieces,
)
from tests.vocabularies import byte_pair_samples
from tests.vocabularies import sentence_models as samples

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "\u2028")
_HUNDRED = 100.0


def _word_pieces(lower: bool = True) -> dict[str, Any]:
    """Returns a file as the library writes it."""
    ids = {piece: index for index, piece in enumerate(_PIECES)}
    made = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lower)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(list(_PIECES[:5]))
    return json.loads(made.to_str())


def _unigram(lower: bool = True) -> dict[str, Any]:
    """Returns ALBERT's file, by the description of transformers' converter."""
    proto = samples.vocabulary().proto
    steps: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": x}, "content": '"'}
        for x in ("``", "''")
    ]
    steps += [{"type": "NFKD"}, {"type": "StripAccents"}]
    steps += [{"type": "Lowercase"}] if lower else []
    table = base64.b64encode(proto.normalizer_spec.precompiled_charsmap)
    rules = table.decode()
    steps.append({"type": "Precompiled", "precompiled_charsmap": rules})
    spaces = {"Regex": " {2,}"}
    steps.append({"type": "Replace", "pattern": spaces, "content": " "})
    space = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    words = [{"type": "WhitespaceSplit"}, space]
    vocab = []
    for entry in proto.pieces:
        is_number = entry.piece[-1] == "," and entry.piece[-2:-1].isdigit()
        score = entry.score - (_HUNDRED if is_number else 0)
        vocab.append([entry.piece, score])
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    return {
        "added_tokens": [
            {"id": index, "content": piece, "special": True}
            for index, piece in enumerate(special)
        ],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": words},
        "model": {"unk_id": 1, "vocab": vocab},
    }


def _write(folder: pathlib.Path, found: Any) -> pathlib.Path:
    path = folder / "any name.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def _one_line(error: pytest.ExceptionInfo, path: pathlib.Path) -> str:
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_types_and_casings():
    for lower in (True, False):
        found = _word_pieces(lower)
        assert tokenizer_json.kind(found) == "WordPiece"
        assert tokenizer_json.lower_cases(found) is lower
        del found["model"]["type"]
        assert tokenizer_json.kind(found) == "WordPiece"
        found = _unigram(lower)
        assert tokenizer_json.kind(found) == "Unigram"
        assert tokenizer_json.lower_cases(found) is lower
    found = byte_pair_samples.learned()
    assert tokenizer_json.kind(found) == "BPE"
    assert tokenizer_json.lower_cases(found) is None
    assert tokenizer_json.lower_cases({"model": {"type": "WordPiece"}}) is None
    assert tokenizer_json.kind({"model": {"vocab": {}}}) is None
    assert tokenizer_json.kind({}) is None


def test_other_files_are_left_alone(tmp_path):
    path = _write(tmp_path, {"[UNK]": 0})
    assert tokenizer_json.read(path) is None
    text = tmp_path / "vocab.txt"
    text.write_text(json.dumps(_word_pieces()))
    assert tokenizer_json.read(text) is None
    with pytest.raises(FileNotFoundError, match="vocab_file="):
        tokenizer_json.read(tmp_path / "none.json")


def test_word_pieces(tmp_path):
    text = "".join(f"{piece}\n" for piece in _PIECES).encode()
    found = _word_pieces()
    contents = word_pieces.open_file(_write(tmp_path, found), True)
    assert contents == {"vocab.txt": text}
    del found["normalizer"], found["pre_tokenizer"], found["model"]["type"]
    assert word_pieces.open_file(_write(tmp_path, found), True) == contents
    found["model"]["max_input_chars_per_word"] = 200
    assert word_pieces.open_file(_write(tmp_path, found), True) == contents
    found["added_tokens"].append({"id": len(_PIECES), "content": "[NEW]"})
    contents = word_pieces.open_file(_write(tmp_path, found), True)
    assert contents == {"vocab.txt": text + b"[NEW]\n"}


def test_sequences_of_one_step(tmp_path):
    found = _word_pieces()
    expected = word_pieces.open_file(_write(tmp_path, found), True)
    for part, key in (
        ("normalizer", "normalizers"),
        ("pre_tokenizer", "pretokenizers"),
    ):
        found[part] = {"type": "Sequence", key: [found[part]]}
    assert word_pieces.open_file(_write(tmp_path, found), True) == expected
    found["normalizer"]["normalizers"] *= 2
    with pytest.raises(InputError, match="normalizer"):
        word_pieces.open_file(_write(tmp_path, found), True)
    vocabulary = byte_pair_samples.vocabulary()
    step = {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}
    whole = {
        "model": {
            "type": "BPE",
            "vocab": dict(vocabulary.ids),
            "merges": list(vocabulary.merges),
        },
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [step]},
    }
    opened = vocabularies.open(_write(tmp_path, whole), False)
    assert opened.pieces == vocabulary.pieces
    assert opened.own_settings == {"add_prefix_space": True}


@pytest.mark.parametrize(
    ("part", "values", "named"),
    [
        ("model", {"type": "BPE"}, "must be a WordPiece"),
        ("model", {"unk_token": "<unk>"}, 'model.unk_token="<unk>"'),
        ("model", {"continuing_subword_prefix": ""}, 'subword_prefix=""'),
        ("model", {"max_input_chars_per_word": 9}, "chars_per_word=9"),
        ("model", {"vocab": {"a": 9}}, "`vocab` must map the tokens"),
        ("model", {"vocab": {"a": 0, "b": 0}}, "`vocab` must map the tokens"),
        ("model", {"vocab": {"a\nb": 0}}, "`vocab` must map the tokens"),
        ("model", {"vocab": None}, "`vocab` must map the tokens"),
        ("normalizer", {"type": "NFKC"}, 'normalizer.type="NFKC"'),
        ("pre_tokenizer", {"type": "Whitespace"}, 'type="Whitespace"'),
        ("", {"pre_tokenizer": None}, "pre_tokenizer.type=null"),
    ],
)
def test_word_pieces_that_are_refused(tmp_path, part, values, named):
    found = _word_pieces()
    if "vocab" in values:
        found["added_tokens"] = []
    (found[part] if part else found).update(values)
    path = _write(tmp_path, found)
    with pytest.raises(InputError) as error:
        word_pieces.open_file(path, True)
    assert named in _one_line(error, path)


def _open(path, lower=True):
    contents = sentence_pieces.open_file(path, True)
    return sentence_pieces.SentencePieces.parse(contents, lower, str(path))


def _entries(vocabulary):
    return [(x.piece, x.type, x.score) for x in vocabulary.proto.pieces]


def _check(vocabulary, expected):
    assert _entries(vocabulary) == _entries(expected)
    ours, theirs = vocabulary.tokenizer(), expected.tokenizer()
    for text in samples.lines()[::5]:
        assert ours.ids(text) == theirs.ids(text)


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, False])
def test_sentence_pieces(tmp_path, lower):
    expected = samples.vocabulary(lower)
    vocabulary = _open(_write(tmp_path, _unigram(lower)), lower)
    assert vocabulary.special == expected.special
    _check(vocabulary, expected)
    rules = sentence_models.rules(vocabulary.model)
    assert rules == sentence_models.rules(expected.model)


def test_as_transformers_writes_it(tmp_path):
    (tmp_path / "spiece.model").write_bytes(samples.train())
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    # Its type names flags only.
    made: Any = transformers.AlbertTokenizer
    made.from_pretrained(tmp_path).save_pretrained(tmp_path / "saved")
    path = tmp_path / "saved" / "tokenizer.json"
    found = tokenizer_json.read(path)
    assert found is not None
    assert tokenizer_json.lower_cases(found) is True
    _check(_open(path), samples.vocabulary())


def test_words_that_are_split_by_spaces_alone(tmp_path):
    found = _unigram()
    space = {"type": "Metaspace", "replacement": "▁", "split": True}
    found["pre_tokenizer"] = space | {"prepend_scheme": "always"}
    path = tmp_path / "expected"
    path.mkdir()
    expected = _open(_write(path, _unigram()))
    assert _open(_write(tmp_path, found)).model == expected.model


def test_without_rules_and_with_more_pieces(tmp_path):
    found = _unigram()
    steps = found["normalizer"]["normalizers"]
    steps[:] = [step for step in steps if step["type"] != "Precompiled"]
    count = len(found["model"]["vocab"])
    found["added_tokens"] += [
        {"id": count, "content": "[NEW]", "special": True},
        {"id": count + 1, "content": "zqzq", "special": False},
    ]
    found["model"]["vocab"][-1][1] -= _HUNDRED
    vocabulary = _open(_write(tmp_path, found))
    assert sentence_models.rules(vocabulary.model) == ()
    entries = vocabulary.proto.pieces
    kind = entries[0]
    kinds = [entry.type for entry in entries[-3:]]
    assert kinds == [kind.UNUSED, kind.CONTROL, kind.CONTROL]
    tokenizer = vocabulary.tokenizer()
    # Two are matched before the model splits text: see test_added_tokens.py.
    for entry in entries[-3:]:
        assert entry.piece not in tokenizer.tokenize(entry.piece)


_REFUSED: list[tuple[str, Any, str]] = [
    ("model.type", "BPE", "must be a Unigram"),
    ("model.byte_fallback", True, "model.byte_fallback=true"),
    ("model.unk_id", None, "unk_id=None"),
    ("model.unk_id", 9999, "unk_id=9999"),
    ("model.vocab", [["a", "b"]], "list of tokens with their scores"),
    ("model.vocab", [["a"]], "list of tokens with their scores"),
    ("model.vocab", [], "list of tokens with their scores"),
    ("normalizer", None, "normalizer=[]"),
    ("normalizer", {"type": "NFKC"}, 'normalizer=["NFKC"]'),
    ("normalizer.normalizers", [{"type": "NFKD"}], 'normalizer=["NFKD"]'),
    (
        "normalizer.normalizers.2",
        {"type": "Replace", "pattern": {"String": "a"}, "content": "b"},
        'normalizer=["Replace", "StripAccents"',
    ),
    (
        "normalizer.normalizers.5.precompiled_charsmap",
        "?",
        "`precompiled_charsmap` must be base64",
    ),
    ("pre_tokenizer", None, "pre_tokenizer=[]"),
    ("pre_tokenizer", {"type": "ByteLevel"}, 'pre_tokenizer=["ByteLevel"]'),
    (
        "pre_tokenizer.pretokenizers.1.add_prefix_space",
        False,
        '"add_prefix_space": false',
    ),
    (
        "pre_tokenizer.pretokenizers.1.prepend_scheme",
        "first",
        '"prepend_scheme": "first"',
    ),
    ("pre_tokenizer.pretokenizers.1.split", False, '"split": false'),
    (
        "added_tokens.0",
        {"id": 7, "content": "zqzq", "special": True},
        "content='zqzq', id=7",
    ),
]


@pytest.mark.parametrize(("place", "value", "named"), _REFUSED)
def test_sentence_pieces_that_are_refused(tmp_path, place, value, named):
    found: Any = _unigram()
    part = found
    *keys, last = place.split(".")
    for key in keys:
        part = part[int(key) if isinstance(part, list) else key]
    part[int(last) if isinstance(part, list) else last] = value
    path = _write(tmp_path, found)
    with pytest.raises(InputError) as error:
        sentence_pieces.open_file(path, True)
    assert named in _one_line(error, path)


@pytest.mark.slow
def test_a_model_without_rules_has_none():
    model = samples.train(normalization_rule_name="identity")
    assert sentence_models.rules(model) == ()
