"""Tests of DynamicMasks: masks that are drawn as records are read."""

import itertools

from bert_tf.pretraining_data import sequences as pretraining_sequences
from bert_tf.records import dynamic_masks, manifests, masking, pipeline, reading
from bert_tf.records import types as record_types
from tests import pretraining_records

import numpy as np
import pytest
import tensorflow as tf

S, P, K, B = 32, 9, 6, 8
NAMES = (
    "input_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
)


@pytest.fixture(scope="module", params=[False, True], name="data")
def _data(request, tmp_path_factory):
    """Files of unmasked records, padded and packed, and their settings."""
    settings = pretraining_sequences.Settings(
        S,
        P,
        masking="whole_word",
        dynamic_masking=True,
        pack=request.param,
        short_seq_prob=0.5,
        max_sequences_per_row=K,
    )
    folder = tmp_path_factory.mktemp("data")
    return pretraining_records.write_made(folder, settings), settings


def batches(data, number, seed=1, first_step=0, strategy=None):
    """Masked batches {name: [B, ...]} of a training run."""
    files, settings = data
    manifest = manifests.find(files)
    assert manifest is not None
    strategy = strategy or tf.distribute.get_strategy()
    dataset = pipeline.train(files, reading.count(files), B, 3, first_step * B)
    distributed = pipeline.distribute(
        strategy,
        dataset,
        record_types.PRETRAINING_TYPES[settings.record_type],
        {"S": S, "P": P, "K": K},
        masks=dynamic_masks.DynamicMasks(
            masking.Masking(**manifest.masking), seed, first_step
        ),
    )
    found = []
    for batch in itertools.islice(distributed, number):
        parts = {
            name: strategy.experimental_local_results(x)
            for name, x in batch.items()
        }
        found.append({n: np.concatenate(x) for n, x in parts.items()})
    return found


def assert_same(left, right):
    assert len(left) == len(right)
    for one, two in zip(left, right, strict=True):
        for name in NAMES:
            np.testing.assert_array_equal(one[name], two[name])


def restored(batch):
    ids = batch["input_ids"].copy()
    row, slot = np.nonzero(batch["masked_lm_weights"])
    place = batch["masked_lm_positions"][row, slot]
    ids[row, place] = batch["masked_lm_ids"][row, slot]
    return ids


def test_are_those_of_masked_records(data):
    for batch in batches(data, 3):
        packed = {"sequence_ids", "position_ids", "cls_positions"}
        packed |= {"next_sentence_weights"}
        expected = {f.name for f in record_types.PRETRAINING.features}
        expected |= {"row_weights"} | (packed if data[1].pack else set())
        assert batch.keys() == expected
        assert batch["masked_lm_weights"].shape == (B, P)
        assert (batch["masked_lm_weights"].sum(axis=1) > 0).all()
        # About one in seven is changed.
        share = (restored(batch) != batch["input_ids"]).sum()
        assert 0.08 < share / batch["input_mask"].sum() < 0.18


def test_repeat_for_the_same_seed_and_step(data):
    assert_same(batches(data, 4), batches(data, 4))
    # As after a resume.
    assert_same(batches(data, 4)[2:], batches(data, 2, first_step=2))


def test_are_no_side_effect(data):
    # With deterministic ops tf.data prefetches nothing that may be one.
    files, settings = data
    manifest = manifests.find(files)
    assert manifest is not None
    masks = dynamic_masks.DynamicMasks(masking.Masking(**manifest.masking), 1)
    record_type = record_types.PRETRAINING_TYPES[settings.record_type]

    @tf.function
    def masked(serialized):
        batch = record_type.parse(serialized, {"S": S, "P": P, "K": K})
        return masks.apply(batch, tf.constant([0], tf.int64), 0)

    graph = masked.get_concrete_function(tf.TensorSpec([B], tf.string)).graph
    types = {op.type for op in graph.get_operations()}
    assert "PyFuncStateless" in types
    assert not any(op._is_stateful for op in graph.get_operations())


def test_differ_by_seed_and_by_step(data):
    files, _ = data
    first = batches(data, 1)[0]
    other = batches(data, 1, seed=2)[0]
    np.testing.assert_array_equal(restored(first), restored(other))
    assert not np.array_equal(first["input_ids"], other["input_ids"])
    # The same text in the next epoch.
    epoch = sum(reading.count(files))
    rows: dict[bytes, np.ndarray] = {}
    again = 0
    for batch in batches(data, 2 * epoch // B):
        for text, ids in zip(restored(batch), batch["input_ids"], strict=True):
            seen = rows.setdefault(text.tobytes(), ids)
            again += not np.array_equal(seen, ids)
    assert again > 0.9 * epoch - B


def test_do_not_depend_on_replicas(data, two_replicas):
    assert_same(batches(data, 3), batches(data, 3, strategy=two_replicas))


def test_do_not_depend_on_hosts(data):
    class Host:
        """Stands for a strategy; what a host reads follows from this alone."""

        num_replicas_in_sync = 2

        def __init__(self, number):
            self.context = tf.distribute.InputContext(2, number, 2)

        def distribute_datasets_from_function(self, function):
            return function(self.context)

        def experimental_local_results(self, value):
            return [value]

    hosts = [batches(data, 3, strategy=Host(number)) for number in range(2)]
    together = [
        {name: np.concatenate([one[name], two[name]]) for name in NAMES}
        for one, two in zip(*hosts, strict=True)
    ]
    assert_same(batches(data, 3), together)
