"""Folders of transformers whose tokenizer is compared with ours."""

import importlib.util
import json
import pathlib
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import bert_tf
from bert_tf import vocabularies
from bert_tf.checkpoints import (
    huggingface_tokenizer,
    tf1_files,
    tokenizer_files,
    tokenizer_probe,
)
from bert_tf.vocabularies import byte_pairs, tokenizer_config, word_pieces
from tests import huggingface_models as hf
from tests import interop_samples as samples
from tests import tokenizer_rules
from tests.vocabularies import byte_pair_samples, sentence_models

import pytest
import tokenizers

pytestmark = pytest.mark.slow

transformers: Any = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdehilnorstuwABCTWäöéßığのカ한국어中国天аи01239.,!?'-#"
_PIECES = (*_SPECIAL, *_LETTERS, *(f"##{x}" for x in _LETTERS), "the", "The")
_ADDED = ("[E1]", "<user>", "Covid")


@pytest.fixture(autouse=True)
def _no_folder_passed(monkeypatch):
    monkeypatch.setattr(tokenizer_probe, "_passed", set())


# ---- Folders -----------------------------------------------------------------


def _word_pieces(folder: pathlib.Path) -> None:
    text = "".join(f"{piece}\n" for piece in _PIECES)
    (folder / "vocab.txt").write_text(text, "utf-8")


def _byte_pairs(folder: pathlib.Path) -> None:
    byte_pair_samples.write(folder)


def _sentence_pieces(folder: pathlib.Path) -> None:
    (folder / "spiece.model").write_bytes(sentence_models.train())


def _fairseq(folder: pathlib.Path) -> None:
    model = sentence_models.train_fairseq()
    (folder / "sentencepiece.bpe.model").write_bytes(model)


# Name -> writes the own files of a vocabulary, the class of transformers that
# reads them, and its settings.
_FOLDERS: dict[str, tuple[Callable[[pathlib.Path], None], str, dict]] = {
    "bert uncased": (_word_pieces, "BertTokenizer", {"do_lower_case": True}),
    "bert cased": (_word_pieces, "BertTokenizer", {"do_lower_case": False}),
    "bert with accents": (
        _word_pieces,
        "BertTokenizer",
        {"do_lower_case": True, "strip_accents": False},
    ),
    "bert with whole Chinese": (
        _word_pieces,
        "BertTokenizer",
        {"tokenize_chinese_chars": False},
    ),
    "electra": (_word_pieces, "ElectraTokenizer", {"do_lower_case": True}),
    "distilbert": (
        _word_pieces,
        "DistilBertTokenizer",
        {"do_lower_case": True},
    ),
    "roberta": (_byte_pairs, "RobertaTokenizer", {}),
    "roberta with a space": (
        _byte_pairs,
        "RobertaTokenizer",
        {"add_prefix_space": True},
    ),
    "albert": (_sentence_pieces, "AlbertTokenizer", {}),
    "albert cased": (
        _sentence_pieces,
        "AlbertTokenizer",
        {"do_lower_case": False},
    ),
    "xlm-r": (_fairseq, "XLMRobertaTokenizer", {}),
    "camembert": (_fairseq, "CamembertTokenizer", {}),
}


@pytest.mark.parametrize("name", _FOLDERS)
def test_folders_of_transformers_are_taken(tmp_path, name):
    write, kind, settings = _FOLDERS[name]
    own, saved = tmp_path / "own", tmp_path / "saved"
    own.mkdir()
    write(own)
    theirs = getattr(transformers, kind).from_pretrained(own, **settings)
    tokens = [
        transformers.AddedToken(_ADDED[0], special=True, normalized=False),
        transformers.AddedToken(_ADDED[1], lstrip=True, rstrip=True),
        _ADDED[2],
    ]
    theirs.add_tokens(tokens)
    theirs.save_pretrained(saved)
    files = huggingface_tokenizer.read_vocab(str(saved))
    assert files is not None
    assert len(tokenizer_probe._passed) == 1
    _check_known(files, saved / "tokenizer.json")


