"""Tests of run_pretraining.py, through its main in processes of their own."""

import json
import pathlib
import re
import subprocess
import sys

from bert_tf.checkpoints import formats
from tests import scripts
from tests.pretraining_runs import (
    Setting,
    assert_close,
    assert_same_checkpoint,
    metrics,
    tensors,
    train_two_steps,
)

import numpy as np
import pytest
import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("setting"))


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    return train_two_steps(setting)


class TestRun:
    def test_results_are_the_originals(self, trained):
        lines = (trained / "eval_results.txt").read_text().splitlines()
        results = dict(line.split(" = ") for line in lines)
        assert list(results) == [
            "global_step",
            "loss",
            "masked_lm_accuracy",
            "masked_lm_loss",
            "next_sentence_accuracy",
            "next_sentence_loss",
        ]
        assert results["global_step"] == "2"
        # Two steps from chance, over 40 words and two answers.
        assert float(results["masked_lm_loss"]) == pytest.approx(
            np.log(40), abs=0.3
        )
        assert float(results["next_sentence_loss"]) == pytest.approx(
            np.log(2), abs=0.1
        )

    def test_metrics(self, trained):
        lines = (trained / "metrics.jsonl").read_text().splitlines()
        lines = [json.loads(line) for line in lines]
        assert [line["step"] for line in lines] == [1, 2]
        for line in lines:
            assert line["loss"] == pytest.approx(
                line["masked_lm_loss"] + line["next_sentence_loss"]
            )
            assert 0 <= line["masked_lm_accuracy"] <= 1
            assert 0 <= line["next_sentence_accuracy"] <= 1
            assert line["gradient_norm"] > 0
            # Rows are half full at least, of 16 tokens.
            tokens = line["tokens_per_second"] / line["sequences_per_second"]
            assert 8 <= tokens <= 16
        rates = [line["learning_rate"] for line in lines]
        assert rates == pytest.approx([0, 0.5e-3])

    @pytest.mark.slow
    def test_compiled(self, tmp_path):
        no_dropout = dict.fromkeys(
            ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0
        )
        setting = Setting.make(tmp_path, **no_dropout)
        plain, compiled = tmp_path / "plain", tmp_path / "compiled"
        more = ["--use_xla", "--remat", "--gradient_accumulation_steps=2"]
        for output, flags in ((plain, []), (compiled, more)):
            run = setting.run(output, "--num_train_steps=3", *flags)
            assert run.wait() == 0, run.stderr
        assert_close(compiled, plain, 1e-5)

    @pytest.mark.slow
    def test_evaluation_while_training(self, setting, trained, tmp_path):
        output = tmp_path / "out"
        flags = ["--do_eval", "--eval_steps=1", "--remat"]
        run = setting.run(output, *flags)
        assert run.wait() == 0, run.stderr
        lines = metrics(output)
        assert [line["step"] for line in lines] == [1, 1, 2, 2]
        (_, first, _, last) = lines
        assert first["eval_masked_lm_loss"] > 0
        # The loss falls: the second evaluation is the best.
        assert last["eval_loss"] < first["eval_loss"]
        assert [x["eval_best_step"] for x in (first, last)] == [1, 2]
        kept = json.loads((output / "best" / "results.json").read_text())
        assert kept["global_step"] == 2
        assert kept["loss"] == last["eval_loss"]
        source = formats.open_checkpoint(str(output / "best"))
        assert source.config is not None
        found, expected = source.read(list(source.shapes)), tensors(output, 2)
        for name in source.shapes:
            np.testing.assert_array_equal(found[name], expected[name], name)
        text = (output / "eval_results.txt").read_text()
        results = dict(line.split(" = ") for line in text.splitlines())
        assert float(results["loss"]) == pytest.approx(last["eval_loss"])
        # Neither evaluating nor computing again changes what is learnt.
        found, expected = (tensors(x, 2) for x in (output, trained))
        for name, value in expected.items():
            np.testing.assert_allclose(
                found[name], value, rtol=1e-5, atol=1e-6, err_msg=name
            )

    def test_no_trial_of_memory_on_cpus(self, setting, tmp_path):
        run = setting.run(tmp_path / "out", "--auto_batch_size")
        assert run.wait() == 1
        lines = run.stderr.splitlines()
        (line,) = [x for x in lines if x.startswith("error: ")]
        assert "--auto_batch_size tries what fits into the memory of" in line
        assert "give --gradient_accumulation_steps" in line
        assert not (tmp_path / "out").exists()

    def test_files(self, trained):
        events = [p.name for p in trained.glob("events.out.tfevents.*")]
        assert len(events) == 1
        assert {path.name for path in trained.iterdir()} - {*events} == {
            "bert_config.json",
            "checkpoint",
            "eval_results.txt",
            "flags.txt",
            "metrics.jsonl",
            "model.ckpt-2.data-00000-of-00001",
            "model.ckpt-2.index",
            "train_examples.json",
        }

    def test_tensorboard_gets_the_metrics(self, trained):
        (path,) = trained.glob("events.out.tfevents.*")
        found: dict[int, dict[str, float]] = {}
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                found.setdefault(event.step, {})[value.tag] = number
        for line in metrics(trained):
            for name, value in line.items() - {("step", line["step"])}:
                assert found[line["step"]][name] == pytest.approx(value)

    @pytest.mark.slow
    def test_its_flags_repeat_it(self, setting, trained, tmp_path):
        flagfile = f"--flagfile={trained}/flags.txt"
        run = scripts.run(
            tmp_path / "log",
            "run_pretraining",
            flagfile,
            f"--output_dir={tmp_path}/out",
        )
        assert run.wait() == 0, run.stderr
        output = tmp_path / "out"
        assert_same_checkpoint(output, trained, 2)
        assert metrics(output) == metrics(trained)
        found, expected = (
            (x / "eval_results.txt").read_text() for x in (output, trained)
        )
        assert found == expected

    def test_evaluation_alone(self, setting, trained, tmp_path):
        output = tmp_path / "out"
        run = setting.run(
            output,
            "--do_train=false",
            "--do_eval",
            f"--init_checkpoint={trained}",
            "--eval_batch_size=5",
        )
        assert run.wait() == 0, run.stderr
        found, expected = (
            dict(
                line.split(" = ")
                for line in (x / "eval_results.txt").read_text().splitlines()
            )
            for x in (output, trained)
        )
        assert (found.pop("global_step"), expected.pop("global_step")) == (
            "0",
            "2",
        )
        for name, value in expected.items():
            assert float(found[name]) == pytest.approx(float(value), rel=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("output_format", formats.FORMATS)
    def test_from_a_checkpoint_of_any_format(
        self, setting, trained, tmp_path, output_format
    ):
        source = formats.open_checkpoint(str(trained))
        path = tmp_path / "converted"
        written = formats.write(str(path), output_format, source)
        run = setting.run(
            tmp_path / "out",
            f"--init_checkpoint={path}",
            "--num_train_steps=2",
            without="--bert_config_file",
        )
        assert run.wait() == 0, run.stderr
        assert f"Restored {len(written.weights)} variables of {path}" in (
            run.stderr
        )
        for name in written.left_out:
            assert name in run.stderr  # as starting from random values
        # The steps of the run that it was trained by, over again.
        first = tensors(trained, 2)["bert/pooler/dense/kernel"]
        after = tensors(tmp_path / "out", 2)["bert/pooler/dense/kernel"]
        # One of two steps has a rate above 0, of at most 0.5e-3 an element.
        assert 0 < np.abs(after - first).max() < 6e-3

    @pytest.mark.slow
    def test_from_any_folder(self, setting, tmp_path):
        # A process of its own from the start, as a user's.
        command = [sys.executable, f"{ROOT}/run_pretraining.py"]
        done = subprocess.run(
            [*command, *setting.flags("out", "--do_eval")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert re.search(
            r"step 2/2  0:00 left  loss \d\.\d+  masked_lm \d.*% right\).*\n"
            r" +learning_rate 5.00e-04  .* sequences/s  .* tokens/s",
            done.stderr,
        )
        # Lines of its own only, which fit the screen.
        for line in done.stderr.splitlines():
            assert re.match(r"\d\d:\d\d:\d\d | ", line)
            assert len(line) <= 120
        assert (tmp_path / "out" / "model.ckpt-2.index").exists()
