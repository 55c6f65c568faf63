"""The progress of a run: metrics.jsonl, TensorBoard, the log."""

import fractions
import json
import logging
import sys
from unittest import mock

from bert_tf.storage import run_lock
from bert_tf.training import progress

import numpy as np
import pytest
import tensorflow as tf

_BLOCK = {
    "loss": 7.25,
    "masked_lm_accuracy": 0.125,
    "learning_rate": 1e-4,
    "gradient_norm": 3.5,
    "sequences": 320.0,
    "tokens": 30_000.0,
    "pairs": 3e6,
    "masked_lm_weight": 4000.0,
    "steps": 10,
    "seconds": 4.0,
    "input_seconds": 0.5,
}
# Values per second, without those that were only needed to compute them.
_REPORTED = {
    "loss": 7.25,
    "masked_lm_accuracy": 0.125,
    "learning_rate": 1e-4,
    "gradient_norm": 3.5,
    "sequences_per_second": 80.0,
    "tokens_per_second": 7500.0,
}


@pytest.fixture
def screen(caplog):
    with caplog.at_level(logging.INFO, logger="absl"):
        yield caplog


def _lines(folder):
    text = (folder / "metrics.jsonl").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def _events(folder):
    """Returns (step, tag) -> value, and the plugins, of all event files."""
    scalars, plugins = {}, set()
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                assert (event.step, value.tag) not in scalars
                scalars[event.step, value.tag] = float(
                    tf.make_ndarray(value.tensor)
                )
                plugins.add(value.metadata.plugin_data.plugin_name)
    return scalars, plugins


@pytest.fixture
def report(tmp_path):
    return progress.Progress(str(tmp_path), 0, 100)