def _check_known(files: vocabularies.Files, path: pathlib.Path) -> None:
    """Asserts that the texts that still differ have reasons that are known."""
    theirs = tokenizer_probe.read(json.loads(path.read_text()), str(path))
    assert theirs is not None
    assert {*_ADDED} <= {*theirs.added}
    ours = vocabularies.read(files, theirs.lower, str(path))
    found = tokenizer_probe.differing_texts(theirs, ours)
    config = json.loads(files.contents[tokenizer_config.FILE])
    is_original = config.keys() == {"added_tokens_decoder"}
    if files.kind == "byte_pairs":
        assert not list(found)
    elif files.kind == "word_pieces" and is_original:
        _check_rules(ours, found)


def _check_rules(
    ours: vocabularies.Vocabulary,
    found: Iterable[tokenizer_probe.Difference],
) -> None:
    lower = ours.settings["do_lower_case"]
    rules = tokenizer_rules.Tokenizer(ours.ids, lower)
    for difference in found:
        (text,) = difference.texts
        pieces = [ours.pieces[number] for number in difference.theirs]
        assert tokenizer_rules.explain(rules, text, pieces), text


@pytest.mark.parametrize("is_stripped", [False, True])
def test_the_space_before_a_mask(tmp_path, caplog, is_stripped):
    own, saved = tmp_path / "own", tmp_path / "saved"
    own.mkdir()
    _byte_pairs(own)
    mask = transformers.AddedToken("<mask>", lstrip=is_stripped, special=True)
    kind = transformers.RobertaTokenizer
    theirs = kind.from_pretrained(own, mask_token=mask)
    theirs.save_pretrained(saved)
    is_token = theirs.tokenize("a <mask>")[-2] == byte_pairs.SPACE
    assert is_token != is_stripped
    huggingface_tokenizer.read_vocab(str(saved))
    warning = "the space before <mask> is a separate token"
    assert (warning in caplog.text) == is_token


# ---- Other tokenizers --------------------------------------------------------


def _library(vocabulary: vocabularies.Vocabulary) -> dict[str, Any]:
    """Returns the tokenizer.json of a vocabulary."""
    made = tokenizer_files.make(vocabulary, 64)
    assert made is not None
    return json.loads(made.tokenizer.to_str())


def _bert() -> word_pieces.WordPiece:
    return word_pieces.WordPiece(_PIECES, do_lower_case=True)


def _fairseq_of_xlm() -> vocabularies.Vocabulary:
    return sentence_models.fairseq_vocabulary("xlm-roberta")


# Returns the parts of a tokenizer.json that a change replaces.
_Change = Callable[[dict[str, Any]], dict[str, Any]]
_LISTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}
_REPLACE = {"type": "Replace", "pattern": {"String": "e"}, "content": "o"}
_LOWER = {"type": "Lowercase"}
_DIGITS = {"type": "Digits", "individual_digits": True}


def _sequence(part: str, *steps: Any) -> dict[str, Any]:
    return {"type": "Sequence", _LISTS[part]: [*steps]}


def _hide(part: str, step: dict[str, Any]) -> _Change:
    """Returns a change that adds a step in a sequence of sequences."""

    def change(found):
        steps = [step, *([found[part]] if found[part] else [])]
        return {part: _sequence(part, _sequence(part, *steps))}

    return change


def _set(part: str, **values: Any) -> _Change:
    return lambda found: {part: {**found[part], **values}}


def _merges_reversed(found):
    merges = found["model"]["merges"][::-1]
    return {"model": {**found["model"], "merges": merges}}


def _rows(single: str, pair: str) -> _Change:
    """Returns a change of the special tokens around texts."""
    step = tokenizers.processors.TemplateProcessing(
        single, pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece())
    made.post_processor = step
    found = json.loads(made.to_str())["post_processor"]
    return lambda _: {"post_processor": found}


