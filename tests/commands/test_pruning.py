"""Runs run_classifier.py --prune_to: what it saves."""

from tests import classifier_runs, trained_weights

import pytest

pytestmark = pytest.mark.slow

_SHARE = 0.6


def _assert_zeros(prefix, share):
    kernels = {
        name: value
        for name, value in trained_weights.read(prefix).items()
        if "/layer_" in name and name.endswith("/kernel")
    }
    assert len(kernels) == 6
    for name, value in kernels.items():
        wanted = round(share * value.size)
        assert abs((value == 0).sum() - wanted) <= 1, name


@pytest.mark.usefixtures("untraced")
def test_the_zeros_are_in_what_is_saved(tmp_path):
    """Of twelve steps, saved and evaluated every six, pruned in nine."""
    table = classifier_runs.write_table(tmp_path / "train.tsv", 24)
    pruned = tmp_path / "run"
    classifier_runs.run(
        *(tmp_path, *classifier_runs.write_model(tmp_path)),
        *("--do_train", "--do_eval"),
        *(f"--train_file={table}", f"--dev_file={table}"),
        *("--num_train_epochs=2", "--save_checkpoints_steps=6"),
        *(f"--prune_to={_SHARE}", "--prune_until=0.75", "--prune_every=2"),
        f"--output_dir={pruned}",
    )
    _assert_zeros(pruned / "model.ckpt-12", _SHARE)
    after_six = _SHARE * (1 - (1 - 6 / 9) ** 3)
    _assert_zeros(pruned / "model.ckpt-6", after_six)
    # The evaluation of step 6 came too early to be the best.
    assert (pruned / "best" / "model.ckpt-12.index").exists()
    _assert_zeros(pruned / "best" / "model.ckpt-12", _SHARE)
    lines = (pruned / "metrics.jsonl").read_text().splitlines()
    assert sum("eval_accuracy" in line for line in lines) == 2
    assert any("pruned_share" in line for line in lines)
