"""Tests of bert_tf/checkpoints/tf1_files.py."""

import dataclasses
import logging
import pathlib
import resource

from bert_tf import heads, modeling, optimization
from bert_tf.checkpoints import formats, restoring, tf1_files
from bert_tf.training import training_state
from tests import pretraining_records, reference

import numpy as np
import pytest
import tensorflow as tf

CONFIG = modeling.BertConfig(**pretraining_records.CONFIG)
EXTRA = {"global_step", "data_position/records", "data_position/seed"}


def make_state(seed=1, keep=5, write=True, **changes):
    """Returns a model with random weights and moments, made from `seed`."""
    model = heads.BertPretrainer(
        modeling.Bert(dataclasses.replace(CONFIG, **changes))
    )
    optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
    optimizer.build(model.trainable_variables)
    state = training_state.TrainState(model, optimizer, 12345, keep, write)
    rng = np.random.default_rng(seed)
    for variable in state.variables.values():
        variable.assign(rng.normal(size=variable.shape))
    return state


def array(variable):
    return tf.convert_to_tensor(variable).numpy()


def values(state):
    return {n: array(v) for n, v in state.variables.items()}


def save(state, folder, step, records=0):
    state.step, state.records = step, records
    return state.save(str(folder))


def assert_resumes(folder, step, expected=None):
    """Checks that another model resumes at a step with the saved values."""
    other = make_state(seed=99)
    assert other.resume(str(folder))
    assert other.step == step
    if expected is not None:
        assert_equal(values(other), expected)
    return other


assert_equal = reference.assert_same


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


def files_of(*steps):
    endings = ("data-00000-of-00001", "index")
    found = [f"model.ckpt-{step}.{end}" for step in steps for end in endings]
    return sorted(["checkpoint", *found])


def damage(prefix):
    """Flips one bit of a checkpoint's data."""
    path = pathlib.Path(f"{prefix}.data-00000-of-00001")
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def restore(variables, path, *required):
    """Restores weights like the scripts."""
    source = formats.open_checkpoint(str(path))
    return restoring.restore_weights(variables, source, *required)


class TestFormat:
    def test_tensorflow_reads_it(self, tmp_path):
        state = make_state()
        save(state, tmp_path, 3, records=24)
        # Found by folder: the file `checkpoint` is right, too.
        reader = tf.train.load_checkpoint(str(tmp_path))
        expected = values(state)
        found = {name: reader.get_tensor(name) for name in expected}
        assert_equal(found, expected)
        step = reader.get_tensor("global_step")
        assert (step, step.dtype) == (3, np.int64)
        assert reader.get_tensor("data_position/records") == 24

    @pytest.mark.slow
    def test_tf1_saver_restores_it(self, tmp_path):
        state = make_state()
        prefix = save(state, tmp_path, 3)
        expected = values(state)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            variables = {
                name: tf.compat.v1.get_variable(name, value.shape)
                for name, value in expected.items()
            }
            step = tf.compat.v1.train.get_or_create_global_step()
            tf.compat.v1.train.Saver().restore(session, prefix)
            assert_equal(session.run(variables), expected)
            assert session.run(step) == 3

    def test_is_read_where_tf1_wrote_it(self, tmp_path):
        expected = make_state()
        weights = {v.path: array(v) for v in expected.model.variables}
        prefix = str(tmp_path / "model.ckpt-7")
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            for name, value in weights.items():
                tf.compat.v1.get_variable(name, initializer=value)
            session.run(tf.compat.v1.global_variables_initializer())
            tf.compat.v1.train.Saver().save(
                session, prefix, write_meta_graph=False
            )
        state = make_state(seed=2)
        restore(state.model.variables, str(tmp_path))
        assert_equal({v.path: array(v) for v in state.model.variables}, weights)