class TestProgress:
    def test_metrics_file(self, tmp_path, report):
        block = dict(_BLOCK)
        report(10, block)
        assert block == _BLOCK
        report(20, _BLOCK | {"loss": 6.5, "seconds": 8.0})
        speeds = {"sequences_per_second": 40, "tokens_per_second": 3750}
        assert _lines(tmp_path) == [
            {"step": 10} | _REPORTED,
            {"step": 20} | _REPORTED | {"loss": 6.5} | speeds,
        ]

    def test_tensorboard_has_the_same(self, tmp_path, report):
        report(10, _BLOCK)
        report(20, _BLOCK | {"loss": 6.1})
        scalars, plugins = _events(tmp_path)
        assert plugins == {"scalars"}
        expected = {
            (line["step"], name): np.float32(value)
            for line in _lines(tmp_path)
            for name, value in line.items()
            if name != "step"
        }
        assert scalars == expected
        assert len(scalars) == 2 * len(_REPORTED)

    def test_screen(self, tmp_path, screen):
        report = progress.Progress(str(tmp_path), 1000, 1250)
        # XLA compiled these steps: nothing of their speed is known.
        timed = ("seconds", "input_seconds", "sequences", "tokens", "steps")
        report(1010, {k: x for k, x in _BLOCK.items() if k not in timed})
        assert screen.messages[0] == (
            "step 1,010/1,250 (80%)  loss 7.2500  masked_lm_accuracy 0.1250"
            "  learning_rate 1.00e-04  gradient_norm 3.50"
        )
        report(1020, _BLOCK | {"seconds": 40.0, "tokens": 1e7})
        # 230 steps of 4 seconds each.
        assert screen.messages[1] == (
            "step 1,020/1,250 (81%)  15:20 left  loss 7.2500  "
            "masked_lm_accuracy 0.1250  learning_rate 1.00e-04\n"
            "    gradient_norm 3.50  8.0 sequences/s  250,000 tokens/s"
        )

    def test_epochs(self, tmp_path, screen):
        # 40 examples in batches of 32, 20 times.
        epoch = fractions.Fraction(40, 32)
        report = progress.Progress(str(tmp_path), 0, 25, epoch_steps=epoch)
        for step in (1, 2, 5, 6, 25):
            report(step, _BLOCK)
        assert [x.split("  ")[:2] for x in screen.messages] == [
            ["step 1/25 (4%)", "epoch 1/20"],
            ["step 2/25 (8%)", "epoch 2/20"],
            ["step 5/25 (20%)", "epoch 4/20"],
            ["step 6/25 (24%)", "epoch 5/20"],
            ["step 25/25 (100%)", "epoch 20/20"],
        ]

    def test_narrow_terminals(self, report, screen, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "dumb")  # No bar, whatever ran before.
        report(10, _BLOCK)
        first, *rest = screen.messages[0].split("\n")
        # The log puts the time before the first line.
        assert len(first) <= 80 - len("12:34:56 ")
        assert rest and max(map(len, rest)) <= 80

    def test_one_loss_is_shown_once(self, tmp_path, report, screen):
        report(10, _BLOCK | {"masked_lm_loss": 7.25})
        assert "loss 7.2500  accuracy 0.1250" in screen.messages[0]
        assert "masked_lm" not in screen.messages[0]
        assert _lines(tmp_path)[0]["masked_lm_loss"] == 7.25
        report(20, _BLOCK | {"masked_lm_loss": 7.0, "next_loss": 0.25})
        assert (
            "loss 7.2500  masked_lm 7.0000 (accuracy 0.1250)  next 0.2500"
            in screen.messages[1]
        )

    def test_shares_are_shown_beside_their_loss(self, report, screen):
        of_tokens = {"loss": 0.4, "accuracy": 0.85, "precision": 0.5}
        of_tokens["recall"] = 0.0125
        report(
            10,
            _BLOCK
            | {"masked_lm_loss": 7.0, "sampled_masked_lm_accuracy": 0.01}
            | {f"disc_{name}": x for name, x in of_tokens.items()},
        )
        assert (
            "disc 0.4000 (accuracy 0.8500, precision 0.5000, recall 0.0125)  "
            "sampled_masked_lm_accuracy 0.0100"
        ) in " ".join(screen.messages[0].split("\n    "))

    def test_what_the_meter_says(self, tmp_path, screen):
        seen = []
        meters = {"flops_utilization": 0.414, "input_share": 0.06}
        meters["peak_memory"] = 1.5 * 2**30

        def meter(scalars):
            seen.append(dict(scalars))
            return meters

        report = progress.Progress(str(tmp_path), 0, 100, meter=meter)
        report(10, _BLOCK)
        assert seen == [_BLOCK]
        assert screen.messages[0].endswith(
            "7,500 tokens/s  waiting for data 6%  memory 1.5 GiB  "
            "41% of peak FLOP/s"
        )
        (line,) = _lines(tmp_path)
        assert line == {"step": 10} | _REPORTED | meters

    def test_evaluation(self, tmp_path, report, screen):
        report(10, _BLOCK)
        results = {"loss": 6.0, "masked_lm_accuracy": 0.25}
        report.evaluation(10, results, best_step=10)
        report.evaluation(20, results, best_step=10)
        assert _lines(tmp_path)[1] == {
            "step": 10,
            "eval_loss": 6.0,
            "eval_masked_lm_accuracy": 0.25,
            "eval_best_step": 10,
        }
        assert screen.messages[1] == (
            "step 10/100  eval_loss 6.0000  eval_masked_lm_accuracy 0.2500"
            "  the best"
        )
        assert screen.messages[2].startswith("step 20/100  eval_loss 6.0000")
        assert screen.messages[2].endswith("  best 10")
        assert _events(tmp_path)[0][10, "eval_loss"] == 6

    def test_last_step_leaves_nothing(self, tmp_path, report, screen):
        report = progress.Progress(str(tmp_path), 80, 100)
        report(90, _BLOCK)
        report(100, _BLOCK)
        assert screen.messages[1].startswith("step 100/100 (100%)  0:00 ")


