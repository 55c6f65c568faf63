from bert_tf import optimization
from bert_tf.checkpoints import tf1_files
from bert_tf.training import training_state

import keras
import numpy as np
import pytest
import tensorflow as tf


def optimizer(variables, **options):
    made = optimization.AdamWeightDecay(
        lambda step: tf.constant(0.1),
        loss_scale=optimization.LossScale(**options),
    )
    made.build(variables)
    return made


def state(made):
    return {name: slot.numpy().tolist() for name, slot in made.slots.items()}


@pytest.mark.slow
def test_scale_follows_overflows_and_quiet_steps():
    variable = keras.Variable([1.0], name="kernel")
    made = optimizer([variable], initial=8.0, period=3)
    apply = tf.function(made.apply)
    scales, skipped, weights = [], [], []
    for step, gradient in enumerate([1, np.inf, 1, 1, 1, 1, np.nan, 1]):
        report = apply(
            [tf.constant([gradient], tf.float32)], tf.constant(step, tf.int64)
        )
        scales.append(float(report["loss_scale"]))
        skipped.append(int(report["skipped_steps"]))
        weights.append(float(variable.numpy()[0]))
        assert np.isfinite(report["gradient_norm"])
    # Halved after a skipped step, doubled after three finite steps in a row.
    assert scales == [8, 8, 4, 4, 4, 8, 8, 4]
    assert skipped == [0, 1, 0, 0, 0, 0, 1, 0]
    stays = np.equal(weights[1:], weights[:-1]).tolist()
    assert stays == list(map(bool, skipped[1:]))


def test_a_skipped_step_leaves_the_moments():
    made = optimizer([keras.Variable([1.0], name="kernel")])
    made.apply([tf.constant([0.5])], tf.constant(0, tf.int64))
    before = state(made)
    made.apply([tf.constant([np.inf])], tf.constant(1, tf.int64))
    after = state(made)
    for slot in ("kernel/adam_m", "kernel/adam_v"):
        assert after[slot] == before[slot]
    assert after[optimization.SCALE] == before[optimization.SCALE] / 2
    assert after[optimization.GOOD_STEPS] == 0


def _trained(name, gradients, weight):
    """Returns weights after each update, by the papers' formulas."""
    found, m, v, w = [], np.zeros(2), np.zeros(2), np.array(weight)
    for t, g in enumerate(np.array(gradients), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        root = np.sqrt(v / (1 - 0.999**t)) + 1e-6
        update = m / (1 - 0.9**t) / root
        norms = np.linalg.norm(w), np.linalg.norm(update)
        w = w - 0.1 * update * (norms[0] / norms[1] if name == "lamb" else 1)
        found.append(w)
    return found


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("name", ["adamw_bias_corrected", "lamb"])
def test_bias_correction_counts_updates(name, start):
    variable = keras.Variable([1.0, -2.0], name="kernel")
    made = optimization.OPTIMIZERS[name](
        lambda step: tf.constant(0.1),
        weight_decay_rate=0.0,
        loss_scale=optimization.LossScale(),
        starts_at={"kernel": start, "other": 0}.__getitem__,
    )
    made.build([variable, keras.Variable(1.0, name="other")])
    gradients = [[0.5, 0.1], [-0.2, 0.3], [0.1, 0.4]]
    found = []
    for step, gradient in enumerate([[0.0, 0.0]] * 3 + gradients):
        other = tf.constant(np.inf if step < 3 else 0.0, tf.float32)
        report = made.apply(
            [tf.constant(gradient), other], tf.constant(step, tf.int64)
        )
        assert report["skipped_steps"] == (step < 3)
        found.append(variable.numpy())
    expected = [[1, -2]] * 3 + _trained(name, gradients, [1.0, -2.0])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_no_scale_helps_shows():
    # If the scale cannot be halved, the loop must notice and stop the run.
    made = optimizer([keras.Variable([1.0], name="kernel")], initial=1.0)
    report = made.apply([tf.constant([np.nan])], tf.constant(0, tf.int64))
    assert np.isnan(report["gradient_norm"])


@pytest.mark.slow
def test_all_replicas_skip_together(two_replicas):
    with two_replicas.scope():
        variable = keras.Variable([1.0, 2.0], name="kernel")
        made = optimizer([variable])

    @tf.function
    def step(number):
        def replica():
            context = tf.distribute.get_replica_context()
            index = tf.cast(context.replica_id_in_sync_group, tf.float32)
            # Only the second replica overflows, and only in the first step.
            first = tf.cast(number == 0, tf.float32)
            own = tf.ones([2]) / (1 - index * first)
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, own)
            return made.apply([total], number)

        return two_replicas.run(replica)

    def values():
        return [
            [x.numpy() for x in two_replicas.experimental_local_results(v)]
            for v in (variable.value, *made.slots.values())
        ]

    for number, moves in ((0, False), (1, True)):
        step(tf.constant(number, tf.int64))
        for left, right in values():
            np.testing.assert_array_equal(left, right)
        assert (values()[0][0][0] != 1) == moves
    scale = made.slots[optimization.SCALE]
    assert float(two_replicas.experimental_local_results(scale)[1]) == 2**14


def test_state_is_in_the_checkpoint(tmp_path):
    def make():
        model = keras.Model()
        model.kernel = keras.Variable([1.0], name="kernel")
        made = optimizer([model.kernel])
        return made, training_state.TrainState(model, made, seed=1)

    made, saved = make()
    for number, gradient in enumerate((np.inf, 1.0, 1.0)):
        made.apply([tf.constant([gradient])], tf.constant(number, tf.int64))
    saved.step = 3
    saved.save(str(tmp_path))
    other, restored = make()
    assert restored.resume(str(tmp_path))
    assert state(other) == state(made)
    assert state(other)[optimization.GOOD_STEPS] == 2
    assert state(other)[optimization.SKIPPED_STEPS] == 1
    # Earlier versions did not count skipped steps.
    prefix = str(tmp_path / "model.ckpt-3")
    values = tf1_files.read(prefix, sorted(tf1_files.shapes(prefix)))
    del values[optimization.SKIPPED_STEPS]
    tf1_files.write(prefix, values)
    other, restored = make()
    assert restored.resume(str(tmp_path))
    expected = state(made) | {optimization.SKIPPED_STEPS: 0}
    assert state(other) == expected
