"""A hundred steps of pre-training give the losses of other implementations."""

import json

from tests import parity_run, scripts

import numpy as np
import pytest
import tensorflow as tf

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
    """The folder of a finished run of run_pretraining.py, and its records."""
    folder = tmp_path_factory.mktemp("run")
    files = parity_run.write(folder)
    done = scripts.run(
        folder / "log",
        "run_pretraining",
        f"--input_file={','.join(files)}",
        f"--output_dir={folder}/out",
        f"--bert_config_file={folder}/config.json",
        f"--init_checkpoint={folder}/bert_model.ckpt",
        *parity_run.FLAGS,
    )
    assert done.wait() == 0, done.stderr
    return folder, files


def reports(folder):
    """What each step of the run reported."""
    lines = (folder / "out" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_losses_are_the_golden_ones(run):
    folder, _ = run
    found = {line["step"]: line for line in reports(folder)}
    assert len(GOLDEN) == 10
    for step, losses in GOLDEN.items():
        names = ("masked_lm_loss", "next_sentence_loss")
        actual = [found[step][name] for name in names]
        np.testing.assert_allclose(actual, losses, rtol=1e-4)


def test_every_step_is_that_of_pytorch(run):
    for extra in ("torch", "transformers"):
        pytest.importorskip(extra, reason="needs the extra `parity`")
    from tests import torch_pretraining

    folder, files = run
    expected, weights = torch_pretraining.train(
        str(folder / "bert_model.ckpt"), parity_run.batches(files)
    )
    found = reports(folder)
    assert [line["step"] for line in found] == list(
        range(1, parity_run.STEPS + 1)
    )
    for name in expected[0]:
        np.testing.assert_allclose(
            [line[name] for line in found],
            [line[name] for line in expected],
            rtol=1e-4,
            err_msg=name,
        )
    # The run says something: it learns, and the clipping comes and goes.
    losses = [line["loss"] for line in expected]
    assert np.mean(losses[-15:]) < 0.8 * losses[0]
    norms = [line["gradient_norm"] for line in expected]
    assert min(norms) < 1 < max(norms)
    reader = tf.train.load_checkpoint(
        str(folder / "out" / f"model.ckpt-{parity_run.STEPS}")
    )
    for name, value in weights.items():
        np.testing.assert_allclose(
            reader.get_tensor(name), value, rtol=0, atol=1e-4, err_msg=name
        )
