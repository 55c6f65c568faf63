"""The models as Keras users use them."""

import dataclasses
import re

from bert_tf import heads, losses, modeling
from bert_tf.api import models
from bert_tf.encoders import model_inputs
from bert_tf.errors import InputError
from tests import reference, tiny_model
from tests.api import keras_models as tiny

import keras
import numpy as np
import pytest
import tensorflow as tf

# ---- Inputs -----------------------------------------------------------------


class TestInputs:
    def test_names_of_hugging_face(self):
        model = tiny.classifier()
        theirs = {
            "input_ids": tiny.INPUTS["input_ids"].astype(np.int64),
            "attention_mask": tiny.INPUTS["input_mask"].astype(bool),
            "token_type_ids": tiny.INPUTS["segment_ids"],
            "labels": tiny.LABELS,
        }
        tiny.close(model(theirs), tiny.logits(model))

    def test_mask_and_segments_are_optional(self):
        # The id 0 is a token like any other: without a mask nothing is padding.
        ids = tiny.INPUTS["input_ids"].copy()
        ids[:, -2:] = 0
        whole = {
            "input_ids": ids,
            "input_mask": np.ones_like(ids),
            "segment_ids": np.zeros_like(ids),
        }
        model = tiny.classifier()
        tiny.close(model({"input_ids": ids}), tiny.logits(model, whole))

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                {"attention_mask": tiny.INPUTS["input_mask"]},
                "two names of the same",
            ),
            ({"input_ids": None}, "lack input_ids. Expected: a dictionary"),
            ({"input_ids": np.ones([6, 9])}, "input_ids of float64"),
            ({"input_ids": np.ones([9], int)}, r"\[batch, length\]"),
            ({"input_mask": np.ones([6, 8], int)}, r"input_mask \(6, 8\)"),
            (
                {"input_ids": tf.ragged.constant([[1], [2, 3]])},
                r"must be dense.*to_tensor",
            ),
            # Longer than the model's positions.
            (
                {x: np.ones([1, 13], np.int32) for x in tiny.INPUTS},
                r"positions for, 12.*13 columns",
            ),
        ],
    )
    def test_wrong_inputs(self, changes, words):
        inputs = {
            name: value
            for name, value in (tiny.INPUTS | changes).items()
            if value is not None
        }
        with pytest.raises(InputError, match=words):
            tiny.classifier().call(inputs)

    def test_other_things_than_dictionaries(self):
        with pytest.raises(InputError, match=r"a dictionary of.*Received: nd"):
            tiny.classifier().call(tiny.INPUTS["input_ids"])
        model = models.BertMaskedLM(models.Bert(tiny.PLAIN))
        with pytest.raises(InputError, match="lack masked_lm_positions"):
            model.call({"input_ids": tiny.INPUTS["input_ids"]})


# ---- Dropout ----------------------------------------------------------------


class TestDropout:
    @pytest.mark.slow
    def test_drops_in_training_only(self):
        model = tiny.classifier(tiny.DROPS)
        first, second = (model(tiny.INPUTS, training=True) for _ in range(2))
        assert (np.abs(first - second) > 1e-3).any()
        tiny.close(model(tiny.INPUTS), tiny.logits(model))
        tiny.close(model(tiny.INPUTS, training=False), tiny.logits(model))

    @pytest.mark.slow
    def test_seeds_follow_set_random_seed(self):
        def draws(seed):
            keras.utils.set_random_seed(seed)
            model = tiny.classifier(tiny.DROPS)
            return [model(tiny.INPUTS, training=True).numpy() for _ in range(2)]

        np.testing.assert_array_equal(draws(1), draws(1))
        assert (np.abs(draws(1)[0] - draws(2)[0]) > 1e-3).any()

    def test_a_given_seed_is_taken(self):
        model, seed = tiny.classifier(tiny.DROPS), tf.constant([1, 2])
        np.testing.assert_array_equal(
            model(tiny.INPUTS, seed, training=True), model(tiny.INPUTS, seed)
        )

    def test_first_weights_do_not_depend_on_it(self, monkeypatch):
        def weights():
            keras.utils.set_random_seed(1)
            return _made().get_weights()

        def _made():
            return heads.BertTagger(modeling.Bert(tiny.DROPS), 3)

        class Nothing:
            pass

        with_seeds = weights()
        monkeypatch.setattr(model_inputs, "DrawnSeeds", Nothing)
        for got, expected in zip(with_seeds, weights(), strict=True):
            np.testing.assert_array_equal(got, expected)

    def test_its_state_is_no_variable(self):
        model = tiny.classifier(tiny.DROPS)
        before = [v.path for v in model.variables]
        model(tiny.INPUTS, training=True)
        assert [v.path for v in model.variables] == before
        assert len(before) == 5 + 2 * 16 + 2 + 2
        assert model.non_trainable_variables == []
        # The attributes that TensorFlow would save.
        assert "_drawn" not in model._trackable_children()


# ---- Keras' own loop --------------------------------------------------------


