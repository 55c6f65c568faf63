"""Training with two workers, and failures of one worker."""

import contextlib
import json
import pathlib
import re
import shutil
import signal
import socket

from tests import (
    combinations,
    pretraining_records,
    processes,
    reference,
    scripts,
)
from tests.pretraining_runs import (
    Setting,
    assert_close,
    free_ports,
    results,
    tensors,
    trained,
)

import pytest

pytestmark = pytest.mark.slow
STEPS = 300

# What a worker says that finds out later than the other.
_LEFT = "error: Another worker of the cluster does not answer any more"


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("setting"))


def start(setting, output, log, *more, second=()):
    """Starts both workers of a run; `output` may contain {index}.

    The second worker gets the additional flags `second`.
    """
    workers = [f"localhost:{port}" for port in free_ports(2)]
    return [
        setting.start(
            pathlib.Path(str(output).format(index=index)),
            *(f"--num_train_steps={STEPS}", "--save_checkpoints_steps=20"),
            "--distribution_strategy=multi_worker_mirrored",
            *("--log_steps=10", *more, *(second if index else ())),
            log=f"{log}-{index}",
            TF_CONFIG=_task(workers, index),
        )
        for index in range(2)
    ]


def _task(workers, index):
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": {"worker": workers}, "task": task})


def finished(*arguments):
    """Runs both workers to the end; the run must succeed."""
    runs = start(*arguments)
    for run in runs:
        assert run.wait() == 0, run.stderr[-3000:]
    return runs


def wait_for(path, runs):
    for run in runs:
        processes.wait_for(path.exists, run, 600)


@pytest.fixture(scope="module", name="expected")
def _expected(setting):
    output = setting.folder / "whole"
    finished(setting, output, "whole")
    return tensors(output, STEPS)


