"""Tests of the records of bert_tf/training/pretraining.py."""

import dataclasses

from bert_tf.records import masking
from bert_tf.records import types as record_types
from bert_tf.training import pretraining

import pytest
import tensorflow as tf


def test_masks_that_only_the_host_of_the_script_can_draw():
    plain = pretraining.Data(
        *(["a"], [1], record_types.PRETRAINING, {"S": 8, "P": 2}, "nsp", None)
    )
    pretraining.check_no_masking(plain, plain)
    settings = masking.Masking(
        *("token", 0.15, 2, 0.8, 0.1, 0.2, 3, 9, 1, 2, 3)
    )
    masked = dataclasses.replace(plain, files=["b"], masking=settings)
    message = "without --dynamic_masking. Received: records=b"
    with pytest.raises(ValueError, match=message):
        pretraining.check_no_masking(plain, masked)


def test_sizes_of_rows_of_several_sequences():
    batch = {
        "input_mask": tf.constant([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]),
        "sequence_ids": tf.constant([[1, 1, 1, 2, 0], [1, 1, 0, 0, 0]]),
        "cls_positions": tf.constant([[0, 3], [0, 0]]),
        "row_weights": tf.constant([1.0, 1.0]),
    }
    expected = {"sequences": 3, "tokens": 6, "pairs": 9 + 1 + 4}
    assert pretraining.sizes(batch) == expected
