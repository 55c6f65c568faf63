"""The optimizer, compared with its formula in NumPy float64."""

import contextlib
import re
from typing import Any

from bert_tf import compiled, optimization
from bert_tf.errors import InputError
from bert_tf.training import schedules

import keras
import numpy as np
import pytest
import tensorflow as tf

# Which kinds of names the original's regular expressions select
# (google-research/bert, optimization.py: LayerNorm, layer_norm, bias).
_DECAYS = {
    "bert/embeddings/word_embeddings": True,
    "bert/embeddings/LayerNorm/gamma": False,
    "bert/encoder/layer_0/attention/self/query/kernel": True,
    "bert/encoder/layer_0/attention/self/query/bias": False,
    "bert/encoder/layer_0/output/LayerNorm/beta": False,
    "bert/encoder/layer_0/layer_normalization/gamma": False,
    "model/layer_norm/gamma": False,
    "cls/predictions/output_bias": False,
    "cls/seq_relationship/output_weights": True,
    "output_weights": True,
    "output_bias": False,
}


def make_variable(path, value):
    """Returns a Keras variable with this path."""
    *scopes, name = path.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        return keras.Variable(value, name=name, dtype="float32")


def clip(gradients, limit):
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients.values()))
    factor = limit / max(norm, limit)
    return {k: g * factor for k, g in gradients.items()}, norm


def _train(
    weights,
    gradients,
    rates,
    decays,
    limit=1.0,
    weight_decay=0.01,
    corrected=False,
    betas=(0.9, 0.999),
    trusts=(),
):
    """The original's formula (Kingma & Ba, 2015, without bias correction
    unless `corrected`; Loshchilov & Hutter, 2017), float64; or algorithm 2 of
    You et al., 2019, which `trusts`, for some names, in the ratio of two
    norms."""
    weights = {k: np.float64(w) for k, w in weights.items()}
    m = {k: np.zeros_like(w) for k, w in weights.items()}
    v = {k: np.zeros_like(w) for k, w in weights.items()}
    for t, (rate, gradient) in enumerate(
        zip(rates, gradients, strict=True), start=1
    ):
        clipped, _ = clip(gradient, limit)
        kept, kept_squares = betas
        shares = (1 - kept**t, 1 - kept_squares**t) if corrected else (1, 1)
        for k, g in clipped.items():
            m[k] = kept * m[k] + (1 - kept) * g
            v[k] = kept_squares * v[k] + (1 - kept_squares) * g**2
            update = m[k] / shares[0] / (np.sqrt(v[k] / shares[1]) + 1e-6)
            if decays[k]:
                update += weight_decay * weights[k]
            ratio: Any = 1.0
            if k in trusts and np.any(weights[k]) and np.any(update):
                ratio = np.linalg.norm(weights[k]) / np.linalg.norm(update)
            weights[k] = weights[k] - rate * ratio * update
    return weights, m, v


