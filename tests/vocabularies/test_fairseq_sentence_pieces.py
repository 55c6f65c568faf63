"""The sentence pieces of XLM-R and CamemBERT, against fairseq's formula.

test_tokenizers.py splits texts in the graph and in bulk.
"""

import json

from bert_tf import vocabularies
from bert_tf.checkpoints import huggingface_tokenizer, tokenizer_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import sentence_models as vocabulary_models
from tests import sample_texts
from tests.vocabularies import sentence_models

import pytest

_TYPES = pytest.mark.parametrize("model_type", ["xlm-roberta", "camembert"])
# What the library `tokenizers` takes for white space and sentencepiece does
# not, the names of special tokens, and Greek, which the model does not know.
_OTHERS = ("\x85", "<unk>", "<s>", "<mask>", "</s>")


def _texts():
    texts = [*sentence_models.lines()[::20], *sample_texts.random_texts(3, 100)]
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    return [x for x in texts if not any(other in x for other in _OTHERS)]


@pytest.mark.slow
@_TYPES
def test_ids_are_fairseqs(model_type):
    vocabulary = sentence_models.fairseq_vocabulary(model_type)
    expected = sentence_models.fairseq_ids(model_type)
    assert not vocabulary.settings  # It has no casing.
    tokenizer = vocabulary.tokenizer()
    for text in _texts():
        pieces = tokenizer.tokenize(text)
        ids = tokenizer.convert_tokens_to_ids(pieces)
        assert ids == expected(text), text


def test_layouts():
    xlm_r = sentence_models.fairseq_vocabulary("xlm-roberta")
    assert xlm_r.pieces[:4] == ("<s>", "<pad>", "</s>", "<unk>")
    assert (xlm_r.pieces[-1], len(xlm_r.pieces)) == ("<mask>", 1502)
    assert xlm_r.template.row([7], [8, 9])[0] == [0, 7, 2, 2, 8, 9, 2]
    camembert = sentence_models.fairseq_vocabulary("camembert")
    assert camembert.pieces[1] == "<pad>"
    assert camembert.pieces[4:7] == ("<unk>NOTUSED", "<s>", "</s>")
    assert camembert.pieces[7:] == xlm_r.pieces[4:]
    assert camembert.template.row([7])[0] == [5, 7, 6]
    begins = [not x for x in xlm_r.continues]
    expected = [
        piece.startswith("▁") or (piece.startswith("<") and len(piece) > 1)
        for piece in xlm_r.pieces
    ]
    assert begins == expected


@pytest.mark.parametrize(
    ("values", "first"),
    [
        # With three added tokens, an XLM-R has as many as a CamemBERT.
        ({"model_type": "xlm-roberta", "vocab_size": 1505}, "<s>"),
        ({"bos_token_id": 0, "vocab_size": 1505}, "<s>"),
        ({"vocab_size": 1505}, "<s>NOTUSED"),
        ({"model_type": "camembert", "vocab_size": 1600}, "<s>NOTUSED"),
        ({"bos_token_id": 5, "vocab_size": 1600}, "<s>NOTUSED"),
        (None, "<s>"),
    ],
)
def test_layout_by_the_config(tmp_path, caplog, values, first):
    path = sentence_models.write_fairseq(tmp_path, "xlm-roberta")
    (tmp_path / "config.json").unlink()
    if values is not None:
        (tmp_path / "config.json").write_text(json.dumps(values))
    vocabulary = vocabularies.open(path, do_lower_case=False)
    assert vocabulary.pieces[0] == first
    assert ("no config.json" in caplog.text) == (values is None)


@pytest.mark.slow
@_TYPES
def test_transformers(tmp_path, model_type):
    """Its class makes of sentencepiece's file what we do, and we of its."""
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    kinds = {
        "xlm-roberta": transformers.XLMRobertaTokenizer,
        "camembert": transformers.CamembertTokenizer,
    }
    vocabulary = sentence_models.fairseq_vocabulary(model_type)
    sentence_models.write_fairseq(tmp_path, model_type)
    theirs = kinds[model_type].from_pretrained(tmp_path)
    tokenizer, template = vocabulary.tokenizer(), vocabulary.template
    texts = sentence_models.pages()[::10]
    texts = [x for x in texts if not any(other in x for other in _OTHERS)]
    ids = [
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(x)) for x in texts
    ]
    assert theirs(texts)["input_ids"] == [template.row(x)[0] for x in ids]
    pairs = theirs(texts[:-1], texts[1:])["input_ids"]
    for row, first, second in zip(pairs, ids[:-1], ids[1:], strict=True):
        if second:
            assert row == template.row(first, second)[0]
    saved = tmp_path / "saved"
    theirs.save_pretrained(saved)
    files = huggingface_tokenizer.read_vocab(str(saved))
    assert files is not None
    assert (files.kind, dict(files.contents)) == (
        vocabulary.kind,
        vocabulary.files,
    )
    # What is written for transformers, read again.
    written = tmp_path / "written"
    written.mkdir()
    assert tokenizer_files.write(str(written), vocabulary, max_length=64)
    (written / "config.json").write_text(json.dumps({"model_type": model_type}))
    again = transformers.AutoTokenizer.from_pretrained(written)
    assert again(texts)["input_ids"] == theirs(texts)["input_ids"]
    files = huggingface_tokenizer.read_vocab(str(written))
    assert files is not None and dict(files.contents) == vocabulary.files
    # Older versions save no tokenizer.json.
    assert not (written / "sentencepiece.bpe.model").exists()


@pytest.mark.slow
def test_added_tokens_follow_the_mask(tmp_path):
    path = sentence_models.write_fairseq(tmp_path, "xlm-roberta")
    (tmp_path / "added_tokens.json").write_text('{"[E1]": 1502}')
    vocabulary = vocabularies.open(path, do_lower_case=False)
    assert vocabulary.pieces[-2:] == ("<mask>", "[E1]")
    assert vocabulary.special.mask.id == 1501
    assert "[E1]" in vocabulary.tokenizer().tokenize("the [E1] end")


@pytest.mark.slow
def test_an_unused_number_stays_unused_in_a_tokenizer_json(tmp_path):
    path = sentence_models.write_fairseq(tmp_path, "xlm-roberta")
    proto = vocabulary_models.parse(path.read_bytes(), "x")
    proto.pieces[20].piece = "77,"
    proto.pieces[20].type = proto.pieces[20].UNUSED
    path.write_bytes(proto.SerializeToString())
    vocabulary = vocabularies.open(path, do_lower_case=False)
    written = tmp_path / "written"
    written.mkdir()
    assert tokenizer_files.write(str(written), vocabulary, max_length=64)
    again = vocabularies.open(written / "tokenizer.json", do_lower_case=False)
    assert again.files == vocabulary.files
    assert "77," not in again.tokenizer().tokenize("a77,")


def test_other_models_are_refused(tmp_path):
    path = tmp_path / "sentencepiece.bpe.model"
    path.write_bytes(sentence_models.train())
    with pytest.raises(InputError, match="must begin with <unk>, <s>, </s>"):
        vocabularies.open(path, do_lower_case=False)
    kind = "fairseq_sentence_pieces"
    files = vocabularies.Files(kind, {path.name: sentence_models.train()})
    with pytest.raises(InputError, match="must begin with <s> <pad> </s>"):
        vocabularies.read(files, False, "x")
