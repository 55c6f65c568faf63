from bert_tf.setup import fine_tuning as fine_tuning_setup
from bert_tf.training import distribution

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver


def test_batches_of_many_shapes_are_not_for_tpus(monkeypatch):
    flags.FLAGS.mark_as_parsed()
    strategy = tf.distribute.get_strategy()
    assert not fine_tuning_setup.plan(strategy).group_by_length
    with flagsaver.flagsaver(group_by_length=True):
        assert fine_tuning_setup.plan(strategy).group_by_length
        # There is no TPU here to ask.
        monkeypatch.setattr(distribution, "is_tpu", lambda strategy: True)
        with pytest.raises(ValueError, match="a TPU would compile each"):
            fine_tuning_setup.plan(strategy)


@pytest.mark.parametrize(
    "work, message",
    [
        ({}, None),
        ({"do_train": True}, "train_batch_size=9"),
        ({"do_eval": True}, "eval_batch_size=7"),
        ({"do_predict": True}, "predict_batch_size=5"),
    ],
)
def test_batch_sizes_that_the_run_takes_must_fit(work, message):
    flags.FLAGS.mark_as_parsed()
    two_replicas = {"distribution_strategy": "mirrored", "logical_cpus": 2}
    sizes = {"train_batch_size": 9, "eval_batch_size": 7}
    with flagsaver.flagsaver(
        **(two_replicas | sizes | work),
        predict_batch_size=5,
        deterministic_ops=False,  # would hold for all tests of the process
    ):
        if message is None:
            assert fine_tuning_setup.set_up_distribution()
            return
        with pytest.raises(ValueError, match=message):
            fine_tuning_setup.set_up_distribution()