class TestAdamWeightDecay:
    """Short runs are eager; long ones compile their steps, as training does."""

    steps = 10
    kind: type[Any] = optimization.AdamWeightDecay
    corrected = False
    compile: Any = staticmethod(lambda step: step)

    def _problem(self, seed=0):
        rng = np.random.default_rng(seed)
        weights = {path: rng.normal(size=(3, 4)) for path in _DECAYS}
        # Norms from 0.01 to 100: some are clipped, some are not. Elements
        # down to 1e-8, where epsilon counts.
        gradients = [
            {
                path: rng.normal(size=(3, 4))
                * 10 ** rng.uniform(-6, 0, (3, 4))
                * 10 ** rng.uniform(-2, 2)
                for path in _DECAYS
            }
            for _ in range(self.steps)
        ]
        return weights, gradients

    def _run(self, weights, gradients, **options):
        schedule = schedules.linear_warmup_decay(
            1e-2, self.steps // 10, self.steps
        )
        optimizer = self.kind(schedule, **options)
        variables = [make_variable(path, w) for path, w in weights.items()]
        optimizer.build(variables)
        apply = self.compile(optimizer.apply)
        reports = [
            apply(
                [tf.constant(g, tf.float32) for g in gradient.values()],
                tf.constant(step, tf.int64),
            )
            for step, gradient in enumerate(gradients)
        ]
        return optimizer, reports

    def _rates(self):
        steps, warmup = self.steps, self.steps // 10
        return [
            1e-2 * (s / warmup if s < warmup else 1 - s / steps)
            for s in range(steps)
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize("compiler", [tf.function, compiled.whole])
    def test_equals_the_formula_in_long_runs(self, compiler):
        self.compile, self.steps = compiler, 100
        self.test_equals_the_formula()

    def test_equals_the_formula(self):
        weights, gradients = self._problem()
        optimizer, reports = self._run(weights, gradients)
        expected, m, v = _train(
            weights, gradients, self._rates(), _DECAYS, corrected=self.corrected
        )
        for variable in optimizer.variables:
            path = variable.path
            np.testing.assert_allclose(
                variable,
                expected[path],
                rtol=0,
                # Each step rounds weights of up to 4 by 2^-23.
                atol=2e-6,
                err_msg=path,
            )
            moved = np.abs(expected[path] - weights[path]).mean()
            assert moved > 1e-4 * self.steps
            slots = [optimizer.slots[f"{path}/adam_{s}"] for s in "mv"]
            np.testing.assert_allclose(
                slots, [m[path], v[path]], rtol=1e-4, atol=1e-9, err_msg=path
            )
        norms = [clip(gradient, 1)[1] for gradient in gradients]
        assert min(norms) < 1 < max(norms)
        wanted = {"gradient_norm": norms, "learning_rate": self._rates()}
        for name, values in wanted.items():
            found = [report[name] for report in reports]
            np.testing.assert_allclose(found, values, rtol=1e-5)

    def test_numbers_are_arguments(self):
        weights, gradients = self._problem(1)
        decays = {path: path != "output_weights" for path in _DECAYS}
        optimizer, _ = self._run(
            weights,
            gradients,
            weight_decay_rate=0.5,
            clip_norm=0.1,
            exclude_from_weight_decay=["^output_weights$"],
            beta_1=0.8,
            beta_2=0.98,
        )
        expected, _, _ = _train(
            *(weights, gradients, self._rates(), decays),
            *(0.1, 0.5, self.corrected, (0.8, 0.98)),
        )
        for variable in optimizer.variables:
            np.testing.assert_allclose(
                variable, expected[variable.path], rtol=0, atol=2e-6
            )


class TestBiasCorrectedAdamW(TestAdamWeightDecay):
    kind = optimization.BiasCorrectedAdamW
    corrected = True


def test_decay_by_name():
    optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
    assert {name: optimizer.decays(name) for name in _DECAYS} == _DECAYS
    assert not optimizer.decays("awd_lstm/pooler/batch_norm_0/gamma")


def test_slots_are_named_as_in_checkpoints(shared_data):
    prefix = shared_data / "tf1_checkpoint" / "bert_model.ckpt"
    stored = {
        name: tuple(shape)
        for name, shape in tf.train.list_variables(str(prefix))
    }
    is_slot = re.compile(r"/adam_[mv]$")
    optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
    optimizer.build(
        [
            make_variable(name, np.zeros(shape))
            for name, shape in stored.items()
            if not is_slot.search(name) and name != "global_step"
        ]
    )
    slots = {k: tuple(v.shape) for k, v in optimizer.slots.items()}
    assert slots == {k: v for k, v in stored.items() if is_slot.search(k)}


def test_gradients_are_one_per_variable():
    optimizer = optimization.AdamWeightDecay(lambda step: tf.constant(0.1))
    optimizer.build([make_variable("kernel", [1.0])])
    with pytest.raises(ValueError, match="zip"):
        optimizer.apply([tf.ones([1])] * 2, tf.constant(0, tf.int64))


class TestLamb:
    kind: type[Any] = optimization.Lamb
    slots = ("lamb_m", "lamb_v")
    corrected = True
    trusts = tuple(_DECAYS)

    def setup_method(self):
        self.problem = TestAdamWeightDecay()

    @pytest.mark.slow
    def test_equals_the_formula_in_long_runs(self):
        self.problem.compile, self.problem.steps = tf.function, 100
        self.test_equals_the_formula()

    def test_equals_the_formula(self):
        problem = self.problem
        problem.kind = self.kind
        weights, gradients = problem._problem()
        zero = "cls/predictions/output_bias"  # its norm is 0 at the start
        weights[zero] = np.zeros_like(weights[zero])
        optimizer, _ = problem._run(weights, gradients)
        expected, *moments = _train(
            *(weights, gradients, problem._rates(), _DECAYS),
            corrected=self.corrected,
            trusts=self.trusts,
        )
        for variable in optimizer.variables:
            path = variable.path
            np.testing.assert_allclose(
                variable, expected[path], rtol=0, atol=1e-5, err_msg=path
            )
            # Zero weights move by a step of ratio 1, then by their norm.
            least = 1e-4 if path == zero else 1e-4 * problem.steps
            assert np.abs(expected[path] - weights[path]).mean() > least
            for slot, values in zip(self.slots, moments, strict=True):
                found = optimizer.slots[f"{path}/{slot}"]
                np.testing.assert_allclose(
                    found, values[path], rtol=1e-4, atol=1e-9
                )


class TestUncorrectedLamb(TestLamb):
    kind = optimization.UncorrectedLamb
    slots = ("adam_m", "adam_v")
    corrected = False
    trusts = tuple(path for path, decays in _DECAYS.items() if decays)

    def test_layer_norms_and_biases_move_as_by_adam_without_decay_too(self):
        optimizer = self.kind(
            lambda step: tf.constant(1.0), weight_decay_rate=0.0
        )
        variables = [make_variable(n, [3.0]) for n in ("kernel", "bias")]
        optimizer.build(variables)
        gradients = [tf.constant([0.5])] * 2
        optimizer.apply(gradients, tf.constant(0, tf.int64))
        np.testing.assert_allclose(variables[0], [0.0], atol=1e-6)
        moved = 0.05 / (0.5 * 0.001**0.5 + 1e-6)
        np.testing.assert_allclose(variables[1], [3.0 - moved], rtol=1e-5)


def test_layers_learn_at_their_own_rates():
    names = ["bert/encoder/layer_0/kernel", "output_weights"]
    optimizer = optimization.AdamWeightDecay(
        lambda step: tf.constant(0.1),
        weight_decay_rate=0.5,
        rate_of=lambda name: 0.25 if "layer_0" in name else 1.0,
    )
    variables = [make_variable(name, [2.0]) for name in names]
    optimizer.build(variables)
    gradients = [tf.constant([0.5]), tf.constant([0.5])]
    optimizer.apply(gradients, tf.constant(0, tf.int64))
    moved = [float(2 - v.numpy()[0]) for v in variables]
    # The decay as well: a frozen layer must not shrink.
    assert moved[0] == pytest.approx(moved[1] / 4, rel=1e-5)
    assert moved[1] > 0


@pytest.mark.parametrize("name", optimization.OPTIMIZERS)
def test_frozen_variables_stay_and_then_train_as_in_a_new_run(name):
    """A variable is the same as one whose run begins at its first step."""
    rng = np.random.default_rng(0)
    value = rng.normal(size=[3, 4]).astype(np.float32)
    gradients = rng.normal(size=[7, 3, 4]).astype(np.float32)
    gradients[:3] *= 1e3  # of the frozen steps, which must not count

    def run(steps, start=0):
        optimizer = optimization.OPTIMIZERS[name](
            lambda step: tf.constant(0.1),
            weight_decay_rate=0.5,
            starts_at=lambda path: start if "layer_0" in path else 0,
        )
        variables = [make_variable(x, value) for x in ("layer_0/w", "w")]
        optimizer.build(variables)
        apply = tf.function(optimizer.apply, autograph=False)
        found, norms = [], []
        for i, gradient in enumerate(steps):
            both = [tf.constant(gradient), tf.zeros_like(gradient)]
            report = apply(both, tf.constant(i, tf.int64))
            # The other variable decays from the first step.
            assert not np.array_equal(variables[1], value)
            norms.append(float(report["gradient_norm"]))
            slots = [v for x, v in optimizer.slots.items() if "layer_0" in x]
            found.append([x.numpy() for x in (variables[0], *slots)])
        return found, norms

    frozen, norms = run(gradients, start=3)
    fresh, fresh_norms = run(gradients[3:])
    assert norms == [0, 0, 0, *fresh_norms]
    for weights, *slots in frozen[:3]:
        np.testing.assert_array_equal(weights, value)
        assert not np.any(slots)
    for own, other in zip(frozen[3:], fresh, strict=True):
        assert np.abs(own[0] - value).max() > 0.01
        for one, two in zip(own, other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6)


@pytest.mark.parametrize("kind", optimization.OPTIMIZERS.values())
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("clip_norm", x) for x in (0, -1, None, float("nan"))),
        *(("beta_1", x) for x in (0, 1, -0.5, "0.9")),
        *(("beta_2", x) for x in (0, 1, 0.99999999)),
        ("epsilon", 0),
        ("weight_decay_rate", -0.01),
        ("exclude_from_weight_decay", "LayerNorm"),
    ],
)
def test_numbers_that_train_wrongly(kind, name, value):
    with pytest.raises(InputError, match=f"^`{name}` must .*{name}={value!r}"):
        kind(lambda step: 0.1, **{name: value})


