"""Two workers that train together, and what happens to one of them."""

import json
import os
import re
import signal
import subprocess
import sys
import time

from tests import pretraining_records, scripts
from tests.pretraining_runs import free_ports, tensors

import numpy as np
import pytest

pytestmark = pytest.mark.slow
STEPS = 300


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    pretraining_records.write(folder)
    pretraining_records.write_config(folder / "config.json")
    return folder


def start(data, output, log, *more, second=()):
    """Starts both workers of a run; `output` may hold {index}.

    The second gets flags of its own besides.
    """
    workers = [f"localhost:{port}" for port in free_ports(2)]
    flags = [
        f"--input_file={data}/*.tfrecord",
        f"--bert_config_file={data}/config.json",
        "--do_train=true",
        "--train_batch_size=8",
        "--max_seq_length=16",
        "--max_predictions_per_seq=4",
        f"--num_train_steps={STEPS}",
        "--num_warmup_steps=1",
        "--save_checkpoints_steps=20",
        "--log_steps=10",
        "--distribution_strategy=multi_worker_mirrored",
        *more,
    ]
    return [
        scripts.start(
            data / "logs" / f"{log}-{index}",
            "run_pretraining",
            *flags,
            *(second if index else ()),
            f"--output_dir={output}".format(index=index),
            TF_CONFIG=json.dumps(
                {
                    "cluster": {"worker": workers},
                    "task": {"type": "worker", "index": index},
                }
            ),
        )
        for index in range(2)
    ]


def wait_for(path, runs):
    end = time.monotonic() + 300
    while not path.exists():
        assert all(run.running for run in runs), runs[0].stderr[-3000:]
        assert time.monotonic() < end, runs[0].stderr[-3000:]
        time.sleep(0.01)


@pytest.fixture(scope="module", name="expected")
def _expected(data):
    """The weights of a run that nothing interrupted."""
    output = data / "whole"
    for run in start(data, output, "whole"):
        assert run.wait() == 0, run.stderr[-3000:]
    return tensors(output, STEPS)


def assert_goes_on(data, output, expected, log):
    runs = start(data, output, log)
    for run in runs:
        assert run.wait() == 0, run.stderr[-3000:]
    assert re.search(r"Going on from step \d+ in", runs[0].stderr)
    found = tensors(output, STEPS)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


@pytest.mark.parametrize("which", [0, 1], ids=["chief", "other"])
def test_sigterm_to_one_stops_both(data, expected, tmp_path, which):
    runs = start(data, tmp_path / "out", f"term{which}")
    wait_for(tmp_path / "out" / "model.ckpt-20.index", runs)
    runs[which].kill(signal.SIGTERM)
    assert [run.wait(60) for run in runs] == [143, 143]
    steps = {
        re.findall(r"SIGTERM: saved step (\d+)", run.stderr)[0] for run in runs
    }
    assert len(steps) == 1
    (step,) = steps
    assert (tmp_path / "out" / f"model.ckpt-{step}.index").exists()
    assert_goes_on(data, tmp_path / "out", expected, f"term{which}-again")


@pytest.mark.parametrize("which", [0, 1], ids=["chief", "other"])
def test_a_dead_worker_ends_the_other(data, expected, tmp_path, which):
    runs = start(data, tmp_path / "out", f"kill{which}")
    wait_for(tmp_path / "out" / "model.ckpt-20.index", runs)
    runs[which].kill(signal.SIGKILL)
    began = time.monotonic()
    other = runs[1 - which]
    assert other.wait(90) == 1
    assert time.monotonic() - began < 60
    assert other.lines[-1].startswith("error: Another worker ")
    assert other.lines[-1].endswith(f"/task:{which}")
    assert "Traceback" not in other.stderr
    assert_goes_on(data, tmp_path / "out", expected, f"kill{which}-again")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_one_that_waits_says_so_and_can_be_stopped(number):
    here, there = (f"localhost:{port}" for port in free_ports(2))
    task = {"type": "worker", "index": 0}
    text = json.dumps({"cluster": {"worker": [here, there]}, "task": task})
    run = subprocess.Popen(
        [sys.executable, "-c", _WAITS],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TF_CONFIG": text},
    )
    try:
        assert run.stderr
        said = next(x for x in run.stderr if "Waiting for the other" in x)
        assert said.endswith(f"Waiting for the other workers: {there}\n")
        time.sleep(2)
        run.send_signal(number)
        assert run.wait(10) == -number
    finally:
        run.kill()
        run.communicate()


# As at a terminal; shells let what runs in the background ignore some.
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

