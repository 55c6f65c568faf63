from bert_tf import fine_tuning_flags

import tensorflow as tf
from absl import flags
from absl.testing import flagsaver


def test_where_batches_are_of_about_one_length():
    flags.FLAGS.mark_as_parsed()
    strategy = tf.distribute.get_strategy()
    assert fine_tuning_flags.group_by_length(strategy)
    # Texts of the user's own, whose labels may go with their length.
    assert not fine_tuning_flags.group_by_length(strategy, by_default=False)
    for given in (True, False):
        with flagsaver.flagsaver(group_by_length=given):
            for default in (True, False):
                found = fine_tuning_flags.group_by_length(strategy, default)
                assert found == given
