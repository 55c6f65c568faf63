"""The optimizers and schedules of bert_tf in Keras' loops."""

import bert_tf
from bert_tf import optimization
from bert_tf.errors import InputError
from bert_tf.training import schedules
from tests.api import keras_models as tiny

import keras
import numpy as np
import pytest
import tensorflow as tf

_SCHEDULE = schedules.linear_warmup_decay(0.01, 1, 10)


def _values(model):
    return {x.path: x.numpy() for x in model.variables}


def _close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        # It shifts all scores of a row: its slope is noise.
        if name.endswith("/key/bias"):
            continue
        np.testing.assert_allclose(
            found[name], value, rtol=0, atol=1e-5, err_msg=name
        )


def _fit(model, epochs=3):
    model.fit(
        tiny.INPUTS,
        tiny.LABELS,
        batch_size=6,
        epochs=epochs,
        shuffle=False,
        verbose=0,
    )
    return model


def _by_hand(kind, steps=3):
    """What the optimizer itself makes of three batches."""
    model = tiny.classifier(tiny.ONE_LAYER)
    optimizer = kind(_SCHEDULE)
    optimizer.build(model.trainable_variables)
    for step in range(steps):
        with tf.GradientTape() as tape:
            loss = tiny.ENTROPY(tiny.LABELS, model(tiny.INPUTS))
        slopes = tape.gradient(loss, [x.value for x in optimizer.variables])
        optimizer.apply(slopes, tf.constant(step, tf.int64))
    return _values(model)


@pytest.mark.slow
@pytest.mark.parametrize("kind", optimization.OPTIMIZERS.values())
def test_numbers_are_those_of_the_optimizer(kind):
    model = tiny.classifier(tiny.ONE_LAYER)
    # Steps on two replicas are traced.
    model.compile(kind(_SCHEDULE), tiny.ENTROPY, run_eagerly=True)
    _close(_values(_fit(model)), _by_hand(kind))


@pytest.mark.slow
def test_two_replicas(two_replicas):
    with two_replicas.scope():
        model = tiny.classifier(tiny.ONE_LAYER)
        model.compile(bert_tf.AdamWeightDecay(_SCHEDULE), tiny.ENTROPY)
    _close(_values(_fit(model)), _by_hand(bert_tf.AdamWeightDecay))


@pytest.mark.slow
@pytest.mark.parametrize("wraps", [False, True])
def test_training_goes_on_from_a_keras_file(tmp_path, wraps):
    """Also of a model of another class, by KerasOptimizer."""
    model = tiny.classifier(tiny.ONE_LAYER)
    optimizer = bert_tf.AdamWeightDecay(_SCHEDULE, weight_decay_rate=0.1)
    if wraps:
        model = keras.Model(model.input, model.output)
        optimizer = bert_tf.KerasOptimizer(optimizer)
    model.compile(optimizer, tiny.ENTROPY)
    model.run_eagerly = True
    inputs = {
        name: tiny.INPUTS[name]
        for name in ("input_ids", "input_mask", "segment_ids")
    }

    def fit(model):
        model.fit(inputs, tiny.LABELS, batch_size=6, epochs=2, verbose=0)

    fit(model)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    again.run_eagerly = True
    assert again.optimizer.made_of.weight_decay_rate == 0.1
    assert int(again.optimizer.iterations) == 2
    fit(model)
    fit(again)
    _close(_values(again), _values(model))


@pytest.mark.parametrize("name", sorted(schedules._FUNCTIONS))
def test_schedules_are_those_of_keras_too(name):
    schedule = getattr(schedules, name)(0.5, 2, num_train_steps=9)
    config = keras.saving.serialize_keras_object(schedule)
    again = keras.saving.deserialize_keras_object(config)
    optimizer = keras.optimizers.SGD(schedule)
    variable = keras.Variable([0.0])
    optimizer.build([variable])
    for step in range(10):
        rate = float(schedule(tf.constant(step, tf.int64)))
        assert float(again(step)) == rate
        before = variable.numpy()
        optimizer.apply([tf.constant([1.0])])
        np.testing.assert_allclose(before - variable.numpy(), rate, atol=1e-6)


def test_what_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a function of the step.*=2e-05"):
        bert_tf.AdamWeightDecay(2e-5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one of bert_tf"):
        bert_tf.KerasOptimizer(keras.optimizers.Adam())
    scaled = bert_tf.Lamb(_SCHEDULE, loss_scale=optimization.LossScale())
    with pytest.raises(InputError, match="leave out loss_scale"):
        bert_tf.KerasOptimizer(scaled)
    model = tiny.classifier()
    model.compile(bert_tf.Lamb(lambda step: 0.1), tiny.ENTROPY)
    with pytest.raises(InputError, match=r"a schedule of bert_tf\.schedules"):
        model.optimizer.get_config()
    (tmp_path / "model.keras").write_text("older")
    with pytest.raises(InputError, match=r"weights only, by save_weights"):
        model.save(tmp_path / "model.keras")
    assert (tmp_path / "model.keras").read_text() == "older"
    for by_layer in (
        {"rate_of": lambda name: 0.5 if "layer_0" in name else 1.0},
        {"starts_at": lambda name: 9},
    ):
        made = bert_tf.Lamb(_SCHEDULE, **by_layer)
        with pytest.raises(InputError, match="no rate_of, starts_at or"):
            bert_tf.KerasOptimizer(made).get_config()
    variables = [keras.Variable([0.0], name="a") for _ in range(2)]
    with pytest.raises(InputError, match=r"one name.*Received: a twice"):
        bert_tf.KerasOptimizer(bert_tf.Lamb(_SCHEDULE)).build(variables)
