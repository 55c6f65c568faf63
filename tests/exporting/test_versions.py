"""Tests of the numbered folders, also by processes that write at one time."""

import pathlib

from bert_tf.errors import InputError
from bert_tf.exporting import versions
from bert_tf.storage import run_lock
from tests import processes

import pytest


@pytest.fixture(params=["", "file://"], ids=["path", "address"])
def model(request, tmp_path, monkeypatch):
    """A model's folder by its path, and by an address as buckets have them."""
    # Nobody else takes the lock, so there is nothing to wait for.
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
        # What TensorFlow Serving's scan reads as numbers, absl::SimpleAtoi.
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
    # And is not taken for that of a number that another process writes.
    with pytest.raises(InputError, match="mine"), versions.new_version(model):
        raise InputError("mine")


def test_a_killed_writer_leaves_its_number(tmp_path):
    script = """
    import os, pathlib, sys
    from bert_tf.exporting import versions
    with versions.new_version(sys.argv[1]) as (number, folder):
        pathlib.Path(folder, "saved_model.pb").write_text("half")
        os.kill(os.getpid(), 9)
    """
    model = tmp_path / "mrpc"
    code, _, _ = processes.run(script, model)
    assert code == -9
    assert versions.numbers(str(model)) == []
    assert write(str(model)) == 1
    assert contents(tmp_path) == {"1": "new"}
    assert [path.name for path in model.iterdir()] == ["1"]


def test_writers_at_one_time_have_numbers_of_their_own(tmp_path):
    script = """
    import pathlib, sys, time
    from bert_tf.exporting import versions
    for i in range(5):
        with versions.new_version(sys.argv[1]) as (number, folder):
            for name in ("saved_model.pb", "more.pb"):
                pathlib.Path(folder, name).write_text(f"{sys.argv[2]} {i}")
                time.sleep(0.02)
            print(number)
    """
    model = tmp_path / "mrpc"
    started = [processes.start(script, model, name) for name in "abc"]
    ended = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 3, ended
    numbers = [int(x) for output, _ in ended for x in output.split()]
    assert len(set(numbers)) == len(numbers) == 15
    assert versions.numbers(str(model)) == sorted(numbers)
    found = set()
    for path in model.iterdir():
        (text,) = {each.read_text() for each in path.iterdir()}
        assert len(list(path.iterdir())) == 2
        found.add(text)
    assert found == {f"{name} {i}" for name in "abc" for i in range(5)}


def test_what_is_no_folder_of_versions(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="this is a file"):
        versions.numbers(f"{tmp_path}/file")
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(InputError, match=r"that of a SavedModel\. Give the"):
        versions.numbers(str(tmp_path))
