"""The inner loop of bert_tf/training/loop.py.

The loop does not depend on the task, so most tests train a model that is traced
quickly.
"""

import dataclasses
import threading
import time

from bert_tf import compiled, heads, modeling, optimization
from bert_tf.errors import InputError
from bert_tf.records import pipeline, record_types, tfrecord
from bert_tf.training import loop, replica_step
from tests import (
    combinations,
    pretraining_records,
    reference,
    tiny_model,
    tiny_trainer,
)

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow


def batches(files, count):
    dataset = pipeline.train(
        files, tiny_model.COUNTS, tiny_model.BATCH, 7
    ).take(count)
    return [
        record_types.PRETRAINING.parse(rows, pretraining_records.LENGTHS)
        | {"row_weights": row_weights}
        for rows, row_weights in dataset
    ]


def _bert():
    config = modeling.BertConfig(**pretraining_records.WITHOUT_DROPOUT)
    return heads.BertPretrainer(modeling.Bert(config))


class TestOneStep:
    @tiny_model.untraced()
    def test_scalars_by_numpy(self, files):
        trainer = tiny_trainer.Trainer(files)
        (batch,) = batches(files, 1)
        words, following = (x.numpy() for x in trainer.model(batch))
        batch = {name: x.numpy() for name, x in batch.items()}
        ids, labels = batch["masked_lm_ids"], batch["next_sentence_labels"]
        real = batch["masked_lm_weights"] == 1
        picked = np.take_along_axis(
            reference.log_softmax(words), ids[..., None], -1
        )
        word_loss = -picked[..., 0][real].mean()
        picked = np.take_along_axis(
            reference.log_softmax(following), labels, -1
        )
        next_loss = -picked.mean()
        scalars = trainer.train(0, 1)
        expected = {
            "loss": word_loss + next_loss,
            "words_loss": word_loss,
            "words_accuracy": (words.argmax(-1) == ids)[real].mean(),
            "next_loss": next_loss,
            "next_accuracy": (following.argmax(-1) == labels[:, 0]).mean(),
            "sequences": tiny_model.BATCH,
            "tokens": batch["input_mask"].sum(),
            "pairs": (batch["input_mask"].sum(axis=1) ** 2).sum(),
            "words_weight": real.sum(),
            "next_weight": tiny_model.BATCH,
            "input_seconds": scalars["input_seconds"],
            "step_seconds": scalars["step_seconds"],
            "learning_rate": 0.0,
            "gradient_norm": scalars["gradient_norm"],
        }
        reference.assert_same(scalars, expected, 1e-6)
        assert 0 <= scalars["input_seconds"] < scalars["step_seconds"]

    @pytest.mark.usefixtures("grappler")
    def test_update_by_numpy(self, files):
        trainer = tiny_trainer.Trainer(files)
        model = trainer.model
        variables = [v.value for v in model.trainable_variables]
        arrays = {v.path: v.numpy() for v in model.trainable_variables}
        moments = {name: np.zeros([2, *x.shape]) for name, x in arrays.items()}
        for step, batch in enumerate(batches(files, 4)):
            for variable, value in zip(variables, arrays.values(), strict=True):
                variable.assign(value)
            with tf.GradientTape() as tape:
                totals, parts = (
                    tiny_model.weights(batch),
                    tiny_model.sums(model, batch, None),
                )
                loss = sum(parts[n]["loss"] / totals[n] for n in totals)
            gradients = tape.gradient(loss, variables)
            gradients = [tf.convert_to_tensor(g).numpy() for g in gradients]
            norm = np.sqrt(sum((g.astype(float) ** 2).sum() for g in gradients))
            rate = 0.01 * (step / 2 if step < 2 else 1 - step / 10)
            for name, gradient in zip(arrays, gradients, strict=True):
                gradient = gradient / max(norm, 1)
                m, v = moments[name]
                m[:] = 0.9 * m + 0.1 * gradient
                v[:] = 0.999 * v + 0.001 * gradient**2
                update = m / (np.sqrt(v) + 1e-6)
                if "bias" not in name:
                    update += 0.01 * arrays[name]
                arrays[name] = arrays[name] - rate * update
        expected = tiny_trainer.Trainer(files)
        scalars = expected.train(0, 4)
        found = expected.arrays()
        reference.assert_same({n: found[n] for n in arrays}, arrays, 2e-6)
        for name, (m, v) in moments.items():
            np.testing.assert_allclose(found[f"{name}/adam_m"], m, atol=1e-6)
            np.testing.assert_allclose(found[f"{name}/adam_v"], v, atol=1e-6)
        assert scalars["gradient_norm"] == pytest.approx(norm, rel=1e-5)
        assert scalars["learning_rate"] == pytest.approx(0.007)


