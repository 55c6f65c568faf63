"""Runs run_classifier.py --prune_to: what it saves, and going on."""


from tests import classifier_runs, trained_weights

import pytest

pytestmark = pytest.mark.slow

_SHARE = 0.6


def _train(folder, output):
    """Twelve steps, evaluated and saved every six, pruned in nine."""
    table = classifier_runs.write_table(folder / "train.tsv", 24)
    classifier_runs.run(
        *(folder, *classifier_runs.write_model(folder)),
        *("--do_train", "--do_eval"),
        *(f"--train_file={table}", f"--dev_file={table}"),
        *("--num_train_epochs=2", "--save_checkpoints_steps=6"),
        *(f"--prune_to={_SHARE}", "--prune_until=0.75", "--prune_every=2"),
        f"--output_dir={output}",
    )


@pytest.fixture(scope="module", name="pruned")
def _pruned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    _train(folder, folder / "run")
    return folder / "run"


def _assert_zeros(prefix, share):
    kernels = {
        name: value
        for name, value in trained_weights.read(prefix).items()
        if "/layer_" in name and name.endswith("/kernel")
    }
    assert len(kernels) == 12
    for name, value in kernels.items():
        wanted = round(share * value.size)
        assert abs((value == 0).sum() - wanted) <= 1, name


def test_the_zeros_are_in_what_is_saved(pruned):
    _assert_zeros(pruned / "model.ckpt-12", _SHARE)
    after_six = _SHARE * (1 - (1 - 6 / 9) ** 3)
    _assert_zeros(pruned / "model.ckpt-6", after_six)
    # The evaluation of step 6 came too early to be the best.
    assert (pruned / "best" / "model.ckpt-12.index").exists()
    _assert_zeros(pruned / "best" / "model.ckpt-12", _SHARE)
    lines = (pruned / "metrics.jsonl").read_text().splitlines()
    assert sum("eval_accuracy" in line for line in lines) == 2
    assert any("pruned_share" in line for line in lines)
