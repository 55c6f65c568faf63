"""All families in files of other libraries, compared with these libraries."""

import json
import pathlib
import shutil
from typing import Any

from bert_tf import modeling
from bert_tf.checkpoints import formats, huggingface_names, model_files
from bert_tf.encoders import (
    albert,
    distilbert,
    electra,
    families,
    ops,
    roberta,
)
from bert_tf.errors import InputError
from tests import combinations, reference
from tests import huggingface_models as hf
from tests import interop_samples as samples

import keras
import keras_hub
import numpy as np
import pytest
import safetensors
import tensorflow as tf
from safetensors import torch as safetensors_torch

pytestmark = pytest.mark.slow

_ROWS = (
    *(roberta.ROBERTA, distilbert.DISTILBERT, roberta.XLM_ROBERTA),
    *(roberta.CAMEMBERT, roberta.DATA2VEC_TEXT),
)
_SHARED: dict[str, Any] = {"embedding_size": 16, "num_hidden_layers": 4}
_EQUAL: dict[str, Any] = {"embedding_size": 32}
_OF_BERT: dict[str, Any] = {"layer_norm_eps": 1e-5}
_DECODER: dict[str, Any] = {"is_decoder": True}
# An architecture of transformers, its head here, and changes of its config.
_MODELS: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (found.architecture, head, changes)
        for row, changes in (
            *((x, dict[str, Any]()) for x in _ROWS),
            (families.BERT, _OF_BERT),
            *((albert.ALBERT, _SHARED), (electra.ELECTRA, _SHARED)),
        )
        if row.huggingface
        for head, found in row.huggingface.heads.items()
    ),
    ("AlbertModel", "encoder", _SHARED | {"num_hidden_groups": 2}),
    ("AlbertModel", "encoder", _SHARED | {"num_hidden_groups": 3}),
    (
        *("AlbertModel", "encoder"),
        _SHARED | {"num_hidden_groups": 2, "inner_group_num": 2},
    ),
    ("AlbertForPreTraining", "pretraining", _EQUAL),
    ("ElectraModel", "encoder", _EQUAL),
    ("ElectraForPreTraining", "replaced_tokens", _EQUAL),
    ("ElectraForMaskedLM", "masked_lm", _EQUAL),
    # The activation of these heads is fixed.
    ("RobertaForMaskedLM", "masked_lm", {"hidden_act": "relu"}),
    ("ElectraForMaskedLM", "masked_lm", _EQUAL | {"hidden_act": "relu"}),
    *(
        (f"Ernie{name}", head, _OF_BERT)
        for name, head in (
            *(("Model", "encoder"), ("ForPreTraining", "pretraining")),
            ("ForSequenceClassification", "classification"),
        )
    ),
    ("BertGenerationEncoder", "encoder", {}),
    ("BertLMHeadModel", "next_piece", _DECODER),
    ("BertForTokenClassification", "tagging", _DECODER),
]


def _inputs(model):
    inputs = samples.batch(samples.config_of(model))
    # transformers derives positions from the padding id, so no token has it.
    ids = np.where(inputs["input_ids"] == 1, 2, inputs["input_ids"])
    is_roberta = isinstance(samples.config_of(model), roberta.RobertaConfig)
    pad = 1 if is_roberta else 0
    inputs["input_ids"] = np.where(inputs["input_mask"] > 0, ids, pad)
    return {name: np.int32(x) for name, x in inputs.items()}


def _compare(model, head, theirs):
    config = samples.config_of(model)
    if config.model_type not in {row.name for row in _ROWS}:
        hf.compare(model, head, theirs, samples.batch(config))
        return
    inputs = _inputs(model)
    is_token = inputs["input_mask"] > 0
    assert not is_token.all()
    hf.compare(model, head, theirs, inputs, is_token)