class TestXla:
    """XLA compiles on demand only, and changes nothing."""

    @pytest.mark.parametrize("replicas", combinations.some([2], [1, 2]))
    def test_same_update(self, replicas, files, two_replicas):
        is_compiled = []

        def sums(*arguments):
            is_compiled.append(compiled.is_compiled())
            return tiny_model.sums(*arguments)

        objective = dataclasses.replace(tiny_model.OBJECTIVE, sums=sums)
        strategy = two_replicas if replicas == 2 else tiny_model.ONE
        plain, xla = (
            tiny_trainer.Trainer(
                *(files, strategy),
                accumulate=2,
                objective=objective,
                use_xla=use_xla,
            )
            for use_xla in (False, True)
        )
        with tiny_model.untraced():
            expected = plain.train(0, 3)
        assert {*is_compiled} == {False}
        is_compiled.clear()
        found = xla.train(0, 3)
        assert {*is_compiled} == {True}
        for name in ("loss", "words_accuracy", "gradient_norm", "tokens"):
            assert found[name] == pytest.approx(expected[name], rel=1e-5)
        reference.assert_same(xla.arrays(), plain.arrays(), 2e-6)
        reference.assert_same(xla.arrays(replicas - 1), xla.arrays(), 0)


def _drop_times(*found):
    for scalars in found:
        del scalars["input_seconds"], scalars["step_seconds"]


class _Clock:
    """A clock that input and steps advance, and that delays the input.

    A batch arrives 10 seconds after the previous step has ended, and a step
    takes 1. The times are read alternately before and after waiting for input.
    """

    def __init__(self):
        self.now, self.reads = 0.0, 0
        self.asked = threading.Semaphore(0)

    def monotonic(self):
        now, self.reads = self.now, self.reads + 1
        if self.reads % 2:
            self.asked.release()
        else:
            self.now += 1
        return now

    def come(self):
        assert self.asked.acquire(timeout=60)
        self.now += 10
        return 0.0


class TestInputSeconds:
    def test_what_is_waited_for_and_no_more(self, files, monkeypatch):
        clock = _Clock()
        monkeypatch.setattr(loop, "time", clock)
        trainer = tiny_trainer.Trainer(files, wait=clock.come)
        try:
            scalars = trainer.train(0, 3)
            assert scalars["input_seconds"] == 3 * 10
            assert scalars["step_seconds"] == 3 * 10 + 3 * 1
        finally:  # Lets the input that is read ahead end.
            clock.asked.release(1000)


class TestSizes:
    def test_rows_of_one_sequence(self):
        batch = {
            "input_mask": tf.constant([[1, 1, 1], [1, 0, 0], [0, 0, 0]]),
            "row_weights": tf.constant([1.0, 1.0, 0.0]),
        }
        expected = {"sequences": 2, "tokens": 4, "pairs": 9 + 1}
        assert loop.sizes_of_rows(batch) == expected
        batch["attention_mask"] = batch.pop("input_mask")
        assert loop.sizes_of_rows(batch) == expected

    def test_rows_without_a_mask(self):
        batch = {"input_ids": tf.zeros([2, 3], tf.int32)}
        expected = {"sequences": 2, "tokens": 6, "pairs": 18}
        assert loop.sizes_of_rows(batch) == expected
        with pytest.raises(InputError, match=r"sizes=.*Received: x"):
            loop.sizes_of_rows({"x": tf.ones([2])})


