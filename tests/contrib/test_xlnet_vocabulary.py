"""XLNet's SentencePiece, compared with its original and with transformers."""

import functools
import json
import re

from bert_tf import vocabularies
from bert_tf.checkpoints import huggingface_tokenizer, tokenizer_files
from bert_tf.contrib import xlnet_vocabulary
from bert_tf.errors import InputError
from bert_tf.tasks.features import feature_layers
from bert_tf.text import graph_offsets, text_graph
from bert_tf.vocabularies import added_tokens, sentence_pieces, unigram_json
from tests import sample_texts
from tests.vocabularies import sentence_models

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

FILE = "spiece.model"
_QUOTES = [
    "''a'' ``b`` '''c ````d'",
    "it''s O''Σ ΟΔΟΣ''ο 'ΟΔΟΣ'",
    "''",
    " `` ",
    "''\u0301x ``\u0327 é''é",
]


def train():
    """Trains a model with the symbols of the released ones."""
    return sentence_models.train(
        pad_id=-1,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        control_symbols=("<cls>", "<sep>", "<pad>", "<mask>", "<eod>"),
        user_defined_symbols=("<eop>", *'.()"-–£€'),
        # Of <eop>: with offsets, each character must be a token.
        required_chars="<>",
    )


@functools.cache
def vocabulary(lower=False):
    """Returns the vocabulary of this model."""
    files = vocabularies.Files("xlnet_sentence_pieces", {FILE: train()})
    return vocabularies.read(files, lower, FILE)


@functools.cache
def _tokenizer(lower):
    return vocabulary(lower).tokenizer()


def _ids(text, lower=False):
    tokenizer = _tokenizer(lower)
    return tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))


@functools.cache
def _processor():
    return sentencepiece.SentencePieceProcessor(model_proto=train())


def _original(text, lower):
    """Returns the ids by zihangdai/xlnet's prepro_utils.py.

    `preprocess_text` joins quotes; `encode_pieces` cuts numbers off commas, and
    keeps a number inside a word without a space.
    """
    processor = _processor()
    text = text.replace("``", '"').replace("''", '"')
    ids = []
    text = sentence_models.original_text(text, lower)
    for piece in processor.encode_as_pieces(text):
        if len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
            ids.append(processor.piece_to_id(piece))
            continue
        parts = processor.encode_as_pieces(piece[:-1].replace("▁", ""))
        if piece[0] != "▁" and parts[0][0] == "▁":
            if len(parts[0]) == 1:
                parts = parts[1:]
            else:
                parts[0] = parts[0][1:]
        ids += map(processor.piece_to_id, [*parts, ","])
    return ids


def test_the_first_token_is_no_cls():
    feature_layers.check_unit("mean", vocabulary())
    with pytest.raises(InputError, match=r"begin with <cls>\. Use unit=mean"):
        feature_layers.check_unit("cls", vocabulary())


@pytest.mark.slow
@pytest.mark.parametrize("lower", [False, True])
def test_every_tokenizer_is_the_originals(lower):
    """In Python, in bulk, and in the graph with and without offsets."""
    found = vocabulary(lower)
    texts = [*_QUOTES, *sample_texts.random_texts(seed=3, count=400)]
    texts += sentence_models.lines()[::9]
    python, bulk = found.tokenizer(), found.bulk_tokenizer()
    rows = [python.tokenize_with_offsets(x) for x in texts]
    expected = [_original(text, lower) for text in texts]
    pieces = [[x.text for x in row] for row in rows]
    assert pieces == [python.tokenize(x) for x in texts]
    ids = list(map(python.convert_tokens_to_ids, pieces))
    ties = [x for x in zip(ids, expected, strict=True) if x[0] != x[1]]
    assert len(ties) <= len(texts) / 500
    for both in ties:
        assert sentence_models.are_equally_good(found, *both)
    in_bulk, counts = bulk.tokenize(texts)
    split = np.split(in_bulk, np.cumsum(counts)[:-1])
    assert [x.tolist() for x in split] == ids
    in_graph = text_graph.make_tokenizer(found).tokenize(texts).to_list()
    with_offsets = graph_offsets.make_tokenizer(found)
    spans = with_offsets.tokenize_with_offsets(tf.constant(texts))
    assert spans.ids.to_list() == in_graph
    assert in_graph == ids
    # Other texts are checked with ALBERT's vocabulary.
    found = spans.ids.with_values(np.stack([spans.starts, spans.ends], -1))
    places = found[: len(_QUOTES)].to_list()
    own = [[[x.start, x.end] for x in row] for row in rows[: len(_QUOTES)]]
    assert places == own


def test_a_quotation_mark_covers_two_characters():
    text = "a ''the'' b"
    tokens = vocabulary().tokenizer().tokenize_with_offsets(text)
    covered = [text[x.start : x.end] for x in tokens if x.text == '"']
    assert covered == ["''", "''"]


def test_numbers_inside_words_get_no_space():
    pieces = vocabulary().pieces
    inside = [x for x in pieces if re.fullmatch(r"\d+,", x)]
    assert inside
    for piece in inside:
        tokens = vocabulary().tokenizer().tokenize(f"({piece}")
        assert tokens[:2] == ["▁", "("]
        assert "▁" not in "".join(tokens[2:])


# ---- Files ------------------------------------------------------------------


