"""run_pretraining.py on replicas, workers, micro-batches and in bfloat16."""

import json

from tests.pretraining_runs import (
    Setting,
    assert_close,
    free_ports,
    metrics,
    tensors,
)

import numpy as np
import pytest


@pytest.fixture(scope="module", name="plain")
def _plain(tmp_path_factory):
    """Without dropout: masks differ where replicas and micro-batches do."""
    return Setting.make(
        tmp_path_factory.mktemp("plain"),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


@pytest.fixture(scope="module", name="expected")
def _expected(plain):
    """A run of one process on one device, without dropout."""
    output = plain.folder / "expected"
    run = plain.run(output, "--num_train_steps=4", "--do_eval")
    assert run.wait() == 0, run.stderr
    return output


@pytest.mark.slow
class TestStrategies:
    STEPS = ("--num_train_steps=4", "--do_eval")

    def test_two_replicas(self, plain, expected, tmp_path):
        run = plain.run(
            tmp_path / "out",
            *self.STEPS,
            "--distribution_strategy=mirrored",
            "--logical_cpus=2",
        )
        assert run.wait() == 0, run.stderr
        assert "24 records in 3 files, 2 replicas" in run.stderr
        assert_close(tmp_path / "out", expected, 1e-6)

    def test_two_workers(self, plain, expected, tmp_path):
        workers = [f"localhost:{port}" for port in free_ports(2)]
        runs = [
            plain.start(
                tmp_path / "out",
                *self.STEPS,
                "--distribution_strategy=multi_worker_mirrored",
                log=f"worker{i}",
                TF_CONFIG=json.dumps(
                    {
                        "cluster": {"worker": workers},
                        "task": {"type": "worker", "index": i},
                    }
                ),
            )
            for i in range(2)
        ]
        for run in runs:
            assert run.wait() == 0, run.stderr
        assert "2 replicas" in runs[0].stderr
        assert_close(tmp_path / "out", expected, 1e-6)
        # One of them writes.
        assert len(list((tmp_path / "out").glob("events*"))) == 1
        results = tmp_path / "out" / "eval_results.txt"
        for found, wanted in zip(
            results.read_text().split(),
            (expected / "eval_results.txt").read_text().split(),
            strict=True,
        ):
            if found != wanted:
                assert float(found) == pytest.approx(float(wanted), rel=1e-5)

    def test_micro_batches(self, plain, expected, tmp_path):
        run = plain.run(
            tmp_path / "out", *self.STEPS, "--gradient_accumulation_steps=4"
        )
        assert run.wait() == 0, run.stderr
        assert_close(tmp_path / "out", expected, 1e-6)

    def test_bfloat16(self, plain, expected, tmp_path):
        run = plain.run(tmp_path / "out", *self.STEPS, "--dtype=bfloat16")
        assert run.wait() == 0, run.stderr
        assert_close(tmp_path / "out", expected, 0.01)
        assert metrics(tmp_path / "out") != metrics(expected)
        for name, value in tensors(tmp_path / "out", 4).items():
            wanted = np.int64 if value.ndim == 0 else np.float32
            assert value.dtype == wanted, name
