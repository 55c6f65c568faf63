"""Runs run_classifier.py --prune_to: what it saves, and going on."""

import pathlib
import shutil

from bert_tf.checkpoints import tf1_files
from tests import classifier_runs

import numpy as np
import pytest

_SHARE = 0.6


def _table(folder):
    rng = np.random.default_rng(0)
    rows = [
        f"{classifier_runs.sentence(rng)}\t{('neg', 'pos')[i % 2]}\n"
        for i in range(24)
    ]
    path = folder / "train.tsv"
    path.write_text("text\tlabel\n" + "".join(rows))
    return path


def _train(folder, output):
    """Twelve steps, evaluated and saved every six, pruned in nine."""
    assert not classifier_runs.run_here(
        *("--do_train", "--do_eval", *classifier_runs.write_model(folder)),
        *(f"--train_file={_table(folder)}", f"--dev_file={_table(folder)}"),
        *("--num_train_epochs=2", "--save_checkpoints_steps=6"),
        *(f"--prune_to={_SHARE}", "--prune_until=0.75", "--prune_every=2"),
        f"--output_dir={output}",
    )


@pytest.fixture(scope="module", name="pruned")
def _pruned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    _train(folder, folder / "run")
    return folder / "run"


def _values(prefix):
    return tf1_files.read(str(prefix), list(tf1_files.shapes(str(prefix))))


def _kernels(values):
    return {
        name: value
        for name, value in values.items()
        if "/layer_" in name and name.endswith("/kernel")
    }


def _assert_zeros(prefix, share):
    kernels = _kernels(_values(prefix))
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


def test_goes_on_bit_for_bit(pruned, tmp_path):
    stopped = tmp_path / "run"
    shutil.copytree(pruned, stopped)
    for path in stopped.glob("model.ckpt-12*"):
        path.unlink()
    shutil.rmtree(stopped / "best")
    tf1_files.write_state(str(stopped), [str(stopped / "model.ckpt-6")])
    _train(pathlib.Path(pruned.parent), stopped)
    expected = _values(pruned / "model.ckpt-12")
    for name, value in _values(stopped / "model.ckpt-12").items():
        np.testing.assert_array_equal(value, expected[name], name)
    found = _values(stopped / "best" / "model.ckpt-12")
    for name, value in _values(pruned / "best" / "model.ckpt-12").items():
        np.testing.assert_array_equal(found[name], value, name)