# Heads that are the same in several families. CI tests each of them once, and
# the classifiers that have more layers than BERT's.
_ALIKE = {"classification", "tagging", "span", "multiple_choice"}
_OF_ALIKE = {
    *("RobertaForSequenceClassification", "RobertaForTokenClassification"),
    *("DistilBertForSequenceClassification", "DistilBertForMultipleChoice"),
    *("BertForTokenClassification", "BertForMultipleChoice"),
    *("AlbertForSequenceClassification", "AlbertForQuestionAnswering"),
    *("ElectraForSequenceClassification", "ElectraForTokenClassification"),
    "ErnieForSequenceClassification",
}


@pytest.mark.parametrize(
    "architecture, head, changes",
    combinations.some(
        [x for x in _MODELS if x[1] not in _ALIKE or x[0] in _OF_ALIKE],
        _MODELS,
    ),
)
def test_transformers(tmp_path, architecture, head, changes):
    theirs = hf.make(architecture, **changes)
    source = hf.save(theirs, tmp_path / "theirs")
    opened = formats.open_checkpoint(source)
    assert opened.left_over == ()
    model, found = samples.load(source)
    assert found == head
    _compare(model, head, theirs)
    # Converted through our own format.
    formats.write(str(tmp_path / "ours"), "tf1", opened)
    again = formats.open_checkpoint(str(tmp_path / "ours"))
    assert again.config == opened.config
    formats.write(str(tmp_path / "again"), "hf", again)
    samples.assert_equal(source, str(tmp_path / "again"))
    inputs = _inputs(model)
    if head == "multiple_choice":
        inputs = {name: x[:, None] for name, x in inputs.items()}
    loaded = hf.load(tmp_path / "again", architecture)
    outputs = (hf.their_logits(x, inputs) for x in (loaded, theirs))
    for found, wanted in zip(*outputs, strict=True):
        np.testing.assert_allclose(
            found, wanted, rtol=0, atol=samples.TOLERANCE
        )


class TestConfigs:
    @pytest.mark.parametrize(
        ("name", "changes"),
        [
            *(("RobertaModel", {}), ("DistilBertModel", {})),
            *(("XLMRobertaModel", {}), ("Data2VecTextModel", {})),
            *(("ElectraModel", _EQUAL), ("ElectraModel", _SHARED)),
        ],
    )
    def test_theirs_for_ours(self, tmp_path, name, changes):
        theirs = hf.make(name, **changes)
        path = tmp_path / "all.json"
        path.write_text(theirs.config.to_json_string(use_diff=False))
        assert families.read_config(str(path)).vocab_size == 40
        folder = hf.save(theirs, tmp_path)
        config = families.read_config(f"{folder}/config.json")
        assert config == formats.open_checkpoint(folder).config
        assert config.hidden_act == "gelu_erf"
        assert config.max_position_embeddings == 20
        path = tmp_path / "ours.json"
        path.write_text(config.to_json())
        assert families.read_config(str(path)) == config
        again = huggingface_names.from_config(config, "encoder", None)
        values = theirs.config.to_dict()
        assert {k: values[k] for k in again if k in values} == again

    @pytest.mark.parametrize(
        "values, message",
        [
            (
                {"max_position_embeddings": 2, "pad_token_id": 1},
                "must be more than 2: 514 for 512 tokens. Received: max_p",
            ),
            ({"pad_token_id": 0}, "`pad_token_id` must be 1"),
            ({"architectures": ["BertModel"]}, "a BertModel, not BERT"),
            ({"nonsense": 1}, "unknown keys: nonsense"),
        ],
    )
    def test_no_roberta(self, tmp_path, values, message):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"model_type": "roberta"} | values))
        with pytest.raises(InputError) as error:
            families.read_config(str(path))
        assert message in str(error.value)

    def test_a_distilbert_has_no_token_types(self):
        with pytest.raises(InputError, match="`type_vocab_size` has no"):
            distilbert.DistilBertConfig(40, type_vocab_size=2)
        with pytest.raises(InputError, match="type_vocab_size=0"):
            modeling.BertConfig(40, type_vocab_size=0)


