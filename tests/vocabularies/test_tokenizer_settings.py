"""Settings of other models' tokenizers, compared with `tokenizers`."""

import dataclasses
import itertools
import json
import pathlib
import random
import re
import unicodedata
from typing import Any

from bert_tf import tokenization, vocab_files, vocabularies
from bert_tf.checkpoints import huggingface_tokenizer, tokenizer_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    new_vocabulary,
    tokenizer_config,
    word_pieces,
)
from tests.text import test_tokenizers
from tests.vocabularies import byte_pair_samples, sentence_models

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors

_LENGTH = 64
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# Without the capital sigma, which the library lower-cases differently.
_CHARS = (
    "abcÄöüßéèñçİıŞşğIi中国人漢豈가나다한국어かガギｶﾞ日本ΑάΩώσςЙйèाि०ु .,!?-#$12½"
    "\t\n\xa0\u3000\x00\ufffd\u200b\u0301\u0323\U0001d15e₩ﬁ…\xad"
)
_MARKER = "[E1]"


def _texts(count: int = 400) -> list[str]:
    rng = random.Random(0)
    texts = [
        "".join(rng.choices(_CHARS, k=rng.randrange(14))) for _ in range(count)
    ]
    words = ["Äpfel müssen", "我中国人", "한국어 각", "İstanbul", "中" * 201]
    return [*texts, *words, *(f"{x}{_MARKER}{x}" for x in words), "", "a.b,c"]


def _pieces() -> tuple[str, ...]:
    """Returns every character a text may become, word-initial and later."""
    forms = [_CHARS, _CHARS.lower(), "각İstanbulÄpfelmüssen"]
    chars = "".join(forms)
    chars += unicodedata.normalize("NFD", chars)
    found = [x for x in dict.fromkeys(chars) if not (x + "\0").isspace()]
    found = [x for x in found if x.strip() and x not in "\0\ufffd"]
    later = [f"##{x}" for x in found]
    words = ["中国", "##国人", "##fel", "müssen", "mussen"]
    return (*_SPECIAL, *found, *later, *words)


def _bert(
    lower: bool, strip_accents: bool | None, chinese: bool
) -> tokenizers.Tokenizer:
    """Makes the library's tokenizer like transformers."""
    ids = {piece: index for index, piece in enumerate(_pieces())}
    made = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=200)
    )
    made.normalizer = normalizers.BertNormalizer(
        lowercase=lower,
        strip_accents=strip_accents,
        handle_chinese_chars=chinese,
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.add_special_tokens([_MARKER])
    return made


@pytest.fixture(name="auto")
def _auto() -> Any:  # The type of the class names flags only.
    return pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    ).AutoTokenizer


def _check(
    vocabulary: vocabularies.Vocabulary, library: tokenizers.Tokenizer
) -> None:
    """Compares all tokenizers with each other, and one with the library's."""
    texts = _texts()
    test_tokenizers.check(vocabulary, texts)
    tokenizer = vocabulary.tokenizer()
    for text in texts:
        pieces = tokenizer.tokenize(text)
        expected = library.encode(text, add_special_tokens=False).ids
        assert tokenizer.convert_tokens_to_ids(pieces) == expected, repr(text)


def _write(folder: pathlib.Path, name: str, found: Any) -> pathlib.Path:
    path = folder / name
    path.write_text(json.dumps(found), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lower", "strip_accents", "chinese"),
    [
        pytest.param(True, False, True, marks=pytest.mark.exhaustive),
        (True, False, False),
        (True, None, False),
        (False, True, True),
        pytest.param(False, None, False, marks=pytest.mark.exhaustive),
    ],
)
def test_word_pieces(tmp_path, lower, strip_accents, chinese):
    library = _bert(lower, strip_accents, chinese)
    library.save(str(tmp_path / "tokenizer.json"))
    path = tmp_path / "tokenizer.json"
    vocabulary = vocabularies.open(path, lower)
    assert vocabulary.own_settings == {
        "strip_accents": strip_accents,
        "tokenize_chinese_chars": chinese,
    }
    _check(vocabulary, library)
    # Passed by a user, without a tokenizer.json.
    path.unlink()
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in _pieces()), "utf-8")
    _write(tmp_path, "added_tokens.json", {_MARKER: len(_pieces())})
    config = {
        "strip_accents": strip_accents,
        "tokenize_chinese_chars": chinese,
        "model_max_length": 512,
    }
    _write(tmp_path, "tokenizer_config.json", config)
    other = vocabularies.open(path, lower)
    assert other.own_settings == vocabulary.own_settings
    words = tokenization.FullTokenizer.from_vocab(
        other.ids,
        lower,
        strip_accents=strip_accents,
        tokenize_chinese_chars=chinese,
    )
    text = "Äpfel 我中国人 한국어"
    assert words.tokenize(text) == other.tokenizer().tokenize(text)