class TestFactors:
    @tiny_model.untraced()
    def test_scale_what_is_minimized_and_nothing_that_is_reported(self, files):
        objective = dataclasses.replace(
            tiny_model.OBJECTIVE, factors={"words": 0.25}
        )
        plain, scaled = (
            tiny_trainer.Trainer(files),
            tiny_trainer.Trainer(files, objective=objective),
        )
        expected, found = plain.train(0, 1), scaled.train(0, 1)
        for name in ("words_loss", "words_accuracy", "next_loss"):
            assert found[name] == expected[name]
        assert found["loss"] == pytest.approx(
            0.25 * expected["words_loss"] + expected["next_loss"]
        )

    def test_gradients_are_those_of_the_scaled_sum(self, files):
        (batch,) = batches(files, 1)
        totals = tiny_model.weights(batch)
        model = tiny_model.Tiny(0.0)
        optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
        optimizer.build(model.trainable_variables)

        def gradients(**factors):
            objective = dataclasses.replace(
                tiny_model.OBJECTIVE, factors=factors
            )
            found, _ = replica_step.gradients_and_sums(
                model, optimizer, objective, batch, totals, tf.constant([0, 0])
            )
            return [tf.convert_to_tensor(x).numpy() for x in found]

        words, following = gradients(next=0.0), gradients(words=0.0)
        both = gradients(words=0.5, next=3.0)
        for found, one, other in zip(both, words, following, strict=True):
            np.testing.assert_allclose(found, 0.5 * one + 3 * other, atol=1e-6)

    def test_of_a_loss_that_there_is_not(self):
        objective = dataclasses.replace(
            tiny_model.OBJECTIVE, factors={"sentences": 2.0}
        )
        message = "factors are of losses: words, next. Received: factors=sent"
        with pytest.raises(ValueError, match=message):
            objective.total({"words": 1.0, "next": 2.0})


