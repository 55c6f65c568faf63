"""Tests of bert_tf/records/wire_format.py, against protobuf."""

from bert_tf.records import wire_format

import numpy as np
import pytest
import tensorflow as tf


def by_protobuf(features):
    serialized = []
    for row in zip(*features.values(), strict=True):
        example = tf.train.Example()
        for name, values in zip(features, row, strict=True):
            feature = example.features.feature[name]
            if values.dtype == np.float32:
                feature.float_list.value.extend(values.tolist())
            else:
                feature.int64_list.value.extend(map(int, values))
        serialized.append(example.SerializeToString(deterministic=True))
    return serialized


def mixed(dtype):
    """Returns numbers of every encoded length of the type, at all positions."""
    info = np.iinfo(dtype)
    bits = np.arange(info.bits)
    values = np.concatenate([2 ** bits[:-1], 2 ** bits[:-1] - 1, [info.max]])
    if info.min < 0:
        values = np.concatenate([values, -values, [info.min]])
    rng = np.random.default_rng(0)
    return rng.choice(values, (50, 33)).astype(dtype)


@pytest.mark.parametrize(
    "dtype",
    [np.int64, np.int32, np.uint32, np.int16, np.uint8, np.int8],
)
def test_integers_of_all_lengths(dtype):
    features = {"x": mixed(dtype)}
    assert wire_format.encode(features) == by_protobuf(features)


@pytest.mark.parametrize("n", [1, 2, 127, 128, 20_000])
def test_lists_of_all_lengths(n):
    rng = np.random.default_rng(0)
    features = {
        "small": np.ones((3, n), bool),
        "mixed": rng.integers(0, 20_000, (3, n)) >> rng.integers(0, 15, (3, n)),
        "real": rng.normal(size=(3, n)).astype(np.float32),
    }
    assert wire_format.encode(features) == by_protobuf(features)


def test_lists_that_differ_in_bytes_within_a_batch():
    # 100 to 200 bytes, so that length prefixes take one byte or two.
    features = {"x": np.tri(101, 100, dtype=np.int64) * 200}
    lengths = {len(row) for row in wire_format.encode(features)}
    assert max(lengths) - min(lengths) > 100
    assert wire_format.encode(features) == by_protobuf(features)


def test_names_are_sorted_as_bytes():
    names = ["z", "b_ids", "b_mask", "é", "Z", "aa"]
    features = {name: np.full((1, 1), i) for i, name in enumerate(names)}
    assert wire_format.encode(features) == by_protobuf(features)


def test_floats_keep_their_bits():
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38]
    features: dict[str, np.ndarray] = {"x": np.array([special], np.float32)}
    assert wire_format.encode(features) == by_protobuf(features)
    # Not contiguous, like a slice of a batch.
    values = np.arange(400.0, dtype=np.float32).reshape(20, 20)[:, ::2]
    more = values.astype(np.int64).T[:, :10].repeat(2, 0)
    features = {"x": values, "y": more}
    assert wire_format.encode(features) == by_protobuf(features)
    assert wire_format.encode({"x": np.zeros((0, 4), np.int64)}) == []