def _byte_pairs(prefix: bool) -> tokenizers.Tokenizer:
    found = byte_pair_samples.learned()
    found = {**found, "post_processor": None}
    made = tokenizers.Tokenizer.from_str(json.dumps(found))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=prefix
    )
    made.add_special_tokens([_MARKER])
    return made


@pytest.mark.slow
def test_byte_pairs(tmp_path):
    library = _byte_pairs(True)
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    vocabulary = vocabularies.open(path, False)
    assert vocabulary.own_settings == {"add_prefix_space": True}
    _check(vocabulary, library)
    own = vocabulary.own_tokenizer()
    for text in ("\ud800 a", "\ud800a", "\ud800"):
        kept = text.encode("utf-8", "ignore").decode()
        expected = library.encode(kept, add_special_tokens=False)
        assert own.tokenize(text) == expected.tokens
        assert vocabulary.own_bulk_tokenizer().tokenize([text])[0].tolist() == (
            expected.ids
        )
    assert own.tokenize_with_offsets("\ud800a")[-1][1:] == (1, 2)
    # The settings that transformers 4 writes.
    path.unlink()
    byte_pair_samples.write(tmp_path)
    _write(tmp_path, "tokenizer_config.json", {"add_prefix_space": True})
    for name in ("vocab.json", "merges.txt"):
        other = vocabularies.open(tmp_path / name, False)
        assert other.own_settings == {"add_prefix_space": True}
        assert other.tokenizer().tokenize("a b") == own.tokenize("a b")


def _settings() -> list[vocabularies.Vocabulary]:
    plain = word_pieces.WordPiece(
        _pieces(), True, vocab_files.vocab_text(_pieces())
    )
    german = dataclasses.replace(plain, strip_accents=False)
    chinese = dataclasses.replace(plain, tokenize_chinese_chars=False)
    prefix = dataclasses.replace(
        byte_pair_samples.vocabulary(), add_prefix_space=True
    )
    return [german, chinese, prefix]


@pytest.mark.parametrize("number", range(3))
def test_they_travel(tmp_path, number):
    """They are kept in runs, exports, and folders for transformers."""
    vocabulary = _settings()[number]
    lower = vocabulary.settings.get("do_lower_case", False)
    files = vocabularies.Files(vocabulary.kind, vocabulary.files)
    assert list(files.contents)[-1] == tokenizer_config.FILE
    assert vocabularies.among(files.contents) == files
    again = vocabularies.Files.from_config(files.to_config())
    assert vocabularies.read(again, lower, "it") == vocabulary
    plain = vocabularies.Files(files.kind, vocabulary.own_files)
    assert "its settings are {}, and the checkpoint's are {" in (
        vocabularies.difference(plain, files)
    )
    assert plain.sha256 != files.sha256 == vocabulary.sha256
    assert vocabularies.listed(files, vocabulary.pieces) is None
    for name, data in files.contents.items():
        (tmp_path / name).write_bytes(data)
    assert vocabularies.find(tmp_path) == files
    written = tmp_path / "written"
    written.mkdir()
    tokenizer_files.write(str(written), vocabulary, _LENGTH)
    library = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    tokenizer = vocabulary.tokenizer()
    for text in ("Äpfel 我中国人", "a b"):
        pieces = tokenizer.tokenize(text)
        assert library.encode(text, add_special_tokens=False).tokens == pieces
    assert vocabularies.find(written) == files
    assert (
        vocabularies.open_files(written / "tokenizer.json").contents[
            tokenizer_config.FILE
        ]
        == (files.contents[tokenizer_config.FILE])
    )
    # Without a tokenizer.json, the config has the same settings.
    (written / "tokenizer.json").unlink()
    assert vocabularies.find(written) == files