class TestSave:
    def test_the_newest_are_kept(self, tmp_path):
        state = make_state(keep=2)
        for step in (1, 2, 10):
            save(state, tmp_path, step)
        assert names(tmp_path) == files_of(2, 10)
        found = tf.train.get_checkpoint_state(str(tmp_path))
        assert found.model_checkpoint_path.endswith("/model.ckpt-10")
        kept = [x[-2:] for x in found.all_model_checkpoint_paths]
        assert kept == ["-2", "10"]
        assert tf1_files.latest(str(tmp_path)) == f"{tmp_path}/model.ckpt-10"

    def test_only_the_chief_writes(self, tmp_path):
        save(make_state(write=False), tmp_path, 1)
        assert names(tmp_path) == []

    @pytest.mark.slow
    def test_mirrored_variables(self, tmp_path, two_replicas):
        strategy = two_replicas
        with strategy.scope():
            state = make_state()
        save(state, tmp_path, 3)
        with strategy.scope():
            other = assert_resumes(tmp_path, 3)
        plain = assert_resumes(tmp_path, 3)
        # Keras variables contain the distributed variable.
        stored = {
            name: strategy.experimental_local_results(
                getattr(variable, "_value", variable)
            )
            for name, variable in other.variables.items()
        }
        for replica in range(2):
            found = {name: x[replica] for name, x in stored.items()}
            assert_equal(found, values(plain))

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["a*b", "wh?t", "[1]", "a\\b"])
    def test_folder_names_that_look_like_globs(self, tmp_path, name):
        folder = tmp_path / name
        folder.mkdir()
        state = make_state(keep=1)
        for step in (1, 2):
            save(state, folder, step)
        assert names(folder) == files_of(2)
        (folder / "model.ckpt-3.tmp.index").write_text("half")
        assert make_state().resume(str(folder))
        assert names(folder) == files_of(2)
        report = restore(make_state().model.variables, str(folder))
        assert report.path == f"{folder}/model.ckpt-2"


