"""Runs of run_pretraining.py whose steps JAX computes."""

import re
import shutil

from tests.pretraining_runs import REPLICAS, Setting, metrics

import pytest

pytest.importorskip("jax", reason="needs JAX, of the extra jax")

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


@pytest.mark.slow
class TestOneDevice:
    flags = (
        *("--num_train_steps=100", "--save_checkpoints_steps=50"),
        *("--eval_steps=25", "--max_eval_steps=2"),
    )
    runtimes = (_PJRT, "--use_xla=true")

    @pytest.fixture(scope="class", name="runs")
    @classmethod
    def _runs(cls, setting):
        """A run by JAX and one by TensorFlow."""
        outputs = [setting.folder / name for name in ("jax", "tensorflow")]
        runs = [
            setting.finished(output, *cls.flags, runtime)
            for output, runtime in zip(outputs, cls.runtimes, strict=True)
        ]
        return runs, outputs

    def test_trains_as_tensorflow(self, runs):
        (run, _), outputs = runs
        _assert_same_losses(*outputs)
        assert "Unable to initialize backend" not in run.stderr
        assert re.search(r"Devices: 1 \S+ replica, 8 seq", run.stderr)

    @pytest.mark.parametrize("begins_with", [0, 1])
    def test_goes_on_with_the_other_runtime(
        self, setting, runs, tmp_path, begins_with
    ):
        _, outputs = runs
        output = tmp_path / "out"
        shutil.copytree(outputs[begins_with], output)
        for path in output.glob("model.ckpt-100.*"):
            path.unlink()
        other = self.runtimes[1 - begins_with]
        run = setting.finished(output, *self.flags, other)
        assert "Going on from step 50" in run.stderr
        _assert_same_losses(output, outputs[1])


@pytest.mark.slow
def test_a_device_is_a_replica(setting):
    flags = (
        *("--num_train_steps=10", "--gradient_accumulation_steps=2"),
        "--clipping=per_replica",
    )
    outputs = [setting.folder / f"two_{name}" for name in ("jax", "cpus")]
    devices = "--xla_force_host_platform_device_count=2"
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices}
    run = setting.start(outputs[0], *flags, _PJRT, **environment)
    assert run.wait() == 0, run.stderr
    assert "Devices: 2 CPU replicas, 2 sequences at a time" in run.stderr
    setting.finished(outputs[1], *flags, *REPLICAS, "--use_xla=true")
    _assert_same_losses(*outputs)


@pytest.mark.slow
def test_kill_9(tmp_path):
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
