"""The outer loop of bert_tf/training/loop.py: blocks, hooks and signals."""

import dataclasses
import functools
import os
import pty
import signal
import threading
import time
from typing import Any

from bert_tf.training import loop, training_run
from tests import processes, scripts

import numpy as np
import pytest

_AT_A_TERMINAL = """
import pathlib, sys, time
from tests.training import test_run
from bert_tf.training import training_run

def train(first, count):
    time.sleep(0.1)
    return test_run._block(count)

def save(step, _):
    print("saving", flush=True)
    print("saving", flush=True, file=sys.stderr)
    pathlib.Path(sys.argv[1]).write_text("whole")

def tell(step, _):
    print("line", flush=True)

training_run.run(train, 0, 1000, 1, (1000, save), report=(1, tell))
"""
_OBJECTIVE = loop.Objective(lambda batch: {}, lambda *_: {})


def _block(count, loss=1.0, weight=1.0, **last):
    """Returns a block whose steps have one loss each, with this weight."""
    sums = {"words": {"loss": loss * weight * count, "right": 1.0}}
    weights = {"words": weight * count}
    return loop.Block(_OBJECTIVE, sums, weights, {"tokens": count}, last)


def _growing(first, count):
    """Returns a block whose losses and weights grow from step to step."""
    steps = range(first, first + count)
    total = sum(step * (1 + step) for step in steps)
    weight = sum(1 + step for step in steps)
    return loop.Block(
        _OBJECTIVE,
        {"words": {"loss": total, "right": count}},
        {"words": weight},
        {"tokens": 10 * count, "skipped_steps": 2 * count},
        {"learning_rate": steps[-1]},
    )


class Recorder:
    """Replaces training; records its blocks and the hooks' calls."""

    def __init__(self, loss=lambda step: 1.0):
        self.loss = loss
        self.blocks = []
        self.calls = []

    def train(self, first, count):
        self.blocks.append((first, count))
        return _block(count, self.loss(first))

    def train_and_be_stopped(self, first, count):
        os.kill(os.getpid(), signal.SIGTERM)
        return self.train(first, count)

    def hook(self, name):
        return lambda step, *_: self.calls.append((name, step))

    def steps(self, name):
        return [step for called, step in self.calls if called == name]

    def run(
        self, start, stop, every, save, *noted, hooks=(), train=None, **more
    ):
        """Runs with hooks that are recorded, and with others."""
        return training_run.run(
            *(train or self.train, start, stop, every),
            (save, self.hook("save")),
            hooks=[*((x, self.hook(f"hook{x}")) for x in noted), *hooks],
            **more,
        )


def _killing(at, number=signal.SIGTERM, result=None):
    """Returns a hook that sends this process a signal at a step."""

    def kill(step):
        if step == at:
            os.kill(os.getpid(), number)
        return result

    return kill


def _fail(step):
    raise ValueError(f"no evaluation at step {step}")


@pytest.fixture(autouse=True)
def _at_a_terminal():
    """Undoes signals ignored in background jobs or under nohup."""
    handlers: dict[signal.Signals, Any] = {
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGINT: signal.default_int_handler,
    }
    before = {x: signal.signal(x, how) for x, how in handlers.items()}
    yield
    for number, how in before.items():
        signal.signal(number, how)


