"""Runs of run_pretraining.py that are interrupted, and go on."""

import functools
import hashlib
import json
import pathlib
import re
import signal
import time
from unittest import mock

from bert_tf.checkpoints import tf1_files
from bert_tf.records import tfrecord
from bert_tf.records import types as record_types
from bert_tf.training import evaluation
from tests import pretraining_records, scripts
from tests.pretraining_runs import (
    Setting,
    assert_same_checkpoint,
    contents,
    metrics,
    tensors,
    train_two_steps,
    wait_for,
)

import numpy as np
import pytest
import tensorflow as tf


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("setting"))


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    return train_two_steps(setting)


# Files of checkpoints that are held back, and a file that says so.
_HELD = ("out/model.ckpt-20.data-00000-of-00001", "out/model.ckpt-30.index")


def _hold(name, said):
    """Makes the process that saves stay before a file gets its name."""
    rename = tf.io.gfile.rename

    def held(source, target, overwrite=False):
        if target.endswith(name):
            pathlib.Path(said).touch()
            time.sleep(600)
        rename(source, target, overwrite=overwrite)

    tf.io.gfile.rename = held


def _dawdle(said):
    """Makes the process that evaluates take its time, and say so."""

    def slow(*_):
        pathlib.Path(said).touch()
        time.sleep(600)

    evaluation._sum = slow


LONG = (
    "--num_train_steps=400",
    "--save_checkpoints_steps=20",
    "--keep_checkpoint_max=2",
)


@pytest.fixture(scope="module", name="uninterrupted")
def _uninterrupted(setting):
    output = setting.folder / "uninterrupted"
    run = setting.run(output, *LONG)
    assert run.wait() == 0, run.stderr
    return output


