from bert_tf.records import record_types
from tests.record_values import LENGTHS, pretraining_values

import numpy as np
import pytest
import tensorflow as tf


class TestRecordType:
    def test_encode_is_read_by_the_originals_spec(self):
        # As in run_pretraining.py and run_classifier.py of the original.
        spec = {
            "input_ids": tf.io.FixedLenFeature([8], tf.int64),
            "input_mask": tf.io.FixedLenFeature([8], tf.int64),
            "segment_ids": tf.io.FixedLenFeature([8], tf.int64),
            "masked_lm_positions": tf.io.FixedLenFeature([3], tf.int64),
            "masked_lm_ids": tf.io.FixedLenFeature([3], tf.int64),
            "masked_lm_weights": tf.io.FixedLenFeature([3], tf.float32),
            "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
        }
        values = pretraining_values()
        parsed = tf.io.parse_single_example(
            record_types.PRETRAINING.encode(values), spec
        )
        for name, value in values.items():
            np.testing.assert_array_equal(parsed[name], value)

    def test_equal_values_give_equal_bytes(self):
        values = pretraining_values()
        again = dict(reversed(values.items()))
        encode = record_types.PRETRAINING.encode
        assert encode(values) == encode(again)

    def test_parse_is_the_inverse_of_encode(self):
        batch = [pretraining_values(seed) for seed in range(5)]
        serialized = list(map(record_types.PRETRAINING.encode, batch))
        parsed = record_types.PRETRAINING.parse(
            tf.constant(serialized), LENGTHS
        )
        assert parsed.keys() == batch[0].keys()
        for name, tensor in parsed.items():
            expected = np.stack([values[name] for values in batch])
            np.testing.assert_array_equal(tensor, expected)
            weights = name == "masked_lm_weights"
            assert tensor.dtype == (tf.float32 if weights else tf.int32)

    @pytest.mark.parametrize("encode", ["encode", "encode_batch"])
    def test_encode_refuses_other_features(self, encode):
        values = pretraining_values()
        del values["segment_ids"]
        with pytest.raises(ValueError, match=r"segment_ids.*Received"):
            getattr(record_types.PRETRAINING, encode)(values)

    @pytest.mark.parametrize("sizes", [(8, 3), (128, 20)])
    def test_encode_batch_gives_the_bytes_of_encode(self, sizes):
        rows = [pretraining_values(seed, *sizes) for seed in range(100)]
        batch = {name: np.stack([x[name] for x in rows]) for name in rows[0]}
        kind = record_types.PRETRAINING
        assert kind.encode_batch(batch) == list(map(kind.encode, rows))

    @pytest.mark.parametrize(
        "record_type, labels",
        [
            (record_types.CLASSIFICATION, np.array([-1, 0, 300])),
            (record_types.REGRESSION, np.array([2.5, -1.0, 0.1])),
        ],
    )
    def test_encode_batch_of_scalars(self, record_type, labels):
        batch = {
            "input_ids": np.array([[101, 102], [7, 2**31], [2**40, 0]]),
            "input_mask": np.ones((3, 2), np.int8),
            "segment_ids": np.zeros((3, 2), np.int32),
            "label_ids": labels,
            "is_real_example": np.ones(3, np.int64),
        }
        rows = [{name: x[i] for name, x in batch.items()} for i in range(3)]
        expected = list(map(record_type.encode, rows))
        assert record_type.encode_batch(batch) == expected
