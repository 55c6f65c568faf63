"""The files that globs match."""

from bert_tf.storage import paths

import pytest


@pytest.fixture
def folder(tmp_path):
    for name in ("b1", "b0", "a", "x/c1", "y/c2", "a[1]", "[x]\\/c3", "[x]/d"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    (tmp_path / "empty").write_text("")
    return tmp_path


def test_sorts_what_each_glob_matches(folder):
    patterns = [f"{folder}/b?", f"{folder}/a", f"{folder}/[xy]/c*"]
    names = ("b0", "b1", "a", "x/c1", "y/c2")
    assert paths.expand(patterns) == [f"{folder}/{name}" for name in names]


def test_files_of_several_globs_are_listed_once(folder, caplog):
    patterns = [f"{folder}/b1", f"{folder}/b?", f"{folder}/*b*"]
    assert paths.expand(patterns) == [f"{folder}/b1", f"{folder}/b0"]
    assert f"such as {folder}/b1. They are read once." in caplog.text


def test_a_glob_that_is_given_twice_counts_twice(folder, caplog):
    patterns = [f"{folder}/b?", f"{folder}/a", f"{folder}/b?"]
    names = ("b0", "b1", "a", "b0", "b1")
    assert paths.expand(patterns) == [f"{folder}/{name}" for name in names]
    assert not caplog.text


def test_globs_relative_to_here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert paths.expand(["b*", "*/c1"]) == ["b0", "b1", "x/c1"]


def test_a_name_that_exists_is_no_glob(folder):
    assert paths.expand([f"{folder}/a[1]"]) == [f"{folder}/a[1]"]
    assert paths.expand([f"{folder}/[x]\\/c?"]) == [f"{folder}/[x]\\/c3"]
    # A folder [x] exists, so this is not the folder x.
    assert paths.expand([f"{folder}/[x]/*"]) == [f"{folder}/[x]/d"]


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("{}/none*", r"No file matches. Received: .*none\*"),
        ("{}/**", "`\\*\\*` is not supported"),
        ("{}/none", "No file matches. Received: .*none"),
        ("", "No file matches. Received: ''"),
        ("{}/empty", "empty is empty"),
        ("{}", r"is a folder. Give files or a glob"),
        ("{}/", r"is a folder. Give files or a glob, such as .*[^/]/\*$"),
    ],
)
def test_names_what_is_wrong(folder, pattern, message):
    with pytest.raises(ValueError, match=message):
        paths.expand([f"{folder}/a", pattern.format(folder)])


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [
        (3, 3, [0, 1, 2]),
        (0, 3, []),
        (5, 3, [0, 2, 4]),
        (10, 4, [0, 3, 6, 9]),
        (1000, 2, [0, 999]),
    ],
)
def test_spread(count, most, expected):
    assert paths.spread(range(count), most) == expected
