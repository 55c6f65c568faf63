"""Tests of bert_tf/training/recipes.py and the schedules that it names."""

import fractions
import math

from bert_tf import modeling, optimization, options
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.training import recipes, schedules

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = modeling.BertConfig(9, num_hidden_layers=2)
PEAK, WARMUP, STEPS, END = 0.25, 20, 100, 0.05


def warm(step):
    return PEAK * step / WARMUP


def linear(step):
    return END + (PEAK - END) * (1 - step / STEPS)


def polynomial(step):
    left = (STEPS - step) / (STEPS - WARMUP)
    return END + (PEAK - END) * math.sqrt(left)


def cosine(step):
    done = (step - WARMUP) / (STEPS - WARMUP)
    return END + (PEAK - END) * (1 + math.cos(math.pi * done)) / 2


def constant(step):
    return PEAK if step < 90 else PEAK + (END - PEAK) * (step - 90) / 10


class TestSchedules:
    @pytest.mark.slow
    @pytest.mark.parametrize("warmup", [0, WARMUP, STEPS])
    def test_line_times_warmup_at_every_step(self, warmup):
        recipe = recipes.Recipe(
            lr_schedule="linear_times_warmup", end_learning_rate=END
        )
        schedule = tf.function(recipe.schedule(PEAK, warmup, STEPS))
        for step in range(STEPS + 10):
            rate = schedule(tf.constant(step, tf.int64))
            assert rate.dtype == tf.float32
            share = min(1, step / warmup) if warmup else 1
            expected = linear(min(step, STEPS)) * share
            assert float(rate) == pytest.approx(expected, rel=1e-5), step

    @pytest.mark.parametrize(
        "name, given, after",
        [
            ("linear", {}, linear),
            ("polynomial", {"lr_power": 0.5}, polynomial),
            ("cosine", {}, cosine),
            ("constant", {"num_cooldown_steps": 10}, constant),
        ],
    )
    def test_closed_form_at_every_step(self, name, given, after):
        recipe = recipes.Recipe(
            lr_schedule=name, end_learning_rate=END, **given
        )
        schedule = tf.function(recipe.schedule(PEAK, WARMUP, STEPS))
        for step in range(STEPS + 10):
            rate = schedule(tf.constant(step, tf.int64))
            assert rate.dtype == tf.float32
            expected = warm(step) if step < WARMUP else after(min(step, STEPS))
            assert float(rate) == pytest.approx(expected, rel=1e-5), step
        assert float(rate) == pytest.approx(END)

    @pytest.mark.parametrize("name", options.SCHEDULES)
    @pytest.mark.parametrize("warmup, steps", [(0, 1), (1, 1), (5, 5), (0, 9)])
    def test_shortest_runs(self, name, warmup, steps):
        schedule = recipes.Recipe(lr_schedule=name).schedule(1.0, warmup, steps)
        first = float(schedule(tf.constant(0, tf.int64)))
        lowest = 1 / 32 if name == "slanted_triangular" else 0
        assert first == (lowest if warmup else 1)
        last = float(schedule(tf.constant(steps - 1, tf.int64)))
        assert 0 <= last <= 1

    def test_inverse_square_root_is_the_transformers(self):
        size, warmup = 512, 40
        peak = (size * warmup) ** -0.5
        recipe = recipes.Recipe(lr_schedule="inverse_sqrt")
        schedule = tf.function(recipe.schedule(peak, warmup, STEPS))
        for step in range(1, STEPS):
            noam = size**-0.5 * min(step**-0.5, step * warmup**-1.5)
            rate = float(schedule(tf.constant(step, tf.int64)))
            assert rate == pytest.approx(noam, rel=1e-5), step

    @pytest.mark.parametrize("end", [0.0, END])
    def test_slanted_triangle_is_the_papers(self, end):
        """Howard & Ruder, 2018, equation 3, with a cut of 0.2 of the steps."""
        cut_frac = WARMUP / STEPS
        ratio = PEAK / end if end else 32
        recipe = recipes.Recipe(
            lr_schedule="slanted_triangular", end_learning_rate=end
        )
        schedule = tf.function(recipe.schedule(PEAK, WARMUP, STEPS))
        for t in range(STEPS + 1):
            cut = math.floor(STEPS * cut_frac)
            fall = (t - cut) / (cut * (1 / cut_frac - 1))
            p = t / cut if t < cut else 1 - fall
            expected = PEAK * (1 + p * (ratio - 1)) / ratio
            rate = schedule(tf.constant(t, tf.int64))
            assert float(rate) == pytest.approx(expected, rel=1e-5), t
        assert float(schedule(tf.constant(2 * STEPS, tf.int64))) == rate

    def test_constant_without_cooldown_stays(self):
        schedule = recipes.Recipe(lr_schedule="constant").schedule(0.5, 2, 10)
        rates = [float(schedule(tf.constant(s, tf.int64))) for s in range(10)]
        assert rates == [0, 0.25] + [0.5] * 8

    def test_cooldown_may_take_all_steps_after_the_warm_up(self):
        schedule = schedules.constant(PEAK, 10, 50, 40, END)
        rates = [
            float(schedule(tf.constant(s, tf.int64))) for s in (10, 30, 50)
        ]
        expected = [PEAK, (PEAK + END) / 2, END]
        np.testing.assert_allclose(rates, expected, rtol=1e-6)
        with pytest.raises(ValueError, match="must not take more than all"):
            schedules.constant(PEAK, 10, 50, 41)


