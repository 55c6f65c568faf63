"""Tests of bert_tf/records.py."""

from bert_tf import records

import numpy as np
import pytest
import tensorflow as tf

LENGTHS = {"S": 8, "P": 3}


def pretraining_values(seed=0, sequence=8, predictions=3):
    rng = np.random.default_rng(seed)
    return {
        "input_ids": rng.integers(0, 30_522, sequence),
        "input_mask": [1] * (sequence - 2) + [0] * 2,
        "segment_ids": np.arange(sequence) // 4,
        "masked_lm_positions": np.arange(predictions, dtype=np.int32),
        "masked_lm_ids": rng.integers(0, 30_522, predictions),
        "masked_lm_weights": np.linspace(0, 1, predictions),
        "next_sentence_labels": [seed % 2],
    }


def write(path, number, **lengths):
    with records.Writer(path) as writer:
        for seed in range(number):
            values = pretraining_values(seed, **lengths)
            writer.write(records.PRETRAINING.encode(values))
    return str(path)


class TestRecordType:
    def test_encode_is_read_by_protobuf(self):
        values = pretraining_values()
        encoded = records.PRETRAINING.encode(values)
        features = tf.train.Example.FromString(encoded).features.feature
        assert len(features) == 7
        for name in values.keys() - {"masked_lm_weights"}:
            assert list(features[name].int64_list.value) == list(values[name])
        np.testing.assert_array_equal(
            features["masked_lm_weights"].float_list.value, [0, 0.5, 1]
        )

    def test_encode_is_read_by_the_originals_spec(self):
        # run_pretraining.py and run_classifier.py of the original.
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
            records.PRETRAINING.encode(values), spec
        )
        for name, value in values.items():
            np.testing.assert_array_equal(parsed[name], value)

    def test_equal_values_give_equal_bytes(self):
        values = pretraining_values()
        again = dict(reversed(values.items()))
        encode = records.PRETRAINING.encode
        assert encode(values) == encode(again)

    def test_parse_is_the_inverse_of_encode(self):
        batch = [pretraining_values(seed) for seed in range(5)]
        serialized = [records.PRETRAINING.encode(values) for values in batch]
        parsed = records.PRETRAINING.parse(tf.constant(serialized), LENGTHS)
        assert parsed.keys() == batch[0].keys()
        for name, tensor in parsed.items():
            expected = np.stack([values[name] for values in batch])
            np.testing.assert_array_equal(tensor, expected)
            weights = name == "masked_lm_weights"
            assert tensor.dtype == (tf.float32 if weights else tf.int32)

    @pytest.mark.parametrize(
        "record_type, label, dtype",
        [
            (records.CLASSIFICATION, 2, tf.int32),
            (records.REGRESSION, 2.5, tf.float32),
        ],
    )
    def test_scalars(self, record_type, label, dtype):
        values = {
            "input_ids": [1, 2],
            "input_mask": [1, 1],
            "segment_ids": [0, 0],
            "label_ids": label,
            "is_real_example": 1,
        }
        serialized = tf.constant([record_type.encode(values)] * 2)
        parsed = record_type.parse(serialized, {"S": 2})
        assert parsed["label_ids"].dtype == dtype
        assert parsed["label_ids"].numpy().tolist() == [label, label]
        assert parsed["is_real_example"].numpy().tolist() == [1, 1]

    @pytest.mark.parametrize("encode", ["encode", "encode_batch"])
    def test_encode_refuses_other_features(self, encode):
        values = pretraining_values()
        del values["segment_ids"]
        with pytest.raises(ValueError, match=r"segment_ids.*Received"):
            getattr(records.PRETRAINING, encode)(values)

    @pytest.mark.parametrize("sequence, predictions", [(8, 3), (128, 20)])
    def test_encode_batch_gives_the_bytes_of_encode(
        self, sequence, predictions
    ):
        rows = [
            pretraining_values(seed, sequence, predictions)
            for seed in range(100)
        ]
        batch = {name: np.stack([x[name] for x in rows]) for name in rows[0]}
        encode = records.PRETRAINING.encode
        assert records.PRETRAINING.encode_batch(batch) == [*map(encode, rows)]

    @pytest.mark.parametrize(
        "record_type, labels",
        [
            (records.CLASSIFICATION, np.array([-1, 0, 300])),
            (records.REGRESSION, np.array([2.5, -1.0, 0.1])),
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
        assert record_type.encode_batch(batch) == [
            record_type.encode(row) for row in rows
        ]


class TestCheck:
    def test_accepts_what_fits(self, tmp_path):
        files = [write(tmp_path / name, 2) for name in ("a", "b")]
        records.PRETRAINING.check(files, LENGTHS)

    @pytest.mark.parametrize(
        "lengths, message",
        [
            (
                {"S": 512, "P": 3},
                r"b holds sequences of 8 tokens \(feature input_ids\), "
                r"expected 512: give --max_seq_length=8 or make the data",
            ),
            (
                {"S": 8, "P": 20},
                r"b holds 3 predictions per sequence \(feature "
                r"masked_lm_positions\), expected 20: "
                r"give --max_predictions_per_seq=3",
            ),
        ],
    )
    def test_names_both_lengths(self, tmp_path, lengths, message):
        first = write(
            tmp_path / "a", 1, sequence=lengths["S"], predictions=lengths["P"]
        )
        second = write(tmp_path / "b", 1)
        with pytest.raises(ValueError, match=message):
            records.PRETRAINING.check([first, second], lengths)

    def test_other_record_type(self, tmp_path):
        file = write(tmp_path / "a", 1)
        with pytest.raises(ValueError, match=r"a does not hold class.*label"):
            records.CLASSIFICATION.check([file], LENGTHS)

    def test_other_dtype(self, tmp_path):
        values = {
            "input_ids": [1] * 8,
            "input_mask": [1] * 8,
            "segment_ids": [0] * 8,
            "label_ids": 1,
            "is_real_example": 1,
        }
        with records.Writer(tmp_path / "a") as writer:
            writer.write(records.CLASSIFICATION.encode(values))
        with pytest.raises(ValueError, match=r"label_ids.*int64_list"):
            records.REGRESSION.check([str(tmp_path / "a")], LENGTHS)

    def test_not_an_example(self, tmp_path):
        with records.Writer(tmp_path / "a") as writer:
            writer.write(b"\xff\xff\xff")
        with pytest.raises(ValueError, match=r"a, record 1: not a tf\.train"):
            records.PRETRAINING.check([str(tmp_path / "a")], LENGTHS)

    def test_not_a_tfrecord(self, tmp_path):
        (tmp_path / "a").write_text("a text file, longer than a header\n")
        with pytest.raises(ValueError, match="a, record 1: truncated, corr"):
            records.PRETRAINING.check([str(tmp_path / "a")], LENGTHS)


class TestFiles:
    def test_writer_leaves_nothing_half_written(self, tmp_path):
        with pytest.raises(KeyError), records.Writer(tmp_path / "a") as writer:
            writer.write(b"one")
            raise KeyError
        assert not list(tmp_path.iterdir())

    def test_writer_names_a_file_that_it_cannot_write(self, tmp_path):
        (tmp_path / "file").write_text("x")
        path = tmp_path / "file" / "a"
        with (
            pytest.raises(OSError, match=f"Cannot write {path}: .*directory"),
            records.Writer(path),
        ):
            pass

    def test_count(self, tmp_path):
        files = [write(tmp_path / str(n), n) for n in (3, 1, 1500)]
        assert records.count(files) == [3, 1, 1500]
        assert records.diagnose(files) is None

    def test_truncated_file(self, tmp_path):
        good, bad = write(tmp_path / "a", 9), write(tmp_path / "b", 9)
        content = (tmp_path / "b").read_bytes()
        (tmp_path / "b").write_bytes(content[: len(content) * 6 // 9 + 20])
        with pytest.raises(ValueError, match="b, record 7: truncated, corr"):
            records.count([good, bad])
        diagnosis = records.diagnose([good, bad])
        assert diagnosis
        assert f"{bad}, record 7" in diagnosis

    def test_corrupt_file(self, tmp_path):
        with records.Writer(tmp_path / "a") as writer:
            for letter in b"abcdef":
                writer.write(bytes([letter]) * 50)
        content = (tmp_path / "a").read_bytes()
        (tmp_path / "a").write_bytes(content.replace(b"ddd", b"dxd"))
        with pytest.raises(ValueError, match="a, record 4: truncated, corr"):
            records.count([str(tmp_path / "a")])
