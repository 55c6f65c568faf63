"""The checkpoints that a run can resume from: its own, and the original's."""

import dataclasses
import logging
import shutil
from typing import Any

from bert_tf import heads, modeling, optimization
from bert_tf.checkpoints import formats, tf1_files
from bert_tf.training import pretraining, training_state
from tests.checkpoints.test_tf1_files import CONFIG, assert_equal, save, values

import numpy as np
import pytest
import tensorflow as tf


def _classifier(bert):
    return heads.BertClassifier(bert, 3)


def make_tuned(model, kind=optimization.AdamWeightDecay, batch_size=32, **more):
    """Returns a run that fine-tunes a model, like run_classifier.py."""
    trained = model.trained_variables
    optimizer = kind(lambda step: tf.constant(0.1), **more)
    optimizer.build(trained)
    untrained = {v.path for v in model.variables} - {v.path for v in trained}
    state: Any = training_state.TrainState(
        model, optimizer, 12345, batch_size=batch_size, untrained=untrained
    )
    state.optimizer = optimizer
    return state


def write_originals(prefix, step, model, without_gradient=()):
    """Writes the files that the original's Estimator saves, with its names.

    Its optimizer makes moments for variables with a gradient only.
    """
    rng = np.random.default_rng(step)
    names = {v.path: v.shape for v in model.variables}
    for name in [n for n in names if not n.startswith(without_gradient)]:
        names |= {f"{name}/adam_{x}": names[name] for x in "mv"}
    tensors = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in names.items()
    }
    tf1_files.write(prefix, {**tensors, "global_step": np.int64(step)})
    return tensors


class TestTheOriginalsRuns:
    """Folders of the original's Estimator, which has no data position."""

    def make(self, folder, kind="nsp", batch_size=32):
        """Returns a run of the released tiny model."""
        config = modeling.BertConfig.from_json_file(
            str(folder / "bert_config.json")
        )
        model = heads.BertPretrainer(modeling.Bert(config))
        optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
        optimizer.build(pretraining.trained_variables(model, kind))
        return training_state.TrainState(
            model, optimizer, 12345, batch_size=batch_size
        )

    @pytest.fixture(name="folder")
    def _folder(self, shared_data, tmp_path):
        released = shared_data / "tf1_checkpoint"
        shutil.copy(released / "bert_config.json", tmp_path)
        for ending in ("data-00000-of-00001", "index"):
            shutil.copy(
                released / f"bert_model.ckpt.{ending}",
                tmp_path / f"model.ckpt-20.{ending}",
            )
        return tmp_path

    def test_goes_on_with_pre_training(self, folder, caplog):
        caplog.set_level(logging.INFO, logger="absl")
        state = self.make(folder)
        assert state.resume(str(folder))
        assert (state.step, state.records) == (20, 640)
        reader = tf.train.load_checkpoint(str(folder / "model.ckpt-20"))
        expected = reader.get_variable_to_shape_map().keys()
        assert state.variables.keys() == expected - {"global_step"}
        for name, value in values(state).items():
            np.testing.assert_array_equal(value, reader.get_tensor(name))
        assert (
            "continuing after 640 records (20 steps of 32), in the order of "
            "seed 12345" in caplog.text
        )
        # From here on it is a run of this package.
        caplog.clear()
        save(state, folder, 22, records=704)
        again = self.make(folder)
        assert again.resume(str(folder))
        assert (again.step, again.records) == (22, 704)
        assert not caplog.records

    def test_does_not_guess_the_batch(self, folder):
        message = "lacks data_position/records, data_position/seed. Choose"
        with pytest.raises(ValueError, match=message):
            self.make(folder, batch_size=None).resume(str(folder))

    def test_trained_what_this_run_does_not(self, folder):
        message = (
            "Its run trained other variables. Trained in this run only: "
            "nothing. In the checkpoint only: bert/pooler/dense/bias, "
            "bert/pooler/dense/kernel, cls/seq_relationship/output_bias, "
            "cls/seq_relationship/output_weights. Choose another output_dir"
        )
        with pytest.raises(ValueError, match=message):
            self.make(folder, kind="none").resume(str(folder))

    @pytest.mark.parametrize(
        "kind, without",
        # For SQuAD the original makes no moments of the pooler either.
        [(_classifier, ()), (heads.BertSpanFinder, "bert/pooler/")],
    )
    def test_goes_on_with_fine_tuning(self, tmp_path, kind, without):
        model = kind(modeling.Bert(CONFIG))
        prefix = str(tmp_path / "model.ckpt-7")
        expected = write_originals(prefix, 7, model, without)
        assert ("output_weights/adam_m" in expected) == (not without)
        state = make_tuned(model)
        assert state.resume(str(tmp_path))
        assert (state.step, state.records) == (7, 7 * 32)
        assert_equal(values(state), expected)

    @pytest.mark.parametrize(
        "kind, layers, message",
        [
            (
                lambda bert: heads.BertClassifier(bert, 2),
                1,
                r"output_weights is \[3, 8\] there and \[2, 8\] in the model",
            ),
            (
                heads.BertSpanFinder,
                1,
                "another model than this run's. In this run only: "
                "cls/squad/output_bias, cls/squad/output_weights. In the "
                "checkpoint only: output_bias, output_weights. Choose",
            ),
            (
                _classifier,
                2,
                "In this run only: nothing. In the checkpoint only: "
                "bert/encoder/layer_1/attention/output/LayerNorm/beta, .*, "
                "and 6 more. Choose another output_dir",
            ),
        ],
        ids=["other classes", "another head", "more layers"],
    )
    def test_another_model(self, tmp_path, kind, layers, message):
        config = dataclasses.replace(CONFIG, num_hidden_layers=layers)
        model = _classifier(modeling.Bert(config))
        write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        with pytest.raises(ValueError, match=message):
            make_tuned(kind(modeling.Bert(CONFIG))).resume(str(tmp_path))

    def test_another_optimizer(self, tmp_path):
        model = _classifier(modeling.Bert(CONFIG))
        write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        message = (
            "moments are adam_m, adam_v, and this run's lamb_m, lamb_v: pass "
            "the --optimizer that it was trained with: one of adamw, "
            "adamw_bias_corrected, lamb_uncorrected. Choose another"
        )
        with pytest.raises(ValueError, match=message):
            make_tuned(model, optimization.Lamb).resume(str(tmp_path))

    def test_moments_of_alberts_lamb(self, tmp_path):
        model = _classifier(modeling.Bert(CONFIG))
        expected = write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        state = make_tuned(model, optimization.UncorrectedLamb)
        assert state.resume(str(tmp_path))
        assert state.step == 7
        assert_equal(values(state), expected)