def _preset(row, kind, folder):
    name, sizes = row.keras_hub.name, {}
    if row is albert.ALBERT:
        sizes = {"embedding_dim": 16, "num_groups": 2, "num_segments": 2}
        sizes |= {"num_inner_repetitions": 2}
    keras.utils.set_random_seed(1)
    backbone = getattr(keras_hub.models, f"{name}Backbone")(
        vocabulary_size=40,
        num_layers=2,
        num_heads=4,
        hidden_dim=32,
        intermediate_dim=64,
        max_sequence_length=20,
        **sizes,
    )
    model = backbone
    if kind != "Backbone":
        made = getattr(keras_hub.models, name + kind)
        count = [samples.NUM_LABELS] if kind == "TextClassifier" else []
        model = made(backbone, *count)
    samples.randomize(model.trainable_variables, 1)
    model.save_to_preset(str(folder))
    return model


_KINDS = [
    ("Backbone", "encoder"),
    ("TextClassifier", "classification"),
    ("MaskedLM", "masked_lm"),
]
_PRESETS = [families.BERT, *_ROWS, albert.ALBERT]


@pytest.mark.parametrize(
    "row, kind, head",
    combinations.some(
        [
            (families.BERT, *_KINDS[2]),
            (roberta.ROBERTA, *_KINDS[0]),
            (distilbert.DISTILBERT, *_KINDS[1]),
            *((albert.ALBERT, *kind) for kind in _KINDS[::2]),
        ],
        [(x, *y) for x in _PRESETS for y in _KINDS],
    ),
)
def test_keras_hub(tmp_path, row, kind, head):
    theirs = _preset(row, kind, tmp_path / "theirs")
    source = formats.open_checkpoint(str(tmp_path / "theirs"))
    assert source.config is not None
    assert source.config.model_type == row.name
    model, found = samples.load(str(tmp_path / "theirs"))
    assert found == head
    inputs = _inputs(model)
    is_token = inputs["input_mask"] > 0
    given = samples.keras_hub_inputs(inputs)
    if row in _ROWS:
        del given["segment_ids"]
    if head == "masked_lm":
        given["mask_positions"] = inputs["masked_lm_positions"]
    ours, wanted = model(inputs), theirs(given)
    if isinstance(wanted, dict):
        pooled = wanted["pooled_output"]
        np.testing.assert_allclose(ours.pooled, pooled, atol=samples.TOLERANCE)
        wanted = wanted["sequence_output"]
    ours = np.asarray(ours.sequence if head == "encoder" else ours)
    wanted = np.asarray(wanted)
    if head != "classification":
        ours, wanted = ours[is_token], wanted[is_token]
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=samples.TOLERANCE)
    # And converted back, bit for bit.
    formats.write(str(tmp_path / "again"), "keras_hub", source)
    again = type(theirs).from_preset(str(tmp_path / "again"))
    reference.assert_same(
        *(
            {v.path: v.numpy() for v in x.trainable_variables}
            for x in (again, theirs)
        )
    )


def test_an_albert_without_their_mapping_is_not_written(tmp_path):
    config = albert.AlbertConfig(**samples.SMALL, **_EQUAL)
    model = samples.random_model("encoder", config)
    source = samples.source(tmp_path / "tf1", model)
    for kind in ("hf", "keras_hub"):
        with pytest.raises(InputError, match="embedding_hidden_mapping_in"):
            formats.write(str(tmp_path / kind), kind, source)
        assert not (tmp_path / kind).exists()


def test_a_chinese_albert_has_word_pieces(tmp_path):
    """As in Google's albert_base_zh: its files, and its vocabulary by name."""
    model = samples.random_model(
        "encoder", albert.AlbertConfig(**samples.SMALL)
    )
    folder = pathlib.Path(samples.write_tf1(tmp_path / "zh", model))
    for path in folder.glob("bert_model.ckpt.*"):
        path.rename(
            folder / path.name.replace("bert_model.ckpt", "model.ckpt-best")
        )
    (folder / "bert_config.json").rename(folder / "albert_config.json")
    given = str((folder / "vocab.txt").rename(tmp_path / "vocab_chinese.txt"))
    source = formats.open_checkpoint(str(folder))
    assert source.config == model.config
    assert source.vocab is None
    found = model_files.find_vocab(given, source)
    assert found.kind == "word_pieces"
    shutil.copy(given, folder)
    assert formats.open_checkpoint(str(folder)).vocab == found


