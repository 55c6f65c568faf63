"""The name of the running script in help texts and errors."""

import sys

from bert_tf.flags import flagfiles, help_text

import pytest
from absl import flags


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/run_glue.py"])
    monkeypatch.setattr(help_text, "_launcher", None)


def test_of_python(script):
    assert help_text.name() == "run_glue.py"
    assert help_text.command() == "python run_glue.py"
    text = "Does it:\n    python run_glue.py --data_dir=x"
    assert text in help_text.page(text, [], full=False)


def test_of_another_command(script):
    help_text.launch_with("bert-tf")
    assert help_text.name() == "run_glue"
    assert help_text.command() == "bert-tf run_glue"
    page = help_text.page("Does it:\n  python run_glue.py --a", [], full=False)
    assert page.startswith("run_glue: Does it:\n  bert-tf run_glue --a\n")


def test_flagfile_says_what_repeats_the_run(script, tmp_path):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()
    path = tmp_path / "flags.txt"
    for launcher, command in (
        (None, "python run_glue.py"),
        ("bert-tf", "bert-tf run_glue"),
    ):
        help_text.launch_with(launcher)
        flagfiles.write_flagfile(str(path))
        first = path.read_text().split("\n")[0]
        assert first == f"# {command} --flagfile={path}"
