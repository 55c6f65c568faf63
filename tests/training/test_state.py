"""Checkpoints that are written while training continues."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import sys
import threading

from bert_tf import heads, modeling, optimization
from bert_tf.checkpoints import tf1_files
from bert_tf.contrib import xlnet_pretraining
from bert_tf.seq2seq import decoder
from bert_tf.setup import run_setup
from bert_tf.storage import run_lock
from bert_tf.training import run_report, scoring, training_state
from tests import pretraining_records, reference, small_disks, tiny_model

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(name="state")
def _state():
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    model = heads.BertPretrainer(modeling.Bert(config))
    optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
    optimizer.build(model.trainable_variables)
    return training_state.TrainState(model, optimizer, 12345, keep=2)


def _change(state, step):
    """Sets the values of a step, like training: by assignments."""
    state.step, state.records = step, 8 * step
    rng = np.random.default_rng(step)
    for number, variable in enumerate(state.variables.values()):
        values = rng.normal(size=variable.shape).astype(np.float32)
        if number % 2:
            variable.assign(values)
        else:  # In place, if TensorFlow can.
            variable.assign_sub(variable)
            variable.assign_add(values)


def _contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_the_same_bytes_as_in_the_foreground(state, tmp_path, monkeypatch):
    expected, found = tmp_path / "foreground", tmp_path / "background"
    for step in (3, 5, 9):
        _change(state, step)
        state.save(str(expected))
    # Each is written only once the state has changed.
    write, release = tf1_files.write, threading.Semaphore(0)

    def held(*arguments):
        assert release.acquire(timeout=60)
        write(*arguments)

    monkeypatch.setattr(tf1_files, "write", held)
    with training_state.Writer() as writer:
        for step in (3, 5, 9):
            _change(state, step)
            assert state.save(str(found), writer) == str(
                found / f"model.ckpt-{step}"
            )
            assert not (found / f"model.ckpt-{step}.index").exists()
            _change(state, 1000 + step)
            release.release()
            writer.wait()
    assert _contents(found) == _contents(expected)
    names = {f"model.ckpt-{step}.index" for step in (5, 9)}
    assert names <= _contents(found).keys()


def test_the_copy_is_one_more_of_weights_and_moments(state, tmp_path):
    copied = []

    class Noting(training_state.Writer):
        def start(self, write):
            _, _, tensors, _ = write.args
            copied.append(sum(tf.size(x).numpy() for x in tensors.values()))
            super().start(write)

    with Noting() as writer:
        state.save(str(tmp_path), writer)
    sizes = [np.prod(x.shape, dtype=int) for x in state.variables.values()]
    # And three numbers: the step, the position in the data, the seed.
    assert copied == [sum(sizes) + 3]


def test_a_full_disk_is_told_at_the_next_and_leaves_the_last(state, tmp_path):
    with (
        small_disks.limited(tmp_path / "disk", 8) as disk,
        training_state.Writer() as writer,
    ):
        # A checkpoint that fits.
        tf1_files.write(str(disk / "model.ckpt-3"), {"a": np.zeros(8)})
        before = _contents(disk)
        _change(state, 5)
        state.save(str(disk), writer)
        _change(state, 9)
        with pytest.raises(
            OSError,
            match=r"^Step 5 could not be saved in .*: .*File too large.* The "
            r"last whole checkpoint is model\.ckpt-3\. ",
        ):
            writer.wait()
        assert _contents(disk) == before


def _session(state, folder, **others):
    run = tiny_model.session_of(
        state.model,
        folder,
        lambda: None,
        lambda records, step: None,
        save_in_background=True,
    )
    return dataclasses.replace(run, **others)


@pytest.mark.parametrize("check_only", [False, True])
@pytest.mark.parametrize("step", [100, 120])
def test_a_run_that_is_not_trained_any_more(
    state, tmp_path, caplog, step, check_only
):
    caplog.set_level("INFO", "absl")
    run = _session(
        *(state, tmp_path),
        restore=lambda state: setattr(state, "step", step),
        begin=lambda: pytest.fail("The flags of the training are replaced."),
    )
    plan = dataclasses.replace(run.plan, check_only=check_only)
    assert dataclasses.replace(run, plan=plan).train() == step
    is_last = step == 100
    completed = "has completed all 100 steps" in caplog.text
    assert completed == (is_last and not check_only)
    would = "Would train from step 100 to 100." in caplog.text
    assert would == (is_last and check_only)
    later = f"is from step {step}, later than the last step of this run, 100."
    assert (later in caplog.text) == (step == 120)


@pytest.mark.parametrize("check_only", [False, True])
def test_a_run_that_early_stopping_has_ended(
    state, tmp_path, caplog, check_only
):
    caplog.set_level("INFO", "absl")
    (tmp_path / "best").mkdir()
    results = tmp_path / "best" / "results.json"
    results.write_text('{"loss": 1.5, "global_step": 2}')
    lines = (
        f'{{"step": {step}, "eval_loss": {step}, "eval_best_step": 2}}\n'
        for step in (2, 4, 6)
    )
    (tmp_path / "metrics.jsonl").write_text("".join(lines))
    run = _session(
        *(state, tmp_path),
        restore=lambda state: setattr(state, "step", 6),
        begin=lambda: pytest.fail("The flags of the training are replaced."),
        evaluation=scoring.Evaluation("loss", dict, True, 2),
        eval_steps=2,
    )
    before = _contents(tmp_path / "best")
    plan = dataclasses.replace(run.plan, check_only=check_only)
    assert dataclasses.replace(run, plan=plan).train() == 6
    assert "No lower loss since step 2: ending at step 6." in caplog.text
    assert "Would train" not in caplog.text
    assert check_only == (_contents(tmp_path / "best") == before)


@pytest.mark.parametrize(
    "kind, counted",
    [
        (heads.BertPretrainer, True),
        (decoder.Seq2Seq, False),
        (xlnet_pretraining.PermutedWords, False),
    ],
)
def test_no_estimates_of_layers_that_are_not_counted(
    state, tmp_path, caplog, kind, counted
):
    caplog.set_level("INFO", "absl")
    state.model.has_estimates = kind.has_estimates
    run = _session(state, tmp_path)
    plan = dataclasses.replace(run.plan, peak_flops=1e12)
    report = dataclasses.replace(run, plan=plan)._progress(0)
    block = {"sequences": 8, "tokens": 80, "pairs": 800, "seconds": 1}
    assert ("flops_utilization" in report.meter(block)) == counted
    if not counted:
        replicas = run_report.Replicas(1, "CPU")
        run_setup.report_model(replicas, state.model, 8, 1, {"S": 16})
        assert "Memory" not in caplog.text


def test_the_state_after_a_failed_save_is_saved(state, tmp_path):
    run = _session(state, tmp_path / "disk")
    with training_state.Writer() as writer:
        save = run._saving(state, writer, lambda: None)
        with small_disks.limited(tmp_path / "disk", 8):
            save(5, None)
            with contextlib.suppress(OSError):
                writer._writing.result()
        _change(state, 9)
        # There is room again.
        with pytest.raises(OSError, match="Step 5 could not be saved"):
            save(9, None)
        expected = {name: x.numpy() for name, x in state.variables.items()}
        _change(state, 1)
        assert state.resume(run.folder)
        assert (state.step, state.records) == (9, 72)
        reference.assert_same(state.variables, expected)


def test_old_checkpoints_that_cannot_be_removed(
    state, tmp_path, monkeypatch, caplog
):
    def remove(path):
        raise tf.errors.PermissionDeniedError(None, None, f"{path}; retained")

    monkeypatch.setattr(tf.io.gfile, "remove", remove)
    with run_lock.hold(tmp_path):
        for step in (3, 5, 7, 9):
            _change(state, step)
            state.save(str(tmp_path))
    assert [*tf1_files.numbered(str(tmp_path))] == [3, 5, 7, 9]
    text = (tmp_path / "checkpoint").read_text()
    assert [x for x in "3579" if f"ckpt-{x}" in text] == ["7", "9"]
    assert (
        "Old checkpoints that could not be removed: 2. The first is "
        "model.ckpt-3: model.ckpt-3.index; retained\n"
    ) in caplog.text
    # Nor does a run that resumes end there.
    data = ".data-00000-of-00001"
    for name in (f"model.ckpt-9.tmp{data}", f"model.ckpt-11{data}"):
        (tmp_path / name).write_bytes(b"half")
    assert state.resume(str(tmp_path))
    assert state.step == 9
    assert (
        "Half-written checkpoints that could not be removed: 2. The first is "
        f"model.ckpt-9.tmp{data}: model.ckpt-9.tmp{data}; retained\n"
    ) in caplog.text
    _change(state, 9)  # The step that was being saved.
    with run_lock.hold(tmp_path):
        state.save(str(tmp_path))
    assert state.resume(str(tmp_path))


def test_where_nothing_is_to_be_written(state, tmp_path):
    state.write = False
    with training_state.Writer() as writer:
        state.save(str(tmp_path), writer)
    assert not list(pathlib.Path(tmp_path).iterdir())


def test_what_is_passed_over_is_not_the_newest(state, tmp_path):
    folder = str(tmp_path)
    for step in (5, 9):
        _change(state, step)
        state.save(folder)
    data = tmp_path / "model.ckpt-9.data-00000-of-00001"
    content = data.read_bytes()[:1000]
    data.write_bytes(content)
    assert state.resume(folder)
    assert state.step == 5
    # Nothing is removed before there is a newer checkpoint.
    assert tf1_files.latest(folder) == f"{folder}/model.ckpt-9"
    state.step = 7
    state.save(folder)
    assert tf1_files.latest(folder) == f"{folder}/model.ckpt-7"
    assert state.resume(folder)
    assert state.step == 7
    assert [*tf1_files.numbered(folder)] == [5, 7]
    aside = tmp_path / "model.ckpt-9.unreadable.data-00000-of-00001"
    assert aside.read_bytes() == content
    state.step = 9
    state.save(folder)
    assert [*tf1_files.numbered(folder)] == [7, 9]
    assert aside.read_bytes() == content


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="needs paths of descriptors"
)
@pytest.mark.parametrize("way", ["removed", "moved"])
def test_a_folder_that_is_replaced_during_a_save(tmp_path, monkeypatch, way):
    folder, moved = tmp_path / "run", tmp_path / "moved"

    class Replacing(dict):
        """Tensors that are read after the lock was checked."""

        def __getitem__(self, name):
            if way == "moved":
                folder.rename(moved)
            else:
                shutil.rmtree(folder)
            folder.mkdir()
            return super().__getitem__(name)

    monkeypatch.setattr(os, "_exit", sys.exit)
    ends: contextlib.AbstractContextManager = contextlib.nullcontext()
    if way == "removed":
        ends = pytest.raises(SystemExit, match="1")
    with run_lock.hold(folder), ends:
        training_state._write(str(folder), 3, Replacing(x=1.0), keep=1)
    assert not list(folder.iterdir())
    if way == "moved":
        assert tf1_files.latest(str(moved)) == str(moved / "model.ckpt-3")
        assert (moved / "checkpoint").exists()
