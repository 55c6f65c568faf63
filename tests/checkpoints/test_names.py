"""The tables of names, without any files."""

import dataclasses
import itertools
import math

from bert_tf import modeling, options
from bert_tf.checkpoints import (
    huggingface_names,
    keras_hub_names,
    names,
    original,
)
from bert_tf.encoders import (
    albert,
    distilbert,
    electra,
    families,
    family,
    roberta,
)
from bert_tf.errors import InputError
from tests import interop_samples as samples

import pytest
import tensorflow as tf

_CONFIG = modeling.BertConfig(**samples.SMALL)
_BERT = huggingface_names.find_tables(_CONFIG, "encoder")


_ELECTRA = electra.ElectraConfig(**samples.SMALL, embedding_size=16)
_SHARED = albert.AlbertConfig(
    **samples.SMALL | {"num_hidden_layers": 4},
    embedding_size=16,
    num_hidden_groups=2,
    inner_group_num=2,
)
_MAPPED = dataclasses.replace(_SHARED, embedding_size=32, maps_embeddings=True)
_EQUAL = dataclasses.replace(_ELECTRA, embedding_size=32)
_POOLED = dataclasses.replace(_ELECTRA, pooler_act="gelu_erf")


# Heads of next tokens are tested in encoders/test_left_to_right.py, and of
# encoder-decoders in seq2seq/test_encoder_decoders.py. Encoders of language
# models have separate tests, as have permuted words.
@pytest.mark.parametrize(
    "head, config",
    [
        *(
            (head, _CONFIG)
            for head in sorted(
                names.HEADS.keys()
                - {"next_piece", "both_directions"}
                - {"permuted_words", "seq2seq"}
            )
        ),
        *(
            ("encoder", kind(**samples.SMALL | {"type_vocab_size": types}))
            for kind, types in (
                (roberta.RobertaConfig, 1),
                (distilbert.DistilBertConfig, 0),
            )
        ),
        *itertools.product(
            ("encoder", "pretraining", "tagging"), (_SHARED, _MAPPED)
        ),
        *itertools.product(
            ("encoder", "replaced_tokens", "tagging"),
            (_ELECTRA, _EQUAL, _POOLED),
        ),
    ],
)
def test_shapes_are_those_of_our_models(head, config):
    model = samples.model(head, config)
    expected = {v.path: tuple(v.shape) for v in model.variables}
    assert names.shapes(config, head, samples.NUM_LABELS) == expected
    is_untrained = len(model.variables) - len(model.trainable_variables)
    # RoBERTa's only token type.
    assert is_untrained == (config.model_type == "roberta")
    assert len(expected) == len(model.variables)
    assert names.find_head(expected, "x") == head


@pytest.mark.parametrize(
    "head, scope",
    # google-research/bert: create_model of run_classifier.py and run_squad.py.
    [("classification", ""), ("span", "cls/squad/")],
)
def test_names_of_the_originals_fine_tuning(head, scope):
    own = {f"{scope}output_weights", f"{scope}output_bias"}
    assert names.HEADS[head].variables.keys() == own


def test_objectives_of_families_that_are_registered_later(monkeypatch):
    monkeypatch.setattr(families, "FAMILIES", {**families.FAMILIES})
    monkeypatch.setattr(names, "HEADS", {**names.HEADS})
    monkeypatch.setattr(options, "HEADS", [*options.HEADS])

    def register(name, head):
        fields = {"model_type": name, "pretraining_head": head}
        families.register(
            dataclasses.replace(
                families.BERT,
                name=name,
                config=type("Config", (modeling.BertConfig,), fields),
                pretrainer=family.Pretrainer(
                    modeling.Bert, {"cls/later/output_bias": "V"}, "It learns."
                ),
            )
        )

    register("later_bert", "later_words")
    assert names.find_head({"cls/later/output_bias"}, "x") == "later_words"
    with pytest.raises(InputError, match="those of later_words"):
        register("latest_bert", "latest_words")
    assert "latest_bert" not in families.FAMILIES


@pytest.mark.parametrize("kind", ["bilstm_attention", "encoder-decoder"])
@pytest.mark.parametrize("head", ["tagging", "seq2seq"])
def test_decoders_are_counted_with_their_head_alone(kind, head):
    config = families.FAMILIES[kind].config(11)
    shapes = names.shapes(config, head)
    expected = sum(map(math.prod, shapes.values()))
    assert names.parameters(config, head) == expected
    has_decoder = any(name.startswith("decoder/layer_0/") for name in shapes)
    assert has_decoder == (head == "seq2seq")