@pytest.mark.parametrize(
    ("architecture", "said", "positions"),
    [
        ("RobertaModel", {"model_type": "bert"}, 22),
        ("RobertaModel", {"model_type": "bert", "eos_token_id": None}, 130),
        ("RobertaForMaskedLM", {"model_type": None}, 514),
    ],
)
def test_a_roberta_that_does_not_say_so(
    tmp_path, architecture, said, positions, caplog
):
    theirs = hf.make(architecture, max_position_embeddings=positions)
    folder = hf.save(theirs, tmp_path / "it")
    path = tmp_path / "it" / "config.json"
    values = json.loads(path.read_text())
    values |= {"architectures": None, **said}
    path.write_text(json.dumps(values))
    model, head = samples.load(folder)
    assert "is read as roberta" in caplog.text
    _compare(model, head, theirs)


def test_a_decoder_s_pooled_output(tmp_path, caplog):
    """transformers takes the first token, which sees no other."""
    theirs = hf.make("BertModel", is_decoder=True)
    model, head = samples.load(hf.save(theirs, tmp_path))
    assert head == "encoder"
    assert "computed from the last token, in transformers" in caplog.text
    inputs = samples.batch(model.config)
    with hf.torch.no_grad():
        wanted = theirs(**hf.their_inputs(inputs)).last_hidden_state
    is_token = inputs["input_mask"] > 0
    found = model(inputs).sequence[is_token]
    np.testing.assert_allclose(found, wanted[is_token], rtol=0, atol=1e-5)


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row.name)
def test_defaults_of_a_config(row):
    kind = row.huggingface.model_type or row.name
    whole = hf.transformers.AutoConfig.for_model(kind).to_dict()
    assert huggingface_names.to_config({"model_type": kind}) == (
        huggingface_names.to_config(whole)
    )


@pytest.mark.parametrize(
    "architecture", ["BertModel", "RobertaModel", "DistilBertModel"]
)
def test_rates_of_dropout(monkeypatch, architecture):
    """As many as in transformers, in the same order."""
    is_distilbert = architecture.startswith("Distil")
    names = (
        ("dropout", "attention_dropout")
        if is_distilbert
        else ("hidden_dropout_prob", "attention_probs_dropout_prob")
    )
    rates = dict(zip(names, (0.2, 0.3), strict=True))
    theirs = hf.make(architecture, **rates, attn_implementation="eager")
    config = huggingface_names.to_config(theirs.config.to_dict())
    inputs = samples.batch(config)
    wanted: list[float] = []
    found: list[float] = []

    def drop(x, p=0.5, training=True, inplace=False):
        wanted.append(p)
        return x

    def dropout(x, rate, seed):
        found.append(rate)
        return x

    monkeypatch.setattr(hf.torch.nn.functional, "dropout", drop)
    monkeypatch.setattr(ops, "dropout", dropout)
    theirs.train()(hf.torch.tensor(np.int64(inputs["input_ids"])))
    families.make(config)(inputs, tf.constant([1, 2]))
    assert [x for x in found if x] == wanted


def test_tied_words_under_their_second_name(tmp_path):
    """safetensors keeps the first name in the alphabet."""
    theirs = hf.make("RobertaForMaskedLM")
    folder = hf.save(theirs, tmp_path)
    path = str(tmp_path / "model.safetensors")
    safetensors_torch.save_model(theirs, path)
    with safetensors.safe_open(path, "np") as file:
        names = set(file.keys())
    assert "lm_head.decoder.weight" in names
    assert "roberta.embeddings.word_embeddings.weight" not in names
    model, head = samples.load(folder)
    _compare(model, head, theirs)