def test_transformers_reads_them(auto, tmp_path):
    for number, vocabulary in enumerate(_settings()):
        folder = tmp_path / str(number)
        folder.mkdir()
        tokenizer_files.write(str(folder), vocabulary, _LENGTH)
        _write(folder, "config.json", {})
        theirs = auto.from_pretrained(folder)
        ours = vocabulary.tokenizer()
        for text in _texts(200):
            if _MARKER not in text:
                assert theirs.tokenize(text) == ours.tokenize(text), repr(text)
        theirs.save_pretrained(folder / "theirs")
        again = vocabularies.open_files(folder / "theirs" / "tokenizer.json")
        assert (
            again.contents[tokenizer_config.FILE]
            == (vocabulary.files[tokenizer_config.FILE])
        )


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"strip_accents": None, "tokenize_chinese_chars": True},
        {"do_lower_case": True, "strip_accents": True},
        {"add_prefix_space": True, "do_lower_case": False},
    ],
)
def test_defaults_leave_no_file(tmp_path, config):
    text = "".join(f"{piece}\n" for piece in _pieces())
    path = tmp_path / "vocab.txt"
    path.write_text(text, "utf-8")
    _write(tmp_path, "tokenizer_config.json", config)
    assert vocabularies.open_files(path).contents == {path.name: text.encode()}
    # With a vocabulary of another name no such files are read.
    _write(tmp_path, "tokenizer_config.json", {"strip_accents": False})
    assert len(vocabularies.open_files(path).contents) == 2
    path.rename(tmp_path / "mine.txt")
    assert len(vocabularies.open_files(tmp_path / "mine.txt").contents) == 1


_BERT_ROWS: tuple[dict[str, Any], ...] = (
    {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        ],
        "pair": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
        ],
        "special_tokens": {
            "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
            "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]},
        },
    },
)


def _folder(folder: pathlib.Path, **parts: Any) -> pathlib.Path:
    """Writes a vocab.txt next to a tokenizer.json with some changed parts."""
    found = json.loads(_bert(True, None, True).to_str())
    for name, value in parts.items():
        is_part = isinstance(value, dict) and "type" not in value
        found[name] = {**found[name], **value} if is_part else value
    _write(folder, "tokenizer.json", found)
    path = folder / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in _pieces()), "utf-8")
    return path


@pytest.mark.parametrize("step", [None, *_BERT_ROWS])
def test_rows_of_released_files_are_taken(tmp_path, step):
    inside = {"type": "Sequence", "processors": [step]} if step else None
    for parts in (step, inside):
        path = _folder(tmp_path, post_processor=parts)
        assert vocabularies.open(path, True).own_settings == {
            "strip_accents": None,
            "tokenize_chinese_chars": True,
        }
        vocabularies.open(tmp_path / "tokenizer.json", True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [byte_pair_samples.vocabulary, sentence_models.vocabulary]
)
def test_rows_of_other_kinds_are_taken(tmp_path, make):
    tokenizer_files.write(str(tmp_path), make(), _LENGTH)
    files = vocabularies.find(tmp_path)
    assert files is not None
    assert list(files.contents) == list(make().own_files)


def _template(**changes: Any) -> dict[str, Any]:
    return {**_BERT_ROWS[1], **changes}


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"normalizer": {"clean_text": False}}, "clean_text=false"),
        ({"normalizer": {"type": "NFKC"}}, 'normalizer.type="NFKC"'),
        (
            {"post_processor": {**_BERT_ROWS[0], "type": "RobertaProcessing"}},
            r"post_processor=\[CLS\]:0 \$A:0 \[SEP\]:0 \[SEP\]:0 \$B:0 ",
        ),
        (
            {"post_processor": _template(single=_BERT_ROWS[1]["single"][1:])},
            r"post_processor=\$A:0 \[SEP\]:0",
        ),
        (
            {"post_processor": _template(pair=_BERT_ROWS[1]["pair"][:4])},
            r"post_processor=\[CLS\]:0 \$A:0 \[SEP\]:0 \$B:1",
        ),
        ({"post_processor": _template(special_tokens={})}, "must be whole"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path, parts, named):
    path = _folder(tmp_path, **parts)
    for file in (path, tmp_path / "tokenizer.json"):
        with pytest.raises(InputError, match=named) as error:
            vocabularies.open(file, True)
        assert "tokenizer.json" in str(error.value)
        assert "\n" not in str(error.value)
    path.rename(tmp_path / "mine.txt")
    vocabularies.open(tmp_path / "mine.txt", True)


