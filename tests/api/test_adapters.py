"""Adapters in the files of the library peft, written and read."""

import dataclasses
import json
from typing import Any

from bert_tf import modeling
from bert_tf.api import models
from bert_tf.checkpoints import huggingface_names
from bert_tf.encoders import distilbert, lora_layers, roberta
from bert_tf.errors import InputError
from tests import reference
from tests.api import keras_models as tiny

import numpy as np
import pytest
import tensorflow as tf
from safetensors import numpy as safetensors_numpy


@pytest.fixture
def model():
    return tiny.with_lora()


@pytest.mark.slow
def test_adapters_are_files_of_peft(model, tmp_path):
    model.bert.save_lora(tmp_path / "adapter")
    tensors = safetensors_numpy.load_file(
        tmp_path / "adapter" / "adapter_model.safetensors"
    )
    name = "base_model.model.bert.encoder.layer.1.attention.self.value"
    weights = reference.weights_of(model.variables)
    ours = "bert/encoder/layer_1/attention/self/value"
    # There a matrix is used as in PyTorch: x @ A.T @ B.T.
    for matrix in "AB":
        np.testing.assert_array_equal(
            tensors[f"{name}.lora_{matrix}.weight"].T,
            weights[f"{ours}/lora_{matrix.lower()}"],
        )
    other = tiny.classifier()
    other.bert.load_lora(tmp_path / "adapter")
    np.testing.assert_array_equal(
        other(tiny.INPUTS), np.asarray(model(tiny.INPUTS))
    )
    # Adapters of a model without a head, and of layers without LoRA here.
    renamed = {x.replace("bert.", "", 1): y for x, y in tensors.items()}
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    safetensors_numpy.save_file(renamed, path)
    other.bert.load_lora(tmp_path / "adapter")
    tensors["base_model.model.classifier.lora_A.weight"] = np.ones((2, 8))
    safetensors_numpy.save_file(tensors, path)
    with pytest.raises(InputError, match=r"Received: .*classifier\.lora_A"):
        other.bert.load_lora(tmp_path / "adapter")


