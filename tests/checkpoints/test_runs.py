"""The run that a path belongs to."""

import os

from bert_tf.checkpoints import runs

import pytest


@pytest.fixture(name="run")
def _run(tmp_path):
    folder = tmp_path / "run"
    (folder / "best").mkdir(parents=True)
    (folder / "flags.txt").write_text("# x\n--do_lower_case=false\n--a=b=c\n")
    (folder / "export").mkdir()
    for name in ("model.ckpt-5", "best/model.ckpt-5"):
        (folder / f"{name}.index").touch()
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


@pytest.mark.parametrize("path", [".", "./", "model.ckpt-5", "./model.ckpt-5"])
@pytest.mark.parametrize("folder", ["", "best"])
def test_paths_from_inside_a_run(run, folder, path, monkeypatch):
    monkeypatch.chdir(run / folder)
    assert os.path.samefile(runs.folder_of(path), run)
    assert runs.lower_cases(path) is False


@pytest.mark.parametrize(
    "path",
    [
        "{run}/export",
        "{run}/x/model.ckpt-5",
        "{run}/../other",
        # Presets, whatever is in the working directory.
        "kaggle://keras/bert/keras/bert_base_en/3",
        "bert_base_en",
        "google-bert/bert-base-uncased",
    ],
)
def test_paths_of_no_run(path, run, monkeypatch):
    monkeypatch.chdir(run)
    path = path.format(run=run)
    assert runs.folder_of(path) == ""
    assert runs.flags_of(path) == {}
    assert runs.lower_cases(path) is None


def test_flags_of_an_evaluation_are_of_no_training(run):
    """Next to the original's weights, an evaluation may have written flags."""
    with (run / "flags.txt").open("a") as file:
        file.write("--do_train=false\n")
    assert runs.folder_of(str(run)) == str(run)
    assert runs.flags_of(str(run)) == {}
    assert runs.lower_cases(str(run)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("=True", True), ("", True), ("=1", True), ("=0", False), ("=F", False)],
)
def test_spellings_of_casing(run, text, expected):
    (run / "flags.txt").write_text(f"--do_lower_case{text}\n")
    assert runs.lower_cases(str(run)) is expected


@pytest.mark.parametrize("name", ["", "/best", "/best/model.ckpt-5"])
def test_a_search_is_read_as_its_best_trial(run, name):
    (run / "flags.txt").write_text("--search=2\n--max_seq_length=128\n")
    before = {"search": "2", "max_seq_length": "128"}
    assert runs.flags_of(f"{run}{name}") == before  # of an earlier version
    (run / "best/flags.txt").write_text("--max_seq_length=64\n")
    assert runs.flags_of(f"{run}{name}") == {"max_seq_length": "64"}


def test_a_casing_that_is_none(run):
    (run / "flags.txt").write_text("--do_lower_case=yes\n")
    with pytest.raises(ValueError, match=r"run/flags.txt, which keeps .*=yes$"):
        runs.lower_cases(str(run))


@pytest.mark.parametrize("name", ["best", "model.ckpt-5", "best/model.ckpt-5"])
def test_from_inside_the_run(run, name, monkeypatch):
    monkeypatch.chdir(run)
    assert runs.folder_of(name) == "."
