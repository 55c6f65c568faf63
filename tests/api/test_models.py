"""The models as Keras' users take them."""

import dataclasses
import json
import subprocess
import sys

from bert_tf import heads, losses, modeling
from bert_tf.api import models
from bert_tf.checkpoints import original, tf1_files
from bert_tf.encoders import dropout_seeds
from bert_tf.errors import InputError
from tests import reference

import keras
import numpy as np
import pytest
import tensorflow as tf

_DROPS = modeling.BertConfig(
    vocab_size=40,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=12,
    type_vocab_size=2,
)
_PLAIN = dataclasses.replace(
    _DROPS, hidden_dropout_prob=0, attention_probs_dropout_prob=0
)
_INPUTS = reference.batch(_PLAIN, rows=6)
_LABELS = np.arange(6) % 2
_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _classifier(config=_PLAIN, **kwargs):
    model = models.BertClassifier(
        models.Bert(config), ["bad", "good"], **kwargs
    )
    reference.random_weights(model.variables)
    return model


def _logits(model, inputs=_INPUTS):
    """Of a classifier in NumPy."""
    weights = reference.weights_of(model.variables)
    return reference.classify(model.bert.config, weights, inputs)


def _close(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


# ---- Inputs -----------------------------------------------------------------


class TestInputs:
    def test_names_of_hugging_face(self):
        model = _classifier()
        theirs = {
            "input_ids": _INPUTS["input_ids"].astype(np.int64),
            "attention_mask": _INPUTS["input_mask"].astype(bool),
            "token_type_ids": _INPUTS["segment_ids"],
            "labels": _LABELS,
        }
        _close(model(theirs), _logits(model))

    def test_mask_and_segments_are_optional(self):
        # The id 0 is a token like others: nothing says that it is padding.
        ids = _INPUTS["input_ids"].copy()
        ids[:, -2:] = 0
        whole = {
            "input_ids": ids,
            "input_mask": np.ones_like(ids),
            "segment_ids": np.zeros_like(ids),
        }
        model = _classifier()
        _close(model({"input_ids": ids}), _logits(model, whole))

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                {"attention_mask": _INPUTS["input_mask"]},
                "two names of the same",
            ),
            ({"input_ids": None}, "lack input_ids. Expected: a dictionary"),
            ({"input_ids": np.ones([6, 9])}, "input_ids of float64"),
            ({"input_ids": np.ones([9], int)}, r"\[batch, length\]"),
            ({"input_mask": np.ones([6, 8], int)}, r"input_mask \(6, 8\)"),
        ],
    )
    def test_wrong_inputs(self, changes, words):
        inputs = {
            name: value
            for name, value in (_INPUTS | changes).items()
            if value is not None
        }
        with pytest.raises(InputError, match=words):
            _classifier().call(inputs)

    def test_other_things_than_dictionaries(self):
        with pytest.raises(InputError, match=r"a dictionary of.*Received: nd"):
            _classifier().call(_INPUTS["input_ids"])
        with pytest.raises(InputError, match=r"must be dense.*to_tensor"):
            _classifier().call({"input_ids": tf.ragged.constant([[1], [2, 3]])})

    def test_longer_than_the_positions(self):
        with pytest.raises(InputError, match=r"positions for, 12.*13 columns"):
            _classifier().call({"input_ids": np.ones([1, 13], np.int32)})

    def test_places_of_masks_are_asked_for(self):
        model = models.BertMaskedLM(models.Bert(_PLAIN))
        with pytest.raises(InputError, match="lack masked_lm_positions"):
            model.call({"input_ids": _INPUTS["input_ids"]})


# ---- Dropout ----------------------------------------------------------------