def test_names_of_a_layer_are_counted():
    start, dotted = "generator/encoder/layer_{}", "electra.encoder.layer.{}"
    found = [
        "cls/predictions/output_bias",
        *(start.format(f"0/output/{x}") for x in "abcde"),
        *(start.format(f"10/output/{x}") for x in "abcdef"),
        *(start.format(f"11/output/{x}") for x in "ab"),
        *(dotted.format(f"3.output.{x}") for x in "abcde"),
    ]
    assert names.listed(found) == (
        "cls/predictions/output_bias, "
        "generator/encoder/layer_0/* (5 variables), "
        "generator/encoder/layer_10/* (6 variables), "
        "generator/encoder/layer_11/output/a, "
        "generator/encoder/layer_11/output/b, "
        "electra.encoder.layer.3.* (5 variables)"
    )
    assert names.listed([]) == ""


@pytest.mark.parametrize("head", _BERT.heads)
def test_tables_are_one_to_one_and_complete(head):
    tables = [huggingface_names.table(_CONFIG, head)]
    if keras_hub_names.head_there(_CONFIG, head) == head:
        tables.append(keras_hub_names.table(_CONFIG, head))
    for rows in tables:
        assert {row.ours for row in rows} == names.shapes(_CONFIG, head).keys()
        assert len({row.theirs for row in rows}) == len(rows)


def test_older_names_of_huggingface():
    found = {
        "bert.embeddings.LayerNorm.weight": "embeddings.LayerNorm.gamma",
        "bert.encoder.layer.0.output.LayerNorm.bias": (
            "bert.encoder.layer.0.output.LayerNorm.beta"
        ),
        "bert.encoder.layer.0.output.dense.bias": (
            "encoder.layer.0.output.dense.bias"
        ),
        "bert.pooler.dense.weight": "pooler.dense.weight",
        "classifier.bias": "classifier.bias",
    }
    theirs = [*found.values(), "embeddings.position_ids"]
    assert huggingface_names.canonical(_BERT, theirs) == found


def test_defaults_of_huggingface():
    config = huggingface_names.to_config({})
    assert config == modeling.BertConfig(
        vocab_size=30522, type_vocab_size=2, hidden_act="gelu_erf"
    )


@pytest.mark.parametrize(
    "values, message",
    [
        (
            {"model_type": "t5", "architectures": ["T5Model"]},
            "This is a t5 model, not BERT, and only these can be read: a",
        ),
        (
            {"model_type": "ibert", "architectures": ["IBertModel"]},
            "This is an ibert model, not BERT",
        ),
        ({"model_type": "mpnet"}, "Received: model_type=mpnet"),
        (
            {"hidden_size": 8},
            "num_attention_heads=12 (not in the file, so the default)",
        ),
        ({"attention_type": "block_sparse"}, "must be 'original_full'"),
        (
            {"position_embedding_type": "relative_key"},
            "must be 'absolute'. Received: position_embedding_type='relat",
        ),
        ({"hidden_act": "laplace"}, "hidden_act='laplace'"),
    ],
)
def test_what_is_no_bert_of_ours(values, message):
    with pytest.raises(ValueError) as error:
        huggingface_names.to_config(values)
    assert message in str(error.value)


def test_a_classifier_of_what():
    found = {"classifier.weight", "classifier.bias"}
    for name, head in (
        ("BertForTokenClassification", "tagging"),
        ("BertForMultipleChoice", "multiple_choice"),
        ("BertForSequenceClassification", "classification"),
    ):
        values = {"architectures": [name]}
        assert huggingface_names.find_head(_BERT, values, found) == head
    with pytest.raises(ValueError, match=r"architectures=\['BertOfMine'\]"):
        huggingface_names.find_head(
            _BERT, {"architectures": ["BertOfMine"]}, found
        )