class TestFailingSave:
    """The old checkpoint stays, without partial files next to it."""

    @pytest.mark.parametrize("ending", [".data-00000-of-00001", ".index"])
    @pytest.mark.parametrize("step", [1, 2])
    def test_rename(self, tmp_path, monkeypatch, ending, step):
        state = make_state()
        save(state, tmp_path, 1)
        before = values(state)
        rename = tf.io.gfile.rename

        def fail(source, target, overwrite=False):
            if target.endswith(ending):
                raise tf.errors.ResourceExhaustedError(None, None, "disk full")
            rename(source, target, overwrite)

        monkeypatch.setattr(tf.io.gfile, "rename", fail)
        message = f"Step {step} .* disk full. .* checkpoint is model.ckpt-1. "
        with pytest.raises(OSError, match=message):
            save(state, tmp_path, step)
        assert names(tmp_path) == files_of(1)
        assert_resumes(tmp_path, 1, before)

    def test_not_a_folder(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(OSError, match="Step 1 could not be saved"):
            save(make_state(), tmp_path / "file", 1)
        assert names(tmp_path) == ["file"]

    def test_no_room(self, tmp_path):
        # On a full disk, writing fails in the middle of the file.
        state = make_state()
        save(state, tmp_path, 1)
        before = values(state)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        try:
            with pytest.raises(OSError, match=r"checkpoint is model\.ckpt-1"):
                save(state, tmp_path, 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert names(tmp_path) == files_of(1)
        save(state, tmp_path, 2)
        assert_resumes(tmp_path, 2, before)

    def test_killed_in_the_middle(self, tmp_path):
        state = make_state()
        save(state, tmp_path, 1)
        for name in (
            "model.ckpt-2.tmp.data-00000-of-00001.tempstate99",
            "model.ckpt-2.tmp.data-00000-of-00001",
            # Left by an earlier version.
            "model.ckpt-2.tmp42.data-00000-of-00001",
            "checkpoint.tmp",
            # Between the two renames.
            "model.ckpt-3.data-00000-of-00001",
        ):
            (tmp_path / name).write_text("half")
        other = assert_resumes(tmp_path, 1)
        assert names(tmp_path) == files_of(1)
        save(other, tmp_path, 3)
        assert_resumes(tmp_path, 3)


class TestResume:
    def test_nothing_there(self, tmp_path):
        state = make_state()
        before = values(state)
        assert not state.resume(str(tmp_path))
        assert not state.resume(str(tmp_path / "none"))
        assert_equal(values(state), before)

    def test_corrupt_newest_falls_back(self, tmp_path, caplog):
        state = make_state()
        save(state, tmp_path, 1, records=8)
        before = values(state)
        state = make_state(seed=2)
        newest = save(state, tmp_path, 2)
        damage(newest)
        with caplog.at_level(logging.WARNING):
            assert assert_resumes(tmp_path, 1, before).records == 8
        assert f"{newest} can't be read" in caplog.text
        assert "Checksum" in caplog.text

    @pytest.mark.parametrize(
        "ending, content",
        [
            ("data-00000-of-00001", b""),
            ("data-00000-of-00001", None),
            ("index", b""),
            ("index", b"not an index" * 9),
        ],
    )
    def test_unreadable_newest_falls_back(self, tmp_path, ending, content):
        state = make_state()
        save(state, tmp_path, 1)
        path = pathlib.Path(f"{save(state, tmp_path, 2)}.{ending}")
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert_resumes(tmp_path, 1)

    def test_a_corrupt_one_does_not_drive_out_good_ones(self, tmp_path):
        state = make_state(keep=1)
        damage(save(state, tmp_path, 9))
        save(state, tmp_path, 2)
        unreadable = [
            name.replace("-9.", "-9.unreadable.") for name in files_of(9)
        ]
        assert names(tmp_path) == sorted({*files_of(2), *unreadable})
        found = tf.train.latest_checkpoint(str(tmp_path))
        assert found == f"{tmp_path}/model.ckpt-2"
        assert_resumes(tmp_path, 2)

    def test_a_network_that_is_down_costs_no_checkpoint(
        self, tmp_path, monkeypatch
    ):
        state = make_state()
        save(state, tmp_path, 1)
        save(state, tmp_path, 2)

        def fail(prefix):
            raise tf.errors.UnavailableError(None, None, f"no way to {prefix}")

        monkeypatch.setattr(tf.train, "list_variables", fail)
        with pytest.raises(tf.errors.UnavailableError, match="ckpt-2"):
            make_state(seed=3).resume(str(tmp_path))

    def test_all_corrupt(self, tmp_path):
        damage(save(make_state(), tmp_path, 1))
        message = f"None of the checkpoints in {tmp_path} can be read"
        with pytest.raises(ValueError, match=message):
            make_state().resume(str(tmp_path))

    def test_another_seed(self, tmp_path):
        save(make_state(), tmp_path, 1)
        state = make_state()
        state.seed = 7
        message = r"another seed.*seed=7, in the checkpoint 12345"
        with pytest.raises(ValueError, match=message):
            state.resume(str(tmp_path))

    def test_another_shape(self, tmp_path):
        save(make_state(), tmp_path, 1)
        message = (
            r"word_embeddings is \[40, 8\] there and \[44, 8\] in the model"
        )
        state = make_state(vocab_size=44)
        before = values(state)
        with pytest.raises(ValueError, match=message):
            state.resume(str(tmp_path))
        assert_equal(values(state), before)

    def test_another_architecture(self, tmp_path):
        save(make_state(num_hidden_layers=2), tmp_path, 1)
        state = make_state()
        with pytest.raises(ValueError) as error:
            state.resume(str(tmp_path))
        text = str(error.value)
        ours, theirs = text.split("In the checkpoint only: ")
        assert "In this run only: nothing" in ours
        assert "bert/encoder/layer_1/attention/self/key/bias, " in theirs
        assert "adam" not in theirs  # moments are omitted from the list

    def test_weights_without_a_run(self, tmp_path):
        state = make_state()
        weights = {v.path: v.value for v in state.model.variables}
        tf1_files.write(str(tmp_path / "model.ckpt-1"), weights)
        message = (
            r"It holds only weights and no moments \(adam_m, adam_v\), .* "
            "It lacks "
            "data_position/records, data_position/seed, global_step. Choose"
        )
        with pytest.raises(ValueError, match=message):
            state.resume(str(tmp_path))