def test_corrected_moments_go_on_bit_for_bit(tmp_path):
    def make():
        model = _classifier(modeling.Bert(CONFIG))
        return make_tuned(model, optimization.BiasCorrectedAdamW, beta_2=0.98)

    def train(state, steps):
        for step in steps:
            rng = np.random.default_rng(step)
            gradients = [
                tf.constant(rng.normal(size=v.shape), tf.float32)
                for v in state.optimizer.variables
            ]
            state.optimizer.apply(gradients, tf.constant(step, tf.int64))
        state.step = steps.stop

    whole, resumed = make(), make()
    train(whole, range(3))
    whole.save(str(tmp_path))
    # The moments have the names of BERT's checkpoints.
    stored = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    names = [v.path for v in whole.optimizer.variables]
    assert {f"{name}/adam_{x}" for name in names for x in "mv"} <= stored
    train(whole, range(3, 6))
    assert resumed.resume(str(tmp_path))
    train(resumed, range(3, 6))
    assert_equal(values(resumed), values(whole))


class Momentum(optimization.Optimizer):
    """A custom optimizer with one slot."""

    slot_names = ("velocity",)

    def _update(self, variable, gradient, rate, step):
        velocity = self.slots[f"{variable.path}/velocity"]
        velocity.assign(0.5 * velocity + gradient)
        variable.value.assign_sub(rate * velocity)


@pytest.fixture
def ours():
    """Returns a run with a custom optimizer."""
    model = _classifier(modeling.Bert(CONFIG))
    state = make_tuned(model, Momentum, clip_norm=1e9)
    state.step, state.records = 3, 96
    return state


class TestAnOptimizerOfTheUsers:
    @pytest.mark.slow
    def test_a_run_goes_on_with_it(self, ours, tmp_path):
        rng = np.random.default_rng(0)
        for variable in ours.variables.values():
            variable.assign(rng.normal(size=variable.shape))
        # Its state is not a weight.
        source = formats.open_checkpoint(ours.save(str(tmp_path)))
        assert source.shapes.keys() == {v.path for v in ours.model.variables}
        trained = ours.optimizer.variables
        assert {f"{v.path}/velocity" for v in trained} <= set(source.state)
        other = make_tuned(_classifier(modeling.Bert(CONFIG)), Momentum)
        assert other.resume(str(tmp_path))
        assert (other.step, other.records) == (3, 96)
        assert_equal(values(other), values(ours))

    def test_a_run_with_another_says_which_it_was(self, ours, tmp_path):
        ours.save(str(tmp_path))
        message = "moments are velocity, and this run's adam_m, adam_v: pass"
        with pytest.raises(ValueError, match=message):
            make_tuned(ours.model).resume(str(tmp_path))


def test_a_loss_scale_is_told_to_be_of_float16():
    scaled = {"a", "loss_scale/scale"}
    for ours, theirs in (({"a"}, scaled), (scaled, {"a"})):
        with pytest.raises(
            ValueError,
            match=r"loss_scale/scale\. Only one of the two .*float16: keep",
        ):
            training_state.check_names("model.ckpt-3", ours, theirs)