def test_kind_by_content(tmp_path):
    albert = {FILE: sentence_models.train()}
    added = sentence_pieces.append(albert, ["<cls>"])[FILE]
    for name, model, kind in (
        (FILE, train(), "xlnet_sentence_pieces"),
        ("any.model", train(), "xlnet_sentence_pieces"),
        (FILE, added, "sentence_pieces"),
        (FILE, albert[FILE], "sentence_pieces"),
    ):
        (tmp_path / name).write_bytes(model)
        files = vocabularies.open_files(tmp_path / name)
        assert files == vocabularies.Files(kind, {FILE: model})
        assert vocabularies.among({"other": b"", FILE: model}) == files
    found = vocabularies.find(tmp_path)
    assert found is not None and found.kind == "sentence_pieces"


def test_special_tokens_of_texts():
    """They are not added tokens, in processes without this module as well."""
    special = xlnet_vocabulary.FIRST.index
    for token in (xlnet_vocabulary.CLS, xlnet_vocabulary.SEP):
        assert added_tokens.is_of_rows(token, special(token))
        assert not added_tokens.is_of_rows(token, special(token) + 9)


def test_layout():
    found = vocabulary()
    special = found.special
    assert (special.unk.id, special.pad.id, special.mask.id) == (0, 5, 6)
    assert found.template.row([9, 8]) == ([9, 8, 4, 3], [0] * 4)
    expected = [9, 8, 4, 7, 4, 3], [0, 0, 0, 1, 1, 1]
    assert found.template.row([9, 8], [7]) == expected
    packed = text_graph.make_tokenizer(found).pack(
        tf.ragged.constant([[9, 8]]), tf.ragged.constant([[7]]), 8, True
    )
    assert packed["input_ids"].numpy().tolist() == [[*expected[0], 5, 5]]
    spelling = found.spellings[found.ids["<eod>"]]
    assert spelling == vocabularies.Spelling("<eod>", None)


def test_another_order_of_tokens_is_refused(tmp_path):
    model = sentence_models.train(
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=("<cls>", "<sep>", "<mask>"),
        num_threads=1,
    )
    (tmp_path / FILE).write_bytes(model)
    message = r"must begin with <unk> <s> </s> <cls> <sep> <pad> <mask>\."
    with pytest.raises(InputError, match=message):
        vocabularies.open(tmp_path / FILE, do_lower_case=False)


# ---- transformers -----------------------------------------------------------


def _theirs(lower=False):
    """Returns the tokenizer with the scores of the released tokenizer.json.

    There, tokens that end in a digit and a comma are never found.
    """
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    proto = vocabulary().proto
    number = unigram_json.is_number
    return transformers.XLNetTokenizer(
        vocab=[
            (x.piece, x.score - (100.0 if number(x.piece) else 0.0))
            for x in proto.pieces
        ],
        do_lower_case=lower,
        _spm_precompiled_charsmap=proto.normalizer_spec.precompiled_charsmap,
    )


def _texts():
    """Returns lines without names of special tokens and without the rule."""
    found = [*_QUOTES, *sentence_models.pages()]
    return [x for x in found if "<" not in x and not re.search(r"\d,", x)]


@pytest.mark.slow
@pytest.mark.parametrize("lower", [False, True])
def test_transformers(lower):
    # Their library has no final sigma.
    texts = [x for x in _texts() if not lower or "Σ" not in x]
    rows = _theirs(lower)(texts)["input_ids"]
    template = vocabulary().template
    assert len(texts) > 2000
    ours = [template.row(_ids(x, lower))[0] for x in texts]
    ties = [x for x in zip(ours, rows, strict=True) if x[0] != x[1]]
    assert len(ties) <= 2
    for both in ties:
        assert sentence_models.are_equally_good(vocabulary(lower), *both)
    (pair,) = _theirs(lower)(["the in"], ["of the"])["input_ids"]
    ids = _ids("the in", lower), _ids("of the", lower)
    assert pair == template.row(*ids)[0]


@pytest.mark.slow
def test_files_of_transformers(tmp_path):
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    theirs = _theirs()
    theirs.save_pretrained(tmp_path / "saved")
    files = huggingface_tokenizer.read_vocab(str(tmp_path / "saved"))
    assert files is not None and files.kind == "xlnet_sentence_pieces"
    texts = _texts()[::5]
    read = vocabularies.read(files, False, "it").tokenizer()
    own = _tokenizer(False)
    assert list(map(read.tokenize, texts)) == list(map(own.tokenize, texts))
    # What is written for transformers, read again.
    written = tmp_path / "written"
    written.mkdir()
    assert tokenizer_files.write(str(written), vocabulary(), max_length=64)
    (written / "config.json").write_text(json.dumps({"model_type": "xlnet"}))
    again = transformers.AutoTokenizer.from_pretrained(written)
    assert again(texts)["input_ids"] == theirs(texts)["input_ids"]
    pair = again(["the in"], ["of"], padding="max_length", max_length=9)
    row, _ = vocabulary().template.row(_ids("the in"), _ids("of"))
    before = 9 - len(row)
    assert pair["input_ids"] == [[5] * before + row]
    assert pair["token_type_ids"][0][before:] == [0, 0, 0, 1, 1, 2]
    files = huggingface_tokenizer.read_vocab(str(written))
    assert files is not None and files.contents[FILE] == train()
    # As in transformers, the symbol is found in a text.
    found = vocabularies.read(files, False, "it")
    assert [x.content for x in found.added] == ["<eod>"]
    assert found.kind == xlnet_vocabulary.XlnetSentencePieces.kind