def test_the_best_that_counted_at_a_step(tmp_path):
    report = progress.Progress(str(tmp_path), 0, 9)
    folder = str(tmp_path)
    # Without the run's lines, the best is unknown.
    assert progress.best_until(folder, 4, "loss") is None
    # No evaluation is left once lines of repeated steps are removed.
    (tmp_path / "metrics.jsonl").write_text('{"step": 2, "loss": 3.0}\n')
    assert progress.best_until(folder, 2, "loss") == (0, 0.0)
    for step, loss, best in (
        (3, 0.5, 0),
        (5, 0.7, 5),
        (6, 0.8, 5),
        (8, 0.2, 8),
    ):
        report.evaluation(step, {"loss": loss, "eval_f1": 0.1 * step}, best)
    found = [progress.best_until(folder, x, "loss") for x in range(2, 10)]
    none, fifth, eighth = (0, 0.0), (5, 0.7), (8, 0.2)
    # Step 3 does not count yet, as while weights are being pruned.
    assert found == [none] * 3 + [fifth] * 3 + [eighth] * 2
    assert progress.best_until(folder, 9, "eval_f1") == (8, 0.1 * 8)
    assert progress.best_until(folder, 9, "accuracy") is None


@pytest.mark.parametrize("ends_early", [False, True])
def test_profile_traces_the_steps_between(tmp_path, screen, ends_early):
    profile = progress.Profile(str(tmp_path), (2, 4))
    for step in (2,) if ends_early else (2, 4):
        profile(step)
        tf.reduce_sum(tf.ones([3, 3])).numpy()
    for _ in range(2):
        profile.close()
    (trace,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert trace.stat().st_size > 0
    (message,) = screen.messages
    end = "where the run ended; see: " if ends_early else "4"
    assert message.startswith(f"Traced steps 3 to {end}")


def test_profile_of_a_run_that_went_on_after_its_start(tmp_path):
    profile = progress.Profile(str(tmp_path), (2, 4))
    profile(4)
    assert not list(tmp_path.iterdir())


def test_profile_that_would_never_end():
    message = "by the last step of the run, 3. Received: profile_steps=2:4"
    with pytest.raises(ValueError, match=message):
        progress.check_profile((2, 4), stop=3)


class TestResume:
    @pytest.fixture
    def folder(self, tmp_path, report):
        """Returns the folder of a run that reported steps 10 to 40."""
        for step in (10, 20, 30, 40):
            report(step, _BLOCK)
        return tmp_path

    def _steps(self, folder):
        return [line["step"] for line in _lines(folder)]

    @pytest.mark.parametrize(
        "half", ["", '{"step"', "{", '{"step": 5, "loss": 7}']
    )
    def test_goes_on_without_half_a_line(self, folder, half):
        with open(folder / "metrics.jsonl", "a") as file:
            file.write(half)
        progress.Progress(str(folder), 40, 100)(50, _BLOCK)
        assert self._steps(folder) == [10, 20, 30, 40, 50]

    @pytest.mark.parametrize("start", [20, 25])
    def test_later_steps_are_made_again(self, folder, start):
        report = progress.Progress(str(folder), start, 100)
        assert self._steps(folder) == [10, 20]
        report(30, _BLOCK | {"loss": 1.0})
        assert [line["loss"] for line in _lines(folder)] == [7.25, 7.25, 1.0]
        # No temporary file is left.
        names = {path.name.partition(".")[0] for path in folder.iterdir()}
        assert names == {"metrics", "events"}
        assert not list(folder.glob("*.tmp*"))

    def test_from_the_beginning(self, folder):
        progress.Progress(str(folder), 0, 100)
        assert self._steps(folder) == []

    def test_line_that_is_none_of_ours_is_named(self, folder):
        with open(folder / "metrics.jsonl", "a") as file:
            file.write("step 50: 7.2\n")
        with pytest.raises(ValueError, match=r"metrics\.jsonl, line 5.*7\.2"):
            progress.Progress(str(folder), 40, 100)


def test_nothing_is_written_into_the_folder_of_the_next_run(
    tmp_path, monkeypatch
):
    folder, moved = tmp_path / "run", tmp_path / "moved"
    with run_lock.hold(folder):
        report = progress.Progress(str(folder), 0, 20)
        report(10, dict(_BLOCK))
        folder.rename(moved)
        folder.mkdir()
        # As if the folder was checked before it was moved.
        monkeypatch.setattr(run_lock, "check_held", lambda: None)
        report(20, dict(_BLOCK))
    assert not list(folder.iterdir())
    assert [line["step"] for line in _lines(moved)] == [10, 20]
    assert {step for step, _ in _events(moved)[0]} == {10, 20}


class TestWriteResults:
    def test_sorted_as_the_original(self, tmp_path, screen):
        path = tmp_path / "eval_results.txt"
        path.write_text("older = 1\n")
        progress.write_results(
            str(path), {"loss": 0.5, "eval_accuracy": 1 / 3, "global_step": 7}
        )
        lines = [
            "eval_accuracy = 0.3333333333333333",
            "global_step = 7",
            "loss = 0.5",
        ]
        assert path.read_text().splitlines() == lines
        assert [path.name for path in tmp_path.iterdir()] == [path.name]
        assert screen.messages == [
            f"Results, written to {path}:",
            "  eval_accuracy  0.3333",
            "  global_step    7",
            "  loss           0.5000",
        ]

    def test_a_step_is_no_share(self, tmp_path, screen):
        path = str(tmp_path / "eval_results.txt")
        progress.write_results(path, {"accuracy": 1.0, "global_step": 1})
        assert screen.messages[1:] == [
            "  accuracy     1.0000",
            "  global_step  1",
        ]


def test_a_bucket_gets_many_lines_at_once(tmp_path, monkeypatch):
    """Each write sends all of the file again."""
    written = []
    flush, now = progress.Progress.flush, [100.0]

    def counted(report):
        before = (tmp_path / "metrics.jsonl").exists() and _lines(tmp_path)
        flush(report)
        written.append(len(_lines(tmp_path)) - len(before or []))

    monkeypatch.setattr(progress.Progress, "flush", counted)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    # A bucket for our files, and a folder for those of TensorFlow.
    report = progress.Progress(f"file://{tmp_path}", 0, 9)
    for step in range(1, 5):
        report(step, _BLOCK)
    assert written == [1]
    assert {step for step, _ in _events(tmp_path)[0]} == {1}
    report.flush()  # as a save does
    now[0] += 60
    report(5, _BLOCK)
    report(6, _BLOCK)
    report.evaluation(6, {"loss": 6.0}, best_step=6)
    report(7, _BLOCK)
    report.close()
    report.close()
    assert written == [1, 3, 1, 2, 1, 0]
    steps = [1, 2, 3, 4, 5, 6, 6, 7]
    assert [line["step"] for line in _lines(tmp_path)] == steps
    assert {step for step, _ in _events(tmp_path)[0]} == set(steps)


def test_lines_that_a_bucket_did_not_take_are_written_later(
    tmp_path, monkeypatch, caplog
):
    report = progress.Progress(f"file://{tmp_path}", 0, 9)
    report(1, _BLOCK)
    report(2, _BLOCK)
    with monkeypatch.context() as away:
        error = tf.errors.AbortedError(None, None, "All 10 attempts failed")
        away.setattr(tf.io.gfile.GFile, "write", mock.Mock(side_effect=error))
        with pytest.raises(tf.errors.AbortedError, match="All 10 attempts"):
            report.flush()
        # The end of a run that has another error is that error.
        report.close()
        assert "All 10 attempts" in caplog.text
    report.flush()
    assert [line["step"] for line in _lines(tmp_path)] == [1, 2]