class TestCheck:
    def _check(self, **changes):
        found = names.shapes(_CONFIG, "classification", 3)
        config = modeling.BertConfig(**samples.SMALL | changes)
        names.check(config, found, "some/model")

    def test_what_fits(self):
        self._check()
        encoder = names.shapes(_CONFIG, "encoder")
        names.check(
            _CONFIG,
            {n: s for n, s in encoder.items() if n not in families.BERT.pooler},
            "no pooler, no head",
        )

    def test_what_does_not(self):
        message = r"type_embeddings is \[2, 32\] there and \[2, 16\] by.*and 50"
        with pytest.raises(ValueError, match=message):
            self._check(hidden_size=16)

    @pytest.mark.parametrize(
        "left",
        [
            # Slots of TF1's optimizers, and averages of weights.
            "bert/encoder/layer_2/output/dense/kernel/Adam_1",
            "bert/embeddings/word_embeddings/ExponentialMovingAverage",
            # Names outside any encoder.
            "beta1_power",
            "cls/mine/output_weights",
            "decoder/layer_0/kernel",
            "task/kernel",
        ],
    )
    def test_what_may_be_left(self, left):
        found = names.shapes(_CONFIG, "pretraining")
        names.check(_CONFIG, {**found, left: (32,)}, "x")

    @pytest.mark.parametrize(
        "left",
        [
            "bert/encoder/layer_1/adapter/kernel",
            "bert/encoder/layer_01/output/dense/bias",
            "bert/encoder/layer_7/output/dense/bias",
            "bert/encoder/layer_7/output/dense/bias/Adam",
            "bert/embeddings_project/kernel",
            "bert/embeddings/sentence_embeddings",
        ],
    )
    def test_what_the_encoder_does_not_know(self, left):
        found = names.shapes(_CONFIG, "pretraining")
        with pytest.raises(InputError, match=f"config beside them: {left} is "):
            names.check(_CONFIG, {**found, left: (32,)}, "x")

    def test_a_head_of_another_size(self):
        found = names.shapes(_CONFIG, "pretraining")
        found["cls/predictions/output_bias"] = (39,)
        with pytest.raises(ValueError, match=r"output_bias is \[39\] there"):
            names.check(_CONFIG, found, "x")


class TestCheckOfSharedLayers:
    @pytest.mark.parametrize(
        "changes, message",
        [
            ({}, None),
            # More layers that share the same weights.
            ({"num_hidden_layers": 6}, None),
            (
                {"num_hidden_groups": 1},
                "group_1/inner_group_0/LayerNorm/beta is not in the config, "
                "which says num_hidden_groups=1, inner_group_num=2; ",
            ),
            (
                {"inner_group_num": 1},
                "group_0/inner_group_1/LayerNorm/beta is not in the config, "
                "which says num_hidden_groups=2, inner_group_num=1; ",
            ),
            (
                {"num_hidden_groups": 3},
                "group_2/inner_group_0/LayerNorm/beta is not there; ",
            ),
        ],
    )
    def test_groups(self, changes, message):
        sizes = samples.SMALL | {"embedding_size": 16}
        counts = {"num_hidden_groups": 2, "inner_group_num": 2}
        written = albert.AlbertConfig(**sizes | counts)
        config = albert.AlbertConfig(**sizes | counts | changes)
        found = names.shapes(written, "pretraining")
        slots = {f"{n}/adam_{x}": s for n, s in found.items() for x in "mv"}
        if message is None:
            names.check(config, found | slots, "some/model")
            return
        with pytest.raises(InputError, match=message):
            names.check(config, found | slots, "some/model")

    def test_a_mapping_that_the_config_lacks(self):
        written = albert.AlbertConfig(
            **samples.SMALL, embedding_size=32, maps_embeddings=True
        )
        found = names.shapes(written, "encoder")
        names.check(written, found, "x")
        config = dataclasses.replace(written, maps_embeddings=False)
        with pytest.raises(InputError) as error:
            names.check(config, found, "x")
        assert str(error.value).endswith(
            ": bert/encoder/embedding_hidden_mapping_in/bias is not in the "
            "config; bert/encoder/embedding_hidden_mapping_in/kernel is not in "
            "the config. Use the config that belongs to them, or copy the "
            "weights again."
        )


class TestTf1:
    @pytest.mark.parametrize(
        "folder", ["chinese_L-12_H-768_A-12", "uncased_L-8_H-512_A-8"]
    )
    def test_released_names_are_ours(self, shared_data, folder):
        path = shared_data / "tf1_index" / folder
        config = modeling.BertConfig.from_json_file(
            str(path / "bert_config.json")
        )
        stored = dict(tf.train.list_variables(str(path / "bert_model.ckpt")))
        found = {name: tuple(shape) for name, shape in stored.items()}
        # Nothing is left over.
        assert found == names.shapes(config, "pretraining")
        assert original.scope(found, folder) == ""

    @pytest.mark.parametrize(
        "encoder",
        [
            names.shapes(_CONFIG, "encoder").keys(),
            {"electra/embeddings/word_embeddings"},
        ],
        ids=["bert", "electra"],
    )
    def test_a_scope_before_the_names(self, encoder):
        found = {f"module/{name}" for name in encoder}
        assert original.scope(found, "x") == "module/"
        with pytest.raises(ValueError, match=r"more than one BERT.*'', 'mod"):
            original.scope(found | encoder, "x")
