"""A hundred steps of pre-training give the losses of other implementations."""

from tests import interop_samples as samples
from tests import parity_run, reference

import numpy as np
import pytest

# Step -> loss of the masked words, of the next sentences: what PyTorch gives
# in float64. Made by: python -m tests.torch_pretraining
GOLDEN: dict[int, tuple[float, float]] = {
    10: (4.9737777, 0.7014745),
    20: (2.4614460, 0.6530418),
    30: (0.8346207, 0.4612870),
    40: (0.3764456, 0.2578671),
    50: (0.1947949, 0.0625882),
    60: (0.0494571, 0.0235775),
    70: (0.0178352, 0.0076409),
    80: (0.0112825, 0.0041569),
    90: (0.0063372, 0.0050625),
    100: (0.0062496, 0.0053969),
}


@pytest.fixture(scope="module", name="run")
def _run(tmp_path_factory):
    """The folder of a finished run, its records, what each step reported."""
    folder = tmp_path_factory.mktemp("run")
    files = parity_run.write(folder)
    reports = parity_run.run(
        folder,
        f"--input_file={','.join(files)}",
        f"--bert_config_file={folder}/config.json",
        f"--init_checkpoint={folder}/bert_model.ckpt",
        *parity_run.FLAGS,
    )
    return folder, files, reports


def test_losses_are_the_golden_ones(run):
    found = {line["step"]: line for line in run[2]}
    assert len(GOLDEN) == 10
    names = ("masked_lm_loss", "next_sentence_loss")
    actual = [[found[step][name] for name in names] for step in GOLDEN]
    np.testing.assert_allclose(actual, list(GOLDEN.values()), rtol=1e-4)


def test_every_step_is_that_of_pytorch(run):
    torch_pretraining = pytest.importorskip(
        "tests.torch_pretraining", reason="needs the extra `parity`"
    )
    folder, files, found = run
    expected, weights = torch_pretraining.train(
        samples.values(folder / "bert_model.ckpt"), parity_run.batches(files)
    )
    steps = range(1, parity_run.STEPS + 1)
    assert [line["step"] for line in found] == list(steps)
    parity_run.assert_same_steps(found, expected)
    # The clipping comes and goes.
    assert min(line["gradient_norm"] for line in expected) < 1
    last = samples.values(folder / f"out/model.ckpt-{parity_run.STEPS}")
    reference.assert_same(last, weights, 1e-4)