class TestClipping:
    def _optimizer(self, **options):
        optimizer = optimization.AdamWeightDecay(
            lambda step: tf.constant(0.0), **options
        )
        values = {"a": [0.0], "b": [0.0, 0.0]}
        optimizer.build([make_variable(*x) for x in values.items()])
        return optimizer

    def test_per_replica_is_the_sum_of_clipped_gradients(self):
        optimizer = self._optimizer(clipping="per_replica", clip_norm=1.0)
        # Gradients of two replicas, each over its own rows: norms 5 and 0.5.
        own = [([3.0], [4.0, 0.0]), ([0.3], [0.0, 0.4])]
        shares = [
            optimizer.clip_own([tf.constant(g) / 2 for g in gradients], 2)
            for gradients in own
        ]
        total = [a + b for a, b in zip(*shares, strict=True)]
        np.testing.assert_allclose(total[0], [0.6 + 0.3], rtol=1e-6)
        np.testing.assert_allclose(total[1], [0.8, 0.4], rtol=1e-6)

    def test_the_sum_is_not_clipped_again(self):
        for clipping, expected in (("per_replica", 3.0), ("global", 0.6)):
            optimizer = self._optimizer(clipping=clipping)
            gradients = [tf.constant([3.0]), tf.constant([4.0, 0.0])]
            report = optimizer.apply(gradients, tf.constant(0, tf.int64))
            moment = optimizer.slots["a/adam_m"].numpy()
            np.testing.assert_allclose(moment, [0.1 * expected], rtol=1e-5)
            assert float(report["gradient_norm"]) == pytest.approx(5)

    def test_global_leaves_shares_alone(self):
        gradients = [tf.constant([30.0]), tf.constant([4.0, 0.0])]
        (left, _) = self._optimizer().clip_own(gradients, 2)
        np.testing.assert_array_equal(left, [30.0])

    def test_unknown(self):
        with pytest.raises(ValueError, match="clipping='value'"):
            optimization.AdamWeightDecay(lambda step: 0.1, clipping="value")