@pytest.mark.exhaustive
def test_losses_are_those_of_one_process(tmp_path):
    setting = Setting.make(
        tmp_path, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    one, two = tmp_path / "one", tmp_path / "two"
    flags = ("--num_train_steps=4", "--log_steps=1", "--do_eval")
    setting.finished(one, *flags)
    run, _ = finished(setting, two, "two", *flags)
    assert "2 replicas" in run.stderr
    assert_close(two, one, 1e-6)
    # Only one worker writes.
    assert len(list(two.glob("events*"))) == 1
    assert results(two) == pytest.approx(results(one), rel=1e-5)


def _assert_a_death_ends_the_other(runs, which):
    runs[which].kill(signal.SIGKILL)
    other = runs[1 - which]
    assert other.wait(90) == 1
    assert other.lines[-1].startswith("error: Another worker ")
    assert other.lines[-1].endswith(f"/task:{which}")
    assert "Traceback" not in other.stderr


@pytest.mark.parametrize("which", combinations.some([1], range(2)))
def test_sigterm_to_one_stops_both_and_the_death_of_one_ends_both(
    setting, tmp_path, which
):
    output = tmp_path / "out"
    runs = start(setting, output, f"term{which}")
    wait_for(output / "model.ckpt-20.index", runs)
    runs[which].kill(signal.SIGTERM)
    assert [run.wait(60) for run in runs] == [143, 143]
    steps = {
        re.findall(r"SIGTERM: saved step (\d+)", run.stderr)[0] for run in runs
    }
    assert len(steps) == 1
    (step,) = steps
    assert (output / f"model.ckpt-{step}.index").exists()
    # Both resume together.
    runs = start(setting, output, f"kill{which}")
    saved = int(step) // 20 * 20 + 20
    wait_for(output / f"model.ckpt-{saved}.index", runs)
    _assert_a_death_ends_the_other(runs, 1 - which)
    assert f"Resuming from step {step} in" in runs[0].stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("which", range(2))
def test_after_a_death_it_goes_on_as_without(
    setting, expected, tmp_path, which
):
    runs = start(setting, tmp_path / "out", f"kill{which}")
    wait_for(tmp_path / "out" / "model.ckpt-20.index", runs)
    _assert_a_death_ends_the_other(runs, which)
    run, _ = finished(setting, tmp_path / "out", f"kill{which}-again")
    assert re.search(r"Resuming from step \d+ in", run.stderr)
    reference.assert_same(tensors(tmp_path / "out", STEPS), expected)


def _cluster(script, folder, code, index, workers, *arguments):
    path = folder / f"{script}.py"
    path.write_text(code)
    return scripts.start(
        *(folder / f"{script}-{index}", str(path.with_suffix("")), *arguments),
        TF_CONFIG=_task(workers, index),
    )


# As in a terminal; background jobs of a shell ignore some signals.
_WAITS = """
import signal
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
from absl import logging
logging.use_absl_handler()
logging.set_verbosity(logging.INFO)
from bert_tf.training import distribution
distribution.set_up("multi_worker_mirrored")
"""


@pytest.mark.parametrize(
    "number",
    combinations.some([signal.SIGINT], [signal.SIGINT, signal.SIGHUP]),
)
def test_one_that_waits_says_so_and_can_be_stopped(number, tmp_path):
    here, there = (f"localhost:{port}" for port in free_ports(2))
    run = _cluster("waits", tmp_path, _WAITS, 0, [here, there])

    def listens():
        with contextlib.suppress(OSError):
            host, port = here.split(":")
            socket.create_connection((host, int(port))).close()
            return True
        return False

    # It has logged the line, and TensorFlow's own code is waiting.
    processes.wait_for(listens, run, 600)
    assert f"Waiting for the other workers: {there}\n" in run.stderr
    run.kill(number)
    assert run.wait(60) == -number


# The worker that ends first waits for the other, which waits for a file that is
# written just before the first would leave. One with an error waits for nobody.
_LEAVES = """
import contextlib, pathlib, sys, time
from bert_tf.training import distribution

folder, own, *ways = pathlib.Path(sys.argv[1]), *sys.argv[2:]
strategy = distribution.set_up("multi_worker_mirrored")
agree = distribution.agreement(strategy)

def leave(how, late):
    with distribution.left_together(strategy):
        agree(True)
        if how == "error" and own != late:
            raise ValueError
        if own == late:
            while not (folder / f"{how}_ready").exists():
                time.sleep(0.01)
            (folder / f"{how}_done").touch()
        (folder / f"{how}_ready").touch()
        if how == "stop":
            raise distribution.StoppedTogetherError(0)

for way in ways:
    how, late = way.split(":")
    with contextlib.suppress(distribution.StoppedTogetherError):
        leave(how, late)
    assert (folder / f"{how}_done").exists(), "left too early"
"""


# How the workers leave, and which of them is late.
@pytest.mark.parametrize(
    "ways",
    combinations.some(
        ["stop:0 end:1"],
        ["stop:0 end:1", "stop:1 end:0"],
    ),
)
def test_leaves_when_all_do(ways, tmp_path):
    for run in _leaving(tmp_path, *ways.split()):
        assert run.wait(120) == 0, run.stderr[-3000:]


def _leaving(folder, *ways):
    workers = [f"localhost:{port}" for port in free_ports(2)]
    return [
        _cluster(
            *("leaves", folder, _LEAVES, i, workers),
            *(str(folder), str(i), *ways),
        )
        for i in range(2)
    ]


@pytest.mark.parametrize("late", combinations.some([0], [0, 1]))
def test_leaves_at_once_on_an_error(late, tmp_path):
    runs = _leaving(tmp_path, f"error:{late}")
    assert runs[1 - late].wait(120) == 1
    assert "ValueError" in runs[1 - late].stderr
    # The other has not come to its end.
    assert not (tmp_path / "error_done").exists()
    runs[late].kill()
    runs[late].wait()


@pytest.mark.exhaustive
@pytest.mark.parametrize("times", [1, 2])
def test_early_stop(setting, tmp_path, times):
    # With a learning rate of 0 no evaluation is better than the first.
    output, ends = tmp_path / "out", []
    for time in range(times):
        # The state that a run killed before its end leaves.
        for path in output.glob("model.ckpt-8.*"):
            path.unlink()
        for run in finished(
            *(setting, output, f"early{times}-{time}"),
            *("--learning_rate=0", "--eval_steps=2", "--max_eval_steps=2"),
            *("--early_stop_evaluations=3", "--save_checkpoints_steps=3"),
        ):
            assert "No lower loss since step 2: ending at step 8." in run.stderr
        ends.append(tensors(output, 8))
    reference.assert_same(ends[-1], ends[0])


def test_workers_that_differ(setting, tmp_path):
    """Each would train a different model, and only one would be saved."""
    other = tmp_path / "other"
    other.mkdir()
    pretraining_records.write(other, counts=(7, 12, 6))
    start_of = trained().folder / "trained"
    teacher = shutil.copytree(start_of, tmp_path / "teacher")
    vocab = teacher / "vocab.txt"
    vocab.write_text("".join(f"{token}\n" for token in ("[UNK]", *range(39))))
    second = (
        *("--learning_rate=1e-5", "--num_warmup_steps=2"),
        *(f"--input_file={other}/*.tfrecord", "--temperature=3"),
        f"--init_checkpoint={start_of}",
    )
    flags = ("differ", f"--vocab_file={vocab}", f"--teacher={teacher}")
    runs = start(setting, tmp_path / "out", *flags, second=second)
    assert [run.wait(120) for run in runs] == [1, 1]
    said = [run.lines[-1] for run in runs]
    names = ("learning_rate", "num_warmup_steps", "training data")
    more = ("evaluation data", "the weights to start from", "the teacher")
    for name in (*names, *more):
        differ = [re.search(rf"differ in [^.]*{name}", line) for line in said]
        assert any(differ), said
        assert all(
            found or line.startswith(_LEFT)
            for found, line in zip(differ, said, strict=True)
        )
    assert not any("Traceback" in run.stderr for run in runs)
    assert not list((tmp_path / "out").glob("model.ckpt-*"))


def test_a_worker_alone_with_a_teacher(setting, tmp_path):
    """Its variables would be compared with others of the other worker."""
    second = (f"--teacher={trained().folder}/trained",)
    runs = start(setting, tmp_path / "out", "taught", second=second)
    assert [run.wait(120) for run in runs] == [1, 1]
    # The worker that checks later may find that the other has left.
    said = [run.lines[-1] for run in runs]
    differ = "error: The workers of this run differ in teacher."
    assert any(line.startswith(differ) for line in said), said
    assert all(line.startswith((differ, _LEFT)) for line in said), said


def test_a_worker_that_ends_before_the_first_step(setting, tmp_path):
    second = ("--vocab_file=/nowhere/vocab.txt",)
    runs = start(setting, tmp_path / "out", "early", second=second)
    assert [run.wait(120) for run in runs] == [1, 1]
    assert "/nowhere/vocab.txt" in runs[1].lines[-1]
    assert runs[0].lines[-1].startswith("error: Another worker of the cluster")
    assert "Traceback" not in runs[0].stderr


@pytest.mark.exhaustive
def test_folders_that_are_not_shared(setting, tmp_path):
    output = tmp_path / "{index}"
    runs = start(setting, output, "own")
    wait_for(tmp_path / "0" / "model.ckpt-20.index", runs)
    for run in runs:
        run.kill(signal.SIGKILL)
    again = start(setting, output, "own-again")
    assert [run.wait(120) for run in again] == [1, 1]
    # The worker that checks later may find that the other has left.
    different = "error: The workers found different "
    for run in again:
        assert run.lines[-1].startswith((different, _LEFT))
        assert "Traceback" not in run.stderr
    said = [x for x in (run.lines[-1] for run in again) if different in x]
    assert said
    assert all(", the furthest at " in x for x in said)