_DIFFERENT: list[tuple[Callable[[], vocabularies.Vocabulary], _Change]] = [
    (_bert, _hide("normalizer", _REPLACE)),
    (_bert, _hide("pre_tokenizer", _DIGITS)),
    (_bert, lambda _: {"normalizer": None}),
    (_bert, lambda _: {"pre_tokenizer": {"type": "WhitespaceSplit"}}),
    (_bert, _set("normalizer", clean_text=False)),
    (_bert, _set("normalizer", handle_chinese_chars=False)),
    (_bert, _set("normalizer", strip_accents=False)),
    (_bert, _set("model", unk_token="[MASK]")),
    (_bert, _set("model", max_input_chars_per_word=80)),
    (_bert, _set("model", continuing_subword_prefix="")),
    (_bert, _rows("[CLS] $A [SEP] [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")),
    (_bert, _rows("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:0 [SEP]:0")),
    (_bert, _rows("$A [SEP]", "$A [SEP] $B:1 [SEP]:1")),
    (byte_pair_samples.vocabulary, _merges_reversed),
    (byte_pair_samples.vocabulary, _hide("normalizer", _LOWER)),
    (byte_pair_samples.vocabulary, _set("pre_tokenizer", use_regex=False)),
    (
        byte_pair_samples.vocabulary,
        _set("pre_tokenizer", add_prefix_space=True),
    ),
    (sentence_models.vocabulary, _hide("normalizer", _REPLACE)),
    (sentence_models.vocabulary, lambda _: {"normalizer": _LOWER}),
    (sentence_models.vocabulary, _set("model", unk_id=7)),
    (_fairseq_of_xlm, _hide("normalizer", _LOWER)),
    (_fairseq_of_xlm, _set("model", unk_id=7)),
]


def _differs(ours: vocabularies.Vocabulary, found: dict[str, Any]) -> bool:
    theirs = tokenizer_probe.read(found, "it")
    assert theirs is not None
    return bool(tokenizer_probe.differences(theirs, ours))


@pytest.mark.parametrize("number", range(len(_DIFFERENT)))
def test_other_rules_are_found(number):
    make, change = _DIFFERENT[number]
    ours = make()
    found = _library(ours)
    assert _differs(ours, found | change(found))


@pytest.mark.parametrize(
    "make", {make: None for make, _ in _DIFFERENT}, ids=lambda x: x.__name__
)
def test_own_rules_are_no_difference(make):
    ours = make()
    assert not _differs(ours, _library(ours))


# Those that no field shows.
def _accents_of_one_kind(found):
    steps = [*found["normalizer"]["normalizers"]]
    (place,) = (
        place
        for place, step in enumerate(steps)
        if step["type"] == "Replace" and "\u0300" in step["pattern"]["Regex"]
    )
    pattern = {"Regex": "[\u0300-\u0300]"}
    steps[place] = {**steps[place], "pattern": pattern}
    return {"normalizer": _sequence("normalizer", *steps)}


def _spaces_not_joined(found):
    kept = ("NFKD", "Lowercase")
    steps = [x for x in found["normalizer"]["normalizers"] if x["type"] in kept]
    return {
        "normalizer": _sequence(
            "normalizer", steps[0], {"type": "StripAccents"}, steps[1]
        ),
        "pre_tokenizer": found["pre_tokenizer"]["pretokenizers"][-1],
    }


_HIDDEN: dict[str, tuple[Callable[[], vocabularies.Vocabulary], _Change]] = {
    "nothing normalized": (_bert, lambda _: {"normalizer": None}),
    "accents": (sentence_models.vocabulary, _accents_of_one_kind),
    "spaces": (sentence_models.vocabulary, _spaces_not_joined),
}


@pytest.mark.parametrize("name", _HIDDEN)
def test_folders_are_refused(tmp_path, name):
    make, change = _HIDDEN[name]
    ours = make()
    found = _library(ours)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(found | change(found)), "utf-8")
    with pytest.raises(tf1_files.UnreadableError) as error:
        huggingface_tokenizer.read_vocab(str(tmp_path))
    line = str(error.value)
    assert line.startswith(f"The tokenizer of {path} and")
    assert "remove the file" in line
    assert "Received: ids=[" in line
    assert "\n" not in line
    assert len(line) < 700
    # The fields decide without the library.
    with pytest.MonkeyPatch.context() as patch:
        find = importlib.util.find_spec
        patch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *rest: (
                None if name == "tokenizers" else find(name, *rest)
            ),
        )
        assert huggingface_tokenizer.read_vocab(str(tmp_path)) is not None


def test_a_tokenizer_without_special_tokens_is_refused(tmp_path):
    found = {**_library(_bert()), "post_processor": None}
    (tmp_path / "tokenizer.json").write_text(json.dumps(found), "utf-8")
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    kind = transformers.PreTrainedTokenizerFast
    ids = kind.from_pretrained(tmp_path)("the")["input_ids"]
    assert ids == [_PIECES.index("the")]
    with pytest.raises(tf1_files.UnreadableError, match="no post_processor"):
        huggingface_tokenizer.read_vocab(str(tmp_path))
    # This class adds them without the file's help.
    config.write_text('{"tokenizer_class": "BertTokenizer"}')
    assert huggingface_tokenizer.read_vocab(str(tmp_path)) is not None