# The class in tokenizer_config.json, and the config.json, if there are any.
_CLASSES: tuple[Any, ...] = (
    ("", {"model_type": "bert"}),
    ("BertTokenizerFast", None),
    ("PreTrainedTokenizerFast", {"model_type": "bert"}),
    *(
        pytest.param(*pair, marks=pytest.mark.slow)
        for pair in (
            ("", {"tokenizer_class": "BertTokenizer"}),
            ("DistilBertTokenizer", {"model_type": "bert"}),
            (
                "",
                {
                    "model_type": "bert",
                    "tokenizer_class": "PreTrainedTokenizerFast",
                },
            ),
            ("", {}),
            ("", None),
        )
    ),
)
# Setting -> its name in tokenizer.json, and its values there.
_VALUES: dict[str, tuple[str, tuple[bool | None, ...]]] = {
    "strip_accents": ("strip_accents", (True, False, None)),
    "tokenize_chinese_chars": ("handle_chinese_chars", (True, False)),
    "do_lower_case": ("lowercase", (True, False)),
}
_MISSING = "missing"
_SETTING_TEXTS = ("Ä x", "Éa 中国人", "ABC")


@pytest.mark.parametrize(("kind", "model"), _CLASSES)
@pytest.mark.parametrize("name", _VALUES)
def test_contradictions_are_resolved_as_in_transformers(
    auto, tmp_path, caplog, kind, model, name
):
    key, values = _VALUES[name]
    choices = itertools.product(values, (_MISSING, None, True, False))
    for number, (value, said) in enumerate(choices):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = _folder(folder, normalizer={key: value})
        config = {} if said == _MISSING else {name: said}
        if kind:
            config["tokenizer_class"] = kind
        if model is not None:
            _write(folder, "config.json", model)
        # Some classes of transformers take no null, which is missing here.
        allowed = config
        if said is None and name != "strip_accents":
            allowed = {x: y for x, y in config.items() if x != name}
        _write(folder, "tokenizer_config.json", allowed)
        theirs = auto.from_pretrained(folder)
        expected = [theirs.tokenize(text) for text in _SETTING_TEXTS]
        _write(folder, "tokenizer_config.json", config)
        lower = huggingface_tokenizer.lower_cases(str(folder))
        caplog.clear()
        for file in (path, folder / "tokenizer.json"):
            ours = vocabularies.open(file, bool(lower)).tokenizer()
            assert [ours.tokenize(x) for x in _SETTING_TEXTS] == expected
        whole = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        followed = [
            whole.encode(text, add_special_tokens=False).tokens
            for text in _SETTING_TEXTS
        ]
        # A warning names both values, whichever file counts.
        if expected != followed:
            (line,) = caplog.messages
            assert line.startswith(f"{folder}/tokenizer_config.json ")
            assert {"true", "false"} <= {*re.findall(r"\w+", line)}
        elif said == _MISSING or said is value:
            assert not caplog.messages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("", {"model_type": "roberta"}),
        ("RobertaTokenizer", None),
        ("PreTrainedTokenizerFast", {"model_type": "roberta"}),
        ("", None),
    ],
)
def test_spaces_before_texts_are_as_in_transformers(
    auto, tmp_path, caplog, kind, model
):
    choices = itertools.product((True, False), (_MISSING, True, False))
    for number, (value, said) in enumerate(choices):
        folder = tmp_path / str(number)
        folder.mkdir()
        byte_pair_samples.write(folder)
        _byte_pairs(value).save(str(folder / "tokenizer.json"))
        config = {} if said == _MISSING else {"add_prefix_space": said}
        if kind:
            config["tokenizer_class"] = kind
        _write(folder, "tokenizer_config.json", config)
        if model:
            _write(folder, "config.json", model)
        theirs = auto.from_pretrained(folder).tokenize("a b")
        caplog.clear()
        for file in ("vocab.json", "tokenizer.json"):
            ours = vocabularies.open(folder / file, False)
            assert ours.tokenizer().tokenize("a b") == theirs
        has_space = theirs[0] != "a"
        assert len(caplog.messages) == (
            has_space != value or said not in (_MISSING, value)
        )


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"strip_accents": "no"}, "must be true or false"),
        ({"keep_accents": True}, "keep_accents=True"),
        ([1], "must hold one JSON object"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, config, named):
    path = _folder(tmp_path, normalizer={"strip_accents": True})
    _write(tmp_path, "tokenizer_config.json", config)
    for file in (path, tmp_path / "tokenizer.json"):
        with pytest.raises(InputError, match=named) as error:
            vocabularies.open(file, True)
        assert "tokenizer_config.json" in str(error.value)
        assert "\n" not in str(error.value)


