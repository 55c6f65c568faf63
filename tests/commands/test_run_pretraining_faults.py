"""What run_pretraining.py says of records, and with --check_only."""

import functools
import pathlib
import re
import resource
import shutil

from tests import pretraining_records, scripts, small_disks
from tests.pretraining_runs import Setting, contents, train_two_steps

import pytest


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("setting"))


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    return train_two_steps(setting)


class TestCheckOnly:
    def test_says_what_it_found_and_writes_nothing(
        self, setting, trained, tmp_path
    ):
        output = tmp_path / "out"
        run = setting.run(
            output, "--check_only", f"--init_checkpoint={trained}"
        )
        assert run.wait() == 0, run.stderr
        for text in (
            "Restored ",
            "1 replicas of 8 sequences at a time, float32",
            "Memory: about 0.0 GB per replica",
            "Found nothing that would stop this run",
        ):
            assert text in run.stderr
        assert not output.exists()

    def test_a_run_to_go_on_with(self, setting, trained):
        before = contents(trained)
        run = setting.run(trained, "--check_only", "--num_train_steps=4")
        assert run.wait() == 0, run.stderr
        assert f"Going on from step 2 in {trained}." in run.stderr
        assert "Would train from step 2 to 4." in run.stderr
        assert contents(trained) == before


def test_a_run_that_ended_needs_no_room(setting, trained, tmp_path):
    """It is evaluated on a disk without room for another checkpoint."""
    size = sum(-(-path.stat().st_size // 4096) for path in trained.iterdir())
    with small_disks.mounted(tmp_path / "disk", 4 * (size + 6)) as folder:
        shutil.copytree(trained, folder / "out")
        (folder / "out" / "eval_results.txt").unlink()
        run = setting.run(folder / "out", "--do_eval=true")
        assert run.wait() == 0, run.stderr
        assert (folder / "out" / "eval_results.txt").exists()
        run = setting.run(folder / "out", "--num_train_steps=4")
        assert run.wait() == 1
        assert "and the checkpoints of this run need" in run.stderr


def test_the_best_of_a_run_that_is_gone_is_removed_with_a_word(
    setting, trained, tmp_path
):
    output = tmp_path / "out"
    shutil.copytree(trained, output)
    shutil.copytree(trained, output / "best")
    for path in (*output.glob("model.ckpt-*"), output / "checkpoint"):
        path.unlink()
    run = setting.run(output)
    assert run.wait() == 0, run.stderr
    assert f"Removing {output}/best, the best weights of a run" in run.stderr
    assert not (output / "best").exists()


class TestRecords:
    def test_word_beyond_the_vocabulary(self, setting, tmp_path):
        # Without a manifest nobody knows before the records are read.
        config = pretraining_records.write_config(
            tmp_path / "small.json", vocab_size=20
        )
        run = setting.run(tmp_path / "out", f"--bert_config_file={config}")
        assert run.wait() == 1
        assert re.search(
            r"records-\d\.tfrecord holds a record with \w+_ids=\d+, and the "
            r"model has room for 0 to 19\. ",
            run.lines[-1],
        )
        assert not (tmp_path / "out").exists()

    def test_file_cut_off_after_its_manifest(self, tmp_path):
        setting = Setting.make(tmp_path)
        pretraining_records.write_manifest(setting.files)
        path = pathlib.Path(setting.files[1])
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 12 * 11])
        run = setting.run(tmp_path / "out", "--num_train_steps=4")
        assert run.wait() == 1
        assert run.lines[-1].startswith(
            f"error: {path} holds 11 records, its manifest says 12"
        )
        assert not (tmp_path / "out").exists()


def _limit_files(kilobytes):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, hard))


def test_a_failed_save_ends_the_run_at_the_next_line(tmp_path):
    # No other file of the run is as large as a checkpoint.
    setting = Setting.make(tmp_path, hidden_size=64, intermediate_size=256)
    output = tmp_path / "out"
    flags = ("--num_train_steps=400", "--save_checkpoints_steps=200")
    run = scripts.Run(
        tmp_path / "log",
        "run_pretraining",
        setting.flags(output, *flags),
        {},
        before=functools.partial(_limit_files, 256),
    )
    assert run.wait() == 1
    found = re.match(r"error: Step (\d+) could not be saved in", run.lines[-1])
    assert found, run.stderr
    # Not only where the next one is due.
    assert 200 < int(found[1]) < 400
    assert not list(output.glob("model.ckpt*"))


def test_curves_that_meet_a_quota_end_the_run_saved(setting, tmp_path):
    output = tmp_path / "out"
    run = scripts.Run(
        tmp_path / "log",
        "run_pretraining",
        setting.flags(output, "--num_train_steps=400"),
        {},
        before=functools.partial(_limit_files, 32),
    )
    assert run.wait() == 1
    assert re.match(
        f"error: Cannot write {output}: File too large", run.lines[-1]
    ), run.stderr
    saved = re.search(r"Saved step (\d+); ending", run.stderr)
    assert saved, run.stderr
    assert (output / f"model.ckpt-{saved[1]}.index").exists()
