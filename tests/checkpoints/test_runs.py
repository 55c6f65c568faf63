"""Which run a path is of."""

from bert_tf.checkpoints import runs

import pytest


@pytest.fixture(name="run")
def _run(tmp_path):
    folder = tmp_path / "run"
    (folder / "best").mkdir(parents=True)
    (folder / "flags.txt").write_text("# x\n--do_lower_case=false\n--a=b=c\n")
    (folder / "export").mkdir()
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/best",
        "/best/",
        "/model.ckpt-5",
        "/model.ckpt-5.index",
        "/best/model.ckpt-5",
    ],
)
def test_paths_of_a_run(run, name):
    assert runs.folder_of(f"{run}{name}") == str(run)
    expected = {"do_lower_case": "false", "a": "b=c"}
    assert runs.flags_of(f"{run}{name}") == expected
    assert runs.lower_cases(f"{run}{name}") is False


@pytest.mark.parametrize("name", ["/export", "/x/model.ckpt-5", "/../other"])
def test_paths_of_no_run(run, name):
    assert runs.folder_of(f"{run}{name}") == ""
    assert runs.flags_of(f"{run}{name}") == {}
    assert runs.lower_cases(f"{run}{name}") is None


@pytest.mark.parametrize("name", ["best", "model.ckpt-5", "best/model.ckpt-5"])
def test_from_inside_the_run(run, name, monkeypatch):
    monkeypatch.chdir(run)
    assert runs.folder_of(name) == "."