class TestDropout:
    def test_drops_in_training_only(self):
        model = _classifier(_DROPS)
        first, second = (model(_INPUTS, training=True) for _ in range(2))
        assert (np.abs(first - second) > 1e-3).any()
        _close(model(_INPUTS), _logits(model))
        _close(model(_INPUTS, training=False), _logits(model))

    def test_mean_of_the_last_dropout_is_the_logit(self):
        # The pooled output alone drops: the logits are linear in it.
        model = _classifier()
        model.rate = 0.25
        draw = tf.function(lambda: model(_INPUTS, training=True))
        draws = np.stack([draw() for _ in range(2000)])
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (error > 1e-3).all()
        assert (np.abs(draws.mean(axis=0) - _logits(model)) < 5 * error).all()

    def test_seeds_follow_set_random_seed(self):
        def draws(seed):
            keras.utils.set_random_seed(seed)
            model = _classifier(_DROPS)
            return [model(_INPUTS, training=True).numpy() for _ in range(2)]

        np.testing.assert_array_equal(draws(1), draws(1))
        assert (np.abs(draws(1)[0] - draws(2)[0]) > 1e-3).any()

    def test_a_given_seed_is_taken(self):
        model, seed = _classifier(_DROPS), tf.constant([1, 2])
        np.testing.assert_array_equal(
            model(_INPUTS, seed, training=True), model(_INPUTS, seed)
        )

    def test_first_weights_do_not_depend_on_it(self, monkeypatch):
        def weights():
            keras.utils.set_random_seed(1)
            return _made().get_weights()

        def _made():
            return heads.BertTagger(modeling.Bert(_DROPS), 3)

        class Nothing:
            pass

        with_seeds = weights()
        monkeypatch.setattr(dropout_seeds, "Drawn", Nothing)
        for got, expected in zip(with_seeds, weights(), strict=True):
            np.testing.assert_array_equal(got, expected)

    def test_its_state_is_no_variable(self):
        model = _classifier(_DROPS)
        before = [v.path for v in model.variables]
        model(_INPUTS, training=True)
        assert [v.path for v in model.variables] == before
        assert len(before) == 5 + 2 * 16 + 2 + 2
        assert model.non_trainable_variables == []
        # What TensorFlow would save of it.
        assert "_drawn" not in model._trackable_children()


# ---- Keras' own loop --------------------------------------------------------


class TestFit:
    def test_a_step_is_that_of_our_losses(self):
        model = _classifier()
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            logits = heads.BertClassifier.call(model, _INPUTS)
            sums = losses.classification(
                logits, tf.constant(_LABELS, tf.int32), tf.ones([6])
            )
            loss = sums["loss"] / 6
        slopes = tape.gradient(loss, [v.value for v in variables])
        expected = [
            v.numpy() - 0.5 * slope.numpy()
            for v, slope in zip(variables, slopes, strict=True)
        ]
        model.compile(keras.optimizers.SGD(0.5), _ENTROPY, metrics=["accuracy"])
        history = model.fit(_INPUTS, _LABELS, batch_size=6, verbose=0).history
        _close(history["loss"], [loss])
        _close(history["accuracy"], [sums["accuracy"] / 6])
        for variable, value in zip(variables, expected, strict=True):
            np.testing.assert_allclose(
                variable, value, rtol=0, atol=1e-5, err_msg=variable.path
            )

    def test_drops_out(self):
        model = _classifier(_DROPS)
        model.compile(keras.optimizers.SGD(0.0), _ENTROPY)
        plain = _ENTROPY(_LABELS, _logits(model))
        found = [
            model.fit(_INPUTS, _LABELS, batch_size=6, verbose=0).history["loss"]
            for _ in range(2)
        ]
        assert abs(found[0][0] - found[1][0]) > 1e-4
        assert abs(model.evaluate(_INPUTS, _LABELS, verbose=0) - plain) < 1e-5

    def test_data_sets_evaluate_and_predict(self):
        model = _classifier()
        model.compile("sgd", _ENTROPY, metrics=["accuracy"])
        data = tf.data.Dataset.from_tensor_slices((_INPUTS, _LABELS)).batch(4)
        _close(model.predict(data, verbose=0), _logits(model))
        logits = _logits(model)
        entropy = -reference.log_softmax(logits)[np.arange(6), _LABELS]
        right = (logits.argmax(axis=1) == _LABELS).mean()
        _close(model.evaluate(data, verbose=0), [entropy.mean(), right])
        before = model.bert.encoder.layers[0].get_weights()
        model.fit(data, verbose=0)
        after = model.bert.encoder.layers[0].get_weights()
        assert any((a != b).any() for a, b in zip(before, after, strict=True))

    @pytest.mark.parametrize(
        ("make", "targets"),
        [
            (lambda b: models.BertTagger(b, 3), np.ones([6, 9], int)),
            (models.BertSpanFinder, (_LABELS, _LABELS)),
            (models.BertMaskedLM, np.ones([6, 4], int)),
            (models.BertNextSentence, _LABELS),
            (models.BertPretrainer, (np.ones([6, 4], int), _LABELS)),
        ],
    )
    @pytest.mark.filterwarnings("error:Gradients do not exist")
    def test_each_head_learns(self, make, targets):
        model = make(models.Bert(_PLAIN))
        several = isinstance(targets, tuple)
        model.compile("adam", [_ENTROPY] * 2 if several else _ENTROPY)
        found = model.fit(_INPUTS, targets, epochs=4, verbose=0).history["loss"]
        assert found[-1] < found[0]

    def test_choices(self):
        model = models.BertMultipleChoice(models.Bert(_PLAIN))
        inputs = {
            name: np.stack([value, value[::-1]], axis=1)
            for name, value in _INPUTS.items()
            if name != "masked_lm_positions"
        }
        model.compile("adam", _ENTROPY)
        found = model.fit(inputs, _LABELS, epochs=4, verbose=0).history["loss"]
        assert found[-1] < found[0]
        assert model.predict(inputs, verbose=0).shape == (6, 2)


