"""Runs of run_pretraining.py whose steps JAX computes."""

import dataclasses
import shutil

from tests import combinations
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


@dataclasses.dataclass(frozen=True)
class _Runs:
    """Runs of one kind on a number of devices, each of which is a replica."""

    setting: Setting
    devices: int

    def make(self, output, runtime):
        """Trains by JAX or by TensorFlow to the end, from where it is."""
        flags = [
            *("--num_train_steps=20", "--save_checkpoints_steps=10"),
            *("--eval_steps=5", "--max_eval_steps=2"),
        ]
        if self.devices > 1:
            flags.append("--gradient_accumulation_steps=2")
            flags.append("--clipping=per_replica")
        if runtime == "tensorflow":
            replicas = REPLICAS if self.devices > 1 else ()
            return self.setting.finished(
                output, *flags, *replicas, "--use_xla=true"
            )
        count = f"--xla_force_host_platform_device_count={self.devices}"
        run = self.setting.start(output, *flags, _PJRT, XLA_FLAGS=count)
        assert run.wait() == 0, run.stderr
        return run


@pytest.fixture(
    scope="module", name="runs", params=combinations.some([2], [1, 2])
)
def _runs(request, setting):
    return _Runs(setting, request.param)


@pytest.fixture(scope="module", name="made")
def _made(runs):
    """The output folder and the finished run of each runtime."""
    folder = runs.setting.folder / f"devices_{runs.devices}"
    return {
        name: (folder / name, runs.make(folder / name, name))
        for name in ("jax", "tensorflow")
    }


@pytest.mark.slow
def test_trains_as_tensorflow(runs, made):
    output, run = made["jax"]
    _assert_same_losses(output, made["tensorflow"][0])
    assert "Unable to initialize backend" not in run.stderr
    said = {1: "1 CPU replica, 8 sequences", 2: "2 CPU replicas, 2 sequences"}
    assert f"Devices: {said[runs.devices]} at a time" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), [("jax", "tensorflow"), ("tensorflow", "jax")]
)
def test_goes_on_with_the_other_runtime(runs, made, tmp_path, first, second):
    output = shutil.copytree(made[first][0], tmp_path / "out")
    for path in output.glob("model.ckpt-20.*"):
        path.unlink()
    run = runs.make(output, second)
    assert "Resuming from step 10" in run.stderr
    _assert_same_losses(output, made["tensorflow"][0])


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
