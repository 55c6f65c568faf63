"""Pruned checkpoints, compared with slices made by hand."""

import copy
import dataclasses
import itertools
import re

from bert_tf import modeling
from bert_tf.checkpoints import formats, names, opened, smaller
from bert_tf.contrib import awd_lstm, elmo_config
from bert_tf.encoders import albert, families
from bert_tf.errors import InputError
from bert_tf.storage import weight_files
from tests import combinations, reference
from tests import huggingface_models as hf
from tests import interop_samples as samples
from tests.huggingface_models import torch

import numpy as np
import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)
_LAYERS = (0, 2)
_LAYER = re.compile(r"bert/encoder/layer_(\d)/")
# The same number in each layer, different units.
_UNITS = [(0, 3, 5, 63), (1, 2, 60, 61), (7, 8, 9, 10)]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """Returns a three-layer classifier in our format."""
    folder = tmp_path_factory.mktemp("three")
    model = samples.random_model("classification", _CONFIG)
    return samples.write_tf1(folder, model, ("no", "yes", "so"))


def _by_hand(values, layers):
    """Keeps layers of a dict of tensors by their names."""
    found = {}
    for name, value in values.items():
        layer = _LAYER.match(name)
        if not layer:
            found[name] = value
        elif int(layer[1]) in layers:
            number = layers.index(int(layer[1]))
            after = name[layer.end() :]
            found[f"bert/encoder/layer_{number}/{after}"] = value
    return found


_PAIRS = [("tf1", "hf"), ("hf", "keras_hub"), ("keras_hub", "tf1")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "read, written",
    combinations.some(
        _PAIRS, itertools.product(weight_files.FORMATS, repeat=2)
    ),
)
def test_layers_of_each_format_in_each(tmp_path, folder, read, written):
    source = formats.open_checkpoint(folder)
    formats.write(f"{tmp_path}/whole", read, source)
    kept = smaller.keep_layers(
        formats.open_checkpoint(f"{tmp_path}/whole"), _LAYERS
    )
    assert kept.config is not None
    assert kept.config.num_hidden_layers == 2
    values = kept.read(list(kept.shapes))
    assert {n: x.shape for n, x in values.items()} == kept.shapes
    formats.write(f"{tmp_path}/small", written, kept)
    found = formats.open_checkpoint(f"{tmp_path}/small")
    assert found.config is not None
    assert found.config.num_hidden_layers == 2
    assert found.vocab == source.vocab
    if "keras_hub" not in (read, written):  # whose presets have no labels
        assert found.labels == ("no", "yes", "so")
    expected = _by_hand(samples.values(folder), _LAYERS)
    reference.assert_same(samples.values(f"{tmp_path}/small"), expected)


def _check(folder, kept, wanted):
    """Checks that our model, and transformers' of our folder, are as wanted."""
    formats.write(f"{folder}/small", "hf", kept)
    model, head = samples.load(f"{folder}/small")
    inputs = samples.batch(samples.config_of(model))
    # Without padding, whose id determines RoBERTa's positions.
    ids = inputs["input_ids"]
    inputs["input_ids"] = np.where(ids == 1, 2, ids)
    inputs["input_mask"] = np.ones_like(ids)
    for theirs in (wanted, hf.load(f"{folder}/small", type(wanted).__name__)):
        hf.compare(model, head, theirs, inputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "layers"),
    [
        ("BertForSequenceClassification", "bert.encoder.layer"),
        ("RobertaForSequenceClassification", "roberta.encoder.layer"),
        ("DistilBertForQuestionAnswering", "distilbert.transformer.layer"),
        ("BertForPreTraining", "bert.encoder.layer"),
    ],
)
def test_layers_as_transformers_without_some(tmp_path, architecture, layers):
    """transformers' pruned model, ours, and ours in transformers agree."""
    theirs = hf.make(architecture)
    path = hf.save(theirs, tmp_path / "whole")
    kept = smaller.keep_layers(formats.open_checkpoint(path), _LAYERS)
    wanted = copy.deepcopy(theirs)
    stack = [wanted.get_submodule(layers)[i] for i in _LAYERS]
    parent, _, name = layers.rpartition(".")
    kept_stack = torch.nn.ModuleList(stack)
    setattr(wanted.get_submodule(parent), name, kept_stack)
    _check(tmp_path, kept, wanted)