class TestFreezing:
    def test_of_the_encoder_and_of_single_layers(self):
        model = _classifier()
        model.bert.encoder.layers[0].trainable = False
        model.bert.embeddings.trainable = False
        paths = {v.path for v in model.trainable_variables}
        assert not any("layer_0/" in p or "/embeddings" in p for p in paths)
        before = {v.path: v.numpy() for v in model.variables}
        model.compile(keras.optimizers.SGD(0.5), _ENTROPY)
        model.fit(_INPUTS, _LABELS, verbose=0)
        changed = {
            v.path
            for v in model.variables
            if (v.numpy() != before[v.path]).any()
        }
        assert changed == paths
        model.bert.trainable = False
        assert [v.path for v in model.trainable_variables] == [
            "output_weights",
            "output_bias",
        ]

    def test_is_kept(self):
        model = _classifier()
        model.bert.encoder.layers[0].trainable = False
        copy = keras.models.clone_model(model)
        assert [v.path for v in copy.trainable_variables] == [
            v.path for v in model.trainable_variables
        ]
        model.bert.trainable = False
        copy = keras.models.clone_model(model)
        assert len(copy.trainable_variables) == 2


class TestPrecision:
    def test_of_one_model(self):
        bert = models.Bert(_PLAIN, dtype="mixed_bfloat16")
        model = models.BertClassifier(bert, ["bad", "good"])
        reference.random_weights(model.variables)
        assert bert(_INPUTS).pooled.dtype == tf.bfloat16
        assert model(_INPUTS).dtype == tf.float32
        assert {v.dtype for v in model.variables} == {"float32"}
        _close(model(_INPUTS), _logits(model), 0.15)
        assert keras.config.dtype_policy().name == "float32"
        assert keras.models.clone_model(model).bert.compute_dtype == "bfloat16"

    def test_of_all(self):
        before = keras.config.dtype_policy()
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
        try:
            model = _classifier()
        finally:
            keras.config.set_dtype_policy(before)
        model.compile("sgd", _ENTROPY)
        model.fit(_INPUTS, _LABELS, verbose=0)
        assert model.bert(_INPUTS).pooled.dtype == tf.bfloat16
        _close(model.predict(_INPUTS, verbose=0), _logits(model), 0.15)

    def test_weights_in_bfloat16(self):
        bert = models.Bert(_PLAIN, dtype="bfloat16")
        model = models.BertClassifier(bert, 2)
        assert {v.dtype for v in model.variables} == {"bfloat16"}
        assert model(_INPUTS).dtype == tf.float32


# ---- Files and other models -------------------------------------------------

_LOAD = """
import json, sys
from bert_tf.api import models
import keras, numpy as np
model = keras.saving.load_model(sys.argv[1])
inputs = {k: np.array(v, "int32") for k, v in json.loads(sys.argv[2]).items()}
print(json.dumps(np.array(model(inputs)).tolist()))
"""


def _functional(inputs=("input_ids", "input_mask")):
    columns = {
        name: keras.Input([None], dtype="int32", name=name) for name in inputs
    }
    bert = models.Bert(_PLAIN, name="text")
    scores = keras.layers.Dense(1, name="score")(bert(columns).pooled)
    model = keras.Model(columns, scores)
    reference.random_weights(model.variables)
    return model


