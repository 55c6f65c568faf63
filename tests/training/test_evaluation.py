"""Evaluation and prediction on one and two replicas."""

import dataclasses
import itertools

from bert_tf import compiled
from bert_tf.records import pipeline, record_types
from bert_tf.training import distribution, evaluation
from tests import pretraining_records, reference, tiny_model

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow


@pytest.fixture(params=[1, 2])
def strategy(request, two_replicas):
    return two_replicas if request.param == 2 else tiny_model.ONE


def whole_data(files):
    rows = list(itertools.chain(*(tf.data.TFRecordDataset(f) for f in files)))
    batch = record_types.PRETRAINING.parse(
        tf.stack(rows), pretraining_records.LENGTHS
    )
    return batch | {"row_weights": tf.ones([len(rows)])}


def distributed(files, strategy, batch_size, **options):
    return pipeline.distribute(
        *(strategy, lambda: pipeline.evaluate(files, batch_size)),
        *(record_types.PRETRAINING, pretraining_records.LENGTHS),
        **options,
    )


class TestEvaluate:
    def test_equals_one_big_batch(self, files, strategy):
        with strategy.scope():
            model = tiny_model.Tiny(0.5)
        batch = whole_data(files)
        totals = tiny_model.weights(batch)
        parts = tiny_model.sums(model, batch, None)
        expected = {
            f"{loss}_{metric}": float(value / totals[loss])
            for loss, metrics in parts.items()
            for metric, value in metrics.items()
        }
        expected["loss"] = expected["words_loss"] + expected["next_loss"]
        # 24 records in batches of 10: six padding rows, which do not count.
        dataset = distributed(files, strategy, 10)
        evaluate = evaluation.make_evaluate(
            strategy, model, tiny_model.OBJECTIVE
        )
        found = evaluate(dataset)
        reference.assert_same(found, expected, 1e-6)

    def test_needs_records(self, files):
        one, model = tiny_model.ONE, tiny_model.Tiny(0.0)
        none = distributed(files, one, 8).take(0)
        evaluate = evaluation.make_evaluate(one, model, tiny_model.OBJECTIVE)
        with pytest.raises(ValueError, match="no records to evaluate on"):
            evaluate(none)


@pytest.mark.parametrize("is_tpu", [False, True])
def test_what_tpus_compile_is_traced_as_compiled(files, is_tpu, monkeypatch):
    monkeypatch.setattr(distribution, "is_tpu", lambda strategy: is_tpu)
    one, seen = tiny_model.ONE, []

    def sums(model, batch, seed):
        seen.append(compiled.is_for_tpus())
        return tiny_model.sums(model, batch, seed)

    objective = dataclasses.replace(tiny_model.OBJECTIVE, sums=sums)
    model = tiny_model.Tiny(0.0)
    evaluation.make_evaluate(one, model, objective)(distributed(files, one, 8))

    def function(batch):
        seen.append(compiled.is_for_tpus())
        return {"ids": batch["input_ids"]}

    assert list(evaluation.predict(one, function, distributed(files, one, 8)))
    assert seen == [is_tpu] * 2


class TestPredict:
    def test_all_rows_in_order_without_filling(self, files, strategy):
        with strategy.scope():
            model = tiny_model.Tiny(0.5)

        def function(batch):
            _, following = model(batch)
            return {"next": following, "ids": batch["input_ids"]}

        dataset = distributed(files, strategy, 10)
        parts = list(evaluation.predict(strategy, function, dataset))
        assert [len(part["ids"]) for part in parts] == [10, 10, 4]
        batch = whole_data(files)
        np.testing.assert_array_equal(
            np.concatenate([part["ids"] for part in parts]), batch["input_ids"]
        )
        np.testing.assert_allclose(
            np.concatenate([part["next"] for part in parts]),
            model(batch)[1],
            rtol=1e-5,
            atol=1e-6,
        )

    def test_one_function_is_traced_once_for_all_calls(self, files):
        traces = []

        def function(batch):
            traces.append(batch)
            return {"sums": tf.reduce_sum(batch["input_ids"], axis=-1)}

        dataset = distributed(files, tiny_model.ONE, 10)
        first, second = (
            list(evaluation.predict(tiny_model.ONE, function, dataset))
            for _ in range(2)
        )
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one["sums"], other["sums"])
        assert len(traces) == 1

    def test_one_graph_for_all_lengths(self, files, strategy):
        dataset = distributed(files, strategy, 2, trim=1)
        traced = []

        def function(batch):
            traced.append(batch["input_ids"].shape)
            real = tf.reduce_sum(batch["input_mask"], axis=1)
            width = tf.shape(batch["input_ids"])[1]
            return {"real": real, "width": tf.fill(tf.shape(real), width)}

        found = list(evaluation.predict(strategy, function, dataset))
        assert len({part["width"][0] for part in found}) > 1
        real = np.concatenate([part["real"] for part in found])
        expected = whole_data(files)["input_mask"].numpy().sum(axis=1)
        np.testing.assert_array_equal(real, expected)
        assert len(traced) == strategy.num_replicas_in_sync
