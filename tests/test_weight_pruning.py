"""Pruned weights, compared with the formula of Zhu & Gupta (2017) in NumPy."""

import contextlib
import dataclasses

from bert_tf import heads, modeling, optimization, weight_pruning
from bert_tf.errors import InputError
from bert_tf.training import recipes, schedules
from tests import interop_samples as samples
from tests import pretraining_records, reference, tiny_model, tiny_trainer

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_CONFIG = dataclasses.replace(
    samples.TINY, hidden_size=6, num_hidden_layers=2, intermediate_size=10
)
_STEPS, _END, _EVERY, _SHARE = 14, 7, 3, 0.8
_RECIPE = recipes.Recipe(
    prune_to=_SHARE,
    prune_until=_END / _STEPS,
    prune_every=_EVERY,
    weight_decay_rate=0.01,
)


def _wanted(step):
    """Returns the share of zeros after a pruning step."""
    return _SHARE * (1 - (1 - min(step, _END) / _END) ** 3)


class _Run:
    """A model and an optimizer that takes any gradients."""

    def __init__(self, recipe=_RECIPE):
        self.model = heads.BertClassifier(modeling.Bert(_CONFIG), 2)
        reference.random_weights(self.model.variables)
        self.optimizer = recipe.make_optimizer(
            schedules.linear_warmup_decay(0.1, 0, 100), _CONFIG, _STEPS
        )
        self.optimizer.build(self.model.trained_variables)
        self.apply = tf.function(self.optimizer.apply, autograph=False)

    def step(self, number, scale=1.0):
        """Makes the update of a step, with gradients drawn for it."""
        rng = np.random.default_rng(number)
        gradients = [
            tf.constant(scale * rng.normal(size=v.shape), tf.float32)
            for v in self.optimizer.variables
        ]
        return self.apply(gradients, tf.constant(number, tf.int64))

    def state(self):
        """Returns weights and moments by name."""
        slots = self.optimizer.slots
        weights = {v.path: v.value for v in self.model.variables}
        return {name: x.numpy() for name, x in (weights | slots).items()}


def _is_pruned(name):
    return "/layer_" in name and name.endswith("/kernel")


def test_zeros_of_each_step_are_those_of_the_formula():
    run = _Run()
    before, shares = run.state(), []
    for step in range(1, _STEPS + 1):
        report = run.step(step - 1)
        shares.append(float(report["pruned_share"]))
        after = run.state()
        kernels = [n for n in after if _is_pruned(n)]
        assert len(kernels) == 12
        for name in kernels:
            zeros = (after[name] == 0).sum()
            last = max(t for t in range(step + 1) if t % _EVERY == 0)
            last = _END if step >= _END else last
            wanted = np.round(_wanted(last) * after[name].size)
            assert zeros == wanted, (step, name)
            # Zeros stay zero.
            assert not after[name][before[name] == 0].any()
        before = after
    np.testing.assert_allclose(
        shares, [_wanted(t) for t in range(1, _STEPS + 1)], rtol=1e-6
    )
    # Other variables are not pruned.
    others = [n for n in after if not _is_pruned(n) and "/adam_" not in n]
    pooler = "bert/pooler/dense/kernel"
    assert {pooler, "output_weights"} < set(others)
    assert all(after[name].all() for name in others)
    zeros, size = run.optimizer.pruning.zeros(run.model.trained_variables)
    sizes = [after[name].size for name in kernels]
    assert size == sum(sizes)
    assert zeros == sum(round(_SHARE * size) for size in sizes)


@tiny_model.untraced()
def test_the_smallest_go_first():
    """For weights without a gradient: the smallest ones by NumPy's order."""
    run = _Run(recipes.Recipe(prune_to=0.5, weight_decay_rate=0.0))
    before = run.state()
    for step in range(7):
        run.step(step, scale=0.0)
    for name in filter(_is_pruned, before):
        order = np.argsort(np.abs(before[name]), axis=None)
        before[name].flat[order[: before[name].size // 2]] = 0
    reference.assert_same(run.state(), before)


@tiny_model.untraced()
def test_goes_on_bit_for_bit_from_the_weights_alone():
    whole, kept = _Run(), {}
    for step in range(_STEPS):
        kept[step] = whole.state()
        whole.step(step)
    for stopped in (2, 5, 9):
        rest = _Run()
        variables = {v.path: v.value for v in rest.model.variables}
        variables |= rest.optimizer.slots
        for name, value in kept[stopped].items():
            variables[name].assign(value)
        last = stopped + 4  # after a step that prunes, and one that doesn't
        for step in range(stopped, last):
            rest.step(step)
        reference.assert_same(rest.state(), kept[last])


@tiny_model.untraced()
def test_a_step_that_was_skipped_at_the_end_is_made_up_for():
    run = _Run(dataclasses.replace(_RECIPE, prune_every=4))
    run.optimizer.loss_scale = optimization.LossScale()
    run.optimizer.loss_scale.build()
    for step in range(_END - 1):
        run.step(step)
    assert run.step(_END - 1, np.inf)["skipped_steps"] == 1
    kernels = [v for v in run.model.variables if _is_pruned(v.path)]
    for step, made in ((_END, 4), (_END + 1, _END)):
        zeros, _ = run.optimizer.pruning.zeros(kernels)
        shares = [_wanted(made) * v.numpy().size for v in kernels]
        assert zeros == sum(map(round, shares)), step
        run.step(step)


def test_replicas_and_micro_batches_prune_alike(tmp_path, two_replicas):
    files = pretraining_records.write(tmp_path, tiny_model.COUNTS)
    found = []
    for strategy, accumulate, context in (
        # One replica's steps take less long than their trace.
        (tiny_model.ONE, 1, tiny_model.untraced()),
        (two_replicas, 2, contextlib.nullcontext()),
    ):
        trainer = tiny_trainer.Trainer(files, strategy, accumulate)
        trainer.optimizer.pruning = weight_pruning.Pruning(
            0.6, 4, 2, lambda name: name == "table"
        )
        with context:
            scalars = trainer.train(0, 5)
        assert scalars["pruned_share"] == pytest.approx(0.6)
        found.append(trainer.arrays()["table"])
    np.testing.assert_array_equal(found[-1], trainer.arrays(1)["table"])
    one, two = found
    assert (one == 0).sum() == 144  # of 40 * 6
    np.testing.assert_array_equal(two == 0, one == 0)
    np.testing.assert_allclose(two, one, atol=1e-5)


def test_shares_that_are_none():
    for share in (-0.1, 1.0):
        with pytest.raises(InputError, match="`prune_to` must be at least 0"):
            recipes.Recipe(prune_to=share)
    optimizer = recipes.Recipe().make_optimizer(lambda step: 0.1, _CONFIG)
    assert optimizer.pruning is None