class TestFiles:
    def test_loaded_in_a_fresh_process(self, tmp_path):
        model = _classifier()
        model.save(tmp_path / "model.keras")
        names = ("input_ids", "input_mask", "segment_ids")
        values = json.dumps({n: _INPUTS[n].tolist() for n in names})
        found = subprocess.run(
            [sys.executable, "-c", _LOAD, tmp_path / "model.keras", values],
            check=True,
            capture_output=True,
            text=True,
        )
        _close(json.loads(found.stdout.splitlines()[-1]), _logits(model))

    def test_labels_and_names_are_kept(self, tmp_path):
        model = _classifier(name="mine")
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        assert (loaded.labels, loaded.name) == (("bad", "good"), "mine")
        assert [v.path for v in loaded.variables] == [
            v.path for v in model.variables
        ]
        _close(loaded(_INPUTS), _logits(model))

    def test_export(self, tmp_path):
        model = _classifier(_DROPS)
        model.export(str(tmp_path / "served"), verbose=False)
        served = tf.saved_model.load(str(tmp_path / "served"))
        for rows, length in ((6, 9), (2, 5)):
            inputs = {
                name: tf.constant(_INPUTS[name][:rows, :length])
                for name in ("input_ids", "input_mask", "segment_ids")
            }
            (got,) = served.signatures["serving_default"](**inputs).values()
            _close(
                got, _logits(model, {k: v.numpy() for k, v in inputs.items()})
            )

    def test_layer_of_a_functional_model(self, tmp_path):
        model = _functional()
        inputs = {n: _INPUTS[n] for n in ("input_ids", "input_mask")}
        zeros = {"segment_ids": np.zeros_like(_INPUTS["segment_ids"])}
        weights = reference.weights_of(model.variables)
        # The names in the checkpoints, whatever the layer is called.
        assert {n.split("/")[0] for n in weights} == {"bert", "score"}
        _, _, pooled = reference.encode(_PLAIN, weights, inputs | zeros)
        expected = reference.dense(pooled, weights, "score")
        _close(model(inputs), expected)
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        _close(loaded.predict(inputs, verbose=0), expected)
        copy = keras.models.clone_model(model)
        copy.set_weights(model.get_weights())
        _close(copy(inputs), expected)
        model.compile("sgd", "mse")
        model.fit(inputs, np.ones([6, 1]), verbose=0)
        assert (np.abs(model(inputs) - expected) > 1e-4).any()

    def test_drops_out_in_a_functional_model(self):
        columns = {"input_ids": keras.Input([None], dtype="int32")}
        model = keras.Model(columns, models.Bert(_DROPS)(columns).pooled)
        ids = {"input_ids": _INPUTS["input_ids"]}
        one, two = (model(ids, training=True) for _ in range(2))
        assert (np.abs(one - two) > 1e-3).any()
        np.testing.assert_array_equal(model(ids), model(ids))

    def test_ids_as_keras_takes_them_by_default(self):
        with pytest.raises(InputError, match=r"say dtype='int32' in keras.Inp"):
            models.Bert(_PLAIN)({"input_ids": keras.Input([None])})


# ---- Checkpoints ------------------------------------------------------------


def _write(folder, model, labels=None):
    """A checkpoint of the original with its files."""
    folder.mkdir()
    values = {v.path: v.numpy() for v in model.variables}
    tf1_files.write(str(folder / original.PREFIX), values)
    bert = getattr(model, "bert", model)
    (folder / original.CONFIG).write_text(bert.config.to_json())
    if labels:
        text = "".join(f"{label}\n" for label in labels)
        (folder / original.LABELS).write_text(text)
    return folder


class TestFromCheckpoint:
    def test_encoder(self, tmp_path):
        source = models.Bert(_PLAIN)
        reference.random_weights(source.variables)
        path = _write(tmp_path / "base", source) / original.PREFIX
        model = models.Bert.from_checkpoint(str(path), name="other")
        for got, expected in zip(
            model.variables, source.variables, strict=True
        ):
            assert got.path == expected.path
            np.testing.assert_array_equal(got, expected)

    def test_new_head_over_an_encoder(self, tmp_path, caplog):
        source = models.Bert(_PLAIN)
        path = _write(tmp_path / "base", source)
        with pytest.raises(
            InputError, match=r"no classification head.*labels="
        ):
            models.BertClassifier.from_checkpoint(path)
        model = models.BertClassifier.from_checkpoint(path, labels=["a", "b"])
        assert model.labels == ("a", "b")
        assert "output_bias, output_weights" in caplog.text
        np.testing.assert_array_equal(
            model.bert.embeddings.word_embeddings,
            source.embeddings.word_embeddings,
        )

    def test_own_head_and_labels(self, tmp_path):
        source = _classifier()
        path = _write(tmp_path / "tuned", source, source.labels)
        for labels in (None, ["bad", "good"], 2):
            model = models.BertClassifier.from_checkpoint(path, labels)
            _close(model(_INPUTS), _logits(source))
        model = models.BertClassifier.from_checkpoint(path)
        assert model.labels == ("bad", "good")

    def test_head_of_other_labels_is_not_used(self, tmp_path, caplog):
        source = _classifier()
        path = _write(tmp_path / "tuned", source, source.labels)
        model = models.BertClassifier.from_checkpoint(path, ["good", "bad"])
        assert "for other classes (bad, good): it is not used" in caplog.text
        assert (model.output_weights != source.output_weights).numpy().all()

    def test_config_file(self, tmp_path):
        path = tmp_path / "bert_config.json"
        path.write_text(_PLAIN.to_json())
        model = models.BertTagger.from_config_file(str(path), ["O", "B"])
        assert (model.bert.config, model.labels) == (_PLAIN, ("O", "B"))
        assert models.Bert.from_config_file(str(path)).config == _PLAIN
