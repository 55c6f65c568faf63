"""Which weights are used where nothing is trained."""

from bert_tf.setup import run as run_setup

import pytest
from absl import flags
from absl.testing import flagsaver


@pytest.fixture
def run(tmp_path):
    """A run that started from a released model."""
    (tmp_path / "run" / "best").mkdir(parents=True)
    (tmp_path / "model").mkdir()
    (tmp_path / "run" / "flags.txt").write_text(
        f"# python run_classifier.py\n--init_checkpoint={tmp_path}/model\n"
    )
    flags.FLAGS.mark_as_parsed()
    with flagsaver.flagsaver(output_dir=str(tmp_path / "run")):
        yield tmp_path


def test_own_weights_by_default_and_given_ones(run):
    assert run_setup.own_weights("own") == "own"
    with flagsaver.flagsaver(init_checkpoint="given"):
        assert run_setup.own_weights(None) == "given"
    with pytest.raises(ValueError, match=r"holds no checkpoint\. Train one"):
        run_setup.own_weights(None)


@pytest.mark.parametrize("name", ["model", "./model", "run/../model", "run"])
def test_what_the_run_started_from_may_be_said_again(run, name):
    # As by the command of training, with --do_predict instead.
    with flagsaver.flagsaver(init_checkpoint=f"{run}/{name}"):
        assert run_setup.own_weights("own") == "own"


@pytest.mark.parametrize("name", ["model.ckpt-3", "best", "best/model.ckpt-3"])
def test_certain_weights_of_the_run(run, name):
    path = f"{run}/run/{name}"
    with flagsaver.flagsaver(init_checkpoint=path):
        assert run_setup.own_weights("own") == path


def test_weights_of_another_model_are_refused(run):
    with (
        flagsaver.flagsaver(init_checkpoint=f"{run}/other/model.ckpt"),
        pytest.raises(ValueError) as caught,
    ):
        run_setup.own_weights("own")
    assert str(caught.value) == (
        f"--output_dir={run}/run holds a run, whose weights are used, and "
        "--init_checkpoint names others. Leave it out, or choose another "
        f"--output_dir for theirs. Received: init_checkpoint={run}/other/"
        "model.ckpt"
    )