def test_a_class_that_is_not_supported_is_named(tmp_path):
    """With weights, without them, and if its model is the vocabulary."""
    theirs = hf.make("BertGenerationEncoder")
    own, model = tmp_path / "own", tmp_path / "model"
    own.mkdir()
    _sentence_pieces(own)
    kind = transformers.BertGenerationTokenizer
    hf.save(theirs, model)
    for folder in (own, model):
        kind(str(own / "spiece.model")).save_pretrained(folder)
    named = r"token IDs to the model[^\n]*BertGenerationTokenizer\Z"
    for folder in (own, model):
        with pytest.raises(ValueError, match=f"^{folder}: .*{named}"):
            bert_tf.Tokenizer(folder)
    for vocab in ({}, {"vocab_file": own / "spiece.model"}):
        with pytest.raises(ValueError, match=f"^{model}: .*{named}"):
            bert_tf.load(model, **vocab)
    # The way out that the error names.
    encoder = bert_tf.Bert.from_checkpoint(model)
    hf.compare(encoder, "encoder", theirs, samples.batch(encoder.config))


def test_lengths_and_padding_do_not_count(tmp_path):
    found = _library(_bert())
    made = tokenizers.Tokenizer.from_str(json.dumps(found))
    made.enable_truncation(4)
    made.enable_padding(length=9)
    made.save(str(tmp_path / "tokenizer.json"))
    assert huggingface_tokenizer.read_vocab(str(tmp_path)) is not None


def test_a_file_that_the_library_does_not_read(tmp_path, caplog):
    found = _library(_bert())
    for token in found["added_tokens"]:
        del token["single_word"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(found), "utf-8")
    caplog.set_level("INFO", "absl")
    assert huggingface_tokenizer.read_vocab(str(tmp_path)) is not None
    assert "is not compared with ours: Cannot" in caplog.text
    assert "missing field `single_word`" in caplog.text


def test_once_in_a_process(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_library(_bert())), "utf-8")
    found = huggingface_tokenizer.read_vocab(str(tmp_path))
    made = []
    read = tokenizer_probe.read

    def counted(*values):
        made.append(values)
        return read(*values)

    monkeypatch.setattr(tokenizer_probe, "read", counted)
    assert huggingface_tokenizer.read_vocab(str(tmp_path)) == found
    assert not made
    config = {"tokenizer_class": "BertTokenizer", "strip_accents": False}
    (tmp_path / tokenizer_config.FILE).write_text(json.dumps(config))
    assert huggingface_tokenizer.read_vocab(str(tmp_path)) != found
    assert made


# ---- Ties -------------------------------------------------------------------


def test_ties():
    vocabulary = sentence_models.vocabulary()
    unknown = vocabulary.special.unk.id
    first, second = (vocabulary.ids[x] for x in ("▁the", "s"))
    ids = [first, unknown, second]
    assert vocabulary.is_tie(ids, ids)
    assert vocabulary.is_tie(ids, [unknown, first, second])
    assert not vocabulary.is_tie(ids, [*ids, unknown])
    assert not vocabulary.is_tie(ids, [second, unknown, first])
    # One token, and the same text in letters.
    letters = [vocabulary.ids[x] for x in ("▁", "t", "h", "e")]
    assert not vocabulary.is_tie([first], letters)
    assert not _bert().is_tie(ids, ids)


# ---- Texts -------------------------------------------------------------------


def test_texts_are_of_all_categories_and_scripts():
    theirs = tokenizer_probe.read(_library(_bert()), "it")
    assert theirs is not None
    texts = tokenizer_probe.single_texts(
        _PIECES, theirs.tokenizer.decode, _ADDED
    )
    chars = {*"".join(texts)}
    every = {unicodedata.category(chr(x)) for x in range(0x110000)}
    assert {unicodedata.category(x) for x in chars} == every - {"Cs"}
    scripts = {unicodedata.name(x, "").split(" ")[0] for x in chars}
    named = "LATIN GREEK CYRILLIC HEBREW ARABIC DEVANAGARI THAI CJK HIRAGANA"
    assert {*named.split(), "KATAKANA", "HANGUL", "ZERO", "REGIONAL"} <= scripts
    assert "" in texts
    assert all(f"a{token}b" in texts for token in _ADDED)
    assert 2000 < len(texts) < 9000