@pytest.mark.slow
class TestInterrupted:
    def test_kill_9_changes_nothing(self, setting, uninterrupted, tmp_path):
        output = tmp_path / "out"
        for step in (20, 160):
            run = setting.start(output, *LONG)
            wait_for((output / f"model.ckpt-{step}.index").exists, run)
            run.kill(signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
            assert not (output / "model.ckpt-400.index").exists()
        run = setting.run(output, *LONG)
        assert run.wait() == 0, run.stderr
        start = re.search(r"Going on from step (\d+)", run.stderr)
        assert start
        assert int(start[1]) >= 160
        assert_same_checkpoint(output, uninterrupted, 400)
        assert metrics(output) == metrics(uninterrupted)
        assert {path.name for path in output.glob("model.ckpt*")} == {
            path.name for path in uninterrupted.glob("model.ckpt*")
        }

    def test_kill_9_while_a_checkpoint_is_written(self, setting, tmp_path):
        flags = (
            *("--num_train_steps=60", "--save_checkpoints_steps=10"),
            *("--eval_steps=15", "--max_eval_steps=2"),
            "--keep_checkpoint_max=6",
        )
        whole, output = tmp_path / "whole", tmp_path / "out"
        run = setting.run(whole, *flags, "--save_in_background=false")
        assert run.wait() == 0, run.stderr
        for name, last in zip(_HELD, (10, 20), strict=True):
            said = tmp_path / f"held-behind-{last}"
            run = scripts.Run(
                tmp_path / f"log-{last}",
                "run_pretraining",
                setting.flags(output, *flags),
                {},
                before=functools.partial(_hold, name, str(said)),
            )
            wait_for(said.exists, run)
            # Steps go on, up to the evaluation or save that waits for it.
            end = last + 14
            wait_for(lambda end=end: metrics(output)[-1]["step"] >= end, run)
            run.kill(signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
            found = tf1_files.numbered(str(output))
            assert max(found) == last
            # What was there is whole.
            assert_same_checkpoint(output, whole, last)
        run = setting.run(output, *flags)
        assert run.wait() == 0, run.stderr
        assert "Going on from step 20" in run.stderr
        assert metrics(output) == metrics(whole)
        kept = re.compile(r"checkpoint$|model\.ckpt-|results\.json$")
        for folder in (".", "best"):
            expected, found = (
                contents(whole / folder),
                contents(output / folder),
            )
            for name in filter(kept.match, expected.keys() | found.keys()):
                assert found.get(name) == expected.get(name), name

    def test_kill_9_of_replicas_that_evaluate(self, setting, tmp_path):
        flags = (
            *("--num_train_steps=60", "--save_checkpoints_steps=4"),
            *("--eval_steps=3", "--max_eval_steps=2"),
            *("--distribution_strategy=mirrored", "--logical_cpus=2"),
            "--gradient_accumulation_steps=2",
        )
        whole, output = tmp_path / "whole", tmp_path / "out"
        run = setting.run(whole, *flags)
        assert run.wait() == 0, run.stderr
        for number in range(2):
            run = setting.start(output, *flags, log=f"log{number}")
            if not number:  # Written before the state is saved, most likely.
                wait_for((output / "best" / "results.json").exists, run)
            else:
                wait_for((output / "model.ckpt-20.index").exists, run)
            run.kill(signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
            assert not (output / "model.ckpt-60.index").exists()
        run = setting.run(output, *flags)
        assert run.wait() == 0, run.stderr
        assert "Going on from step" in run.stderr
        assert_same_checkpoint(output, whole, 60)
        assert metrics(output) == metrics(whole)
        assert sum("eval_loss" in line for line in metrics(output)) == 20
        kept = [x / "best" / "results.json" for x in (output, whole)]
        assert kept[0].read_text() == kept[1].read_text()

    def test_sigterm_saves(self, setting, uninterrupted, tmp_path):
        output = tmp_path / "out"
        run = setting.start(output, *LONG)
        wait_for((output / "metrics.jsonl").exists, run)
        run.kill(signal.SIGTERM)
        assert run.wait() == 143
        saved = re.search(r"SIGTERM: saved step (\d+); ending", run.stderr)
        assert saved
        assert metrics(output)[-1]["step"] == int(saved[1])
        assert (output / f"model.ckpt-{saved[1]}.index").exists()
        run = setting.run(output, *LONG)
        assert run.wait() == 0, run.stderr
        assert f"Going on from step {saved[1]} in" in run.stderr
        assert_same_checkpoint(output, uninterrupted, 400)
        assert metrics(output) == metrics(uninterrupted)

    def test_sigterm_while_it_evaluates(self, setting, tmp_path):
        flags = (
            *("--num_train_steps=8", "--save_checkpoints_steps=3"),
            *("--eval_steps=2", "--max_eval_steps=2"),
        )
        whole, output = tmp_path / "whole", tmp_path / "out"
        run = setting.run(whole, *flags)
        assert run.wait() == 0, run.stderr
        said = tmp_path / "said"
        run = scripts.Run(
            tmp_path / "log",
            "run_pretraining",
            setting.flags(output, *flags),
            {},
            before=functools.partial(_dawdle, str(said)),
        )
        wait_for(said.exists, run)
        run.kill(signal.SIGTERM)
        assert run.wait() == 143
        assert "SIGTERM: saved step 2; ending." in run.stderr
        assert "Traceback" not in run.stderr
        assert not (output / "best" / "results.json").exists()
        run = setting.run(output, *flags)
        assert run.wait() == 0, run.stderr
        assert "Step 2 has not been evaluated yet." in run.stderr
        assert_same_checkpoint(output, whole, 8)
        assert metrics(output) == metrics(whole)

    def test_lines_are_of_all_steps_since_the_last(self, setting, tmp_path):
        """Whatever else ends blocks of steps between them."""
        found = []
        for number, flags in enumerate(
            [(), ("--save_checkpoints_steps=3", "--iterations_per_loop=2")]
        ):
            output = tmp_path / str(number)
            run = setting.run(
                *(output, "--num_train_steps=9", "--log_steps=4", *flags)
            )
            assert run.wait() == 0, run.stderr
            found.append(metrics(output))
        for line, expected in zip(*found, strict=True):
            assert line == pytest.approx(expected, rel=1e-6)
        assert [line["step"] for line in found[0]] == [4, 8, 9]

    def test_early_stop(self, setting, tmp_path):
        # With a rate of 0 no evaluation is better than the first.
        output = tmp_path / "out"
        flags = [
            "--num_train_steps=50",
            "--learning_rate=0",
            "--eval_steps=2",
            "--early_stop_evaluations=3",
            "--save_checkpoints_steps=3",
        ]

        def end():
            run = setting.run(output, *flags)
            assert run.wait() == 0, run.stderr
            assert "No lower loss since step 2: ending at step 8." in run.stderr
            lines = metrics(output)
            best = [x["eval_best_step"] for x in lines if "eval_loss" in x]
            assert [x["step"] for x in lines if "loss" in x] == [*range(1, 9)]
            assert best == [2, 2, 2, 2]
            return tensors(output, 8)

        expected = end()
        # What a run that was killed before its end finds.
        for path in output.glob("model.ckpt-8.*"):
            path.unlink()
        found = end()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)
        # One that is over stays over, but goes on for more evaluations.
        end()
        flags[3] = "--early_stop_evaluations=4"
        run = setting.run(output, *flags)
        assert "No lower loss since step 2: ending at step 10." in run.stderr
        # Evaluations count, not steps: there are seven at step 13.
        flags[2:4] = ["--eval_steps=1", "--early_stop_evaluations=7"]
        run = setting.run(output, *flags)
        assert "No lower loss since step 2: ending at step 13." in run.stderr

    def test_best_of_steps_that_are_made_again(self, setting, tmp_path):
        """As where a kill lost steps that were evaluated already."""
        output = tmp_path / "out"
        flags = ["--num_train_steps=8", "--save_checkpoints_steps=2"]
        flags += ["--eval_steps=1", f"--eval_file={setting.files[0]}"]

        def train(*more):
            run = setting.run(output, *flags, *more)
            return run.wait(), run.stderr

        def evaluations():
            return [x for x in metrics(output) if "eval_loss" in x]

        assert train() == (0, mock.ANY)
        expected = evaluations()
        best = [x["eval_best_step"] for x in expected]
        assert best[-1] > 4 and best == sorted(best)
        kept = contents(output / "best")
        for step in (6, 8):
            for path in output.glob(f"model.ckpt-{step}.*"):
                path.unlink()
        assert train() == (0, mock.ANY)
        assert evaluations() == expected
        assert contents(output / "best") == kept
        # A part that does not evaluate changes nothing of what it was.
        run = setting.run(
            output, "--num_train_steps=9", "--save_checkpoints_steps=2"
        )
        assert run.wait() == 0, run.stderr
        code, error = train("--max_eval_steps=1", "--num_train_steps=10")
        assert code == 1
        assert "best was chosen on other data: max_eval_steps was " in error
        # The best of other records is no measure of these.
        other = f"--eval_file={setting.files[1]}"
        code, error = train(other, "--num_train_steps=10")
        assert code == 1
        assert f"{output}/best was chosen on other data: eval_file" in error
        (output / "best").rename(tmp_path / "best")
        assert train(other, "--num_train_steps=10") == (0, mock.ANY)

    def test_longer_run(self, setting, trained, tmp_path):
        # More steps, another batch size: the data goes on where it was.
        output = tmp_path / "out"
        output.mkdir()
        for name, content in contents(trained).items():
            (output / name).write_bytes(content)
        run = setting.run(output, "--num_train_steps=3", "--train_batch_size=4")
        assert run.wait() == 0, run.stderr
        assert run.stderr.count("train_batch_size was 8 and is 4") == 1
        stored = tensors(output, 3)
        assert stored["data_position/records"] == 2 * 8 + 4
        assert [line["step"] for line in metrics(output)] == [1, 2, 3]

    def test_other_records_at_the_same_place_are_refused(self, tmp_path):
        setting, output = Setting.make(tmp_path), tmp_path / "out"
        run = setting.run(output)
        assert run.wait() == 0, run.stderr
        before = contents(output)
        file = pathlib.Path(setting.files[-1])
        held = file.read_bytes()
        file.unlink()
        run = setting.run(output, "--num_train_steps=4")
        assert run.wait() == 1
        assert (
            f"The run in {output} was trained on other examples: they were 24 "
            "records, and are 19 now, not all the same. Bring the training data"
        ) in run.stderr
        assert contents(output) == before
        file.write_bytes(held)
        run = setting.run(
            *(output, "--num_train_steps=4", "--profile_steps=1:3")
        )
        assert run.wait() == 0, run.stderr
        assert (
            "--profile_steps=1:3 traces nothing: the run goes on from step 2."
        ) in run.stderr

    def test_vocabulary_of_the_start_is_kept_in_best(self, trained, tmp_path):
        # The run goes on without looking at what it started from again.
        start, data = tmp_path / "start", tmp_path / "data"
        for folder in (start, data):
            folder.mkdir()
        text = "".join(f"{piece}\n" for piece in ("[UNK]", *range(39)))
        (start / "vocab.txt").write_text(text)
        for path in trained.glob("model.ckpt-2.*"):
            (start / path.name).write_bytes(path.read_bytes())
        setting = Setting.make(data)
        pretraining_records.write_manifest(
            setting.files,
            vocab_sha256=hashlib.sha256(text.encode()).hexdigest(),
        )
        output = tmp_path / "out"
        flags = f"--init_checkpoint={start}/model.ckpt-2"
        run = setting.run(output, flags)
        assert run.wait() == 0, run.stderr
        run = setting.run(
            output, flags, "--num_train_steps=4", "--eval_steps=1"
        )
        assert run.wait() == 0, run.stderr
        assert (output / "best" / "vocab.txt").read_text() == text


# ---- Where the original stopped ---------------------------------------------


def _write_records(folder, pieces):
    """Writes records whose pieces a model of so few has."""
    rng = np.random.default_rng(0)
    with tfrecord.Writer(folder / "small.tfrecord") as writer:
        for _ in range(24):
            values = pretraining_records.values(rng)
            for name in ("input_ids", "masked_lm_ids"):
                values[name] = values[name] % pieces
            writer.write(record_types.PRETRAINING.encode(values))


@pytest.mark.slow
def test_goes_on_where_the_original_stopped(shared_data, tmp_path):
    released = shared_data / "tf1_checkpoint"
    config = json.loads((released / "bert_config.json").read_text())
    _write_records(tmp_path, config["vocab_size"])
    outputs = tmp_path / "original", tmp_path / "ours"
    prefix = str(released / "bert_model.ckpt")
    stored = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
    # Step 20, behind 160 records in batches of 8.
    place = {tf1_files.RECORDS: np.int64(160), tf1_files.SEED: 12345}
    for output, more in zip(outputs, ({}, place), strict=True):
        output.mkdir()
        tf1_files.write(str(output / "model.ckpt-20"), stored | more)
        run = scripts.run(
            tmp_path / f"log-{output.name}",
            "run_pretraining",
            *("--do_train=true", f"--input_file={tmp_path}/*.tfrecord"),
            f"--bert_config_file={released}/bert_config.json",
            *(f"--output_dir={output}", "--max_seq_length=16"),
            *("--max_predictions_per_seq=4", "--train_batch_size=8"),
            *("--num_train_steps=22", "--num_warmup_steps=1", "--log_steps=1"),
        )
        assert run.wait() == 0, run.stderr
        said = "going on behind 160 records (20 steps of 8)" in run.stderr
        assert said == (not more)
        assert "Going on from step 20" in run.stderr
        assert [x["step"] for x in metrics(output)] == [21, 22]
    assert_same_checkpoint(*outputs, 22)
