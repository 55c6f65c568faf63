"""Tests of bert_tf/micro_batches.py."""

from bert_tf import (
    devices,
    input_pipeline,
    micro_batches,
    modeling,
    optimization,
    records,
    training,
)

import keras
import pretraining_records
import pytest
import tensorflow as tf


class TestChoose:
    @pytest.mark.parametrize(
        "rows, limit, micro_batches_",
        [
            (32, 32, 1),
            (32, 1000, 1),
            (32, 31, 2),
            (32, 15, 4),
            (32, 1, 32),
            (12, 5, 3),  # of 4 rows: 5 does not divide 12
            (7, 6, 7),
            (1, 1, 1),
        ],
    )
    def test_largest_that_fits(self, rows, limit, micro_batches_):
        asked = []

        def fits(size):
            asked.append(size)
            return size <= limit

        assert micro_batches.choose(rows, fits) == micro_batches_
        assert all(rows % size == 0 for size in asked)
        assert len(asked) <= 4  # each may take a minute to compile

    def test_the_whole_batch_may_fit_where_no_part_does(self):
        # Parts need the sum of the gradients besides.
        assert micro_batches.choose(8, lambda size: size == 8) == 1

    def test_not_one_example(self):
        message = "not enough memory to train on one example. Use --remat"
        with pytest.raises(ValueError, match=message):
            micro_batches.choose(8, lambda size: False)


def test_workers_take_what_the_poorest_asks_for():
    # Another worker found 4; each asks by its own number.
    def agree(yes):
        asked.append(yes)
        return yes or (1, 2, 4, 8)[len(asked) - 1] < 4

    for found, expected in ((1, 4), (2, 4), (8, 8)):
        asked: list[bool] = []
        assert micro_batches.most(8, found, agree) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4\n", 4), ("3\n", None), ("0\n", None), ("", None), (None, None)],
)
def test_what_a_run_began_with(text, expected, tmp_path):
    path = tmp_path / "micro_batches.txt"
    if text is not None:
        path.write_text(text)
    assert micro_batches.noted(str(path), 8) == expected


class TestEstimated:
    def test_by_the_estimate_of_memory(self):
        config = modeling.BertConfig(vocab_size=1000, num_hidden_layers=2)
        memory = devices.training_memory(config, 8, 128, 20)
        need = memory.total - memory.state  # Model and moments are there.
        for available, expected in ((need, False), (1.2 * need, True)):
            fits = micro_batches.estimated(
                config, 8, 128, 20, 1, available=available
            )
            assert fits(8) == expected
        # Two replicas of one machine share its memory.
        fits = micro_batches.estimated(
            config, 8, 128, 20, 2, available=1.2 * need
        )
        assert not fits(8)

    def test_parts_of_a_batch_may_take_twice_the_estimate(self):
        config = modeling.BertConfig(vocab_size=1000, num_hidden_layers=2)
        memory = devices.training_memory(config, 8, 128, 20, accumulate=4)
        weights = memory.state / 4  # As many bytes as a sum of gradients.
        need = weights + 2 * (memory.total - memory.state)
        for available, expected in ((need, False), (1.2 * need, True)):
            fits = micro_batches.estimated(
                config, 32, 128, 20, 1, available=available
            )
            assert fits(8) == expected

    def test_what_is_free_now(self):
        small = modeling.BertConfig(vocab_size=100, num_hidden_layers=1)
        assert micro_batches.estimated(small, 1, 16, 4, 1)(1)
        huge = modeling.BertConfig(vocab_size=10**9)
        assert not micro_batches.estimated(huge, 1, 16, 4, 1)(1)


class Model(keras.Model):
    """One weight."""

    def __init__(self):
        super().__init__(name="one")
        self.weight = keras.Variable([1.0], name="weight")
        self.built = True

    def call(self, weights):
        return tf.reduce_sum(self.weight * weights)


def sums(model, batch, seed):
    rows = batch["row_weights"].shape[0]
    # A petabyte from the fifth row on: no machine has that.
    size = 2**8 if rows < 5 else 2**24
    room = tf.fill([size, size], model(batch["row_weights"]))
    return {"it": {"loss": tf.reduce_sum(room**2)}}


OBJECTIVE = training.Objective(lambda batch: {"it": tf.ones([])}, sums)


# TensorFlow waits ten seconds for memory before it gives up.
@pytest.mark.slow
def test_tried_until_memory_runs_out(tmp_path):
    strategy = tf.distribute.get_strategy()
    files = pretraining_records.write(tmp_path, [40])
    with strategy.scope():
        model = Model()
        optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
        optimizer.build(model.trainable_variables)
    dataset = input_pipeline.distribute(
        strategy,
        input_pipeline.train(files, [40], 8, 7),
        records.PRETRAINING,
        pretraining_records.LENGTHS,
    )
    fits = micro_batches.tried(strategy, model, optimizer, OBJECTIVE, dataset)
    assert micro_batches.choose(8, fits) == 2
    # Nothing was updated.
    assert float(model.weight.numpy()[0]) == 1
