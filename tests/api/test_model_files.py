"""Keras models in files and in other models."""

import dataclasses
import importlib
import json
import subprocess
import sys

import bert_tf
from bert_tf import keras_classes
from bert_tf.api import models, text_reading
from bert_tf.errors import InputError
from tests import exports, reference
from tests import interop_samples as samples
from tests.api import keras_models as tiny
from tests.api import test_tokenizer as tokenizer_rows

import keras
import numpy as np
import pytest
import tensorflow as tf

_LOAD = """
import json, pathlib, sys
# Keras would import them, too, which takes seconds.
sys.modules.update(dict.fromkeys(("jax", "matplotlib", "sklearn")))
import keras, numpy as np, tensorflow as tf
import bert_tf
assert "bert_tf.api.models" not in sys.modules
folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.glob("*.keras")):
    model = keras.saving.load_model(path)
    inputs = dict(np.load(folder / f"{path.stem}.inputs.npz"))
    if "texts" in inputs:
        inputs = tf.constant(inputs["texts"])
    found = keras.tree.flatten(model(inputs))
    np.savez(folder / f"{path.stem}.outputs.npz", *found)
"""


# Without a head, and with labels.
_FRESH = ("Bert", "BertClassifier")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Returns class -> a model's outputs, here and loaded in a process."""
    folder = tmp_path_factory.mktemp("keras")
    here = {}
    for kind in _FRESH:
        model, inputs = tiny.of_kind(kind), tiny.inputs_of(kind)
        # A layer is saved in a model.
        if kind == "Bert":
            inputs = {"input_ids": inputs["input_ids"]}
            columns = {"input_ids": keras.Input([None], dtype="int32")}
            model = keras.Model(columns, model(columns).pooled)
        model.save(folder / f"{kind}.keras")
        np.savez(folder / f"{kind}.inputs.npz", **inputs)
        here[kind] = tiny.outputs(model, inputs)
    here["Tokenizer"] = _of_texts(folder)
    subprocess.run([sys.executable, "-c", _LOAD, folder], check=True)
    found = {}
    for kind, expected in here.items():
        with np.load(folder / f"{kind}.outputs.npz") as file:
            found[kind] = (expected, list(file.values()))
    return found


def _of_texts(folder):
    """Writes a model of texts; returns Python's rows."""
    vocab = folder / "vocab.txt"
    vocab.write_text("\n".join(exports.VOCAB) + "\n")
    texts = ["What a film.", "", "good Café 博", "good " * 30]
    columns = keras.Input([], dtype="string")
    layer = bert_tf.Tokenizer(vocab, max_seq_length=12)
    model = keras.Model(columns, layer(columns))
    assert {x.shape for x in model.output.values()} == {(None, 12)}
    model.save(folder / "Tokenizer.keras")
    np.savez(folder / "Tokenizer.inputs.npz", texts=np.array(texts))
    expected = tokenizer_rows.rows(vocab, texts, [""] * 4, 12)
    copy = keras.models.clone_model(model)
    tokenizer_rows.check(copy(tf.constant(texts)), expected)
    vocab.unlink()
    return [expected[name] for name in sorted(expected)]


def _functional(inputs=("input_ids", "input_mask")):
    columns = {
        name: keras.Input([None], dtype="int32", name=name) for name in inputs
    }
    bert = models.Bert(tiny.ONE_LAYER, name="text")
    scores = keras.layers.Dense(1, name="score")(bert(columns).pooled)
    model = keras.Model(columns, scores)
    reference.random_weights(model.variables)
    return model


def test_placeholders_are_those_of_the_classes():
    known = keras.saving.get_custom_objects()
    for name, place in keras_classes._MODULES.items():
        module = importlib.import_module(f"bert_tf.{place}")
        assert known[f"bert_tf>{name}"] is getattr(module, name)
    ours = {x.partition(">")[2] for x in known if x.startswith("bert_tf>")}
    assert ours == keras_classes._MODULES.keys()


@pytest.mark.exhaustive
def test_before_keras():
    """As here; in a fresh process, Keras is imported first elsewhere."""
    code = (
        "import bert_tf, keras, sys;"
        "config = {'module': 'bert_tf.api.tokenizer', 'config': {'name': 'x',"
        " 'vocabulary': ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'a']},"
        " 'class_name': 'Tokenizer', 'registered_name': 'bert_tf>Tokenizer'};"
        "assert 'bert_tf.api.tokenizer' not in sys.modules;"
        "print(keras.saving.deserialize_keras_object(config).name)"
    )
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert found == "x\n"


class TestFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", [*_FRESH, "Tokenizer"])
    def test_loaded_in_a_fresh_process(self, fresh, kind):
        expected, found = fresh[kind]
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            tiny.close(x, y)

    @pytest.mark.parametrize("kind", tiny.KINDS)
    def test_config(self, kind):
        model = tiny.of_kind(kind)
        bert = model if kind == "Bert" else model.bert
        bert.encoder.layers[0].trainable = False
        bert.encoder.layers[1].attention.trainable = False
        if kind == "BertTagger":
            model.tagging.trainable = False
        bert.reading = text_reading.Reading(
            "a/bert_model.ckpt",
            samples.vocab_files(["a", "b"]),
            True,
            {"scheme": "BIO"},
        )
        config = model.get_config()
        # Only JSON types, as a `.keras` file stores it.
        copy = type(model).from_config(json.loads(json.dumps(config)))
        assert copy.get_config() == config
        assert [(v.path, v.shape, v.trainable) for v in copy.variables] == [
            (v.path, v.shape, v.trainable) for v in model.variables
        ]
        made = copy if kind == "Bert" else copy.bert
        assert made.reading == bert.reading
        layers = made.encoder.layers
        assert not layers[0].trainable and not layers[1].attention.trainable
        assert layers[1].trainable and layers[1].intermediate.trainable
        copy.set_weights(model.get_weights())
        inputs = tiny.inputs_of(kind)
        pairs = (tiny.outputs(x, inputs) for x in (copy, model))
        for x, y in zip(*pairs, strict=True):
            tiny.close(x, y)

    def test_config_of_an_older_version(self):
        config = models.Bert(tiny.PLAIN).get_config()
        config |= {"frozen": ["embeddings", "layer_1"]}
        model = models.Bert.from_config(config)
        assert not model.embeddings.trainable
        assert [x.trainable for x in model.encoder.layers] == [True, False]

    @pytest.mark.slow
    def test_export(self, tmp_path):
        config = dataclasses.replace(tiny.DROPS, num_hidden_layers=1)
        model = tiny.classifier(config)
        model.export(str(tmp_path / "served"), verbose=False)
        with pytest.raises(InputError, match=r"bert_tf\.export\(model, path"):
            model.export(str(tmp_path / "model.onnx"), format="onnx")
        served = tf.saved_model.load(str(tmp_path / "served"))
        for rows, length in ((6, 9), (2, 5)):
            inputs = {
                name: tf.constant(tiny.INPUTS[name][:rows, :length])
                for name in ("input_ids", "input_mask", "segment_ids")
            }
            (got,) = served.signatures["serving_default"](**inputs).values()
            tiny.close(
                got,
                tiny.logits(model, {k: v.numpy() for k, v in inputs.items()}),
            )

    @pytest.mark.slow
    def test_layer_of_a_functional_model(self, tmp_path):
        model = _functional()
        inputs = {n: tiny.INPUTS[n] for n in ("input_ids", "input_mask")}
        zeros = {"segment_ids": np.zeros_like(tiny.INPUTS["segment_ids"])}
        weights = reference.weights_of(model.variables)
        # The names in the checkpoints, whatever the layer's name is.
        assert {n.split("/")[0] for n in weights} == {"bert", "score"}
        _, _, pooled = reference.encode(tiny.ONE_LAYER, weights, inputs | zeros)
        expected = reference.dense(pooled, weights, "score")
        tiny.close(model(inputs), expected)
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        tiny.close(loaded(inputs), expected)
        copy = keras.models.clone_model(model)
        copy.set_weights(model.get_weights())
        tiny.close(copy(inputs), expected)
        model.compile("sgd", "mse", run_eagerly=True)
        model.fit(inputs, np.ones([6, 1]), verbose=0)
        assert (np.abs(model(inputs) - expected) > 1e-4).any()

    @pytest.mark.slow
    def test_heads_that_share_an_encoder(self, tmp_path):
        ids = {"input_ids": tiny.INPUTS["input_ids"]}
        columns = {"input_ids": keras.Input([None], dtype="int32")}
        bert = models.Bert(tiny.ONE_LAYER)
        heads = models.BertTagger(bert, 3), models.BertClassifier(bert, 2)
        model = keras.Model(columns, [head(columns) for head in heads])
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        tagger, classifier = loaded.layers[1:]
        assert tagger.bert is classifier.bert
        for x, y in zip(loaded(ids), model(ids), strict=True):
            tiny.close(x, y)

    @pytest.mark.slow
    def test_drops_out_in_a_functional_model(self):
        columns = {"input_ids": keras.Input([None], dtype="int32")}
        model = keras.Model(columns, models.Bert(tiny.DROPS)(columns).pooled)
        ids = {"input_ids": tiny.INPUTS["input_ids"]}
        one, two = (model(ids, training=True) for _ in range(2))
        assert (np.abs(one - two) > 1e-3).any()
        np.testing.assert_array_equal(model(ids), model(ids))

    def test_ids_as_keras_takes_them_by_default(self):
        with pytest.raises(InputError, match=r"say dtype='int32' in keras.Inp"):
            models.Bert(tiny.PLAIN)({"input_ids": keras.Input([None])})
