"""Steps of BERT's pre-training equal PyTorch's in float64."""

from tests import interop_samples as samples
from tests import parity_run, reference

import pytest


@pytest.mark.slow
def test_every_step_is_that_of_pytorch(tmp_path):
    torch_pretraining = pytest.importorskip(
        "tests.torch_pretraining", reason="needs the extra `parity`"
    )
    from tests import torch_training

    files = parity_run.write(tmp_path)
    found = parity_run.run(
        tmp_path,
        f"--input_file={','.join(files)}",
        f"--bert_config_file={tmp_path}/config.json",
        f"--init_checkpoint={tmp_path}/bert_model.ckpt",
        *parity_run.FLAGS,
    )
    steps = parity_run.STEPS
    expected, weights = torch_pretraining.train(
        *(torch_pretraining.BERT, parity_run.CONFIG),
        samples.values(tmp_path / "bert_model.ckpt"),
        parity_run.batches(files),
        torch_training.rates(
            steps, parity_run.WARMUP, parity_run.LEARNING_RATE
        ),
    )
    assert [line["step"] for line in found] == [*range(1, steps + 1)]
    parity_run.assert_same_steps(found, expected)
    # Clipping is active in some steps only.
    assert min(line["gradient_norm"] for line in expected) < 1
    last = samples.values(tmp_path / f"out/model.ckpt-{steps}")
    reference.assert_same(last, weights, 1e-4)
