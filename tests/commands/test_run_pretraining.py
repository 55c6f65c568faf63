"""What a run of run_pretraining.py leaves, starts from, and does not change."""

import contextlib
import json
import pathlib
import re
import shutil

from bert_tf.checkpoints import formats
from tests import scripts, small_disks
from tests.pretraining_runs import (
    Setting,
    assert_close,
    contents,
    metrics,
    results,
    tensors,
    trained,
)

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", name="setting")
def _setting():
    return trained()


@pytest.fixture(name="trained")
def _trained(setting):
    return setting.folder / "trained"


class TestRun:
    def test_results_are_the_originals(self, trained):
        found = results(trained)
        assert list(found) == [
            "global_step",
            "loss",
            "masked_lm_accuracy",
            "masked_lm_loss",
            "next_sentence_accuracy",
            "next_sentence_loss",
        ]
        assert found["global_step"] == 2
        # Two steps from chance, over 40 words and two answers.
        assert found["masked_lm_loss"] == pytest.approx(np.log(40), abs=0.3)
        assert found["next_sentence_loss"] == pytest.approx(np.log(2), abs=0.1)

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

    def test_its_flags_repeat_it_while_it_evaluates(self, trained, tmp_path):
        output = tmp_path / "out"
        scripts.run_checked(
            *(tmp_path / "log", "run_pretraining"),
            *(f"--flagfile={trained}/flags.txt", f"--output_dir={output}"),
            *("--eval_steps=1", "--remat"),
        )
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
        assert results(output)["loss"] == pytest.approx(last["eval_loss"])
        # Neither evaluating nor computing again changes what is learnt.
        found, expected = (tensors(x, 2) for x in (output, trained))
        for name, value in expected.items():
            np.testing.assert_allclose(
                found[name], value, rtol=1e-5, atol=1e-6, err_msg=name
            )

    @pytest.mark.usefixtures("untraced")
    def test_from_a_checkpoint_of_another_format(
        self, setting, trained, tmp_path
    ):
        source = formats.open_checkpoint(str(trained))
        path, output = tmp_path / "converted", tmp_path / "out"
        assert not formats.write(str(path), "hf", source).left_out
        flags = [x for x in setting.flags(output) if "config_file" not in x]
        flags += [f"--init_checkpoint={path}", "--eval_batch_size=5"]
        scripts.run_checked(
            *(tmp_path / "log", "run_pretraining", *flags),
            *("--do_train=false", "--do_eval"),
        )
        expected = results(trained) | {"global_step": 0}
        assert results(output) == pytest.approx(expected, rel=1e-6)

    @pytest.mark.usefixtures("untraced")
    def test_from_any_folder(self, setting, tmp_path):
        with contextlib.chdir(tmp_path):
            scripts.run_checked(
                tmp_path / "log",
                *("run_pretraining", *setting.flags("out")),
            )
        # Lines of its own only, which fit the screen.
        for line in (tmp_path / "log" / "stderr").read_text().splitlines():
            assert re.match(r"\d\d:\d\d:\d\d | ", line)
            assert len(line) <= 120
        assert (tmp_path / "out" / "model.ckpt-2.index").exists()


@pytest.mark.usefixtures("untraced")
class TestCheckOnly:
    def test_says_what_it_found_and_writes_nothing(
        self, setting, trained, tmp_path
    ):
        output = tmp_path / "out"
        run = setting.finished(
            output, "--check_only", f"--init_checkpoint={trained}"
        )
        for text in (
            f"Restored 30 variables of {trained}",
            " replica, 8 sequences at a time per replica, float32",
            " MB per replica, and the framework's own.",
            "Found nothing that would stop this run",
        ):
            assert text in run.stderr
        assert not output.exists()

    def test_a_run_to_go_on_with(self, setting, trained, tmp_path):
        output = shutil.copytree(trained, tmp_path / "out")
        before = contents(output)
        run = setting.finished(output, "--check_only", "--num_train_steps=4")
        assert f"Resuming from step 2 in {output}." in run.stderr
        assert "Would train from step 2 to 4." in run.stderr
        assert contents(output) == before

    @pytest.mark.parametrize(("batch_size", "first"), [(4, ["8"]), (6, [])])
    def test_says_what_an_evaluation_reads(
        self, setting, trained, tmp_path, batch_size, first
    ):
        run = setting.finished(
            *(tmp_path / "out", "--check_only", "--do_train=false"),
            *("--do_eval", f"--eval_file={setting.folder}/records-1.tfrecord"),
            *(f"--init_checkpoint={trained}", "--max_eval_steps=2"),
            f"--eval_batch_size={batch_size}",
        )
        assert " 12 records in 1 file, 1 replica." in run.stderr
        said = r"An evaluation reads the first (\d+) of 12 records\."
        assert re.findall(said, run.stderr) == first

    def test_no_trial_of_memory_on_cpus(self, setting, tmp_path):
        error = setting.refused(tmp_path / "out", "--auto_batch_size")
        assert "--auto_batch_size tries what fits into the memory of" in error
        assert "give --gradient_accumulation_steps" in error
        assert not (tmp_path / "out").exists()


def test_a_run_that_ended_needs_no_room(setting, trained, tmp_path):
    """It is evaluated on a disk without room for another checkpoint."""
    size = sum(-(-path.stat().st_size // 4096) for path in trained.iterdir())
    with small_disks.mounted(tmp_path / "disk", 4 * (size + 6)) as folder:
        output = shutil.copytree(trained, folder / "out")
        (output / "eval_results.txt").unlink()
        setting.finished(output, "--do_eval=true", log=tmp_path)
        assert results(output) == results(trained)
        error = setting.refused(output, "--num_train_steps=4", log=tmp_path)
        assert "and the checkpoints of this run need" in error


def test_a_failed_save_ends_the_run_at_the_next_line(tmp_path):
    # No other file of the run is as large as a checkpoint.
    setting = Setting.make(tmp_path, hidden_size=64, intermediate_size=256)
    with small_disks.limited(tmp_path / "limited", 256) as folder:
        error = setting.refused(
            *(folder / "out", "--num_train_steps=400"),
            "--save_checkpoints_steps=200",
        )
    found = re.match(r"error: Step (\d+) could not be saved in", error)
    assert found, error
    # Not only where the next one is due.
    assert 200 < int(found[1]) < 400
    assert not list(folder.glob("out/model.ckpt*"))


def test_curves_that_meet_a_quota_end_the_run_saved(setting, tmp_path):
    with small_disks.limited(tmp_path / "limited", 32) as folder:
        output = folder / "out"
        run = setting.run(output, "--num_train_steps=400")
    assert run.wait() == 1
    assert run.lines[-1].startswith(
        f"error: Cannot write {output}: File too large"
    ), run.stderr
    saved = re.search(r"Saved step (\d+); ending", run.stderr)
    assert saved, run.stderr
    assert (output / f"model.ckpt-{saved[1]}.index").exists()


@pytest.mark.usefixtures("untraced")
def test_bfloat16(tmp_path):
    # Without dropout, whose masks differ where numbers do.
    setting = Setting.make(
        tmp_path, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    expected, output = tmp_path / "expected", tmp_path / "out"
    # The rate of the first step is 0: the third loss shows the updates.
    steps = "--num_train_steps=3"
    setting.finished(expected, steps)
    setting.finished(output, steps, "--dtype=bfloat16")
    assert_close(output, expected, 0.01)
    assert metrics(output) != metrics(expected)
    for name, value in tensors(output, 3).items():
        wanted = np.int64 if value.ndim == 0 else np.float32
        assert value.dtype == wanted, name
