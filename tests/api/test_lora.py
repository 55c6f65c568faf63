"""LoRA: computation and training."""

from typing import Any

from bert_tf.api import models
from bert_tf.encoders import layers, roberta
from bert_tf.errors import InputError
from tests import reference
from tests.api import keras_models as tiny
from tests.api.test_exports import answering

import keras
import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture
def model():
    return tiny.with_lora()


@pytest.mark.slow
def test_the_formula(model):
    weights = tiny.merged(model)
    expected = reference.classify(model.bert.config, weights, tiny.INPUTS)
    # Value, attention/output, intermediate and output twice, and the pooler.
    assert sum("lora_a" in x.path for x in model.variables) == 9
    tiny.close(model(tiny.INPUTS), expected)
    model.bert.merge_lora()
    assert not any("lora" in x.path for x in model.variables)
    assert all(x.trainable for x in model.variables)
    tiny.close(model(tiny.INPUTS), expected)


def test_nothing_changes_at_first():
    model = tiny.classifier()
    expected = np.asarray(model(tiny.INPUTS))
    model.bert.enable_lora()
    np.testing.assert_array_equal(model(tiny.INPUTS), expected)
    with pytest.raises(InputError, match="has LoRA already"):
        model.bert.enable_lora()


@pytest.mark.parametrize("size", [1e-4, 1e-2])
def test_small_matrices_count_in_16_bits(size):
    with layers.of_policy(keras.DTypePolicy("mixed_bfloat16")):
        layer = layers.Dense(tiny.PLAIN, 256, 256)
    layer.build()
    layer.enable_lora(4, 2.0)
    rng = np.random.default_rng(1)
    x = rng.normal(size=[512, 256])
    first = np.asarray(tf.cast(layer(x), tf.float32))
    layer.lora_b.assign(rng.normal(size=[4, 256]) * size)
    with tf.GradientTape() as tape:
        y = layer(x)
    assert y.dtype == tf.bfloat16
    a, b = (np.asarray(w, np.float64) for w in (layer.lora_a, layer.lora_b))
    expected = 2 * x @ a @ b
    change = np.asarray(tf.cast(y, tf.float32)) - first
    share = (change * expected).sum() / (expected**2).sum()
    assert share == pytest.approx(1, abs=0.05)
    # The sum of y depends on b by 2 a^T x^T 1.
    (slope,) = tape.gradient(y, [layer.lora_b.value])
    sums = 2 * (x @ a).sum(0)[:, np.newaxis]
    np.testing.assert_allclose(
        slope, np.broadcast_to(sums, b.shape), rtol=0.05, atol=1
    )
    kernel = layer.kernel
    assert kernel.dtype == tf.float32
    layer.merge_lora()
    np.testing.assert_array_equal(layer.kernel, kernel)
    np.testing.assert_array_equal(layer(x), y)


