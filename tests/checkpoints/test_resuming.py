"""Which checkpoints a run goes on from: its own, and the original's."""

import dataclasses
import logging
import shutil

from bert_tf import heads, modeling, optimization
from bert_tf.checkpoints import formats, resuming, tf1_files
from bert_tf.training import pretraining
from bert_tf.training import state as training_state
from tests.checkpoints.test_tf1_files import CONFIG, assert_equal, save, values

import numpy as np
import pytest
import tensorflow as tf


def make_tuned(model, batch_size=32):
    """A run that fine-tunes a model, as run_classifier.py and others make."""
    trained = model.trained_variables
    optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
    optimizer.build(trained)
    untrained = {v.path for v in model.variables} - {v.path for v in trained}
    return training_state.TrainState(
        model, optimizer, 12345, batch_size=batch_size, untrained=untrained
    )


def write_originals(prefix, step, model, without_gradient=()):
    """Writes what the original's Estimator saves, by the names it has.

    Its optimizer makes moments of what has a gradient.
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
    """Folders of its Estimator, which knows no data position."""

    def make(self, folder, kind="nsp", batch_size=32):
        """A run of the released tiny model."""
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
            "going on behind 640 records (20 steps of 32), in the order of "
            "seed 12345" in caplog.text
        )
        # From now on it is a run of ours.
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

    def test_goes_on_with_a_classifier(self, tmp_path):
        model = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        prefix = str(tmp_path / "model.ckpt-7")
        expected = write_originals(prefix, 7, model)
        assert "output_weights/adam_m" in expected
        state = make_tuned(model)
        assert state.resume(str(tmp_path))
        assert (state.step, state.records) == (7, 7 * 32)
        assert_equal(values(state), expected)

    def test_goes_on_with_squad(self, tmp_path):
        # The original makes no moments of the pooler either.
        model = heads.BertSpanFinder(modeling.Bert(CONFIG))
        prefix = str(tmp_path / "model.ckpt-7")
        expected = write_originals(prefix, 7, model, "bert/pooler/")
        state = make_tuned(model)
        assert state.resume(str(tmp_path))
        assert_equal(values(state), expected)

    def test_other_classes(self, tmp_path):
        model = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        state = make_tuned(heads.BertClassifier(modeling.Bert(CONFIG), 2))
        message = r"output_weights is \[3, 8\] there and \[2, 8\] in the model"
        with pytest.raises(ValueError, match=message):
            state.resume(str(tmp_path))

    def test_another_head(self, tmp_path):
        model = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        message = (
            "another model than this run's. In this run only: "
            "cls/squad/output_bias, cls/squad/output_weights. In the "
            "checkpoint only: output_bias, output_weights. Choose"
        )
        with pytest.raises(ValueError, match=message):
            make_tuned(heads.BertSpanFinder(modeling.Bert(CONFIG))).resume(
                str(tmp_path)
            )

    def test_another_optimizer(self, tmp_path):
        model = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        optimizer = optimization.Lamb(lambda step: 0.1)
        optimizer.build(model.trained_variables)
        state = training_state.TrainState(
            model, optimizer, 12345, batch_size=32
        )
        message = (
            "moments are adam_m, adam_v, and this run's lamb_m, lamb_v: give "
            "the --optimizer that it was trained with. Choose another"
        )
        with pytest.raises(ValueError, match=message):
            state.resume(str(tmp_path))

    def test_of_more_layers(self, tmp_path):
        deep = dataclasses.replace(CONFIG, num_hidden_layers=2)
        model = heads.BertClassifier(modeling.Bert(deep), 3)
        write_originals(str(tmp_path / "model.ckpt-7"), 7, model)
        message = (
            "In this run only: nothing. In the checkpoint only: "
            "bert/encoder/layer_1/attention/output/LayerNorm/beta, .*, "
            "and 6 more. Choose another output_dir"
        )
        with pytest.raises(ValueError, match=message):
            make_tuned(heads.BertClassifier(modeling.Bert(CONFIG), 3)).resume(
                str(tmp_path)
            )


def test_corrected_moments_go_on_bit_for_bit(tmp_path):
    def make():
        model = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        optimizer = optimization.BiasCorrectedAdamW(
            lambda step: tf.constant(6e-4), beta_2=0.98
        )
        optimizer.build(model.trained_variables)
        state = training_state.TrainState(model, optimizer, 12345)
        return state, optimizer

    def train(state, optimizer, steps):
        for step in steps:
            rng = np.random.default_rng(step)
            gradients = [
                tf.constant(rng.normal(size=v.shape), tf.float32)
                for v in optimizer.variables
            ]
            optimizer.apply(gradients, tf.constant(step, tf.int64))
        state.step = steps.stop

    whole, optimizer = make()
    train(whole, optimizer, range(3))
    whole.save(str(tmp_path))
    # The moments' names are those of BERT's checkpoints.
    stored = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    moments = {
        f"{v.path}/{slot}"
        for v in optimizer.variables
        for slot in ("adam_m", "adam_v")
    }
    assert moments <= stored
    train(whole, optimizer, range(3, 6))
    resumed, other = make()
    assert resumed.resume(str(tmp_path))
    train(resumed, other, range(3, 6))
    assert_equal(values(resumed), values(whole))


class Momentum(optimization.Optimizer):
    """An optimizer that the package does not know, with one slot."""

    slot_names = ("velocity",)

    def _update(self, variable, gradient, rate, step):
        velocity = self.slots[f"{variable.path}/velocity"]
        velocity.assign(0.5 * velocity + gradient)
        variable.value.assign_sub(rate * velocity)


class TestAnOptimizerOfTheUsers:
    def make(self, kind=Momentum):
        model = heads.BertClassifier(modeling.Bert(CONFIG), 3)
        optimizer = kind(lambda step: 0.1, clip_norm=1e9)
        optimizer.build(model.trained_variables)
        return training_state.TrainState(model, optimizer, 12345), optimizer

    def test_updates_by_its_formula(self):
        state, optimizer = self.make()
        before = values(state)
        gradients = [tf.fill(v.shape, 2.0) for v in optimizer.variables]
        for step in range(2):
            optimizer.apply(gradients, tf.constant(step, tf.int64))
        after = values(state)
        for name in (v.path for v in optimizer.variables):
            # Velocities 2 and 0.5 * 2 + 2.
            assert (after[f"{name}/velocity"] == 3).all()
            np.testing.assert_allclose(
                after[name], before[name] - 0.1 * (2 + 3), atol=1e-5
            )

    def test_its_state_is_no_weight(self, tmp_path):
        state, optimizer = self.make()
        state.step = 3
        prefix = state.save(str(tmp_path))
        weights = {variable.path for variable in state.model.variables}
        velocities = {f"{v.path}/velocity" for v in optimizer.variables}
        source = formats.open_checkpoint(prefix)
        assert source.shapes.keys() == weights
        assert velocities <= set(source.state)

    def test_a_run_goes_on_with_it(self, tmp_path):
        state, _ = self.make()
        rng = np.random.default_rng(0)
        for variable in state.variables.values():
            variable.assign(rng.normal(size=variable.shape))
        state.step, state.records = 3, 96
        state.save(str(tmp_path))
        other, _ = self.make()
        assert other.resume(str(tmp_path))
        assert (other.step, other.records) == (3, 96)
        assert_equal(values(other), values(state))

    def test_a_run_with_another_says_which_it_was(self, tmp_path):
        state, _ = self.make()
        state.step = 3
        state.save(str(tmp_path))
        other, _ = self.make(optimization.AdamWeightDecay)
        message = "moments are velocity, and this run's adam_m, adam_v: give"
        with pytest.raises(ValueError, match=message):
            other.resume(str(tmp_path))


def test_a_loss_scale_is_told_to_be_of_float16():
    scaled = {"a", "loss_scale/scale"}
    for ours, theirs in (({"a"}, scaled), (scaled, {"a"})):
        with pytest.raises(
            ValueError, match=r"loss_scale/scale\. Of the two .*float16: keep"
        ):
            resuming.check("model.ckpt-3", ours, theirs)