_LEAVES = """
import sys, time
from bert_tf.training import distribution

strategy = distribution.set_up("multi_worker_mirrored")
agree = distribution.agreement(strategy)
try:
    with distribution.left_together(strategy):
        agree(True)
        if sys.argv[2] == "error":
            raise ValueError
        time.sleep(float(sys.argv[1]))
        if sys.argv[2] == "stop":
            raise distribution.StoppedTogetherError(0)
finally:
    print(time.time())
"""


@pytest.mark.parametrize("how", ["end", "stop", "error"])
@pytest.mark.parametrize("late", [0, 1], ids=["chief", "other"])
def test_leaves_when_all_do(how, late):
    cluster = {"worker": [f"localhost:{port}" for port in free_ports(2)]}
    began = time.time()
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", _LEAVES, "5" if i == late else "0", how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ
            | {
                "TF_CONFIG": json.dumps(
                    {"cluster": cluster, "task": {"type": "worker", "index": i}}
                )
            },
        )
        for i in range(2)
    ]
    outputs = [run.communicate(timeout=120) for run in runs]
    errors = "".join(error for _, error in outputs)
    expected = 1 if how == "error" else 0
    assert [run.returncode for run in runs] == [expected] * 2, errors[-3000:]
    left = [float(output) - began for output, _ in outputs]
    assert abs(left[0] - left[1]) < 2.5, (left, errors[-3000:])


def test_early_stop(data, tmp_path):
    # With a rate of 0 no evaluation is better than the first.
    output = tmp_path / "out"

    def end(log):
        runs = start(
            data,
            output,
            log,
            *("--learning_rate=0", "--eval_steps=2", "--max_eval_steps=2"),
            *("--early_stop_evaluations=3", "--save_checkpoints_steps=3"),
        )
        for run in runs:
            assert run.wait() == 0, run.stderr[-3000:]
            assert "No lower loss since step 2: ending at step 8." in run.stderr
        return tensors(output, 8)

    expected = end("early")
    # What runs that were killed before their end find.
    for path in output.glob("model.ckpt-8.*"):
        path.unlink()
    found = end("early-again")
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)

    # The best of a run whose checkpoints were removed is of no run.
    for path in output.glob("*ckpt-*"):
        path.unlink()
    (output / "checkpoint").unlink()
    results = json.loads((output / "best" / "results.json").read_text())
    better = {name: value / 2 for name, value in results.items()}
    better |= {"global_step": 5000}
    (output / "best" / "results.json").write_text(json.dumps(better))
    found = end("early-anew")
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
    found = json.loads((output / "best" / "results.json").read_text())
    assert found == results


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            ("--learning_rate=1e-5", "--num_warmup_steps=2"),
            "differ in learning_rate, num_warmup_steps. Start all of them with",
        ),
        (("--input_file={other}/*.tfrecord",), "differ in training data. St"),
        (("--init_checkpoint={start}",), "differ in the weights to start fr"),
    ],
    ids=["flags", "records", "weights"],
)
def test_workers_that_differ(data, expected, own, message, tmp_path):
    """Each would train a model of its own, and only one would be saved."""
    del expected  # Whose run is started from.
    other = tmp_path / "other"
    other.mkdir()
    pretraining_records.write(other, counts=(7, 12, 6))
    places = {"other": other, "start": data / "whole"}
    output = tmp_path / "out"
    second = [flag.format(**places) for flag in own]
    runs = start(data, output, f"differ-{tmp_path.name}", second=second)
    assert [run.wait(120) for run in runs] == [1, 1]
    said = [run.lines[-1] for run in runs]
    left = "error: Another worker of the cluster does not answer any more"
    assert any(message in line for line in said)
    assert all(message in line or line.startswith(left) for line in said)
    assert not any("Traceback" in run.stderr for run in runs)
    assert not list(output.glob("model.ckpt-*"))


def test_folders_that_are_not_shared(data, tmp_path):
    output = tmp_path / "{index}"
    runs = start(data, output, "own")
    wait_for(tmp_path / "0" / "model.ckpt-20.index", runs)
    for run in runs:
        run.kill(signal.SIGKILL)
    again = start(data, output, "own-again")
    assert [run.wait(120) for run in again] == [1, 1]
    # Who hears of it later may find that the other one has left.
    different = "error: The workers found different "
    left = "error: Another worker of the cluster does not answer any more"
    for run in again:
        assert run.lines[-1].startswith((different, left))
        assert "Traceback" not in run.stderr
    said = [x for x in (run.lines[-1] for run in again) if different in x]
    assert said
    assert all(", the furthest at " in x for x in said)
