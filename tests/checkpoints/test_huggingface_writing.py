"""Hugging Face folders that are written, compared with transformers."""

import dataclasses
from typing import Any

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, huggingface_names, keras_hub_names
from bert_tf.contrib import left_to_right, xlnet_config
from bert_tf.encoders import families, roberta
from tests import huggingface_models as hf
from tests import interop_samples as samples
from tests.huggingface_models import transformers

import pytest
from safetensors import numpy as safetensors_numpy

_CONFIG = modeling.BertConfig(**samples.SMALL)
_HEADS = huggingface_names.find_tables(_CONFIG, "encoder").heads


def convert(folder, model, **given):
    """Writes a model in both formats; returns the source and the result."""
    source = samples.source(folder / "tf1", model, **given)
    return source, formats.write(str(folder / "hf"), "hf", source)


@pytest.mark.parametrize(
    "head, act", [("classification", "gelu"), ("masked_lm", "relu")]
)
def test_transformers_loads_it(tmp_path, head, act):
    config = dataclasses.replace(_CONFIG, hidden_act=act, layer_norm_eps=1e-6)
    model = samples.random_model(head, config)
    _, written = convert(tmp_path, model)
    # transformers builds no pooler if the head does not need it.
    has_pooler = huggingface_names.has_pooler(config, head)
    left_out = () if has_pooler else tuple(sorted(families.BERT.pooler))
    assert written.left_out == left_out
    theirs = hf.load(tmp_path / "hf", _HEADS[head].architecture)
    hf.compare(model, head, theirs, samples.batch(config))


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_an_encoder_of_either_spelling(tmp_path, prefix):
    model = samples.random_model("encoder", _CONFIG)
    convert(tmp_path, model)
    path = tmp_path / "hf" / "model.safetensors"
    tensors = safetensors_numpy.load_file(path)
    # Names that earlier versions of this package wrote, too.
    renamed = {f"{prefix}{name}": x for name, x in tensors.items()}
    safetensors_numpy.save_file(renamed, path, {"format": "pt"})
    samples.assert_equal(str(tmp_path / "hf"), str(tmp_path / "tf1"))
    for kind in ("BertModel", "AutoModel"):
        theirs = hf.load(tmp_path / "hf", kind)
        hf.compare(model, "encoder", theirs, samples.batch(_CONFIG))


@pytest.mark.parametrize("several", [False, True])
def test_auto_classes(tmp_path, several):
    config = dataclasses.replace(
        _CONFIG, problem_type=modeling.MULTI_LABEL if several else None
    )
    labels = ("no", "yes", "so")
    model = samples.random_model("classification", config)
    source, _ = convert(tmp_path, model, labels=labels)
    folder = str(tmp_path / "hf")
    auto = transformers.AutoModelForSequenceClassification
    theirs = auto.from_pretrained(folder)
    assert theirs.config.id2label == dict(enumerate(labels))
    kind = "multi" if several else "single"
    assert theirs.config.problem_type == f"{kind}_label_classification"
    again = formats.open_checkpoint(folder)
    assert again.config == source.config
    assert again.labels == labels
    assert again.vocab == source.vocab


@pytest.mark.parametrize("labels", [None, ("similarity",)])
def test_regression(tmp_path, labels):
    model = heads.BertClassifier(modeling.Bert(_CONFIG), 1)
    convert(tmp_path, model, labels=labels)
    config = transformers.AutoConfig.from_pretrained(tmp_path / "hf")
    assert (config.num_labels, config.problem_type) == (1, "regression")
    assert [*config.id2label.values()] == [*(labels or ["LABEL_0"])]
    assert formats.open_checkpoint(str(tmp_path / "hf")).labels is None


def test_a_head_that_computes_otherwise(tmp_path):
    config = dataclasses.replace(_CONFIG, transform_act="gelu_erf")
    _, written = convert(tmp_path, heads.BertMaskedLM(modeling.Bert(config)))
    (note,) = written.notes
    assert "transform_act=gelu_erf" in note


def test_a_head_whose_activation_is_fixed():
    config = roberta.RobertaConfig(40, hidden_act="relu")
    (note,) = huggingface_names.differences(config, "masked_lm")
    assert "transform_act=relu" in note
    assert "transformers with gelu_erf" in note
    config = dataclasses.replace(config, transform_act="gelu_erf")
    assert not huggingface_names.differences(config, "masked_lm")


@pytest.mark.slow
def test_a_pooler_that_computes_otherwise(tmp_path):
    config = dataclasses.replace(_CONFIG, pooler_act="relu")
    source, written = convert(tmp_path, modeling.Bert(config))
    assert source.config == config
    (note,) = written.notes
    assert "pooler_act=relu" in note
    written = formats.write(str(tmp_path / "hub"), "keras_hub", source)
    assert any("pooler_act=tanh instead of relu" in x for x in written.notes)


def test_a_pooler_of_the_last_token():
    config = left_to_right.LeftToRightConfig(40)
    (note,) = huggingface_names.differences(config, "encoder")
    assert "from the last token, in transformers from the first" in note
    assert not huggingface_names.differences(config, "tagging")


@pytest.mark.parametrize(
    "kind",
    [
        *("bert", "roberta", "distilbert", "albert", "electra", "ernie"),
        *("openai-gpt", "xlnet"),
    ],
)
def test_transformers_goes_on_with_the_dropout_of_each_head(kind):
    family = families.FAMILIES[kind]
    sizes: dict[str, Any] = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    names = [x.name for x in dataclasses.fields(family.config)]
    sizes |= dict.fromkeys([x for x in names if "dropout" in x], 0.3)
    config = family.config(40, **sizes)
    written = family.huggingface
    assert written
    for head in ("classification", "tagging", "span", "multiple_choice"):
        if head not in written.heads:
            continue
        values = huggingface_names.from_config(config, head, ["no", "yes"])
        (name,) = values["architectures"]
        theirs = getattr(transformers, name)(
            transformers.AutoConfig.for_model(**values)
        )
        found = {
            part.p
            for part in theirs.modules()
            if isinstance(part, hf.torch.nn.Dropout)
        }
        # DistilBERT's span head has dropout in transformers, and none here.
        none = {0.0} if (kind, head) == ("distilbert", "span") else set()
        assert found == {0.3, *none}, name


@pytest.mark.parametrize("head", ["encoder", "masked_lm"])
def test_new_heads_have_the_dropout_of_transformers(head):
    config = families.FAMILIES["distilbert"].config(40, hidden_dropout_prob=0.3)
    values = huggingface_names.from_config(config, head, None)
    theirs = transformers.AutoConfig.for_model(**values)
    assert (theirs.qa_dropout, theirs.seq_classif_dropout) == (0.1, 0.2)


def test_two_dropout_rates():
    rates: dict[str, Any] = {
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.3,
    }
    config = xlnet_config.XlnetConfig(40, **rates)
    (note,) = huggingface_names.differences(config, "encoder")
    assert "attention_probs_dropout_prob=0.2 instead of 0.3" in note
    assert not huggingface_names.differences(_CONFIG, "encoder")
    bert = dataclasses.replace(_CONFIG, **rates)
    assert not huggingface_names.differences(bert, "encoder")
    notes = keras_hub_names.differences(bert, "encoder")
    assert notes[0] == note.replace("transformers", "KerasHub")
