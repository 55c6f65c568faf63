"""Dropout in the inner loop: masks differ where they must, and only there."""

from typing import Any

from bert_tf.encoders import ops
from bert_tf.training import loop, replica_step
from tests import combinations, reference, tiny_model, tiny_trainer

import keras
import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow


class Masks(keras.Model):
    """One variable, whose gradient is the sum of the dropout masks."""

    def __init__(self):
        super().__init__(name="masks")
        self.weight = keras.Variable(tf.zeros([4000]), name="weight")
        self.built = True

    def call(self, dropout_seed):
        weight = tf.convert_to_tensor(self.weight)
        for _ in range(5):  # As attention's in a classifier.
            *_, dropout_seed = ops.split_seed(dropout_seed, 2)
        return tf.reduce_sum(ops.dropout(weight, 0.5, dropout_seed))


MASKS = loop.Objective(
    lambda batch: {"it": tf.constant(1.0)},
    lambda model, batch, seed: {"it": {"loss": model(seed)}},
)


def masks(files, step=0, seed=5, **options):
    """Returns how many of a step's masks keep each element."""
    trainer = tiny_trainer.Trainer(
        files, seed=seed, make=Masks, objective=MASKS, start=step, **options
    )
    trainer.train(step, 1)
    kept = trainer.arrays()["weight/adam_m"]
    return np.rint(kept / kept[kept > 0].min()).astype(int)


class TestDropout:
    @pytest.mark.parametrize(
        "accumulate, use_xla",
        combinations.some(
            [(2, False), (2, True)], [(1, False), (2, False), (2, True)]
        ),
    )
    def test_every_replica_and_micro_batch_has_its_own(
        self, files, two_replicas, accumulate, use_xla
    ):
        total = 2 * accumulate
        options = {"accumulate": accumulate, "use_xla": use_xla}
        kept = masks(files, strategy=two_replicas, **options)
        shares = np.bincount(kept, minlength=total + 1) / len(kept)
        # Independent masks: binomial. Equal masks: only 0 and all.
        expected = {2: [1, 2, 1], 4: [1, 4, 6, 4, 1]}[total]
        np.testing.assert_allclose(
            shares, np.array(expected) / 2**total, atol=0.04
        )

    @tiny_model.untraced()
    def test_is_a_function_of_seed_and_step(self, files):
        first = masks(files)
        assert masks(files).tolist() == first.tolist()
        for other in (masks(files, step=1), masks(files, seed=6)):
            assert 0.4 < np.mean(other == first) < 0.6

    def test_going_on_gives_the_same_bits(self, files, two_replicas):
        """And replicas stay bit-identical."""

        def make(start=0):
            return tiny_trainer.Trainer(
                *(files, two_replicas),
                make=lambda: tiny_model.Tiny(0.3),
                start=start,
            )

        whole, second = make(), make(2)
        whole.train(0, 2)
        variables = {v.path: v for v in second.model.variables}
        for name, value in whole.arrays().items():
            (variables | second.optimizer.slots)[name].assign(value)
        whole.train(2, 3)
        reference.assert_same(whole.arrays(0), whole.arrays(1))
        second.train(2, 3)
        reference.assert_same(second.arrays(), whole.arrays())
        without = tiny_trainer.Trainer(files)
        with tiny_model.untraced():
            without.train(0, 5)
        left = whole.arrays()["table"]
        assert not np.array_equal(without.arrays()["table"], left)


def test_micro_batches_have_the_seeds_of_fold_in():
    unused: Any = None
    step = replica_step.ReplicaStep(unused, unused, MASKS, unused, 7, 3)
    key = tf.random.fold_in(tf.constant([7, 0]), tf.constant(2**40, tf.int64))
    key = tf.random.fold_in(key, tf.constant(1, tf.int64))
    np.testing.assert_array_equal(
        step.seeds(tf.constant(2**40, tf.int64), replica=1),
        [tf.random.fold_in(key, part) for part in range(3)],
    )