class TestLinear:
    def test_long_runs_keep_their_precision(self):
        schedule = schedules.linear_warmup_decay(1e-4, 10_000, 1_000_000)
        for step in (9_999, 10_000, 999_999):
            share = step / 1e4 if step < 1e4 else 1 - step / 1e6
            rate = float(schedule(tf.constant(step, tf.int64)))
            assert rate == pytest.approx(1e-4 * share, abs=1e-11)

    @pytest.mark.parametrize("name", options.SCHEDULES)
    @pytest.mark.parametrize(
        ("warmup", "steps", "words"),
        [
            (0, 0, "must be positive.*num_train_steps=0"),
            (0, -5, "num_train_steps=-5"),
            (11, 10, "num_warmup_steps=11, num_train_steps=10"),
            (-1, 10, "num_warmup_steps=-1"),
        ],
    )
    def test_bad_arguments(self, name, warmup, steps, words):
        with pytest.raises(ValueError, match=words):
            recipes.Recipe(lr_schedule=name).schedule(1e-4, warmup, steps)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ((1e-4, 0.1, 10), "whole number.*not a share.*warmup_steps=0.1"),
            ((1e-4, 1, "10"), "num_train_steps='10'"),
            ((-1e-4, 1, 10), "a number, at least 0.*learning_rate=-0.0001"),
            (("1e-4", 1, 10), "learning_rate='1e-4'"),
            ((math.nan, 1, 10), "learning_rate=nan"),
            ((1e-4, 1, 10, -1.0), "=-1.0"),
        ],
    )
    def test_bad_arguments_in_python(self, given, words):
        for make in (
            schedules.linear_warmup_decay,
            schedules.linear_warmup_times_decay,
            schedules.polynomial_decay,
            schedules.cosine_decay,
            schedules.inverse_sqrt,
            schedules.slanted_triangular,
            schedules.constant,
        ):
            with pytest.raises(InputError, match=words):
                make(*given)


