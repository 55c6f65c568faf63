"""Runs of run_pretraining.py whose steps JAX computes."""

import os
import re
import shutil

from bert_tf.training import pjrt
from tests import combinations, trained_weights
from tests.pretraining_runs import REPLICAS, Setting, metrics, tensors

import numpy as np
import pytest
import tensorflow as tf

jax = pytest.importorskip("jax", reason="needs JAX, of the extra jax")

_PJRT = "--runtime=pjrt"


def _assert_same_losses(left, right):
    found, expected = metrics(left), metrics(right)
    for x, y in zip(found, expected, strict=True):
        assert x.keys() == y.keys()
        losses = [name for name in x if name.endswith("loss")]
        assert losses
        for name in losses:
            assert x[name] == pytest.approx(y[name], rel=1e-6), x["step"]


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    return Setting.make(tmp_path_factory.mktemp("pjrt"))


def _make(setting, output, runtime):
    """Trains on two devices with JAX or TensorFlow, or resumes a run."""
    flags = [
        *("--num_train_steps=4", "--save_checkpoints_steps=1"),
        *("--eval_steps=2", "--max_eval_steps=2"),
        *("--gradient_accumulation_steps=2", "--clipping=per_replica"),
    ]
    if runtime == "tensorflow":
        return setting.finished(output, *flags, *REPLICAS, "--use_xla=true")
    more = "--xla_force_host_platform_device_count=2"
    xla = f"{os.environ.get('XLA_FLAGS', '')} {more}"
    run = setting.start(output, *flags, _PJRT, XLA_FLAGS=xla)
    assert run.wait() == 0, run.stderr
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    combinations.some(
        [("jax", "tensorflow")],
        [("jax", "tensorflow"), ("tensorflow", "jax")],
    ),
)
def test_one_trains_on_from_the_first_step_of_the_other(
    setting, tmp_path, first, second
):
    whole, output = tmp_path / "whole", tmp_path / "out"
    runs = {first: _make(setting, whole, first)}
    shutil.copytree(whole, output)
    assert trained_weights.drop_last(output, 3) == 1
    runs[second] = _make(setting, output, second)
    assert "Resuming from step" not in runs[first].stderr
    assert "Resuming from step 1" in runs[second].stderr
    assert "Unable to initialize backend" not in runs["jax"].stderr
    devices = "Devices: 2 CPU replicas, 2 sequences at a time"
    assert devices in runs["jax"].stderr
    _assert_same_losses(output, whole)
    found, expected = (tensors(x, 4) for x in (output, whole))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(
            found[name], value, rtol=1e-4, atol=1e-5, err_msg=name
        )


@pytest.mark.exhaustive
def test_kill_9_on_one_device(tmp_path):
    setting = Setting.make(tmp_path)
    setting.check_that_a_kill_changes_nothing(_PJRT)


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("distribution_strategy=mirrored",) * 2,
        ("use_tpu", "distribution_strategy=tpu"),
        ("dtype=float16",) * 2,
        ("use_xla=false",) * 2,
        ("auto_batch_size",) * 2,
        ("profile_steps=1:2", "profile_steps"),
        ("teacher=folder", "teacher"),
    ],
)
def test_what_is_not_supported(setting, tmp_path, flag, named):
    line = setting.refused(tmp_path / "out", _PJRT, f"--{flag}")
    assert f"does not support --{named}. Leave out one of the" in line
    assert line.endswith(f"Received: runtime=pjrt, {named}")


@pytest.mark.slow
def test_not_on_several_hosts(setting, tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    line = setting.refused(tmp_path / "out", _PJRT)
    assert "trains on the devices of one host" in line
    assert re.search(r"Received: \d+ devices of 2 hosts$", line)


@pytest.mark.parametrize("phase", ["INTERNAL", "RESOURCE_EXHAUSTED"])
def test_too_little_memory_of_a_device(monkeypatch, phase):
    text = f"{phase}: Out of memory allocating 1073741824 bytes."

    def fail(_):
        raise jax.errors.JaxRuntimeError(text)

    monkeypatch.setattr(pjrt.TrainSteps, "_next", fail)
    steps = object.__new__(pjrt.TrainSteps)
    is_known = phase == "RESOURCE_EXHAUSTED"
    with pytest.raises(Exception, match=text) as caught:
        steps(0, 1)
    kind = tf.errors.ResourceExhaustedError
    assert isinstance(caught.value, kind) == is_known
