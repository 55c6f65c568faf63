"""Runs of run_pretraining.py that are interrupted, and go on."""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import signal
import time
import types

from bert_tf.checkpoints import tf1_files
from bert_tf.training import evaluation, progress
from tests import combinations, pretraining_records, processes
from tests.pretraining_runs import (
    Setting,
    assert_same_checkpoint,
    contents,
    metrics,
    tensors,
    trained,
)

import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="setting")
def _setting():
    return trained()


@pytest.fixture(name="trained")
def _trained(setting):
    return setting.folder / "trained"


LONG = (
    *("--num_train_steps=100", "--save_checkpoints_steps=20"),
    *("--eval_steps=30", "--max_eval_steps=2", "--keep_checkpoint_max=10"),
)
# Files of checkpoints that are held back, and the last step saved before.
_HELD = (
    ("out/model.ckpt-40.data-00000-of-00001", 20),
    ("out/model.ckpt-60.index", 40),
)


def _hold(name, said):
    """Makes the process that saves stay before a file gets its name."""
    rename = tf.io.gfile.rename

    def held(source, target, overwrite=False):
        # Through a descriptor, the folder has another name.
        if os.path.realpath(target).endswith(name):
            pathlib.Path(said).touch()
            time.sleep(600)
        rename(source, target, overwrite=overwrite)

    tf.io.gfile.rename = held


@pytest.fixture(scope="module", name="uninterrupted")
def _uninterrupted(setting, tmp_path_factory, grappler):
    output = tmp_path_factory.mktemp("uninterrupted") / "out"
    setting.finished(output, *LONG, "--save_in_background=false")
    return output


def assert_same_run(output, uninterrupted):
    assert metrics(output) == metrics(uninterrupted)
    kept = re.compile(r"checkpoint$|model\.ckpt-|results\.json$")
    for folder in (".", "best"):
        expected, found = (
            contents(x / folder) for x in (uninterrupted, output)
        )
        for name in filter(kept.match, expected.keys() | found.keys()):
            assert found.get(name) == expected.get(name), name