class TestFit:
    @pytest.mark.slow
    def test_a_step_is_that_of_our_losses(self):
        model = tiny.classifier(tiny.ONE_LAYER)
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            logits = heads.BertClassifier.call(model, tiny.INPUTS)
            sums = losses.classification(
                logits, tf.constant(tiny.LABELS, tf.int32), tf.ones([6])
            )
            loss = sums["loss"] / 6
        slopes = tape.gradient(loss, [v.value for v in variables])
        expected = [
            v.numpy() - 0.5 * slope.numpy()
            for v, slope in zip(variables, slopes, strict=True)
        ]
        model.compile(
            *(keras.optimizers.SGD(0.5), tiny.ENTROPY),
            metrics=["accuracy"],
            run_eagerly=True,
        )
        history = model.fit(
            tiny.INPUTS, tiny.LABELS, batch_size=6, verbose=0
        ).history
        tiny.close(history["loss"], [loss])
        tiny.close(history["accuracy"], [sums["accuracy"] / 6])
        for variable, value in zip(variables, expected, strict=True):
            np.testing.assert_allclose(
                variable, value, rtol=0, atol=1e-5, err_msg=variable.path
            )

    @pytest.mark.slow
    def test_drops_out(self):
        config = dataclasses.replace(tiny.DROPS, num_hidden_layers=1)
        model = tiny.classifier(config)
        model.compile(keras.optimizers.SGD(0.0), tiny.ENTROPY)
        plain = tiny.ENTROPY(tiny.LABELS, tiny.logits(model))
        found = [
            model.fit(
                tiny.INPUTS, tiny.LABELS, batch_size=6, verbose=0
            ).history["loss"]
            for _ in range(2)
        ]
        assert abs(found[0][0] - found[1][0]) > 1e-4
        assert (
            abs(model.evaluate(tiny.INPUTS, tiny.LABELS, verbose=0) - plain)
            < 1e-5
        )

    @pytest.mark.slow
    @pytest.mark.filterwarnings("error:Gradients do not exist")
    def test_both_heads_learn_in_a_step_that_is_traced_once(self, monkeypatch):
        step, traced = models.BertPretrainer.train_step, []

        def train_step(*args):
            traced.append(args)
            return step(*args)

        monkeypatch.setattr(models.BertPretrainer, "train_step", train_step)
        model = models.BertPretrainer(models.Bert(tiny.ONE_LAYER))
        model.compile(keras.optimizers.SGD(0.1), [tiny.ENTROPY] * 2)
        targets = np.ones([6, 4], int), tiny.LABELS
        done = model.fit(tiny.INPUTS, targets, epochs=4, verbose=0)
        assert done.history["loss"][-1] < done.history["loss"][0]
        # Keras creates the metrics of several losses in the step, for which it
        # is traced again.
        assert len(traced) == 2


class TestSummary:
    def test_rows_add_up_to_the_total(self):
        lines: list[str] = []
        model = tiny.classifier()
        model.summary(line_length=80, print_fn=lines.append)
        (page,) = lines
        rows = re.findall(r"^│ (\w+) \(\w+\) .* ([\d,]+) │$", page, re.M)
        assert [name for name, _ in rows] == [model.bert.name, "head"]
        numbers = [int(number.replace(",", "")) for _, number in rows]
        assert numbers == [
            model.bert.count_params(),
            model.output_weights.shape[0] * (model.output_weights.shape[1] + 1),
        ]
        assert f"Total params: {sum(numbers):,} " in page
        # The model itself is as it was.
        assert model.layers == [model.bert]


class TestFreezing:
    @pytest.mark.slow
    def test_of_the_encoder_and_of_single_layers(self):
        model = tiny.classifier()
        model.bert.encoder.layers[0].trainable = False
        model.bert.embeddings.trainable = False
        paths = {v.path for v in model.trainable_variables}
        assert not any("layer_0/" in p or "/embeddings" in p for p in paths)
        before = {v.path: v.numpy() for v in model.variables}
        optimizer = keras.optimizers.SGD(0.5)
        model.compile(optimizer, tiny.ENTROPY, run_eagerly=True)
        model.fit(tiny.INPUTS, tiny.LABELS, verbose=0)
        changed = {
            v.path
            for v in model.variables
            if (v.numpy() != before[v.path]).any()
        }
        # A key bias shifts all scores of a row: its gradient is only noise.
        noise = {p for p in paths if p.endswith("/key/bias")}
        assert paths - noise <= changed <= paths
        model.bert.trainable = False
        assert [v.path for v in model.trainable_variables] == [
            "output_weights",
            "output_bias",
        ]
        copy = keras.models.clone_model(model)
        assert len(copy.trainable_variables) == 2


class TestPrecision:
    @pytest.mark.slow
    def test_of_one_model(self):
        bert = models.Bert(tiny.PLAIN, dtype="mixed_bfloat16")
        model = models.BertClassifier(bert, ["bad", "good"])
        reference.random_weights(model.variables)
        assert bert(tiny.INPUTS).pooled.dtype == tf.bfloat16
        assert model(tiny.INPUTS).dtype == tf.float32
        assert {v.dtype for v in model.variables} == {"float32"}
        tiny.close(model(tiny.INPUTS), tiny.logits(model), 0.15)
        assert keras.config.dtype_policy().name == "float32"
        assert keras.models.clone_model(model).bert.compute_dtype == "bfloat16"

    @pytest.mark.slow
    def test_of_all(self):
        with tiny_model.policy("mixed_bfloat16"):
            model = tiny.classifier()
        model.compile("sgd", tiny.ENTROPY, run_eagerly=True)
        model.fit(tiny.INPUTS, tiny.LABELS, verbose=0)
        assert model.bert(tiny.INPUTS).pooled.dtype == tf.bfloat16
        tiny.close(
            model.predict(tiny.INPUTS, verbose=0), tiny.logits(model), 0.15
        )

    def test_weights_in_bfloat16(self):
        bert = models.Bert(tiny.PLAIN, dtype="bfloat16")
        model = models.BertClassifier(bert, 2)
        assert {v.dtype for v in model.variables} == {"bfloat16"}
        assert model(tiny.INPUTS).dtype == tf.float32
