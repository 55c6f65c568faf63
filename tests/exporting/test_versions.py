"""Tests of the numbered folders."""

import pathlib

from bert_tf.errors import InputError
from bert_tf.exporting import versions
from bert_tf.storage import run_lock

import pytest


@pytest.fixture(params=["", "file://"], ids=["path", "address"])
def model(request, tmp_path, monkeypatch):
    """Returns a model's folder as a path, and as an address like a bucket's."""
    # No other process takes the lock, so there is nothing to wait for.
    monkeypatch.setitem(run_lock.hold.__kwdefaults__, "settle", 0.01)
    return f"{request.param}{tmp_path}/mrpc"


def write(model, text="new"):
    with versions.new_version(model) as (number, folder):
        pathlib.Path(folder, "saved_model.pb").write_text(text)
    return number


def contents(tmp_path):
    paths = (tmp_path / "mrpc").rglob("*.pb")
    return {path.parent.name: path.read_text() for path in paths}


def test_next_number(model, tmp_path):
    assert [write(model, text) for text in "abc"] == [1, 2, 3]
    assert contents(tmp_path) == {"1": "a", "2": "b", "3": "c"}
    assert versions.numbers(model) == [1, 2, 3]


@pytest.mark.parametrize(
    ("names", "number"),
    [
        (["7"], 8),
        (["9", "10"], 11),
        (["1700000000"], 1700000001),
        (["003"], 4),  # TensorFlow Serving reads it as 3.
        (["2.tmp", "2.lock", "v5", "-8", "٣", "notes"], 1),
    ],
)
def test_number_is_one_more_than_the_highest(tmp_path, names, number):
    for name in names:
        (tmp_path / "mrpc" / name).mkdir(parents=True)
    assert write(f"{tmp_path}/mrpc/") == number
    assert {x.name for x in (tmp_path / "mrpc").iterdir()} >= {*names} - {
        "2.tmp",
        "2.lock",
    }


def test_no_number_before_it_is_whole(model, tmp_path):
    write(model)
    with versions.new_version(model) as (number, folder):
        pathlib.Path(folder, "saved_model.pb").write_text("half")
        assert number == 2
        # Names that TensorFlow Serving's scan (absl::SimpleAtoi) parses.
        names = [path.name for path in (tmp_path / "mrpc").iterdir()]
        assert [x for x in names if x.isdecimal()] == ["1"]
    assert contents(tmp_path) == {"1": "new", "2": "half"}


def test_error_leaves_what_was_there(model, tmp_path):
    write(model)
    with pytest.raises(KeyError), versions.new_version(model) as (_, folder):
        pathlib.Path(folder, "saved_model.pb").write_text("half")
        raise KeyError
    assert [path.name for path in (tmp_path / "mrpc").iterdir()] == ["1"]
    assert write(model) == 2


def test_input_error_of_the_writer_is_the_writers(model):
    # It is not mistaken for a version that another process writes.
    with pytest.raises(InputError, match="mine"), versions.new_version(model):
        raise InputError("mine")


def test_what_is_no_folder_of_versions(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="this is a file"):
        versions.numbers(f"{tmp_path}/file")
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(InputError, match=r"that of a SavedModel\. Give the"):
        versions.numbers(str(tmp_path))
