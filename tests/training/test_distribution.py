import concurrent.futures
import threading

from bert_tf.training import distribution

import keras
import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def _policy():
    before = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(before)


def test_default_is_one_replica():
    strategy = distribution.set_up("default")
    assert strategy.num_replicas_in_sync == 1
    assert distribution.local_replicas(strategy) == 1
    assert distribution.is_chief(strategy)


def test_mirrored_takes_the_logical_cpus():
    # conftest.py has already split the CPU, which must not be an error.
    strategy = distribution.set_up("mirrored", logical_cpus=2)
    assert strategy.num_replicas_in_sync == 2
    assert [device[-5:] for device in strategy.extended.worker_devices] == [
        "CPU:0",
        "CPU:1",
    ]
    assert distribution.local_replicas(strategy) == 2
    assert distribution.is_chief(strategy)


def test_compiles_on_demand_where_there_is_no_accelerator():
    strategy = distribution.set_up("default")
    found = [distribution.compiles(strategy, x) for x in (None, False, True)]
    assert found == [False, False, True]


def test_weights_follow_from_the_seed():
    def weights(strategy, seed):
        with distribution.set_up(strategy, seed=seed).scope():
            layer = keras.layers.Dense(3)
            layer.build([None, 4])
            return tf.convert_to_tensor(layer.kernel).numpy()

    first = weights("default", 1)
    np.testing.assert_array_equal(weights("default", 1), first)
    np.testing.assert_array_equal(weights("mirrored", 1), first)
    assert not np.array_equal(weights("default", 2), first)


def test_bfloat16_keeps_weights_in_float32():
    distribution.set_up("default", "bfloat16")
    layer = keras.layers.Dense(3)
    assert layer(tf.ones([2, 4])).dtype == tf.bfloat16
    assert layer.kernel.dtype == "float32"
    distribution.set_up("default", "float32")
    assert keras.layers.Dense(3)(tf.ones([2, 4])).dtype == tf.float32


def test_float16_without_a_gpu():
    with pytest.raises(ValueError, match=r"needs a GPU.*dtype='float16'"):
        distribution.set_up("default", "float16")


def test_a_cluster_that_nothing_names(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="TF_CONFIG, which is not set"):
        distribution.set_up("multi_worker_mirrored")


def test_check_batch_size(two_replicas):
    one, two = tf.distribute.get_strategy(), two_replicas
    distribution.check_batch_size(one, "train_batch_size", 7)
    distribution.check_batch_size(two, "train_batch_size", 12, 3)
    for batch_size, accumulate, by in ((7, 1, 2), (8, 3, 6), (6, 2, 4)):
        message = (
            rf"--train_batch_size must be a multiple of {by}: the replicas "
            rf"\(2\) times the micro-batches \({accumulate}\). Received: "
            f"train_batch_size={batch_size}"
        )
        with pytest.raises(ValueError, match=message):
            distribution.check_batch_size(
                two, "train_batch_size", batch_size, accumulate
            )


def checked(check_one, values):
    """Returns the results of several workers that check their values."""
    said = [False] * len(values)
    barrier = threading.Barrier(len(values))

    def check(i):
        def agree(yes):
            said[i] = yes
            barrier.wait(10)
            result = any(said)
            barrier.wait(10)
            return result

        try:
            check_one(agree, values[i])
        except ValueError as error:
            return str(error)
        return ""

    with concurrent.futures.ThreadPoolExecutor(len(values)) as pool:
        return list(pool.map(check, range(len(values))))


def test_workers_that_are_alike_go_on():
    for steps in ((0, 0), (10**9,) * 3):
        assert not any(checked(distribution.check_same_step, steps))
    same = {"batch_size": 8, "optimizer": "lamb", "data": {"records": 5}}
    assert not any(checked(distribution.check_alike, [same] * 3))


def test_workers_at_different_steps_end_together():
    steps = 49_000, 50_000
    for step, said in zip(
        steps, checked(distribution.check_same_step, steps), strict=True
    ):
        assert f"this one stands at step {step}, the furthest at 50000" in said


def test_workers_that_differ_end_together_and_name_it():
    first = {"batch_size": 8, "rate": 1e-4, "data": {"records": 5}}
    second = first | {"rate": 1e-5, "data": {"records": 6}}
    found = checked(distribution.check_alike, [first, first, second])
    for error, own in zip(found, (first, first, second), strict=True):
        assert "The workers of this run differ in rate, data. Start" in error
        rate, data = own["rate"], own["data"]
        assert error.endswith(f"Received here: rate={rate}, data={data}")


def test_a_worker_alone_has_nobody_to_ask():
    agree = distribution.agreement(tf.distribute.get_strategy())
    distribution.check_same_step(agree, 12345)