class TestRecipe:
    @pytest.mark.parametrize(
        "given, message",
        [
            (
                {"optimizer": "sgd"},
                "one of adamw, adamw_bias_corrected, lamb, lamb_uncorrected. "
                ".*optimizer='sgd'",
            ),
            ({"lr_schedule": "step"}, "one of linear, linear_t.*='step'"),
            ({"clipping": "none"}, "one of global, per_replica.*='none'"),
            ({"layer_decay_form": "x"}, "one of paper, code.*form='x'"),
            ({"layer_decay": 0}, "above 0.*layer_decay=0"),
            ({"layer_decay": 1.5}, "at most 1.*layer_decay=1.5"),
            ({"clip_norm": 0}, "clip_norm=0"),
            ({"adam_epsilon": 0}, "adam_epsilon=0"),
            ({"adam_beta_1": 0}, "above 0 and at most 0.999999.*beta_1=0"),
            ({"adam_beta_2": 1.0}, "above 0 and at most .*beta_2=1.0"),
            ({"lr_power": 0, "lr_schedule": "polynomial"}, "lr_power=0"),
            ({"lr_power": 0.5}, "goes with lr_schedule=polynomial.*=linear"),
            ({"num_cooldown_steps": 3}, "lr_schedule=constant.*steps=3"),
        ],
    )
    def test_bad_numbers(self, given, message):
        with pytest.raises(ValueError, match=message):
            recipes.Recipe(**given)

    @pytest.mark.parametrize(
        "given, message",
        [
            (
                {"lr_schedule": "constant", "num_cooldown_steps": 6},
                "num_cooldown_steps=6",
            ),
            ({"end_learning_rate": 2.0}, "end_learning_rate=2"),
            (
                {"lr_schedule": "constant", "end_learning_rate": 0.5},
                "give --num_cooldown_steps",
            ),
        ],
    )
    def test_what_does_not_fit_the_run(self, given, message):
        with pytest.raises(ValueError, match=message):
            recipes.Recipe(**given).schedule(1.0, 5, 10)

    def test_makes_what_it_says(self):
        recipe = recipes.Recipe(
            optimizer="lamb",
            weight_decay_rate=0.5,
            adam_beta_1=0.8,
            adam_beta_2=0.98,
            adam_epsilon=1e-8,
            clip_norm=3.0,
            clipping="per_replica",
            dtype="float16",
        )
        made = recipe.make_optimizer(lambda step: step, _CONFIG)
        assert type(made) is optimization.Lamb
        assert (made.weight_decay_rate, made.epsilon) == (0.5, 1e-8)
        assert (made.beta_1, made.beta_2) == (0.8, 0.98)
        assert (made.clip_norm, made.clipping) == (3.0, "per_replica")
        assert made.loss_scale is not None
        plain = recipes.Recipe().make_optimizer(lambda step: step, _CONFIG)
        assert type(plain) is optimization.AdamWeightDecay
        assert (plain.beta_1, plain.beta_2) == (0.9, 0.999)
        assert plain.loss_scale is None


_GROUP = "bert/encoder/transformer/group_{}/inner_group_{}/LayerNorm/beta"


@pytest.mark.parametrize(
    "values, powers",
    [
        (
            {"num_hidden_layers": 3},
            {
                "bert/embeddings/word_embeddings": 4,
                "bert/embeddings/LayerNorm/gamma": 4,
                "bert/encoder/layer_0/attention/self/query/kernel": 3,
                "bert/encoder/layer_2/output/dense/bias": 1,
                "bert/pooler/dense/kernel": 0,
                "cls/predictions/output_bias": 0,
                "output_weights": 0,
            },
        ),
        (
            {"model_type": "electra", "num_hidden_layers": 3},
            {
                "output_weights": 0,
                "electra/pooler/dense/kernel": 0,
                "electra/encoder/layer_2/output/dense/bias": 1,
                "electra/encoder/layer_0/attention/self/key/kernel": 3,
                "electra/embeddings_project/kernel": 4,
                "electra/embeddings/LayerNorm/gamma": 4,
                # The generator has a separate depth.
                "generator_predictions/dense/kernel": 0,
                "generator/encoder/layer_2/output/dense/bias": 1,
                "generator/encoder/layer_0/attention/self/key/kernel": 3,
                "generator/embeddings_project/kernel": 4,
            },
        ),
        # Layers that share weights have one rate.
        (
            {"model_type": "albert", "num_hidden_groups": 2}
            | {"num_hidden_layers": 4, "inner_group_num": 2},
            {
                "bert/pooler/dense/kernel": 0,
                "cls/predictions/output_bias": 0,
                _GROUP.format(1, 0): 1,
                _GROUP.format(1, 1): 1,
                _GROUP.format(0, 0): 2,
                "bert/encoder/embedding_hidden_mapping_in/kernel": 3,
                "bert/embeddings/word_embeddings": 3,
            },
        ),
        # The only layer has no number.
        (
            {"model_type": "bilstm"},
            {
                "bilstm/embeddings/word_embeddings": 2,
                "bilstm/lstm/backward/recurrent_kernel": 1,
            },
        ),
        (
            {"model_type": "textcnn"},
            {
                "textcnn/embeddings/word_embeddings": 2,
                "textcnn/windows/kernel": 1,
                "output_weights": 0,
            },
        ),
    ],
)
def test_layer_rates(values, powers):
    config = families.from_values({"vocab_size": 9} | values)
    rates, plain = (recipes.layer_rates(x, config) for x in (0.5, 1.0))
    for name, power in powers.items():
        assert (rates(name), plain(name)) == (0.5**power, 1), name


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "bert",
            [
                *("output_weights", "bert/encoder/layer_1/output/dense/bias"),
                "bert/encoder/layer_0/attention/self/key/kernel",
                "bert/embeddings/position_embeddings",
            ],
        ),
        (
            "awd_lstm",
            [
                "awd_lstm/pooler/batch_norm_0/gamma",
                *(f"awd_lstm/lstm/layer_{i}/kernel" for i in (1, 0)),
                "awd_lstm/embeddings/word_embeddings",
            ],
        ),
    ],
)
def test_epochs_that_unfreeze_variables(kind, names):
    values = {"model_type": kind, "vocab_size": 9, "num_hidden_layers": 2}
    config = families.from_values(values)
    starts_at = [
        recipes.Recipe(unfreeze=x)
        .make_optimizer(
            lambda step: step, config, 11, fractions.Fraction(11, 4)
        )
        .starts_at
        for x in ("gradual", "none")
    ]
    assert [starts_at[0](name) for name in names] == [0, 2, 5, 8]
    assert [starts_at[1](name) for name in names] == [0] * 4