class TestRun:
    def test_blocks_end_where_something_is_due(self):
        recorder = Recorder()
        recorder.run(0, 12, 5, 4, 6)
        ends = [first + count for first, count in recorder.blocks]
        assert ends == [4, 5, 6, 8, 10, 12]
        assert recorder.blocks[2] == (5, 1)
        assert recorder.calls == [
            *(("save", 4), ("hook6", 6), ("save", 8)),
            *(("hook6", 12), ("save", 12)),
        ]

    def test_compiling_takes_a_block_of_one_step(self):
        recorder = Recorder()
        recorder.run(4, 12, 5, 4, 6, compiles=True)
        assert recorder.blocks == [(4, 1), (5, 1), (6, 2), (8, 2), (10, 2)]

    def test_all_are_due_at_the_end(self):
        recorder = Recorder()
        assert recorder.run(0, 7, 100, 100, 5) == 7
        assert recorder.blocks == [(0, 5), (5, 2)]
        assert recorder.calls == [("hook5", 5), ("hook5", 7), ("save", 7)]

    def test_going_on_makes_the_same_blocks(self):
        whole, part = Recorder(), Recorder()
        whole.run(0, 20, 6, 4, 5)
        part.run(8, 20, 6, 4, 5)
        assert part.blocks == [b for b in whole.blocks if b[0] >= 8]
        assert part.calls == [c for c in whole.calls if c[1] > 8]

    def test_hooks_of_chosen_steps(self):
        recorder = Recorder()
        recorder.run(0, 12, 100, 100, (3, 5), 10)
        assert recorder.blocks == [(0, 3), (3, 2), (5, 5), (10, 2)]
        assert recorder.calls == [
            *(("hook(3, 5)", 3), ("hook(3, 5)", 5)),
            *(("hook10", 10), ("hook10", 12), ("save", 12)),
        ]

    @pytest.mark.parametrize(("save", "saved"), [(4, [4, 6]), (6, [6])])
    def test_a_hook_ends_the_run(self, save, saved):
        recorder = Recorder()
        ends = (3, lambda step: step >= 5)
        assert recorder.run(0, 12, 100, save, 2, hooks=[ends]) == 6
        # The other hooks that are due are called as well.
        assert recorder.steps("hook2") == [2, 4, 6]
        assert recorder.steps("save") == saved

    def test_nothing_left_to_do(self):
        recorder = Recorder()
        recorder.run(7, 7, 5, 5, 1)
        assert (recorder.blocks, recorder.calls) == ([], [])

    def test_a_line_is_of_all_steps_since_the_last(self):
        seen: list[tuple[int, loop.Scalars]] = []
        kept: dict[int, loop.Block | None] = {}

        def run(start, since=None):
            training_run.run(
                *(_growing, start, 9, 2, (5, kept.__setitem__)),
                report=(6, lambda *told: seen.append(told)),
                hooks=[(3, lambda _: None)],
                since=since,
            )

        run(0)
        for (step, scalars), steps in zip(
            seen, (range(6), range(6, 9)), strict=True
        ):
            assert step == steps[-1] + 1
            weights = [1 + x for x in steps]
            mean = np.average(steps, weights=weights)
            assert scalars["loss"] == pytest.approx(mean)
            assert scalars["words_loss"] == pytest.approx(mean)
            right = len(steps) / sum(weights)
            assert scalars["words_right"] == pytest.approx(right)
            assert scalars["tokens"] == 10 * len(steps)
            assert scalars["skipped_steps"] == 2 * len(steps)
            assert scalars["steps"] == len(steps)
            assert scalars["learning_rate"] == steps[-1]
            assert 0 <= scalars["seconds"] < 1

        # A run resumed from a save between lines reports the same losses, and
        # the speed of its own steps.
        expected, since = seen[0][1], kept[5]
        assert since
        seen.clear()
        run(5, loop.Block.of_kept(_OBJECTIVE, since.kept()))
        (step, scalars), _ = seen
        assert step == 6
        assert scalars["tokens"] == 10
        assert scalars["steps"] == 1
        for name in ("loss", "words_loss", "words_right", "skipped_steps"):
            assert scalars[name] == expected[name]
        # After the last save nothing is left to report.
        assert kept[9] is None

    @pytest.mark.parametrize("compiles", [False, True])
    def test_building_the_graph_does_not_count(self, compiles):
        """Each step takes 3 seconds, and the first call 1,000 more."""
        seen: list[tuple[int, loop.Scalars]] = []

        def train(first, count):
            block = _growing(first, count)
            seconds = 3 * count + 1000 * (first == 0 and compiles)
            counts = {**block.counts, "step_seconds": seconds}
            return dataclasses.replace(block, counts=counts)

        training_run.run(
            *(train, 0, 5, 4, (5, lambda *_: None)),
            report=(4, lambda *told: seen.append(told)),
            compiles=compiles,
        )
        (step, scalars), (_, last) = seen
        assert step == 4
        assert scalars["skipped_steps"] == 2 * 4
        if compiles:
            assert (scalars["steps"], scalars["tokens"]) == (3, 30)
            assert scalars["seconds"] < 1000
        else:
            assert (scalars["steps"], scalars["tokens"]) == (4, 40)
            assert scalars["seconds"] == 3 * 4
        assert (last["steps"], last["tokens"]) == (1, 10)

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_not_finite(self, value):
        recorder = Recorder(lambda step: value if step == 6 else 0)
        message = "Not a finite number in steps 7 to 9: loss, words_loss. Not"
        with pytest.raises(FloatingPointError, match=message):
            recorder.run(0, 20, 3, 3, 1000)
        assert recorder.calls == [("save", 3), ("save", 6)]

    @pytest.mark.parametrize(
        ("number", "code"),
        [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
    )
    def test_a_signal_saves_and_exits(self, number, code):
        recorder = Recorder()
        before = signal.getsignal(number)
        with pytest.raises(SystemExit) as error:
            recorder.run(0, 20, 2, 10, hooks=[(2, _killing(6, number))])
        assert error.value.code == code
        assert recorder.blocks[-1] == (4, 2)
        assert recorder.calls == [("save", 6)]
        assert signal.getsignal(number) is before

    @pytest.mark.slow
    def test_a_closed_terminal_saves_and_exits(self, tmp_path):
        saved = tmp_path / "saved"
        (tmp_path / "terminal.py").write_text(_AT_A_TERMINAL)
        terminal, theirs = pty.openpty()
        run = scripts.Run(
            *(tmp_path, str(tmp_path / "terminal"), [str(saved)], {}),
            before=functools.partial(scripts.take_terminal, os.ttyname(theirs)),
        )
        text = b""
        while b"line" not in text:
            text += os.read(terminal, 1 << 10)
        os.close(terminal)
        os.close(theirs)
        assert run.wait(60) == 128 + signal.SIGHUP
        # Its writes to the terminal meanwhile were no error.
        assert saved.read_text() == "whole"

    def test_an_evaluation_comes_after_the_save(self):
        recorder = Recorder()
        evaluate = (4, recorder.hook("evaluate"))
        recorder.run(0, 10, 100, 4, 2, evaluate=evaluate)
        assert recorder.calls == [
            (name, step)
            for step in range(2, 12, 2)
            for name in ("hook2", "save", "evaluate")
            if name == "hook2" or step in (4, 8, 10)
        ]

    @pytest.mark.parametrize("save", [2, 3])
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_breaks_off_an_evaluation(self, number, save):
        recorder = Recorder()

        def evaluate(step):
            try:
                if step == 4:
                    os.kill(os.getpid(), number)
                    time.sleep(60)
            except Exception:  # a hook that ignores its errors
                pytest.fail("it goes on")
            recorder.calls.append(("evaluate", step))

        before = signal.getsignal(number)
        with pytest.raises(SystemExit) as error:
            recorder.run(0, 20, 2, save, evaluate=(2, evaluate))
        assert error.value.code == 128 + number
        saved = recorder.steps("save")
        assert saved[-1] == 4  # although only the evaluation was due
        assert saved.count(4) == 1
        assert recorder.steps("evaluate") == [2]
        assert signal.getsignal(number) is before

    def test_where_others_wait_no_evaluation_is_broken_off(self):
        recorder = Recorder()

        def evaluate(step):
            os.kill(os.getpid(), signal.SIGTERM)
            recorder.calls.append(("evaluate", step))

        with pytest.raises(SystemExit):
            recorder.run(0, 20, 2, 9, evaluate=(2, evaluate), breaks_off=False)
        assert recorder.calls == [("evaluate", 2), ("save", 2)]

    def test_no_evaluation_begins_after_a_signal(self):
        recorder = Recorder()
        evaluate = (2, recorder.hook("evaluate"))
        train = recorder.train_and_be_stopped
        with pytest.raises(SystemExit):
            recorder.run(0, 20, 2, 2, train=train, evaluate=evaluate)
        assert recorder.calls == [("save", 2)]

    @pytest.mark.parametrize("save", [2, 10])
    @pytest.mark.parametrize(
        "more", [{"evaluate": (4, _fail)}, {"hooks": [(4, _fail)]}], ids=list
    )
    def test_what_breaks_is_saved_once_first(self, more, save):
        recorder = Recorder()
        with pytest.raises(ValueError, match="no evaluation at step 4"):
            recorder.run(0, 20, 2, save, **more)
        assert recorder.steps("save") == ([2, 4] if save == 2 else [4])

    def test_what_is_written_beside_is_waited_for_before_the_end(self):
        recorder = Recorder()

        def agree(yes):
            recorder.calls.append("agree")
            return yes

        with pytest.raises(SystemExit):
            recorder.run(
                *(0, 20, 2, 2),
                hooks=[(2, _killing(4))],
                agree=agree,
                finish=lambda: recorder.calls.append("finish"),
            )
        assert recorder.calls == [
            *(("save", 2), "agree", ("save", 4), "agree", "finish", "agree")
        ]

    def test_what_is_ignored_stays_ignored(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        hooks = [(2, _killing(2, signal.SIGINT))]
        assert Recorder().run(0, 4, 2, 4, hooks=hooks) == 4
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    def test_a_second_ctrl_c_ends_at_once(self):
        recorder = Recorder()

        def interrupt(*_):
            first = signal.getsignal(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            # Two pending signals count as one.
            processes.wait_for(lambda: signal.getsignal(signal.SIGINT) != first)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

        with pytest.raises(KeyboardInterrupt):
            recorder.run(0, 20, 2, 10, train=interrupt)
        assert not recorder.calls
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_sigterm_in_a_block_waits_for_its_end(self):
        recorder = Recorder()
        with pytest.raises(SystemExit):
            recorder.run(0, 20, 5, 5, train=recorder.train_and_be_stopped)
        assert recorder.blocks == [(0, 5)]
        assert recorder.calls == [("save", 5)]  # once, although also due

    @pytest.mark.parametrize("stop", [4, 20])
    def test_what_follows_is_not_begun_either(self, stop):
        """After the last step, and after one that ends the run."""
        recorder = Recorder()
        hooks = [(4, _killing(4, result=stop > 4))]
        with pytest.raises(SystemExit) as error:
            recorder.run(0, stop, 4, 9, hooks=hooks)
        assert error.value.code == 143
        assert recorder.calls == [("save", 4)]

    def test_outside_the_main_thread(self):
        recorder = Recorder()
        thread = threading.Thread(target=recorder.run, args=(0, 4, 2, 2))
        thread.start()
        thread.join()
        assert recorder.calls == [("save", 2), ("save", 4)]