class TestClipByGlobalNorm:
    @pytest.mark.parametrize("scale", [0, 1e-3, 0.1, 1.0, 1e3])
    @pytest.mark.parametrize("limit", [0.5, 1.0, 20.0])
    def test_equals_tensorflows_and_the_formula(self, scale, limit):
        rng = np.random.default_rng(0)
        gradients = [
            np.float32(scale * rng.normal(size=size))
            for size in ((3, 4), (5,), (1,), (2, 2, 2))
        ]
        got, norm = optimization.clip_by_global_norm(
            [tf.constant(g) for g in gradients], limit
        )
        theirs, their_norm = tf.clip_by_global_norm(gradients, limit)
        by_name = dict(enumerate(np.float64(g) for g in gradients))
        formula, expected_norm = clip(by_name, limit)
        np.testing.assert_allclose(norm, expected_norm, rtol=1e-6)
        np.testing.assert_allclose(norm, their_norm, rtol=1e-6)
        for i, left in enumerate(got):
            np.testing.assert_allclose(left, formula[i], rtol=1e-6)
            np.testing.assert_allclose(left, theirs[i], rtol=1e-6)
            if norm < limit:  # Unchanged, bit for bit.
                np.testing.assert_array_equal(left, gradients[i])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_what_is_not_finite_shows_in_the_norm(self, bad):
        _, norm = optimization.clip_by_global_norm(
            [tf.constant([1.0, bad]), tf.constant([1.0])], 1.0
        )
        assert not np.isfinite(norm)
