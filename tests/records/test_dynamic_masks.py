"""Tests of DynamicMasks: masks that are drawn as records are read."""

import functools
import itertools
from typing import Any

from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import (
    dynamic_masks,
    manifests,
    masking,
    pipeline,
    reading,
    record_types,
)
from tests import pretraining_documents as documents
from tests import pretraining_records

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

S, P, K, B = 32, 9, 6, 8
LENGTHS = {"S": S, "P": P, "K": K}
NAMES = ["input_ids", "masked_lm_positions", "masked_lm_ids"]
NAMES.append("masked_lm_weights")


@pytest.fixture(scope="module", params=[False, True], name="data")
def _data(request, tmp_path_factory):
    """Files of unmasked records, padded and packed, and their settings."""
    own: dict[str, Any] = {"max_sequences_per_row": K} if request.param else {}
    settings = pretraining_sequences.Settings(
        *(S, P),
        masking="whole_word",
        dynamic_masking=True,
        pack=request.param,
        short_seq_prob=0.5,
        **own,
    )
    files = pretraining_records.write_made(
        tmp_path_factory.mktemp("data"), settings
    )
    manifest = manifests.find(files)
    assert manifest is not None
    return (
        files,
        settings,
        record_types.PRETRAINING_TYPES[settings.record_type],
        masking.Masking(**manifest.masking),
    )


def batches(data, number, seed=1, first_step=0, strategy=None):
    """Returns the masked batches {name: [B, ...]} of a training run."""
    files, _, record_type, masks = data
    strategy = strategy or tf.distribute.get_strategy()
    dataset = pipeline.train(files, reading.count(files), B, 3, first_step * B)
    drawn = dynamic_masks.DynamicMasks(masks, seed, first_step)
    distributed = pipeline.distribute(
        strategy, lambda: dataset, record_type, LENGTHS, masks=drawn
    )
    parts = strategy.experimental_local_results
    return [
        {name: np.concatenate(parts(x)) for name, x in batch.items()}
        for batch in itertools.islice(distributed, number)
    ]


@pytest.fixture(scope="module", name="first")
def _first(data):
    return batches(data, 4)


def assert_same(left, right):
    assert len(left) == len(right)
    for one, two in zip(left, right, strict=True):
        for name in NAMES:
            np.testing.assert_array_equal(one[name], two[name])


def test_are_those_of_masked_records(data, first):
    for batch in first:
        packed = {"sequence_ids", "position_ids", "cls_positions"}
        packed |= {"next_sentence_weights"}
        expected = {f.name for f in record_types.PRETRAINING.features}
        expected |= {"row_weights"} | (packed if data[1].pack else set())
        assert batch.keys() == expected
        assert batch["masked_lm_weights"].shape == (B, P)
        assert (batch["masked_lm_weights"].sum(axis=1) > 0).all()
        # About one in seven is changed.
        share = (documents.restore(batch) != batch["input_ids"]).sum()
        assert 0.08 < share / batch["input_mask"].sum() < 0.18


def test_repeat_for_the_same_seed_and_step(data, first):
    assert_same(first, batches(data, 4))
    # As after a resume.
    assert_same(first[2:], batches(data, 2, first_step=2))


def test_evaluations_mask_alike_for_any_batch_size(data):
    files, _, record_type, masks = data
    found = []
    for rows in (4, 6):
        make = functools.partial(pipeline.evaluate, files, rows)
        drawn = dynamic_masks.DynamicMasks(masks, 1, batch_size=rows)
        device = tf.distribute.get_strategy()
        evaluated = pipeline.distribute(
            device, make, record_type, LENGTHS, masks=drawn
        )
        read = list(itertools.islice(evaluated, 12 // rows))
        whole = {n: np.concatenate([x[n] for x in read]) for n in NAMES}
        found.append(whole)
    assert_same(*([x] for x in found))
    # No two records have the same masks.
    places = found[0]["masked_lm_positions"]
    assert len(np.unique(places, axis=0)) == 12


def test_are_no_side_effect(data):
    # With deterministic ops tf.data prefetches no op with side effects.
    _, _, record_type, masking_ = data
    masks = dynamic_masks.DynamicMasks(masking_, 1)

    @tf.function(autograph=False)
    def masked(serialized):
        batch = record_type.parse(serialized, LENGTHS)
        return masks.apply(batch, tf.constant([0], tf.int64), 0)

    graph = masked.get_concrete_function(tf.TensorSpec([B], tf.string)).graph
    types = {op.type for op in graph.get_operations()}
    assert "PyFuncStateless" in types
    assert not any(op._is_stateful for op in graph.get_operations())


def test_differ_by_seed_and_by_step(data, first):
    one, other = first[0], batches(data, 1, seed=2)[0]
    restored = documents.restore
    np.testing.assert_array_equal(restored(one), restored(other))
    assert not np.array_equal(one["input_ids"], other["input_ids"])
    # The same text in the next epoch.
    epoch = sum(reading.count(data[0]))
    rows: dict[bytes, np.ndarray] = {}
    again = 0
    for batch in batches(data, 2 * epoch // B):
        for text, ids in zip(restored(batch), batch["input_ids"], strict=True):
            seen = rows.setdefault(text.tobytes(), ids)
            again += not np.array_equal(seen, ids)
    assert again > 0.9 * epoch - B


def test_do_not_depend_on_replicas(data, first, two_replicas):
    assert_same(first, batches(data, 4, strategy=two_replicas))


def test_do_not_depend_on_hosts(data, first):
    class Host:
        """A strategy's stand-in: a host's input depends on this alone."""

        num_replicas_in_sync = 2

        def __init__(self, number):
            self.context = tf.distribute.InputContext(2, number, 2)

        def distribute_datasets_from_function(self, function):
            return function(self.context)

        def experimental_local_results(self, value):
            return [value]

    hosts = [batches(data, 4, strategy=Host(number)) for number in range(2)]
    together = [
        {name: np.concatenate([one[name], two[name]]) for name in NAMES}
        for one, two in zip(*hosts, strict=True)
    ]
    assert_same(first, together)