def test_names_are_those_of_the_family(tmp_path):
    config = roberta.RobertaConfig(**vars(tiny.PLAIN) | {"type_vocab_size": 1})
    encoder = models.Bert(config)
    encoder.enable_lora(targets=["dense"])
    encoder.save_lora(tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    found = safetensors_numpy.load_file(path)
    prefix = "base_model.model."
    layers_of = {x for x in found if "roberta.encoder.layer." in x}
    assert len(layers_of) == 2 * 3 * config.num_hidden_layers
    # The pooler of a classifier is a part of its head there.
    assert found.keys() - layers_of == {
        f"{prefix}{module}.lora_{matrix}.weight"
        for module in ("roberta.pooler.dense", "classifier.dense")
        for matrix in "AB"
    }
    models.Bert(config).load_lora(tmp_path / "adapter")
    encoder.save_lora(tmp_path / "bare", has_head=False)
    bare = safetensors_numpy.load_file(tmp_path / "bare" / path.name)
    of_encoder = {x for x in found if x.startswith(f"{prefix}roberta.")}
    assert {*bare} == {x.replace("roberta.", "") for x in of_encoder}
    models.Bert(config).load_lora(tmp_path / "bare")
    one_layer = dataclasses.replace(config, num_hidden_layers=1)
    for other, named in (
        (tiny.PLAIN, r"encoder, bert with 2 layers\. .*Received: base"),
        (one_layer, r"roberta with 1 layer\. .*Received: .*\.layer\.1\."),
    ):
        with pytest.raises(InputError, match=named):
            models.Bert(other).load_lora(tmp_path / "adapter")


_TORCH: dict[str, tuple[Any, str]] = {
    "bert": (modeling.BertConfig, "BertModel"),
    "distilbert": (distilbert.DistilBertConfig, "DistilBertModel"),
    "distilbert classifier": (
        distilbert.DistilBertConfig,
        "DistilBertForSequenceClassification",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", _TORCH)
def test_adapters_of_torch_models(tmp_path, kind):
    """Named by the modules of transformers, and added to their kernels."""
    torch = pytest.importorskip("torch", reason="needs the extra `parity`")
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    own_config, name = _TORCH[kind]
    values = vars(tiny.PLAIN) | {"hidden_act": "gelu_erf"}
    if "distil" in kind:
        values |= {"type_vocab_size": 0, "pooler_act": "relu"}
    config = own_config(**values)
    head = "classification" if "For" in name else "encoder"
    read = huggingface_names.from_config(config, head, ["a", "b"])
    theirs = getattr(transformers, name)(
        transformers.AutoConfig.for_model(**read)
    ).eval()
    theirs.save_pretrained(tmp_path / "model")
    encoder = models.Bert.from_checkpoint(tmp_path / "model")
    tensors, targets = {}, ("query", "value", "q_lin", "lin1")
    for module, layer in theirs.named_modules():
        is_target = module.rpartition(".")[2] in (*targets, "pre_classifier")
        if is_target and isinstance(layer, torch.nn.Linear):
            size_out, size_in = layer.weight.shape
            pair = torch.randn(2, size_in), torch.randn(size_out, 2)
            for matrix, value in zip("AB", pair, strict=True):
                key = f"base_model.model.{module}.lora_{matrix}.weight"
                tensors[key] = value.numpy()
            layer.weight.data += 3 / 2 * pair[1] @ pair[0]
    folder = tmp_path / "adapter"
    folder.mkdir()
    path = folder / "adapter_model.safetensors"
    safetensors_numpy.save_file(tensors, path)
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 3.0}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    encoder.load_lora(folder)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        base = getattr(theirs, theirs.base_model_prefix, theirs)
        expected = base(ids).last_hidden_state.numpy()
    found = encoder({"input_ids": ids.numpy().astype(np.int32)})
    tiny.close(found.sequence, expected)
    encoder.save_lora(tmp_path / "again", has_head="For" in name)
    names = safetensors_numpy.load_file(
        tmp_path / "again" / "adapter_model.safetensors"
    )
    modules = dict(theirs.named_modules())
    for name in names:
        module = name.removeprefix("base_model.model.").split(".lora_")[0]
        assert module in modules
    if kind == "distilbert":
        pooler = lora_layers.dense_layers(encoder)["bert/pooler/dense"]
        pooler.lora_b.assign(tf.ones_like(pooler.lora_b))
        with pytest.raises(InputError, match="has_head=False, bert/pooler/d"):
            encoder.save_lora(tmp_path / "lost", has_head=False)
    # An adapter without the matrices of one layer is an error.
    del tensors[next(iter(tensors))]
    safetensors_numpy.save_file(tensors, path)
    with pytest.raises(InputError, match="The adapter does not belong to"):
        encoder.load_lora(folder)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"use_dora": True}, "use_dora=true"),
        ({"peft_type": "IA3"}, 'peft_type="IA3"'),
        ({"r": 0}, "rank=0"),
        ({"init_lora_weights": "pissa"}, 'init_lora_weights="pissa"'),
        # Applied after these tokens only; what later versions may add.
        ({"alora_invocation_tokens": [7]}, r"alora_invocation_tokens=\[7\]"),
        ({"lora_bias": True}, "lora_bias=true"),
        ({"new_config": {"beta": 1}}, 'new_config={"beta": 1}'),
    ],
)
def test_other_adapters_are_refused(model, tmp_path, changes, named):
    model.bert.save_lora(tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    encoder = tiny.classifier().bert
    with pytest.raises(InputError, match=named) as error:
        encoder.load_lora(tmp_path / "adapter")
    assert "\n" not in str(error.value)
    assert encoder.lora is None and all(x.trainable for x in encoder.variables)


@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_saved_modules_are_not_lost(model, tmp_path, caplog, prefix):
    """What peft trained as a whole, by modules_to_save."""
    model.bert.save_lora(tmp_path / "adapter")
    config_path = tmp_path / "adapter" / "adapter_config.json"
    new: dict[str, Any] = {
        "modules_to_save": ["classifier"],
        "exclude_modules": ["key"],
    }
    # Of version 0.21, without effect.
    new |= {"auto_mapping": {"a": "b"}, "qalora_group_size": 16}
    new |= {"megatron_core": "megatron.core", "lora_dropout": 0.5}
    config_path.write_text(
        json.dumps(json.loads(config_path.read_text()) | new)
    )
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = safetensors_numpy.load_file(path)
    tensors["base_model.model.classifier.weight"] = np.ones((2, 8))
    safetensors_numpy.save_file(tensors, path)
    tiny.classifier().bert.load_lora(tmp_path / "adapter")
    assert "head are not used: base_model.model.classifier.we" in caplog.text
    name = f"base_model.model.{prefix}embeddings.LayerNorm.weight"
    safetensors_numpy.save_file(tensors | {name: np.ones(8)}, path)
    encoder = tiny.classifier().bert
    with pytest.raises(InputError, match=r"modules_to_save are part of the en"):
        encoder.load_lora(tmp_path / "adapter")
    assert encoder.lora is None


def test_the_head_of_an_adapter(tmp_path, caplog):
    """RoBERTa's head has a dense layer, which is our pooler: x @ W.T + b."""
    config = roberta.RobertaConfig(**vars(tiny.PLAIN) | {"type_vocab_size": 1})
    model = models.BertClassifier(models.Bert(config), 3)
    inputs = reference.batch(config)
    model.bert.enable_lora()
    folder = tmp_path / "adapter"
    model.bert.save_lora(folder)
    before = np.asarray(model(inputs))
    model.load_lora(folder)
    assert "has no weights of the head" in caplog.text
    np.testing.assert_array_equal(model(inputs), before)
    path = folder / "adapter_model.safetensors"
    lora_only = safetensors_numpy.load_file(path)
    rng = np.random.default_rng(0)
    shapes = {
        "dense.weight": (8, 8),
        "dense.bias": (8,),
        "out_proj.weight": (3, 8),
        "out_proj.bias": (3,),
    }
    head = {
        f"base_model.model.classifier.{name}": rng.normal(size=shape)
        for name, shape in shapes.items()
    }
    w1, b1, w2, b2 = head.values()

    def fails(tensors, named, **settings):
        safetensors_numpy.save_file(lora_only | tensors, path)
        values = json.loads((folder / "adapter_config.json").read_text())
        text = json.dumps(values | {"task_type": "SEQ_CLS"} | settings)
        (folder / "adapter_config.json").write_text(text)
        with pytest.raises(InputError, match=named):
            model.load_lora(folder)
        np.testing.assert_array_equal(model(inputs), before)

    name = "base_model.model.classifier.out_proj.bias"
    fails(head | {name: np.ones(2)}, r"as many labels.*Received: \(2,\)")
    fails({x: head[x] for x in head if x != name}, "out_proj.bias is missing")
    fails(head | {f"{name}.x": np.ones(2)}, r"Received: .*bias\.x")
    fails(head, "another head than classification", task_type="TOKEN_CLS")
    fails({}, "task_type=QUESTION_ANS", task_type="QUESTION_ANS")
    safetensors_numpy.save_file(lora_only | head, path)
    settings = json.loads((folder / "adapter_config.json").read_text())
    settings["task_type"] = "SEQ_CLS"
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    model.load_lora(folder)
    first = model.bert(inputs).sequence[:, 0].numpy()
    expected = np.tanh(first @ w1.T + b1) @ w2.T + b2
    tiny.close(model(inputs), expected)


def test_an_adapter_with_its_head(tmp_path):
    """RoBERTa's pooler is a part of it, so its matrices are merged."""
    config = roberta.RobertaConfig(**vars(tiny.PLAIN) | {"type_vocab_size": 1})
    model, other = (
        models.BertClassifier(models.Bert(config), 3) for _ in range(2)
    )
    other.set_weights(model.get_weights())
    with pytest.raises(InputError, match="has no LoRA"):
        model.save_lora(tmp_path / "adapter")
    model.bert.enable_lora(**tiny.LORA)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    model.save_lora(tmp_path / "adapter")
    settings = (tmp_path / "adapter" / "adapter_config.json").read_text()
    found = safetensors_numpy.load_file(
        tmp_path / "adapter" / "adapter_model.safetensors"
    )
    weights = tiny.merged(model)
    assert json.loads(settings)["modules_to_save"] == ["classifier"]
    assert json.loads(settings)["task_type"] == "SEQ_CLS"
    expected = {
        "dense.weight": weights["bert/pooler/dense/kernel"].T,
        "dense.bias": weights["bert/pooler/dense/bias"],
        "out_proj.weight": weights["output_weights"],
        "out_proj.bias": weights["output_bias"],
    }
    prefix = "base_model.model.classifier."
    named = {x.removeprefix(prefix) for x in found if "classifier" in x}
    assert named == expected.keys()
    for name, value in expected.items():
        tiny.close(found[f"{prefix}{name}"], value)
    other.load_lora(tmp_path / "adapter")
    inputs = reference.batch(config)
    tiny.close(other(inputs), model(inputs))
    words = models.BertMaskedLM(models.Bert(config))
    words.bert.enable_lora()
    with pytest.raises(InputError, match="Received: BertMaskedLM of roberta"):
        words.save_lora(tmp_path / "words")


def test_another_lora_is_not_overwritten(model, tmp_path):
    model.bert.save_lora(tmp_path / "adapter")
    model.bert.load_lora(tmp_path / "adapter")
    other = tiny.classifier().bert
    other.enable_lora(**tiny.LORA | {"alpha": 1.0})
    with pytest.raises(InputError, match="another LoRA already"):
        other.load_lora(tmp_path / "adapter")