@pytest.mark.slow
def test_units_as_transformers_with_slices(tmp_path):
    theirs = hf.make("BertForSequenceClassification")
    path = hf.save(theirs, tmp_path / "whole")
    kept = smaller.keep_units(formats.open_checkpoint(path), _UNITS)
    assert kept.config is not None
    assert kept.config.intermediate_size == 4
    wanted = copy.deepcopy(theirs)
    for layer, units in zip(wanted.bert.encoder.layer, _UNITS, strict=True):
        inner, outer = layer.intermediate.dense, layer.output.dense
        inner.weight.data = inner.weight.data[list(units)]
        inner.bias.data = inner.bias.data[list(units)]
        outer.weight.data = outer.weight.data[:, list(units)]
    _check(tmp_path, kept, wanted)


def test_units_of_shared_layers_are_those_of_a_block(tmp_path):
    config = albert.AlbertConfig(
        **samples.SMALL | {"num_hidden_layers": 4}, num_hidden_groups=2
    )
    model = samples.random_model("classification", config)
    source = samples.source(tmp_path, model)
    kept = smaller.keep_units(source, _UNITS[:2])
    old, new = (x.read(list(x.shapes)) for x in (source, kept))
    changed = {name for name in old if old[name].shape != new[name].shape}
    block = "bert/encoder/transformer/group_{}/inner_group_0/ffn_1/intermediate"
    for group, units in enumerate(_UNITS[:2]):
        place = block.format(group)
        for name, axis in (
            (f"{place}/dense/kernel", 1),
            (f"{place}/dense/bias", 0),
            (f"{place}/output/dense/kernel", 0),
        ):
            changed.remove(name)
            rows = old[name].take(units, axis)
            np.testing.assert_array_equal(new[name], rows)
    assert not changed
    with pytest.raises(InputError, match="share their weights, so none can"):
        smaller.keep_layers(source, [0, 1])


def test_layers_of_different_sizes():
    """The first layer of an AWD-LSTM reads words, the last writes such."""
    config = awd_lstm.AwdLstmConfig(
        vocab_size=11, embedding_size=4, lstm_size=6, hidden_size=5
    )
    shapes = names.shapes(config, "encoder")
    source = opened.Checkpoint(
        "there", "tf1", shapes, lambda _: {}, config=config
    )
    kept = smaller.keep_layers(source, [0, 2])
    small = dataclasses.replace(config, num_hidden_layers=2)
    assert kept.config == small
    assert kept.shapes == names.shapes(small, "encoder")
    for layers in ([0, 1], [1, 2], [0]):
        with pytest.raises(InputError, match="the first and the last, too"):
            smaller.keep_layers(source, layers)


def test_families_tell_which_layers_share_weights():
    shared = {n for n, x in families.FAMILIES.items() if x.shares_layers}
    assert shared == {"albert"}


def test_values_of_each_layer_in_one_variable():
    """The mixture of an ELMo has one for the embeddings, too."""
    config = elmo_config.ElmoConfig(num_hidden_layers=3)
    shapes = names.shapes(config, "encoder")
    name = "elmo/mixture/weights"
    source = opened.Checkpoint(
        *("there", "tf1", shapes, lambda _: {name: np.arange(4)}), config=config
    )
    kept = smaller.keep_layers(source, [0, 2])
    small = dataclasses.replace(config, num_hidden_layers=2)
    assert kept.config == small
    assert kept.shapes == names.shapes(small, "encoder")
    assert [*kept.read([name])[name]] == [0, 1, 3]