def test_tokenizer_json_counts_in_a_folder(auto, tmp_path, caplog):
    """With other tokens than vocab.txt, as transformers reads the folder."""
    path = _folder(tmp_path)
    lines = path.read_text("utf-8").splitlines()
    found = vocabularies.find(tmp_path)
    assert not caplog.messages
    lines[5:7] = reversed(lines[5:7])
    path.write_text("".join(f"{x}\n" for x in lines), "utf-8")
    _write(tmp_path, "config.json", {"model_type": "bert"})
    assert vocabularies.find(tmp_path) == found
    (line,) = caplog.messages
    assert f"read instead of {path}" in line
    assert "token 5 is 'b', and 'a' in tokenizer.json" in line
    theirs = auto.from_pretrained(tmp_path)
    assert theirs.convert_tokens_to_ids("a") == 5
    # A file that the user names is never replaced in silence.
    with pytest.raises(InputError, match="must hold the same tokens") as error:
        vocabularies.open_files(path)
    assert "\n" not in str(error.value)
    assert vocabularies.open_files(tmp_path / "tokenizer.json") == found


def test_merges_contradict_too(tmp_path, caplog):
    tokenizer_files.write(str(tmp_path), byte_pair_samples.vocabulary(), 64)
    path = tmp_path / "merges.txt"
    first, *lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([first, *reversed(lines)]), "utf-8")
    found = vocabularies.find(tmp_path)
    assert found is not None
    merges = found.contents["merges.txt"].decode().splitlines(keepends=True)
    assert merges[1:] == lines
    assert "its merges are other ones" in caplog.messages[-1]


def test_another_models_tokenizer_is_ignored(tmp_path, caplog):
    """Its added tokens and settings belong to that model."""
    path = _folder(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    alone = vocabularies.open_files(path)
    _byte_pairs(True).save(str(tmp_path / "tokenizer.json"))
    assert vocabularies.open_files(path) == alone
    (line,) = caplog.messages
    assert "is ignored: its model is BPE, and vocab.txt is for Word" in line


def test_a_tokenizer_is_parsed_once(tmp_path, monkeypatch):
    _folder(tmp_path).unlink()
    _write(tmp_path, "config.json", {})
    parsed = []
    loads = json.loads

    def counted(data: Any, **options: Any) -> Any:
        if len(data) > 1000:
            parsed.append(len(data))
        return loads(data, **options)

    monkeypatch.setattr(json, "loads", counted)
    assert huggingface_tokenizer.lower_cases(str(tmp_path)) is True
    assert huggingface_tokenizer.read_vocab(str(tmp_path)) is not None
    assert len(parsed) == 1


def test_accents_that_are_stripped_by_default(tmp_path):
    """The setting means the same as none: settings are compared by meaning."""
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in _pieces()), "utf-8")
    plain = vocabularies.open_files(path)
    _write(tmp_path, "tokenizer_config.json", {"strip_accents": True})
    files = vocabularies.open_files(path)
    assert vocabularies.difference(files, plain, lower=True) == ""
    for lower in (False, None):
        assert vocabularies.difference(files, plain, lower) == (
            'its settings are {"strip_accents": true}, and the checkpoint\'s '
            "are {}"
        )
    new_vocabulary.check_settings(path, {}, True, False)
    with pytest.raises(InputError, match="that set another tokenizer for its"):
        new_vocabulary.check_settings(path, {}, False, False)


@pytest.mark.slow
def test_casing_of_an_albert_that_versions_read_otherwise(tmp_path, caplog):
    vocabulary = sentence_models.vocabulary(False)
    tokenizer_files.write(str(tmp_path), vocabulary, _LENGTH)
    kind = {"tokenizer_class": "AlbertTokenizer"}
    for config, line in (
        ({}, "do_lower_case=false counts for .* have true, .* 4 false"),
        ({"do_lower_case": True}, "=true counts .* have true, .* 4 false"),
        ({"do_lower_case": False}, None),
    ):
        _write(tmp_path, "tokenizer_config.json", kind | config)
        caplog.clear()
        vocabularies.open_files(tmp_path / "spiece.model")
        assert bool(caplog.messages) == (line is not None)
        assert line is None or re.search(line, caplog.text)


def test_casing_of_a_vocabulary_with_accents():
    pieces = (*_SPECIAL, *"aouäöü", *(f"##{x}" for x in "aouäöü"))
    vocab_files.check_casing(pieces, True, "it", strip_accents=False)
    word_pieces.WordPiece(pieces, True, strip_accents=False).check("it")
    with pytest.raises(InputError, match=r'{"strip_accents": false}'):
        vocab_files.check_casing(pieces, True, "it")
    with pytest.raises(InputError, match=r"lower-casing changes 1 of its"):
        vocab_files.check_casing(("A",), True, "it", strip_accents=False)