def _stop(*_):
    """Interrupts the evaluation that calls it."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)


@pytest.mark.parametrize(("name", "last"), combinations.some(_HELD[1:], _HELD))
def test_sigterm_while_it_evaluates_and_kill_9_while_it_saves(
    setting, uninterrupted, tmp_path, monkeypatch, name, last
):
    output, said = tmp_path / "out", tmp_path / "held"
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "_sum", _stop)
        run = setting.run(output, *LONG)
    assert run.wait() == 143
    assert "SIGTERM: saved step 30; ending. To resume, run" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (output / "best" / "results.json").exists()
    run = setting.start(
        *(output, *LONG), before=functools.partial(_hold, name, str(said))
    )
    processes.wait_for(said.exists, run, 600)
    assert "Step 30 has not been evaluated yet." in run.stderr
    for path in output.glob("model.ckpt-30.*"):
        path.unlink()  # One more than a run without a signal has.
    # Steps go on, up to the evaluation or save that waits for it.
    processes.wait_for(
        lambda: metrics(output)[-1]["step"] >= last + 24, run, 600
    )
    run.kill(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert max(tf1_files.numbered(str(output))) == last
    # What was there is whole.
    assert_same_checkpoint(output, uninterrupted, last)
    run = setting.finished(output, *LONG)
    assert f"Resuming from step {last}" in run.stderr
    assert_same_run(output, uninterrupted)


@pytest.mark.usefixtures("untraced")
def test_early_stop(setting, tmp_path):
    # With a rate of 0 no evaluation is better than the first.
    output = tmp_path / "out"
    flags = [
        *("--num_train_steps=50", "--learning_rate=0"),
        *("--save_checkpoints_steps=3", "--eval_steps=2"),
        *("--early_stop_evaluations=3", "--max_eval_steps=1"),
    ]

    def end():
        run = setting.finished(output, *flags)
        assert "No lower loss since step 2: ending at step 8." in run.stderr
        lines = metrics(output)
        best = [x["eval_best_step"] for x in lines if "eval_loss" in x]
        assert [x["step"] for x in lines if "loss" in x] == [*range(1, 9)]
        assert best == [2, 2, 2, 2]

    end()
    # One that is over stays over, but goes on for more evaluations. These
    # count, not steps: there are six at step 11.
    end()
    flags += ["--eval_steps=1", "--early_stop_evaluations=6"]
    run = setting.finished(output, *flags)
    assert "No lower loss since step 2: ending at step 11." in run.stderr


@pytest.mark.exhaustive
def test_best_of_steps_that_are_made_again(setting, tmp_path):
    """As where a kill lost steps that were evaluated already."""
    output = tmp_path / "out"
    saves = ("--num_train_steps=8", "--save_checkpoints_steps=2")
    flags = [*saves, "--eval_steps=1", f"--eval_file={setting.files[0]}"]

    def evaluations():
        return [x for x in metrics(output) if "eval_loss" in x]

    setting.finished(output, *flags)
    expected = evaluations()
    best = [x["eval_best_step"] for x in expected]
    assert best[-1] > 4 and best == sorted(best)
    kept = contents(output / "best")
    for step in (6, 8):
        for path in output.glob(f"model.ckpt-{step}.*"):
            path.unlink()
    setting.finished(output, *flags)
    assert evaluations() == expected
    assert contents(output / "best") == kept
    # A part that does not evaluate changes nothing of what it was.
    setting.finished(output, *saves, "--num_train_steps=9")
    # The best of other records, or of fewer, is no measure of these.
    flags += ["--num_train_steps=10", "--check_only"]
    error = setting.refused(output, *flags, "--max_eval_steps=1")
    assert "best was chosen by other scores: max_eval_steps was " in error
    flags.append(f"--eval_file={setting.files[1]}")
    error = setting.refused(output, *flags)
    assert f"{output}/best was chosen by other scores: eval_file" in error
    (output / "best").rename(tmp_path / "best")
    setting.finished(output, *flags)


@pytest.mark.usefixtures("untraced")
def test_other_records_at_the_same_place_are_refused(trained, tmp_path):
    # The run and its records, elsewhere.
    setting = Setting.make(tmp_path)
    output = shutil.copytree(trained, tmp_path / "out")
    flags = output / "flags.txt"
    here = flags.read_text().replace(str(trained.parent), str(tmp_path))
    flags.write_text(here)
    before = contents(output)
    file = pathlib.Path(setting.files[-1])
    held = file.read_bytes()
    file.unlink()
    assert (
        f"The run in {output} was trained on other examples: they were 24 "
        "records, and are 19 now, not all the same. Bring the training data"
    ) in setting.refused(output, "--num_train_steps=3")
    assert contents(output) == before
    # With another batch size the data goes on where it was.
    file.write_bytes(held)
    run = setting.finished(
        *(output, "--num_train_steps=3", "--train_batch_size=4"),
        "--profile_steps=1:3",
    )
    assert run.stderr.count("train_batch_size was 8 and is 4") == 1
    assert tensors(output, 3)["data_position/records"] == 2 * 8 + 4
    assert [line["step"] for line in metrics(output)] == [1, 2, 3]
    assert (
        "--profile_steps=1:3 traces nothing: the run resumes from step 2."
    ) in run.stderr


def test_a_vocabulary_of_a_killed_start_is_not_taken(setting, tmp_path):
    # Or a user put it there: it is not removed.
    output = tmp_path / "out"
    output.mkdir()
    (output / "lock").touch()
    text = "".join(f"{token}\n" for token in ("[UNK]", *range(39)))
    (output / "vocab.txt").write_text(text)
    line = setting.refused(output)
    assert "There is a vocabulary in --output_dir" in line
    assert contents(output) == {"vocab.txt": text.encode(), "lock": b""}


@pytest.mark.usefixtures("untraced")
def test_vocabulary_of_the_start_is_kept_in_best(trained, tmp_path):
    # The run goes on without looking at what it started from again.
    start, data = tmp_path / "start", tmp_path / "data"
    for folder in (start, data):
        folder.mkdir()
    text = "".join(f"{piece}\n" for piece in ("[UNK]", *range(39)))
    (start / "vocab.txt").write_text(text)
    for path in trained.glob("model.ckpt-2.*"):
        shutil.copy(path, start)
    setting = Setting.make(data)
    pretraining_records.write_manifest(
        setting.files, vocab_sha256=hashlib.sha256(text.encode()).hexdigest()
    )
    output = tmp_path / "out"
    # Left by another start, which was killed before its first checkpoint.
    output.mkdir()
    (output / "lock").touch()
    left = output / "tokenizer_config.json"
    left.write_text('{"strip_accents": true}')
    flags = f"--init_checkpoint={start}/model.ckpt-2"
    setting.finished(output, flags)
    assert not left.exists()
    setting.finished(
        *(output, flags, "--num_train_steps=3", "--eval_steps=1"),
        "--max_eval_steps=1",
    )
    assert (output / "best" / "vocab.txt").read_text() == text


@pytest.mark.usefixtures("untraced")
def test_records_with_a_manifest_may_move(tmp_path):
    (tmp_path / "before").mkdir()
    setting, output = Setting.make(tmp_path / "before"), tmp_path / "out"
    pretraining_records.write_manifest(setting.files)
    flags = ["--eval_steps=1", "--max_eval_steps=1", "--num_train_steps=1"]
    setting.finished(output, *flags, f"--eval_file={setting.files[0]}")
    setting.folder.rename(tmp_path / "now")
    moved = Setting(tmp_path / "now", [])
    flags += [f"--eval_file={moved.folder}/records-0.tfrecord", "--check_only"]
    run = moved.finished(output, *flags)
    assert f"changed flag: input_file was {setting.folder}/" in run.stderr
    # Without a manifest they may be others of the same names and counts.
    (moved.folder / "manifest.json").unlink()
    assert "best was chosen by other scores: eval_file was " in moved.refused(
        output, *flags
    )


@pytest.mark.usefixtures("untraced")
def test_a_save_in_a_bucket_has_the_lines_until_then(
    setting, tmp_path, monkeypatch
):
    in_bucket = types.SimpleNamespace(is_remote=lambda path: True)
    monkeypatch.setattr(progress, "file_systems", in_bucket)
    monkeypatch.setattr(progress.Progress, "close", lambda report: None)
    setting.finished(tmp_path / "out", "--num_train_steps=3")
    assert [line["step"] for line in metrics(tmp_path / "out")] == [1, 2, 3]