@pytest.mark.slow
def test_only_matrices_and_the_head_are_trained(model):
    before = {x.path: np.asarray(x) for x in model.variables}
    optimizer = keras.optimizers.Adam(1e-2)
    model.compile(optimizer, tiny.ENTROPY, run_eagerly=True)
    model.fit(tiny.INPUTS, tiny.LABELS, epochs=2, verbose=0)
    changed = {
        x.path
        for x in model.variables
        if not np.array_equal(before[x.path], np.asarray(x))
    }
    matrices = {x for x in before if "lora" in x}
    assert changed == {*matrices, "output_weights", "output_bias"}


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_it_is_kept_in_keras_files_and_merged_in_exports(model, tmp_path):
    path = tmp_path / "model.keras"
    model.save(path)
    again = keras.saving.load_model(path)
    expected = np.asarray(model(tiny.INPUTS))
    np.testing.assert_array_equal(again(tiny.INPUTS), expected)
    assert again.bert.lora == model.bert.lora
    assert len(again.trainable_variables) == len(model.trainable_variables)
    vocab = [*["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], *"abcdefgh"]
    vocab += [f"##{i}" for i in range(tiny.PLAIN.vocab_size - len(vocab))]
    answer = answering(model, vocab, max_seq_length=8)("a b")
    ids = [[2, vocab.index("a"), vocab.index("b"), 3]]
    logits = np.asarray(model({"input_ids": np.array(ids, np.int32)}))[0]
    likely = np.exp(logits) / np.exp(logits).sum()
    found = list(answer["probabilities"].values())
    tiny.close(found, likely)


def test_frozen_layers():
    encoder = tiny.classifier().bert
    encoder.embeddings.trainable = False
    count = len(encoder.trainable_variables)
    encoder.enable_lora()
    encoder.merge_lora()
    assert len(encoder.trainable_variables) == count
    encoder.trainable = False
    with pytest.raises(InputError, match="The encoder is frozen"):
        encoder.enable_lora()


@pytest.mark.slow
def test_traced_steps_follow_lora(tmp_path):
    model = tiny.classifier(tiny.ONE_LAYER)
    model.compile(keras.optimizers.SGD(0.1), tiny.ENTROPY)

    def check():
        expected = np.asarray(model(tiny.INPUTS))
        tiny.close(model.predict(tiny.INPUTS, verbose=0), expected)
        loss = model.evaluate(tiny.INPUTS, tiny.LABELS, verbose=0)
        tiny.close(loss, tiny.ENTROPY(tiny.LABELS, expected))

    check()
    model.bert.enable_lora()
    for variable in model.bert.trainable_variables:
        variable.assign(np.full(variable.shape, 0.5, np.float32))
    check()
    model.bert.save_lora(tmp_path / "adapter")
    model.bert.merge_lora()
    check()
    model.bert.load_lora(tmp_path / "adapter")
    check()


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_training_follows_lora_once_compiled_again():
    model = tiny.classifier(tiny.ONE_LAYER)

    def fit(is_compiled=True):
        if is_compiled:
            model.compile(keras.optimizers.SGD(0.1), tiny.ENTROPY)
        before = {x.path: np.asarray(x) for x in model.variables}
        trained = {x.path for x in model.trainable_variables}
        model.fit(tiny.INPUTS, tiny.LABELS, verbose=0, batch_size=2)
        return trained, {
            x.path
            for x in model.variables
            if not np.array_equal(before[x.path], np.asarray(x))
        }

    fit()
    model.bert.enable_lora()
    with pytest.raises(InputError, match="compile the model again"):
        fit(is_compiled=False)
    trained, changed = fit()
    assert changed == trained
    assert any("lora_b" in x for x in changed)
    model.bert.merge_lora()
    with pytest.raises(InputError, match="compile the model again"):
        fit(is_compiled=False)
    _, changed = fit()
    # Six of the layer, and the pooler's.
    assert sum("kernel" in x for x in changed) == 7


class _Merging(keras.callbacks.Callback):
    """Merges LoRA at the end of an epoch, and predicts."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.epoch:
            self.model.bert.merge_lora()
            found = self.model.predict(tiny.INPUTS, verbose=0)
            tiny.close(found, self.model(tiny.INPUTS))


@pytest.mark.slow
def test_callbacks_that_change_lora(model):
    model.compile(keras.optimizers.SGD(0.1), tiny.ENTROPY, run_eagerly=True)
    data = (tiny.INPUTS, tiny.LABELS)
    how: Any = {"epochs": 2, "verbose": 0, "validation_data": data}
    model.fit(*data, callbacks=[_Merging(epoch=1)], **how)
    model.bert.enable_lora()
    model.compile(keras.optimizers.SGD(0.1), tiny.ENTROPY, run_eagerly=True)
    with pytest.raises(InputError, match=r"at the end.*Received: None, and"):
        model.fit(*data, callbacks=[_Merging(epoch=0)], **how)


def test_it_stays_when_training_is_off_and_on():
    model = tiny.classifier()
    model.bert.enable_lora()
    trained = [x.path for x in model.trainable_variables]
    head = [x for x in trained if "lora" not in x]
    assert {*head} == {"output_weights", "output_bias"}
    # Two matrices of query and value in two layers.
    assert len(trained) == len(head) + 8
    model.bert.trainable = False
    assert [x.path for x in model.trainable_variables] == head
    for layer in (model.bert, model):
        layer.trainable = False
        layer.trainable = True
        assert [x.path for x in model.trainable_variables] == trained


def test_variables_that_are_never_trained():
    config = roberta.RobertaConfig(**vars(tiny.PLAIN) | {"type_vocab_size": 1})
    encoder = models.Bert(config)
    paths = [x.path for x in encoder.trainable_variables]
    encoder.enable_lora()
    encoder.merge_lora()
    assert [x.path for x in encoder.trainable_variables] == paths
    assert len(encoder.variables) == len(paths) + 1


def test_what_is_missing(tmp_path):
    encoder = tiny.classifier().bert
    with pytest.raises(InputError, match="holds no adapter"):
        encoder.load_lora(tmp_path)
    with pytest.raises(InputError, match=r"use enable_lora\(\)"):
        encoder.merge_lora()
    for arguments, named in (
        ((0,), "rank=0"),
        ((2, -1.0), "alpha=-1.0"),
        ((2, 0), "alpha=0"),
        ((2, float("nan")), "alpha=nan"),
        ((2, None, ["all"]), "targets=all"),
    ):
        with pytest.raises(InputError, match=named):
            encoder.enable_lora(*arguments)
