from bert_tf import distribution, fine_tuning_flags

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver


def test_batches_of_many_shapes_are_not_for_tpus(monkeypatch):
    flags.FLAGS.mark_as_parsed()
    strategy = tf.distribute.get_strategy()
    assert not fine_tuning_flags.plan(strategy).group_by_length
    with flagsaver.flagsaver(group_by_length=True):
        assert fine_tuning_flags.plan(strategy).group_by_length
        # There is no TPU here to ask.
        monkeypatch.setattr(distribution, "is_tpu", lambda strategy: True)
        with pytest.raises(ValueError, match="a TPU would compile each"):
            fine_tuning_flags.plan(strategy)
