"""The demo's flagfiles have the settings of the comparison of objectives."""

import json
import pathlib

from tests import script_flags
from tools import isolation

import pytest
from absl import flags

_CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "configs"


def _values(lines):
    """Returns the flags in lines by name; all lines must be flags."""
    pairs = [line.removeprefix("--").partition("=") for line in lines]
    return {name: value or "true" for name, _, value in pairs}


@pytest.fixture(scope="module", name="commands")
def _commands(tmp_path_factory):
    """Returns the commands of two pre-trainings, without running them."""
    made = []
    with (
        script_flags.own_flags(),
        isolation.isolated("benchmarks"),
        pytest.MonkeyPatch.context() as patch,
    ):
        from benchmarks import commands, objectives

        flags.FLAGS(
            [
                *("objectives", "--text=wiki.txt", "--data_dir=x"),
                *("--bert_steps=18000", "--batch=32"),
                "--pretraining_flags=--dtype=bfloat16",
                f"--output_dir={tmp_path_factory.mktemp('demo')}",
            ]
        )
        patch.setattr(
            *(commands, "run"),
            lambda script, _, *options: made.append([script, *options]),
        )
        objectives.pretrained("ltr_then_bert")
    return made


@pytest.mark.parametrize("order", [0, 1])
def test_flags_and_configs(commands, order):
    name = ("pretrain_demo", "pretrain_demo_both_ways")[order]
    runs = [x for script, *x in commands if script == "run_pretraining.py"]
    assert len(runs) == 2
    theirs = _values(runs[order])
    lines = (_CONFIGS / f"{name}.flags").read_text().splitlines()
    ours = _values(x for x in lines if not x.startswith("#"))
    configs = [
        json.loads((_CONFIGS.parent / x.pop("bert_config_file")).read_text())
        for x in (ours, theirs)
    ]
    assert configs[0] | configs[1] == configs[0]
    rates = [float(x.pop("learning_rate")) for x in (ours, theirs)]
    assert rates[0] == rates[1]
    assert {name: theirs[name] for name in ours} == ours


def test_records_have_the_flags_that_the_flagfiles_tell(commands):
    made = [
        [x for x in options if "=" in x and "/" not in x]
        for script, *options in commands
        if script == "create_pretraining_data.py"
    ]
    assert len(made) == 2
    for name, options in zip(
        ("pretrain_demo", "pretrain_demo_both_ways"), made, strict=True
    ):
        text = (_CONFIGS / f"{name}.flags").read_text()
        told = [x for x in options if not x.startswith("--input_file")]
        assert len(told) == 6
        assert [x for x in told if x not in text] == []