class TestSteps:
    @pytest.mark.usefixtures("grappler")
    def test_a_block_is_its_steps(self, files):
        whole, single = tiny_trainer.Trainer(files), tiny_trainer.Trainer(files)
        means = whole.train(0, 4)
        steps = [single.train(step, 1) for step in range(4)]
        reference.assert_same(whole.arrays(), single.arrays())
        # Divided once: steps with more predictions weigh more.
        counts = [
            float(tf.reduce_sum(tiny_model.mask_weights(batch)))
            for batch in batches(files, 4)
        ]
        assert len(set(counts)) > 1
        expected = np.average([s["words_loss"] for s in steps], weights=counts)
        assert means["words_loss"] == pytest.approx(expected, rel=1e-6)
        assert means["sequences"] == 4 * tiny_model.BATCH
        assert means["tokens"] == sum(s["tokens"] for s in steps)
        assert means["learning_rate"] == steps[-1]["learning_rate"]

    @pytest.mark.parametrize(
        "replicas, accumulate",
        combinations.some(
            [(1, 2), (2, 2)], [(1, 2), (2, 2), (1, 4), (2, 1), (2, 4)]
        ),
    )
    def test_replicas_and_micro_batches_change_nothing(
        self, files, two_replicas, replicas, accumulate
    ):
        expected = tiny_trainer.Trainer(files)
        trainer = tiny_trainer.Trainer(
            files, two_replicas if replicas == 2 else tiny_model.ONE, accumulate
        )
        for step in range(5):
            found = trainer.train(step, 1)
            with tiny_model.untraced():
                wanted = expected.train(step, 1)
            assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-6)
            _drop_times(found, wanted)
            reference.assert_same(found, wanted, 1e-5)
        reference.assert_same(trainer.arrays(), expected.arrays(), 1e-5)

    def test_all_predictions_on_one_replica(self, tmp_path, two_replicas):
        rng = np.random.default_rng(1)
        path = tmp_path / "a"
        rows = [
            pretraining_records.values(rng) for _ in range(tiny_model.BATCH)
        ]
        order = take_order(tmp_path, tiny_model.BATCH)
        with tfrecord.Writer(path) as writer:
            for number, row in enumerate(rows):
                first = order.index(number) < tiny_model.BATCH // 2
                row["masked_lm_weights"] = [float(first)] * 4
                writer.write(record_types.PRETRAINING.encode(row))
        one, both = (
            tiny_trainer.Trainer([str(path)], strategy, counts=[len(rows)])
            for strategy in (tiny_model.ONE, two_replicas)
        )
        found = both.train(0, 1)
        with tiny_model.untraced():
            wanted = one.train(0, 1)
        _drop_times(found, wanted)
        reference.assert_same(found, wanted, 1e-6)
        reference.assert_same(both.arrays(), one.arrays(), 1e-6)

    @pytest.mark.exhaustive
    def test_bert_on_two_replicas(self, files, two_replicas):
        """Also in float16, which skips steps while its scale is too large."""
        results = []
        for strategy, policy, scale in (
            (tiny_model.ONE, "float32", None),
            (two_replicas, "float32", None),
            (two_replicas, "mixed_float16", 2.0**10),
            (two_replicas, "mixed_float16", 2.0**24),
        ):
            with tiny_model.policy(policy):
                trainer = tiny_trainer.Trainer(
                    *(files, strategy),
                    make=_bert,
                    loss_scale=scale and optimization.LossScale(scale),
                )
            blocks = [trainer.train(step, 1) for step in range(4)]
            arrays = trainer.arrays()
            blocks += [trainer.train(step, 1) for step in range(4, 12)]
            results.append((blocks, arrays))
            if strategy is two_replicas:
                reference.assert_same(trainer.arrays(1), trainer.arrays(0))
        (plain, expected), (whole, arrays), (half, _), (skipping, _) = results
        for found, wanted in zip(whole[:4], plain[:4], strict=True):
            assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-6)
        reference.assert_same(arrays, expected, 2e-6)
        for found, wanted in zip(half, whole, strict=True):
            assert found["loss"] == pytest.approx(wanted["loss"], rel=0.005)
        assert not any(block["skipped_steps"] for block in half)
        skipped = [block["skipped_steps"] for block in skipping]
        assert 0 < sum(skipped) < 12
        assert skipped[-1] == 0

    def test_micro_batches_do_not_overlap(self):
        running = []
        most = 0

        def sleep(x):
            nonlocal most
            running.append(x)
            most = max(most, len(running))
            time.sleep(0.1)
            running.pop()
            return x

        def double(_, part):
            # Not stateful: TensorFlow would run stateful ops in order.
            rows = part["row_weights"]
            return 2 * tf.numpy_function(sleep, [rows], tf.float32, False)

        @tf.function(autograph=False)
        def total(rows):
            return replica_step.add_up(double, {"row_weights": rows}, 4)

        rows = tf.range(8.0)
        assert total(rows).numpy().tolist() == [24.0, 32.0]
        assert most == 1

    def test_micro_batches_must_be_equal(self, files):
        trainer = tiny_trainer.Trainer(files, accumulate=3)
        with pytest.raises(ValueError, match="rows=8, accumulate=3"):
            trainer.train(0, 1)

    def test_a_last_batch_may_be_smaller(self):
        def total(count):
            def add_up(rows):
                return replica_step.add_up(
                    lambda _, part: tf.reduce_sum(part["x"]), {"x": rows}, count
                )

            shape = tf.TensorSpec([None])
            return tf.function(add_up, [shape], autograph=False)

        assert total(1)([1.0, 2.0]) == 3
        with pytest.raises(InputError, match=r"drop_remainder=True.*rows=None"):
            total(2)([1.0, 2.0])


def take_order(folder, count):
    """Returns the indices in the file of a training run's first records."""
    path = folder / "order"
    with tfrecord.Writer(path) as writer:
        for number in range(count):
            writer.write(b"%d" % number)
    dataset = pipeline.train([str(path)], [count], count, 7)
    ((rows, _),) = dataset.take(1)
    return [int(row) for row in rows.numpy()]


class TestMistakes:
    """None of them may train silently."""

    def _make(self, optimizer, accumulate=1):
        dataset = tf.data.Dataset.from_tensors({"x": tf.ones([2])}).repeat()
        return loop.make_train_steps(
            *(tiny_model.ONE, tiny_model.Tiny(0.0), optimizer),
            *(tiny_model.OBJECTIVE, dataset, 1, accumulate),
        )

    def test_an_optimizer_that_is_not_built(self):
        optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
        with pytest.raises(InputError, match=r"call optimizer\.build\("):
            self._make(optimizer)

    def test_counts(self):
        optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
        optimizer.variables = tiny_model.Tiny(0.0).trainable_variables
        with pytest.raises(InputError, match="Received: accumulate=0"):
            self._make(optimizer, 0)
        with pytest.raises(InputError, match="Received: count=0"):
            self._make(optimizer)(3, 0)