def _rate_of_the_code(name, decay, num_layers):
    """google-research/electra, model/optimization.py, `_get_layer_lrs`."""
    depths = {"/embeddings/": 0, "/embeddings_project/": 0}
    for layer in range(num_layers):
        depths[f"encoder/layer_{layer}/"] = layer + 1
    # Of heads, whose names begin with task_specific/ in ELECTRA.
    found = [x for key, x in depths.items() if key in name] or [num_layers + 2]
    (depth,) = found
    return decay ** (num_layers + 2 - depth)


@pytest.mark.parametrize("head", ["classification", "span"])
def test_layer_rates_in_the_form_of_the_code(head):
    values = {"vocab_size": 9, "model_type": "electra"}
    config = families.from_values(values | {"embedding_size": 128})
    assert config.num_hidden_layers == 12
    rates = recipes.layer_rates(0.8, config, "code")
    all_names = checkpoint_names.shapes(config, head, 2)
    found = {name: rates(name) for name in all_names}
    wanted = {name: _rate_of_the_code(name, 0.8, 12) for name in all_names}
    assert found == pytest.approx(wanted, rel=1e-12)
    last = "electra/encoder/layer_11/output/dense/kernel"
    assert found[last] == pytest.approx(0.64)
    for name in ("embeddings/word_embeddings", "embeddings_project/kernel"):
        assert found[f"electra/{name}"] == 0.8**14
    assert {found[x] for x in found if not x.startswith("electra/")} == {1}


def test_both_kernels_of_an_lstm_are_pruned():
    config = families.from_values({"model_type": "bilstm_lm", "vocab_size": 9})
    pruning = recipes.Recipe(prune_to=0.5).pruning(config, 10)
    assert pruning is not None
    lstm = "bilstm_lm/lstm/layer_0/forward"
    names = [f"{lstm}/{x}" for x in ("kernel", "recurrent_kernel", "bias")]
    assert [pruning.prunes(name) for name in names] == [True, True, False]


@pytest.mark.parametrize(
    "other", [{"clipping": "per_replica"}, {"prune_to": 0.5}]
)
def test_frozen_weights_do_not_count(other):
    with pytest.raises(InputError, match="`unfreeze` goes with"):
        recipes.Recipe(unfreeze="gradual", **other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr_power", "2"),
        ("clip_norm", None),
        ("num_cooldown_steps", 1.5),
        ("optimizer", 7),
        ("prune_every", math.nan),
    ],
)
def test_values_of_another_type(name, value):
    with pytest.raises(InputError) as error:
        recipes.Recipe(**{name: value})
    line = str(error.value)
    assert line.startswith(f"`{name}` must be ")
    assert line.endswith(f"Received: {name}={value!r}")
